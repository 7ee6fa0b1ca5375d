/* turn.h - merging segments and removing them take turns, where their times overlap.
 *
 * A merge that has read its inputs before they were removed would bring their samples back. So both leave word in the store, of
 * tenant and times, and then look for the other (segments/store/lease.h has the recipe):
 *
 *     merge     1. adds its lease    2. looks for removals: there is one: gives up    3. looks whether its inputs are there
 *               4. puts its outputs  5. renews its lease: if that was broken it takes the outputs back, unless these are
 *                                       so old that the inputs may have gone because of them
 *     removal   1. adds its lease    2. waits for merges; breaks leases of the dead   3. lists segments and deletes them
 *
 * Whoever comes second sees the other. What a merge put before a removal is listed by it; what it would put later it does not put.
 *
 *     _leases/merge/tenant=T/ID, _leases/remove/tenant=T/ID       text "times MIN MAX", in milliseconds, inclusive */
#ifndef SEGMENTS_STORE_TURN_H
#define SEGMENTS_STORE_TURN_H

#include "segments/store/store.h"

/* How long one that does not renew it counts as alive. */
#define SG_TURN_TTL_MS INT64_C(300000)

struct sg_turn;

/* Begin to put what was merged. QF_EBUSY: segments of the tenant and these times are being removed; else the errors of the
 * store. */
QF_MUST_CHECK qf_rc sg_turn_merge(struct sg_store *store, struct qf_str tenant, int64_t min_ts,
                                  int64_t max_ts, const struct sg_store_call *call,
                                  struct sg_turn **ret_turn, struct qf_err *err);
/* Begin to remove; waits for merges that are putting. @on_wait, which may be NULL, is told of that once. Errors of the store,
 * QF_ECANCELED. */
QF_MUST_CHECK qf_rc sg_turn_remove(struct sg_store *store, struct qf_str tenant, int64_t min_ts,
                                   int64_t max_ts, const struct sg_store_call *call,
                                   void (*on_wait)(void *ctx), void *ctx, struct sg_turn **ret_turn,
                                   struct qf_err *err);
/* Renew it if it is time; to be called before each step. QF_ETIMEOUT: others may think that it is over: go no further. */
QF_MUST_CHECK qf_rc sg_turn_tick(struct sg_turn *turn, const struct sg_store_call *call,
                                 struct qf_err *err);
/* Is it still ours? QF_ENOTFOUND, QF_ETIMEOUT: no, and what was put under it is to be taken back; else the errors of the
 * store. */
QF_MUST_CHECK qf_rc sg_turn_check(struct sg_turn *turn, const struct sg_store_call *call,
                                  struct qf_err *err);
struct sg_turn *sg_turn_end(struct sg_turn *turn); /* Accepts NULL, returns NULL. */

#endif
