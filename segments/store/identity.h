/* identity.h - which store this is: a name that whoever reads the same objects finds as well.
 *
 * Two processes may call one store by different names (mounts, endpoints), and two stores by the same.
 * So the store itself has a name, an object of 32 hex digits that is put once and never changes:
 *
 *     _store/id
 *
 * A copy of a store is the same store to this: it has the same segments. */
#ifndef SEGMENTS_STORE_IDENTITY_H
#define SEGMENTS_STORE_IDENTITY_H

#include "segments/store/store.h"

#define SG_STORE_ID_NAME "_store/id"
#define SG_STORE_ID_LEN 32

/* Find out the store's name. @create: give it one if it has none; whoever else does so at the same time
 * gets the same. *@ret_created tells if this call did. QF_ENOTFOUND: it has none; QF_ECORRUPT: the object
 * is something else; others as in store.h, QF_EDENIED or QF_EUNSUPPORTED where it may not be put. */
QF_MUST_CHECK qf_rc sg_store_identity(struct sg_store *store, bool create,
                                      const struct sg_store_call *call,
                                      char ret_id[SG_STORE_ID_LEN + 1], bool *ret_created,
                                      struct qf_err *err);

#endif
