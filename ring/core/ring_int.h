/* ring_int.h - the inside of a ring. */
#ifndef RING_CORE_RING_INT_H
#define RING_CORE_RING_INT_H

#include "ring/core/ring.h"

static inline bool rg_off(const struct rg_ring *ring, enum rg_unsafe rule)
{
    return (ring->unsafe & rule) != 0;
}

/* ring.c */
struct rg_change *rg_change_of(struct rg_ring *ring, uint64_t id);
/* Walk around the nodes as they are now. */
void rg_ring_walk(struct rg_ring *ring);
/* Owners of a slot out of its members. */
void rg_slot_place(struct rg_ring *ring, uint32_t slot);
/* What @change wants @slot to be; false: it is so already. */
bool rg_change_wants(const struct rg_change *change, const struct rg_slot *slot,
                     rg_nodes *ret_members, uint8_t *ret_copies);

/* move.c */
enum rg_verdict rg_on_begin(struct rg_ring *ring, const struct rg_entry *entry);
enum rg_verdict rg_on_held(struct rg_ring *ring, const struct rg_entry *entry);
/* Moves of @change end where they began. */
void rg_abandon(struct rg_ring *ring, struct rg_change *change);
/* If nothing is left to do the change is over. */
void rg_complete(struct rg_ring *ring, struct rg_change *change, int64_t now_ms);

/* clean.c */
enum rg_verdict rg_on_clean(struct rg_ring *ring, const struct rg_entry *entry);
enum rg_verdict rg_on_cleaned(struct rg_ring *ring, const struct rg_entry *entry);
enum rg_verdict rg_on_forget(struct rg_ring *ring, const struct rg_entry *entry);

#endif
