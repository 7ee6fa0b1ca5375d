/* move.c - slots go from their old owners to their new ones. */
#include "ring/core/ring_int.h"

/* Nodes that had to do with @slot and have no more: they may hold blobs of it. Who is gone is not asked to clean up. */
static void leave_behind(struct rg_ring *ring, struct rg_slot *slot, rg_nodes were)
{
    rg_nodes owners = rg_owners_set(&slot->owners);

    for (uint8_t n = 0; n < RG_NODES_MAX; n++)
        if ((were & ~owners & RG_NODE(n)) && ring->nodes[n].state != RG_NODE_NONE &&
            ring->nodes[n].state != RG_NODE_REMOVED)
            slot->stale |= RG_NODE(n);
    slot->stale &= ~owners;
    slot->cleaning &= slot->stale;
}

static void settle(struct rg_ring *ring, uint32_t at, bool forward)
{
    struct rg_slot *slot = &ring->slots[at];
    rg_nodes were = rg_slot_everyone(slot);

    if (forward) {
        slot->members = slot->to_members;
        slot->copies = slot->to_copies;
    }
    slot->change = 0;
    slot->to_members = 0;
    slot->to_copies = 0;
    slot->held = 0;
    slot->epoch = ring->epoch;
    rg_slot_place(ring, at);
    leave_behind(ring, slot, were);
}

/* True if @slot moves now; false if @change alters nothing about its owners, which is noted. */
static bool begin(struct rg_ring *ring, struct rg_change *change, uint32_t at)
{
    struct rg_slot *slot = &ring->slots[at];
    rg_nodes members;
    uint8_t copies;
    struct rg_owners to;

    if (!rg_change_wants(change, slot, &members, &copies) || rg_nodes_count(members) < copies)
        return false;
    to = rg_walks_owners(&ring->walks, at, members, copies);
    if (rg_owners_equal(&slot->owners, &to)) {
        slot->members = members;
        slot->copies = copies;
        rg_slot_place(ring, at);
        return false;
    }
    slot->to_members = members;
    slot->to_copies = copies;
    slot->change = (uint8_t)(1 + (change - ring->changes));
    slot->held = 0;
    slot->epoch = ring->epoch + 1;
    rg_slot_place(ring, at);
    slot->stale &= ~rg_owners_set(&slot->to);
    slot->cleaning &= slot->stale;
    rg_slot_set_add(&change->slots, at);
    return true;
}

enum rg_verdict rg_on_begin(struct rg_ring *ring, const struct rg_entry *entry)
{
    struct rg_change *change = rg_change_of(ring, entry->change);
    struct rg_slot_set ready;
    bool moves = false;

    if (!change)
        return RG_NO_SUCH;
    if (!rg_ring_ready(ring, change, &ready))
        return RG_NOTHING;
    for (uint32_t at = rg_slot_set_next(&ready, 0); at < ring->slot_count;
         at = rg_slot_set_next(&ready, at + 1)) {
        if (!rg_slot_set_has(&entry->slots, at))
            continue;
        if (ring->slots[at].change) /* only with the rule off */
            settle(ring, at, true);
        moves |= begin(ring, change, at);
    }
    ring->epoch += moves;
    rg_complete(ring, change, entry->time_ms);
    return RG_APPLIED;
}

void rg_abandon(struct rg_ring *ring, struct rg_change *change)
{
    uint8_t row = (uint8_t)(1 + (change - ring->changes));
    bool any = false;

    for (uint32_t i = 0; i < ring->slot_count; i++)
        any |= ring->slots[i].change == row;
    ring->epoch += any;
    for (uint32_t i = 0; any && i < ring->slot_count; i++)
        if (ring->slots[i].change == row)
            settle(ring, i, false);
}

/* May @slot leave its old owners? All newcomers and a majority of the new owners hold what was named before the move was
 * known everywhere; what was named later has majorities of both. */
static bool may_leave(const struct rg_ring *ring, const struct rg_slot *slot)
{
    if (rg_slot_newcomers(slot) & ~slot->held)
        return false;
    return rg_off(ring, RG_UNSAFE_NEWCOMER_ALONE) || rg_is_quorum(&slot->to, slot->held);
}

/* One slot of a HELD. */
static enum rg_verdict held(struct rg_ring *ring, const struct rg_entry *entry, uint32_t at)
{
    struct rg_slot *slot = &ring->slots[at];
    const struct rg_owners *owners = slot->change ? &slot->to : &slot->owners;

    if (!rg_slot_asks_held(ring, at, entry->time_ms) ||
        !(rg_owners_set(owners) & RG_NODE(entry->node)))
        return RG_NOTHING;
    if (entry->epoch < slot->epoch && !rg_off(ring, RG_UNSAFE_HELD_ANYWHERE))
        return RG_OTHER_EPOCH;
    if (slot->held & RG_NODE(entry->node))
        return RG_NOTHING;
    slot->held |= RG_NODE(entry->node);
    return RG_APPLIED;
}

/* Slots that may leave their old owners do, all in one epoch. */
static void leave(struct rg_ring *ring, const struct rg_slot_set *slots, int64_t now_ms)
{
    bool any = false;

    for (uint32_t at = rg_slot_set_next(slots, 0); at < ring->slot_count;
         at = rg_slot_set_next(slots, at + 1)) {
        struct rg_slot *slot = &ring->slots[at];

        if (!slot->change || !may_leave(ring, slot))
            continue;
        ring->epoch += !any;
        any = true;
        settle(ring, at, true);
    }
    for (size_t i = 0; any && i < RG_CHANGES_MAX; i++)
        if (rg_change_runs(&ring->changes[i]))
            rg_complete(ring, &ring->changes[i], now_ms);
}

enum rg_verdict rg_on_held(struct rg_ring *ring, const struct rg_entry *entry)
{
    struct rg_change *change = entry->change ? rg_change_of(ring, entry->change) : NULL;
    enum rg_verdict verdict = RG_NOTHING;

    if (ring->nodes[entry->node].state == RG_NODE_NONE)
        return RG_NO_SUCH;
    if (ring->nodes[entry->node].incarnation != entry->incarnation &&
        !rg_off(ring, RG_UNSAFE_HELD_BY_ANY_DISK))
        return RG_OTHER_DISK;
    if (change && rg_change_runs(change)) {
        change->blobs += entry->blobs;
        change->bytes += entry->bytes;
    }
    for (uint32_t at = rg_slot_set_next(&entry->slots, 0); at < ring->slot_count;
         at = rg_slot_set_next(&entry->slots, at + 1)) {
        enum rg_verdict one = held(ring, entry, at);

        if (one == RG_APPLIED || verdict == RG_NOTHING)
            verdict = one;
    }
    leave(ring, &entry->slots, entry->time_ms);
    return verdict;
}

static void end_node(struct rg_ring *ring, uint8_t number, bool stays)
{
    struct rg_node *node = &ring->nodes[number];

    node->state = stays ? RG_NODE_NORMAL : RG_NODE_REMOVED;
    if (stays)
        return;
    node->down = false;
    node->down_ms = 0;
    for (uint32_t i = 0; i < ring->slot_count; i++) {
        ring->slots[i].stale &= ~RG_NODE(number);
        ring->slots[i].cleaning &= ~RG_NODE(number);
    }
}

void rg_complete(struct rg_ring *ring, struct rg_change *change, int64_t now_ms)
{
    bool back = change->state == RG_ROLLING_BACK;

    if (!rg_change_runs(change) || rg_ring_left(ring, change))
        return;
    change->state = back ? RG_ROLLED_BACK : RG_COMPLETED;
    change->completed_ms = now_ms;
    if (change->kind != RG_CHANGE_FACTOR)
        end_node(ring, change->node, (change->kind == RG_CHANGE_ADD) != back);
}
