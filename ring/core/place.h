/* place.h - which nodes keep the segments of a tenant's shard. Pure.
 *
 * A node stands on the ring at RG_VIRTUAL positions, the first 64 bits of SHA-256 of "NAME#0", "NAME#1", ... A key is
 * a tenant and a shard mod R; R, the tenant's placement count, never changes, so that all segments of a shard lie
 * together whatever their number of shards. The ring is cut into RG_SLOTS equal slots; a slot is what moves between nodes,
 * and all keys of a slot share their owners.
 *
 *   owners     The nodes that one meets going clockwise from where the slot begins, each once, first one of each zone,
 *              then the others in the order of the walk. Hence the owners for a smaller replication factor are a prefix
 *              of those for a greater one, and a node that comes or goes changes one owner of a slot at most.
 *   quorum     floor(RF / 2) + 1 of the RF owners, whatever their state (!). Counting among those that are up would
 *              let two halves of a cluster acknowledge without each other.
 *
 * A function of names and zones alone: the order in which nodes are given, or came, does not matter. */
#ifndef RING_CORE_PLACE_H
#define RING_CORE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"

enum {
    RG_VIRTUAL = 128,      /* positions of a node */
    RG_SLOTS = 1024,       /* of the ring; a power of two */
    RG_NODES_MAX = 64,     /* of a ring at a time; sets of nodes are words of 64 bits */
    RG_COPIES_MAX = 7,     /* the greatest replication factor */
    RG_NAME_MAX = 63,      /* bytes of a node's or a zone's name */
    RG_PLACEMENTS = 64,    /* the default of R */
    RG_TENANT_BYTES = 512, /* of a tenant's name */
};

/* Nodes by number, below RG_NODES_MAX: one bit each. */
typedef uint64_t rg_nodes;
#define RG_NODE(number) (UINT64_C(1) << (number))

/* The owners of a slot, in the order of preference. */
struct rg_owners {
    uint8_t count;
    uint8_t nodes[RG_COPIES_MAX]; /* numbers */
};

/* A node as the ring sees it. Borrowed while a function runs. */
struct rg_place_node {
    uint8_t number;
    struct qf_str name;
    struct qf_str zone; /* empty: every such node is a zone of its own */
};

/* Owners of every slot for @copies owners each, fewer if there are fewer nodes. QF_EINVAL: no node, a name or a number
 * twice or out of bounds, more nodes than RG_NODES_MAX, @copies 0 or above RG_COPIES_MAX. */
QF_MUST_CHECK qf_rc rg_place(const struct rg_place_node *nodes, size_t count, uint8_t copies,
                             struct rg_owners ret_slots[RG_SLOTS], struct qf_err *err);

/* The walks of a ring, kept so that owners among some of its nodes need no hashing. */
struct rg_walks {
    uint32_t slots;                 /* 1 to RG_SLOTS, a power of two */
    uint8_t count;                  /* nodes */
    uint8_t zone[RG_NODES_MAX];     /* by number; equal: the same zone. 0: a zone of its own */
    uint8_t (*order)[RG_NODES_MAX]; /* of each slot: numbers, in the order of the walk; owned */
};

/* Walk from the start of each of @slots slots around all of @nodes; no node is fine. Errors as of rg_place(). What
 * @walks had is freed. */
QF_MUST_CHECK qf_rc rg_walks_make(struct rg_walks *walks, const struct rg_place_node *nodes,
                                  size_t count, uint32_t slots, struct qf_err *err);
void rg_walks_done(struct rg_walks *walks);

/* The owners of @slot if the ring had @members alone: @copies of them, or all if they are fewer. */
struct rg_owners rg_walks_owners(const struct rg_walks *walks, uint32_t slot, rg_nodes members,
                                 uint8_t copies);

/* The slot of @tenant's @shard, with @placements (R, not 0) of the tenant. Names longer than RG_TENANT_BYTES are cut. */
uint32_t rg_slot_of(struct qf_str tenant, uint32_t shard, uint32_t placements);

/* floor(@copies / 2) + 1. */
static inline unsigned rg_quorum(unsigned copies)
{
    return copies / 2 + 1;
}

static inline rg_nodes rg_owners_set(const struct rg_owners *owners)
{
    rg_nodes set = 0;

    for (unsigned i = 0; i < owners->count; i++)
        set |= RG_NODE(owners->nodes[i]);
    return set;
}

static inline bool rg_owners_equal(const struct rg_owners *a, const struct rg_owners *b)
{
    return rg_owners_set(a) == rg_owners_set(b);
}

static inline unsigned rg_nodes_count(rg_nodes set)
{
    return (unsigned)__builtin_popcountll(set);
}

/* Do those who said yes make a quorum of @owners, all of whom count whether they are up or not? */
static inline bool rg_is_quorum(const struct rg_owners *owners, rg_nodes yes)
{
    return rg_nodes_count(rg_owners_set(owners) & yes) >= rg_quorum(owners->count);
}

#endif
