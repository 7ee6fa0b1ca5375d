/* hands.h - what the leader of `meta` does to storage nodes and partitions: calls that block, made by several threads.
 *
 * A slot's epoch goes with every call; a keeper refuses what is older than it knows (ring/core/keep.h). Whatever fails is asked
 * for again later; calls may be repeated. All of them end within a bounded time. */
#ifndef RING_COORD_HANDS_H
#define RING_COORD_HANDS_H

#include "base/pure/strbuf.h"
#include "base/pure/vec.h"
#include "ring/core/ring.h"

/* What a keeper says of itself. */
struct rg_looked {
    uint64_t incarnation; /* this life of its disk */
    bool told;            /* the epochs of all slots */
};

/* Where a call goes, and about what. */
struct rg_place_of_call {
    const char *url; /* of the keeper */
    uint32_t slot;
    uint64_t epoch;             /* of the slot */
    const char *const *sources; /* URLs of others that hold it */
    size_t source_count;
};

/* Names of a slot's blobs, as the manifests of all partitions have them. */
struct rg_listing {
    QF_VEC(struct qf_str) names; /* borrow from bytes */
    struct qf_strbuf bytes;
    uint64_t epoch; /* the least that a partition had adopted when it was listed */
};
void rg_listing_done(struct rg_listing *listing);

/* What came of hold and stream. */
struct rg_moved {
    uint64_t incarnation;
    uint64_t blobs, bytes; /* that were copied */
    size_t missing;        /* of the names that were asked for, still */
};

struct rg_hands {
    void *ctx;
    qf_rc (*look)(void *ctx, const char *url, struct rg_looked *ret_looked, struct qf_err *err);
    /* Let it know the epochs of all slots. */
    qf_rc (*tell)(void *ctx, const char *url, const uint64_t *epochs, uint32_t count,
                  struct rg_looked *ret_looked, struct qf_err *err);
    /* NULL: there are no manifests yet, and nothing is named. */
    qf_rc (*list)(void *ctx, uint32_t slot, struct rg_listing *listing, struct qf_err *err);
    /* Let it fetch those of @names that it lacks. */
    qf_rc (*stream)(void *ctx, const struct rg_place_of_call *at, const struct qf_str *names,
                    size_t count, struct rg_moved *ret_moved, struct qf_err *err);
    /* Give it the union of the documents of all sources. */
    qf_rc (*documents)(void *ctx, const struct rg_place_of_call *at, struct qf_err *err);
    /* Which of @names does it lack? */
    qf_rc (*hold)(void *ctx, const struct rg_place_of_call *at, const struct qf_str *names,
                  size_t count, struct rg_moved *ret_moved, struct qf_err *err);
    /* It drops what it holds of the slot. */
    qf_rc (*clean)(void *ctx, const struct rg_place_of_call *at, struct qf_err *err);
    /* How often each slot's blobs were read there lately. NULL: nobody knows. */
    qf_rc (*heat)(void *ctx, const char *url, uint64_t ret_heat[RG_SLOTS], struct qf_err *err);
    /* Let the partition adopt the ring's epoch. NULL: partitions know nothing of rings yet. */
    qf_rc (*adopt)(void *ctx, uint32_t partition, const struct rg_ring *ring, struct qf_err *err);
};

#endif
