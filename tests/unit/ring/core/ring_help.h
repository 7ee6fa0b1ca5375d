/* ring_help.h - short words for entries, for tests of rings. */
#ifndef TESTS_UNIT_RING_CORE_RING_HELP_H
#define TESTS_UNIT_RING_CORE_RING_HELP_H

#include <stdio.h>
#include <string.h>

#include "ring/core/ring.h"
#include "tests/lib/test.h"

#define HOUR_MS (INT64_C(60) * 60 * 1000)

static inline void ring_freep(struct rg_ring **ring)
{
    *ring = rg_ring_free(*ring);
}

static inline enum rg_verdict do_entry(struct rg_ring *ring, struct rg_entry entry)
{
    return rg_ring_apply(ring, ring->applied + 1, &entry);
}

static inline enum rg_verdict add(struct rg_ring *ring, const char *name, const char *zone)
{
    return do_entry(ring, (struct rg_entry){ .kind = RG_ADD,
                                             .name = qf_str_from(name),
                                             .zone = qf_str_from(zone),
                                             .incarnation = 100 });
}

/* A ring of nodes n0, n1, ... */
static inline struct rg_ring *found(uint32_t slots, unsigned nodes, uint8_t copies)
{
    struct rg_ring *ring = rg_ring_new(slots);
    char name[16];

    for (unsigned i = 0; i < nodes; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        CHECK_EQ(add(ring, name, ""), RG_APPLIED);
    }
    CHECK_EQ(
        do_entry(ring,
                 (struct rg_entry){ .kind = RG_FOUND, .copies = copies, .grace_ms = 24 * HOUR_MS }),
        RG_APPLIED);
    return ring;
}

static inline enum rg_verdict begin_all(struct rg_ring *ring, uint64_t change)
{
    struct rg_entry entry = { .kind = RG_BEGIN, .change = change };

    memset(&entry.slots, 0xff, sizeof(entry.slots));
    return do_entry(ring, entry);
}

static inline enum rg_verdict held_by(struct rg_ring *ring, uint32_t slot, uint8_t node)
{
    return do_entry(ring, (struct rg_entry){ .kind = RG_HELD,
                                             .node = node,
                                             .incarnation = ring->nodes[node].incarnation,
                                             .epoch = ring->epoch,
                                             .time_ms = ring->time_ms,
                                             .slots = rg_slot_set_of(slot) });
}

/* Every new owner of @slot holds everything. */
static inline void hold(struct rg_ring *ring, uint32_t slot)
{
    rg_nodes nodes = rg_owners_set(&ring->slots[slot].to);

    for (uint8_t n = 0; n < RG_NODES_MAX; n++)
        if (nodes & RG_NODE(n))
            (void)held_by(ring, slot, n);
}

/* Move all that @change wants, to its end. */
static inline void finish(struct rg_ring *ring, uint64_t change)
{
    for (int round = 0; round < 3; round++) {
        (void)begin_all(ring, change);
        for (uint32_t i = 0; i < ring->slot_count; i++)
            if (ring->slots[i].change)
                hold(ring, i);
    }
}

/* The first slot that moves. */
static inline uint32_t moving(const struct rg_ring *ring)
{
    uint32_t slot = 0;

    while (slot < ring->slot_count && !ring->slots[slot].change)
        slot++;
    CHECK_MSG(slot < ring->slot_count, "no slot moves");
    return slot;
}

#endif
