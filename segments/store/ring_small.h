/* ring_small.h - names on our own nodes that say something by being there: marks, claims, leases. Blocks.
 *
 * What leases and conditional puts do in a bucket the order of a log does on our own nodes: an entry that replaces names
 * counts only if all of them are there (ring/core/manifest.h), so that of several that replace the same name one counts.
 * The names are of blobs of a byte, for what is named must lie with its owners. */
#ifndef SEGMENTS_STORE_RING_SMALL_H
#define SEGMENTS_STORE_RING_SMALL_H

#include "base/pure/vec.h"
#include "segments/store/ring.h"

/* What an entry adds and removes. Names are borrowed. Begin with RING_SMALL_INIT. */
struct ring_small {
    QF_VEC(struct rg_blob) added;
    QF_VEC(struct qf_str) removed;
    uint64_t epoch; /* the least in which owners of what is added were counted */
};
#define RING_SMALL_INIT                                                                            \
    {                                                                                              \
        .epoch = UINT64_MAX                                                                        \
    }
void ring_small_done(struct ring_small *change);

/* Have a blob of a byte called @name with its owners, to be named by @change. Errors of sg_ring_place(). */
QF_MUST_CHECK qf_rc ring_small_add(struct ring_small *change, struct sg_store *store,
                                   const char *name, const struct sg_store_call *call,
                                   struct qf_err *err);
/* Have it counted in the partition of @key; to do it again is harmless. QF_EGONE: it counts for nothing: a name that was to be
 * replaced is not there any more, or owners changed. Others: it may count, or not, or later. */
QF_MUST_CHECK qf_rc ring_small_commit(const struct ring_small *change, struct sg_store *store,
                                      struct qf_str key, const struct sg_store_call *call,
                                      struct qf_err *err);
/* A number that nobody else has in its names. */
uint64_t ring_small_id(void);

#endif
