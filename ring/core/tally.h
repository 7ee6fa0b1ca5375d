/* tally.h - who has a put, and whether that is enough. Pure.
 *
 * A put goes to all owners of its slot, old and new while it moves, and is counted in the slot's epoch of when it began. A
 * segment is named only when the level quorum is reached; documents have a level each.
 *
 *   one      an owner has it
 *   quorum   majorities of the old and of the new owners have it, all of them counted, whether up or not
 *   all      everybody has it
 *
 * Hand-off never counts (!): what lies with a coordinator is on one disk, which may be lost with it. */
#ifndef RING_CORE_TALLY_H
#define RING_CORE_TALLY_H

#include "ring/core/ring.h"

enum rg_level { RG_LEVEL_ONE, RG_LEVEL_QUORUM, RG_LEVEL_ALL };

enum rg_answer {
    RG_ANSWER_HAS,    /* durable there */
    RG_ANSWER_FAILED, /* down, full, timed out: may be asked again */
    RG_ANSWER_OLD,    /* knows a later epoch of the slot */
    RG_ANSWER_HANDED  /* it failed, and hand-off has it for the node */
};

enum rg_tally_state {
    RG_TALLY_WAITS,
    RG_TALLY_ENOUGH, /* the level is reached; answers still out may come */
    RG_TALLY_FAILED, /* it cannot be reached any more: put again later */
    RG_TALLY_OLD     /* begin again, with a ring that knows the later epoch */
};

struct rg_tally {
    struct rg_slot slot; /* as it was; puts carry its epoch */
    uint64_t epoch;      /* of the ring as it was: what the manifest's entry carries */
    enum rg_level level;
    rg_nodes has, failed, handed;
    bool old;
};

/* Begin to count a put into @slot. */
void rg_tally_begin(struct rg_tally *tally, const struct rg_ring *ring, uint32_t slot,
                    enum rg_level level);
/* @node said @answer. Of several the best counts; from others than owners none does. */
void rg_tally_hear(struct rg_tally *tally, uint8_t node, enum rg_answer answer);
/* @ring is asked for its rules alone. */
enum rg_tally_state rg_tally_state(const struct rg_tally *tally, const struct rg_ring *ring);
/* Owners that have not said that they have it: what hand-off is for, once there is enough. */
rg_nodes rg_tally_missing(const struct rg_tally *tally);

#endif
