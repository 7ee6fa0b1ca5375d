/* clean.c - what former owners still hold goes, once nobody can need it. */
#include <string.h>

#include "ring/core/ring_int.h"

/* Are all changes that altered @slot over, and their grace periods? */
static bool is_at_rest(const struct rg_ring *ring, uint32_t slot, int64_t now_ms)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++) {
        const struct rg_change *change = &ring->changes[i];

        if (change->kind == RG_CHANGE_NONE || !rg_slot_set_has(&change->slots, slot))
            continue;
        if (rg_change_runs(change) || now_ms - change->completed_ms < ring->grace_ms)
            return false;
    }
    return true;
}

bool rg_slot_asks_held(const struct rg_ring *ring, uint32_t slot, int64_t now_ms)
{
    const struct rg_slot *s = &ring->slots[slot];

    return s->change || (s->stale && is_at_rest(ring, slot, now_ms));
}

enum rg_verdict rg_clean_check(const struct rg_ring *ring, uint32_t slot, uint8_t node,
                               int64_t now_ms)
{
    const struct rg_slot *s = &ring->slots[slot];

    if (rg_slot_everyone(s) & RG_NODE(node))
        return RG_IS_OWNER;
    if (!(s->stale & RG_NODE(node)))
        return RG_NOTHING;
    if (s->change)
        return RG_MOVING;
    if (!is_at_rest(ring, slot, now_ms))
        return RG_EARLY;
    if (!rg_is_quorum(&s->owners, s->held) && !rg_off(ring, RG_UNSAFE_CLEAN_UNHELD))
        return RG_NOT_HELD;
    return RG_APPLIED;
}

enum rg_verdict rg_on_clean(struct rg_ring *ring, const struct rg_entry *entry)
{
    uint32_t at = rg_slot_set_next(&entry->slots, 0);
    enum rg_verdict verdict;

    if (at >= ring->slot_count)
        return RG_NO_SUCH;
    if (entry->forced && entry->reason.len == 0)
        return RG_NO_REASON;
    verdict = rg_clean_check(ring, at, entry->node, entry->time_ms);
    if (entry->forced && verdict != RG_IS_OWNER && verdict != RG_NOTHING)
        verdict = RG_APPLIED;
    if (verdict == RG_APPLIED && (ring->slots[at].cleaning & RG_NODE(entry->node)))
        return RG_NOTHING;
    if (verdict == RG_APPLIED)
        ring->slots[at].cleaning |= RG_NODE(entry->node);
    return verdict;
}

enum rg_verdict rg_on_cleaned(struct rg_ring *ring, const struct rg_entry *entry)
{
    uint32_t at = rg_slot_set_next(&entry->slots, 0);
    struct rg_slot *slot;

    if (at >= ring->slot_count)
        return RG_NO_SUCH;
    slot = &ring->slots[at];
    if (slot->epoch != entry->epoch)
        return RG_OTHER_EPOCH;
    if (!(slot->cleaning & RG_NODE(entry->node)))
        return RG_NOTHING;
    slot->stale &= ~RG_NODE(entry->node);
    slot->cleaning &= ~RG_NODE(entry->node);
    if (!slot->stale && !slot->change)
        slot->held = 0;
    return RG_APPLIED;
}

static bool is_named(const struct rg_ring *ring, uint8_t node)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++)
        if ((ring->changes[i].kind == RG_CHANGE_ADD || ring->changes[i].kind == RG_CHANGE_REMOVE) &&
            ring->changes[i].node == node)
            return true;
    return false;
}

enum rg_verdict rg_on_forget(struct rg_ring *ring, const struct rg_entry *entry)
{
    struct rg_change *change = rg_change_of(ring, entry->change);
    uint8_t node;

    if (!change)
        return RG_NO_SUCH;
    if (rg_change_runs(change) || entry->time_ms - change->completed_ms < ring->grace_ms)
        return RG_EARLY;
    for (uint32_t at = rg_slot_set_next(&change->slots, 0); at < ring->slot_count;
         at = rg_slot_set_next(&change->slots, at + 1))
        if (ring->slots[at].stale)
            return RG_EARLY;
    node = change->node;
    memset(change, 0, sizeof(*change));
    if (ring->nodes[node].state == RG_NODE_REMOVED && !is_named(ring, node)) {
        memset(&ring->nodes[node], 0, sizeof(ring->nodes[node]));
        rg_ring_walk(ring);
    }
    return RG_APPLIED;
}
