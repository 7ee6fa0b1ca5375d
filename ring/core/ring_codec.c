/* ring_codec.c - a ring as bytes, for snapshots. */
#include <string.h>

#include "base/pure/varint.h"
#include "ring/core/bytes.h"
#include "ring/core/ring_int.h"

enum { VERSION = 1 };

/* --- writing --- */

static void put_time(struct qf_strbuf *buf, int64_t time_ms)
{
    rg_put(buf, qf_zigzag(time_ms));
}

static void put_node(struct qf_strbuf *buf, const struct rg_node *node)
{
    rg_put(buf, node->state);
    if (node->state == RG_NODE_NONE)
        return;
    rg_put_text(buf, qf_str_from(node->name));
    rg_put_text(buf, qf_str_from(node->zone));
    rg_put_text(buf, qf_str_from(node->url));
    rg_put(buf, node->incarnation);
    rg_put(buf, node->down);
    put_time(buf, node->down_ms);
}

static void put_change(struct qf_strbuf *buf, const struct rg_change *change)
{
    rg_put(buf, change->kind);
    if (change->kind == RG_CHANGE_NONE)
        return;
    rg_put(buf, change->id);
    rg_put(buf, change->state);
    rg_put(buf, change->node);
    rg_put(buf, change->from);
    rg_put(buf, change->to);
    rg_put(buf, change->failures);
    rg_put_text(buf, qf_str_from(change->reason));
    put_time(buf, change->started_ms);
    put_time(buf, change->completed_ms);
    rg_put(buf, change->blobs);
    rg_put(buf, change->bytes);
    rg_put_slots(buf, &change->slots);
}

/* Owners are not written: they follow from the rest. */
static bool same_slot(const struct rg_slot *a, const struct rg_slot *b)
{
    return a->epoch == b->epoch && a->members == b->members && a->copies == b->copies &&
           a->change == b->change && a->to_members == b->to_members &&
           a->to_copies == b->to_copies && a->held == b->held && a->stale == b->stale &&
           a->cleaning == b->cleaning;
}

static void put_slot(struct qf_strbuf *buf, const struct rg_slot *slot)
{
    rg_put(buf, slot->epoch);
    rg_put(buf, slot->members);
    rg_put(buf, slot->copies);
    rg_put(buf, slot->change);
    rg_put(buf, slot->to_members);
    rg_put(buf, slot->to_copies);
    rg_put(buf, slot->held);
    rg_put(buf, slot->stale);
    rg_put(buf, slot->cleaning);
}

void rg_ring_encode(struct qf_strbuf *buf, const struct rg_ring *ring)
{
    rg_put(buf, VERSION);
    rg_put(buf, ring->applied);
    put_time(buf, ring->time_ms);
    rg_put(buf, ring->founded);
    rg_put(buf, ring->epoch);
    rg_put(buf, ring->copies);
    put_time(buf, ring->grace_ms);
    for (size_t i = 0; i < RG_NODES_MAX; i++)
        put_node(buf, &ring->nodes[i]);
    for (size_t i = 0; i < RG_CHANGES_MAX; i++)
        put_change(buf, &ring->changes[i]);
    rg_put(buf, ring->slot_count);
    for (uint32_t i = 0, end; i < ring->slot_count; i = end) {
        for (end = i + 1; end < ring->slot_count && same_slot(&ring->slots[i], &ring->slots[end]);)
            end++;
        rg_put(buf, end - i);
        put_slot(buf, &ring->slots[i]);
    }
}

/* --- reading --- */

static int64_t get_time(struct rg_cursor *c)
{
    return qf_unzigzag(rg_get(c, UINT64_MAX));
}

static void get_node(struct rg_cursor *c, struct rg_ring *ring, uint8_t number)
{
    struct rg_node node = { .state = (enum rg_node_state)rg_get(c, RG_NODE_REMOVED) };
    struct qf_str name, zone, url;

    if (node.state == RG_NODE_NONE)
        return;
    name = rg_get_text(c, RG_NAME_MAX);
    zone = rg_get_text(c, RG_NAME_MAX);
    url = rg_get_text(c, RG_URL_MAX);
    node.incarnation = rg_get(c, UINT64_MAX);
    node.down = rg_get(c, 1);
    node.down_ms = get_time(c);
    if (name.len == 0 || rg_ring_node(ring, name) < RG_NODES_MAX || (!node.down && node.down_ms))
        c->bad = true;
    if (c->bad)
        return;
    memcpy(node.name, name.data, name.len);
    if (zone.len)
        memcpy(node.zone, zone.data, zone.len);
    if (url.len)
        memcpy(node.url, url.data, url.len);
    ring->nodes[number] = node;
    if (node.state == RG_NODE_BOOTSTRAPPING || node.state == RG_NODE_NORMAL)
        ring->members |= RG_NODE(number);
}

static void get_change(struct rg_cursor *c, struct rg_ring *ring, size_t row)
{
    struct rg_change change = { .kind = (enum rg_change_kind)rg_get(c, RG_CHANGE_FACTOR) };
    struct qf_str reason;

    if (change.kind == RG_CHANGE_NONE)
        return;
    change.id = rg_get(c, ring->applied);
    change.state = (enum rg_change_state)rg_get(c, RG_ROLLED_BACK);
    change.node = (uint8_t)rg_get(c, RG_NODES_MAX - 1);
    change.from = (uint8_t)rg_get(c, RG_COPIES_MAX);
    change.to = (uint8_t)rg_get(c, RG_COPIES_MAX);
    change.failures = (uint32_t)rg_get(c, UINT32_MAX);
    reason = rg_get_text(c, RG_REASON_MAX);
    change.started_ms = get_time(c);
    change.completed_ms = get_time(c);
    change.blobs = rg_get(c, UINT64_MAX);
    change.bytes = rg_get(c, UINT64_MAX);
    rg_get_slots(c, &change.slots);
    if (rg_change_of(ring, change.id) ||
        (change.kind == RG_CHANGE_FACTOR
             ? change.node || !change.from || !change.to
             : change.from || change.to || ring->nodes[change.node].state == RG_NODE_NONE))
        c->bad = true;
    if (reason.len)
        memcpy(change.reason, reason.data, reason.len);
    ring->changes[row] = change;
}

static rg_nodes existing(const struct rg_ring *ring)
{
    rg_nodes set = 0;

    for (uint8_t n = 0; n < RG_NODES_MAX; n++)
        if (ring->nodes[n].state != RG_NODE_NONE && ring->nodes[n].state != RG_NODE_REMOVED)
            set |= RG_NODE(n);
    return set;
}

static bool is_config(const struct rg_ring *ring, rg_nodes members, uint8_t copies)
{
    return copies && rg_nodes_count(members) >= copies && !(members & ~existing(ring));
}

/* Could apply have made @slot? Its owners are placed. */
static bool is_slot(const struct rg_ring *ring, const struct rg_slot *slot)
{
    rg_nodes holders = rg_owners_set(slot->change ? &slot->to : &slot->owners);

    if (slot->epoch == 0 || slot->epoch > ring->epoch ||
        !is_config(ring, slot->members, slot->copies))
        return false;
    if (slot->change ? !rg_change_runs(&ring->changes[slot->change - 1]) ||
                           !is_config(ring, slot->to_members, slot->to_copies) ||
                           rg_owners_equal(&slot->owners, &slot->to)
                     : slot->to_members || slot->to_copies)
        return false;
    return !(slot->held & ~holders) && !(slot->stale & rg_slot_everyone(slot)) &&
           !(slot->stale & ~existing(ring)) && !(slot->cleaning & ~slot->stale);
}

static struct rg_slot get_slot(struct rg_cursor *c)
{
    struct rg_slot slot = { 0 };

    slot.epoch = rg_get(c, UINT64_MAX);
    slot.members = rg_get(c, UINT64_MAX);
    slot.copies = (uint8_t)rg_get(c, RG_COPIES_MAX);
    slot.change = (uint8_t)rg_get(c, RG_CHANGES_MAX);
    slot.to_members = rg_get(c, UINT64_MAX);
    slot.to_copies = (uint8_t)rg_get(c, RG_COPIES_MAX);
    slot.held = rg_get(c, UINT64_MAX);
    slot.stale = rg_get(c, UINT64_MAX);
    slot.cleaning = rg_get(c, UINT64_MAX);
    return slot;
}

static void get_slots(struct rg_cursor *c, struct rg_ring *ring)
{
    static const struct rg_slot none;

    for (uint32_t i = 0; i < ring->slot_count && !c->bad;) {
        uint32_t len = (uint32_t)rg_get(c, ring->slot_count - i);
        struct rg_slot slot = get_slot(c);

        if (len == 0 || (i && same_slot(&slot, &ring->slots[i - 1])))
            c->bad = true;
        for (uint32_t end = i + len; !c->bad && i < end; i++) {
            ring->slots[i] = slot;
            rg_slot_place(ring, i);
            if (ring->founded ? !is_slot(ring, &ring->slots[i]) : !same_slot(&slot, &none))
                c->bad = true;
        }
    }
}

static void get_head(struct rg_cursor *c, struct rg_ring *ring)
{
    if (rg_get(c, VERSION) != VERSION)
        c->bad = true;
    ring->applied = rg_get(c, UINT64_MAX);
    ring->time_ms = get_time(c);
    ring->founded = rg_get(c, 1);
    ring->epoch = rg_get(c, UINT64_MAX);
    ring->copies = (uint8_t)rg_get(c, RG_COPIES_MAX);
    ring->grace_ms = get_time(c);
    for (uint8_t i = 0; i < RG_NODES_MAX && !c->bad; i++)
        get_node(c, ring, i);
    for (size_t i = 0; i < RG_CHANGES_MAX && !c->bad; i++)
        get_change(c, ring, i);
    if (ring->founded
            ? !ring->epoch || rg_nodes_count(ring->members) < ring->copies || !ring->copies
            : ring->epoch || ring->copies)
        c->bad = true;
}

static bool changes_fit(const struct rg_ring *ring)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++)
        if (rg_slot_set_next(&ring->changes[i].slots, ring->slot_count) < RG_SLOTS ||
            (ring->changes[i].kind != RG_CHANGE_NONE && !ring->founded))
            return false;
    return true;
}

qf_rc rg_ring_decode(struct qf_str bytes, struct rg_ring **ret_ring)
{
    struct rg_cursor cursor = { .rest = bytes };
    struct rg_ring *ring = rg_ring_new(RG_SLOTS);

    get_head(&cursor, ring);
    ring->slot_count = (uint32_t)rg_get(&cursor, RG_SLOTS);
    if (ring->slot_count == 0 || (ring->slot_count & (ring->slot_count - 1)) ||
        !changes_fit(ring)) {
        ring->slot_count = RG_SLOTS;
        cursor.bad = true;
    }
    if (!cursor.bad) {
        rg_ring_walk(ring);
        get_slots(&cursor, ring);
    }
    if (cursor.bad || cursor.rest.len) {
        (void)rg_ring_free(ring);
        return QF_ECORRUPT;
    }
    *ret_ring = ring;
    return QF_OK;
}
