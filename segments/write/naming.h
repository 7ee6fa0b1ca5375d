/* naming.h - the segments of a batch on our own nodes: they lie with their owners first, and get their names together.
 *
 * A blob without a name is garbage in a day (ring/core/keep.h), so a batch that fails or dies before naming_finish() leaves
 * nothing that anybody sees. The files stay in the batch's folder until then: if owners change in between, or if it takes
 * longer than half of that day, they are put once more.
 *
 * Up to SG_CLAIM_NAMES_MAX segments become visible in one step; of more as many at a time, when all of them are with their
 * owners. */
#ifndef SEGMENTS_WRITE_NAMING_H
#define SEGMENTS_WRITE_NAMING_H

#include "segments/write/batch.h"

struct naming;

/* NULL: the store is not one of our own nodes. Borrows @options and @dir. */
struct naming *naming_new(const struct sg_batch_options *options, const char *dir);
struct naming *naming_free(struct naming *naming); /* Accepts NULL, returns NULL. */

/* Have the file at @path, which is taken away from there, with the owners of @key. */
QF_MUST_CHECK qf_rc naming_put(struct naming *naming, struct qf_str key, const char *path,
                               uint64_t *ret_bytes, struct qf_err *err);
/* Name everything, if the claim of the batch is still there. QF_ENOTFOUND: it is not. QF_EUNAVAILABLE: owners went on
 * changing. */
QF_MUST_CHECK qf_rc naming_finish(struct naming *naming, struct qf_err *err);
/* Something may have been named. */
bool naming_asked(const struct naming *naming);

#endif
