/* apply.c - nodes and changes come and go. */
#include <string.h>

#include "ring/core/ring_int.h"

static void keep_reason(struct rg_change *change, struct qf_str reason)
{
    size_t len = qf_str_sub(reason, 0, RG_REASON_MAX).len;

    memset(change->reason, 0, sizeof(change->reason));
    if (len)
        memcpy(change->reason, reason.data, len);
}

static bool is_locked(const struct rg_ring *ring, enum rg_change_kind kind, uint8_t node)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++) {
        const struct rg_change *change = &ring->changes[i];

        if (!rg_change_runs(change))
            continue;
        if (kind == RG_CHANGE_FACTOR ? change->kind == RG_CHANGE_FACTOR
                                     : change->kind != RG_CHANGE_FACTOR && change->node == node)
            return true;
    }
    return false;
}

static struct rg_change *open_change(struct rg_ring *ring, enum rg_change_kind kind, uint8_t node,
                                     int64_t now_ms)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++) {
        if (ring->changes[i].kind != RG_CHANGE_NONE)
            continue;
        ring->changes[i] = (struct rg_change){
            .id = ring->applied, .kind = kind, .node = node, .started_ms = now_ms
        };
        return &ring->changes[i];
    }
    return NULL;
}

static bool has_room_for_change(const struct rg_ring *ring)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++)
        if (ring->changes[i].kind == RG_CHANGE_NONE)
            return true;
    return false;
}

static enum rg_verdict on_found(struct rg_ring *ring, const struct rg_entry *entry)
{
    if (ring->founded)
        return RG_EARLY;
    if (entry->copies == 0 || entry->copies > RG_COPIES_MAX || entry->grace_ms < 0)
        return RG_BAD;
    if (rg_nodes_count(ring->members) < entry->copies)
        return RG_TOO_FEW;
    ring->founded = true;
    ring->epoch = 1;
    ring->copies = entry->copies;
    ring->grace_ms = entry->grace_ms;
    for (uint8_t n = 0; n < RG_NODES_MAX; n++)
        if (ring->members & RG_NODE(n))
            ring->nodes[n].state = RG_NODE_NORMAL;
    for (uint32_t i = 0; i < ring->slot_count; i++) {
        ring->slots[i].epoch = 1;
        ring->slots[i].members = ring->members;
        ring->slots[i].copies = ring->copies;
        rg_slot_place(ring, i);
    }
    return RG_APPLIED;
}

/* True: it is another one. */
static bool take_url(struct rg_node *node, struct qf_str url)
{
    if (!url.len || qf_str_is(url, node->url))
        return false;
    memset(node->url, 0, sizeof(node->url));
    memcpy(node->url, url.data, url.len);
    return true;
}

static enum rg_verdict on_add(struct rg_ring *ring, const struct rg_entry *entry)
{
    uint8_t number = 0;
    struct rg_node *node;

    if (entry->name.len == 0 || entry->name.len > RG_NAME_MAX || entry->zone.len > RG_NAME_MAX ||
        entry->url.len > RG_URL_MAX)
        return RG_BAD;
    if (rg_ring_node(ring, entry->name) < RG_NODES_MAX)
        return RG_EXISTS;
    while (number < RG_NODES_MAX && ring->nodes[number].state != RG_NODE_NONE)
        number++;
    if (number == RG_NODES_MAX || (ring->founded && !has_room_for_change(ring)))
        return RG_FULL;
    node = &ring->nodes[number];
    *node = (struct rg_node){ .incarnation = entry->incarnation, .state = RG_NODE_BOOTSTRAPPING };
    memcpy(node->name, entry->name.data, entry->name.len);
    if (entry->zone.len)
        memcpy(node->zone, entry->zone.data, entry->zone.len);
    (void)take_url(node, entry->url);
    ring->members |= RG_NODE(number);
    rg_ring_walk(ring);
    if (ring->founded)
        rg_complete(ring, open_change(ring, RG_CHANGE_ADD, number, entry->time_ms), entry->time_ms);
    return RG_APPLIED;
}

static enum rg_verdict on_remove(struct rg_ring *ring, const struct rg_entry *entry)
{
    const struct rg_node *node = &ring->nodes[entry->node];

    if (!ring->founded)
        return RG_EARLY;
    if (node->state == RG_NODE_NONE || node->state == RG_NODE_REMOVED)
        return RG_NO_SUCH;
    if (is_locked(ring, RG_CHANGE_REMOVE, entry->node))
        return RG_LOCKED;
    if (rg_nodes_count(ring->members & ~RG_NODE(entry->node)) < ring->copies)
        return RG_TOO_FEW;
    if (!has_room_for_change(ring))
        return RG_FULL;
    ring->members &= ~RG_NODE(entry->node);
    ring->nodes[entry->node].state = RG_NODE_LEAVING;
    rg_complete(ring, open_change(ring, RG_CHANGE_REMOVE, entry->node, entry->time_ms),
                entry->time_ms);
    return RG_APPLIED;
}

static enum rg_verdict on_factor(struct rg_ring *ring, const struct rg_entry *entry)
{
    struct rg_change *change;

    if (!ring->founded)
        return RG_EARLY;
    if (entry->copies == 0 || entry->copies > RG_COPIES_MAX)
        return RG_BAD;
    if (entry->copies == ring->copies)
        return RG_NOTHING;
    if (is_locked(ring, RG_CHANGE_FACTOR, 0))
        return RG_LOCKED;
    if (rg_nodes_count(ring->members) < entry->copies)
        return RG_TOO_FEW;
    change = open_change(ring, RG_CHANGE_FACTOR, 0, entry->time_ms);
    if (!change)
        return RG_FULL;
    change->from = ring->copies;
    change->to = ring->copies = entry->copies;
    return RG_APPLIED;
}

/* Turn @change around: what it asked for is asked back. */
static enum rg_verdict roll_back(struct rg_ring *ring, struct rg_change *change, int64_t now_ms)
{
    bool adds = change->kind == RG_CHANGE_ADD;
    rg_nodes members =
        adds ? ring->members & ~RG_NODE(change->node) : ring->members | RG_NODE(change->node);

    if (change->state != RG_RUNNING)
        return RG_NOTHING;
    if (change->kind == RG_CHANGE_FACTOR) {
        if (rg_nodes_count(ring->members) < change->from)
            return RG_TOO_FEW;
        ring->copies = change->from;
    } else {
        if (rg_nodes_count(members) < ring->copies)
            return RG_TOO_FEW; /* somebody who is leaving relies on it */
        ring->members = members;
        ring->nodes[change->node].state = adds ? RG_NODE_LEAVING : RG_NODE_NORMAL;
    }
    rg_abandon(ring, change);
    change->state = RG_ROLLING_BACK;
    rg_complete(ring, change, now_ms);
    return RG_APPLIED;
}

static enum rg_verdict on_cancel(struct rg_ring *ring, const struct rg_entry *entry)
{
    struct rg_change *change = rg_change_of(ring, entry->change);
    enum rg_verdict verdict;

    if (!change)
        return RG_NO_SUCH;
    verdict = roll_back(ring, change, entry->time_ms);
    if (verdict == RG_APPLIED)
        keep_reason(change, entry->reason);
    return verdict;
}

static enum rg_verdict on_failed(struct rg_ring *ring, const struct rg_entry *entry)
{
    struct rg_change *change = rg_change_of(ring, entry->change);

    if (!change)
        return RG_NO_SUCH;
    if (!rg_change_runs(change))
        return RG_NOTHING;
    change->failures += change->failures < UINT32_MAX;
    keep_reason(change, entry->reason);
    if (change->kind == RG_CHANGE_ADD && change->failures >= RG_FAILURES_MAX)
        (void)roll_back(ring, change, entry->time_ms);
    return RG_APPLIED;
}

static enum rg_verdict on_status(struct rg_ring *ring, const struct rg_entry *entry)
{
    struct rg_node *node = &ring->nodes[entry->node];
    bool other, moved;

    if (node->state == RG_NODE_NONE || node->state == RG_NODE_REMOVED)
        return RG_NO_SUCH;
    if (entry->url.len > RG_URL_MAX)
        return RG_BAD;
    if (entry->kind == RG_DOWN) {
        if (node->down)
            return RG_NOTHING;
        node->down = true;
        node->down_ms = entry->time_ms;
        return RG_APPLIED;
    }
    other = node->incarnation != entry->incarnation;
    moved = take_url(node, entry->url);
    if (!node->down && !other && !moved)
        return RG_NOTHING;
    node->down = false;
    node->down_ms = 0;
    node->incarnation = entry->incarnation;
    for (uint32_t i = 0; other && i < ring->slot_count; i++)
        if (!rg_off(ring, RG_UNSAFE_HELD_BY_ANY_DISK))
            ring->slots[i].held &= ~RG_NODE(entry->node);
    return RG_APPLIED;
}

enum rg_verdict rg_ring_apply(struct rg_ring *ring, uint64_t index, const struct rg_entry *entry)
{
    ring->applied = index;
    if (entry->time_ms > ring->time_ms)
        ring->time_ms = entry->time_ms;
    switch (entry->kind) {
    case RG_FOUND:
        return on_found(ring, entry);
    case RG_ADD:
        return on_add(ring, entry);
    case RG_REMOVE:
        return on_remove(ring, entry);
    case RG_FACTOR:
        return on_factor(ring, entry);
    case RG_CANCEL:
        return on_cancel(ring, entry);
    case RG_DOWN:
    case RG_UP:
        return on_status(ring, entry);
    case RG_BEGIN:
        return rg_on_begin(ring, entry);
    case RG_HELD:
        return rg_on_held(ring, entry);
    case RG_FAILED:
        return on_failed(ring, entry);
    case RG_CLEAN:
        return rg_on_clean(ring, entry);
    case RG_CLEANED:
        return rg_on_cleaned(ring, entry);
    case RG_FORGET:
        return rg_on_forget(ring, entry);
    case RG_ENTRY__COUNT:
        break;
    }
    return RG_BAD;
}
