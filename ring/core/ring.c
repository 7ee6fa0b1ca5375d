/* ring.c - a ring, and what can be read off it. */
#include "ring/core/ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "ring/core/ring_int.h"

struct rg_ring *rg_ring_new(uint32_t slots)
{
    struct rg_ring *ring = qf_xcalloc(1, sizeof(*ring));

    ring->slot_count = slots;
    ring->slots = qf_xcalloc(slots, sizeof(*ring->slots));
    ring->grace_ms = RG_GRACE_MS;
    rg_ring_walk(ring);
    return ring;
}

struct rg_ring *rg_ring_free(struct rg_ring *ring)
{
    if (ring) {
        rg_walks_done(&ring->walks);
        free(ring->slots);
        free(ring);
    }
    return NULL;
}

void rg_ring_copy(struct rg_ring *to, const struct rg_ring *from)
{
    struct rg_slot *slots = to->slots;
    uint8_t(*order)[RG_NODES_MAX] = to->walks.order;

    assert(to->slot_count == from->slot_count);
    *to = *from;
    to->slots = slots;
    to->walks.order = order;
    memcpy(slots, from->slots, from->slot_count * sizeof(*slots));
    memcpy(order, from->walks.order, from->slot_count * sizeof(*order));
}

void rg_ring_walk(struct rg_ring *ring)
{
    struct rg_place_node nodes[RG_NODES_MAX];
    size_t count = 0;
    qf_rc rc;

    for (uint8_t i = 0; i < RG_NODES_MAX; i++)
        if (ring->nodes[i].state != RG_NODE_NONE)
            nodes[count++] = (struct rg_place_node){ i, qf_str_from(ring->nodes[i].name),
                                                     qf_str_from(ring->nodes[i].zone) };
    rc = rg_walks_make(&ring->walks, nodes, count, ring->slot_count, NULL);
    assert(rc == QF_OK); /* names and slots were checked when they came */
    (void)rc;
}

void rg_slot_place(struct rg_ring *ring, uint32_t slot)
{
    struct rg_slot *s = &ring->slots[slot];

    s->owners = rg_walks_owners(&ring->walks, slot, s->members, s->copies);
    s->to = (struct rg_owners){ 0 };
    if (s->change)
        s->to = rg_walks_owners(&ring->walks, slot, s->to_members, s->to_copies);
}

enum rg_node_state rg_node_state(const struct rg_ring *ring, uint8_t node)
{
    enum rg_node_state state = ring->nodes[node].state;

    if (state == RG_NODE_NONE || state == RG_NODE_REMOVED || !ring->nodes[node].down)
        return state;
    return RG_NODE_DOWN;
}

const char *rg_node_state_name(enum rg_node_state state)
{
    static const char *const names[] = { "NONE",    "BOOTSTRAPPING", "NORMAL",
                                         "LEAVING", "REMOVED",       "DOWN" };

    return names[state];
}

const char *rg_verdict_text(enum rg_verdict verdict)
{
    static const char *const texts[RG_VERDICT__COUNT] = {
        [RG_APPLIED] = "applied",
        [RG_NOTHING] = "it is so already",
        [RG_NO_SUCH] = "there is no such node, change or slot",
        [RG_EXISTS] = "a node of this name is there",
        [RG_LOCKED] = "another change of it is running",
        [RG_TOO_FEW] = "there would be fewer nodes than copies",
        [RG_FULL] = "the ring's table is full",
        [RG_EARLY] = "it is too early for it",
        [RG_OTHER_DISK] = "the node has another disk",
        [RG_OTHER_EPOCH] = "the slot is in another epoch",
        [RG_IS_OWNER] = "the node owns the slot",
        [RG_MOVING] = "the slot moves",
        [RG_NOT_HELD] = "no quorum is known to hold everything",
        [RG_NO_REASON] = "a force needs a reason",
        [RG_BAD] = "a value that cannot be",
        [RG_NEEDED] = "a tenant asks for more copies: PUT its replication-factor first",
    };

    return texts[verdict];
}

uint8_t rg_ring_node(const struct rg_ring *ring, struct qf_str name)
{
    uint8_t i = 0;

    while (i < RG_NODES_MAX && (ring->nodes[i].state == RG_NODE_NONE ||
                                !qf_str_eq(qf_str_from(ring->nodes[i].name), name)))
        i++;
    return i;
}

struct rg_change *rg_change_of(struct rg_ring *ring, uint64_t id)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++)
        if (ring->changes[i].kind != RG_CHANGE_NONE && ring->changes[i].id == id)
            return &ring->changes[i];
    return NULL;
}

const struct rg_change *rg_ring_change(const struct rg_ring *ring, uint64_t id)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++)
        if (ring->changes[i].kind != RG_CHANGE_NONE && ring->changes[i].id == id)
            return &ring->changes[i];
    return NULL;
}

bool rg_change_wants(const struct rg_change *change, const struct rg_slot *slot,
                     rg_nodes *ret_members, uint8_t *ret_copies)
{
    bool back = change->state == RG_ROLLING_BACK;

    *ret_members = slot->members;
    *ret_copies = slot->copies;
    if (change->kind == RG_CHANGE_FACTOR)
        *ret_copies = back ? change->from : change->to;
    else if ((change->kind == RG_CHANGE_ADD) != back)
        *ret_members |= RG_NODE(change->node);
    else
        *ret_members &= ~RG_NODE(change->node);
    return *ret_members != slot->members || *ret_copies != slot->copies;
}

bool rg_ring_ready(const struct rg_ring *ring, const struct rg_change *change,
                   struct rg_slot_set *ret_slots)
{
    bool any = false;

    *ret_slots = (struct rg_slot_set){ { 0 } };
    for (uint32_t i = 0; rg_change_runs(change) && i < ring->slot_count; i++) {
        const struct rg_slot *slot = &ring->slots[i];
        rg_nodes members;
        uint8_t copies;

        if ((slot->change && !rg_off(ring, RG_UNSAFE_MOVE_OVER)) ||
            slot->change == 1 + (change - ring->changes) ||
            !rg_change_wants(change, slot, &members, &copies) || rg_nodes_count(members) < copies)
            continue;
        rg_slot_set_add(ret_slots, i);
        any = true;
    }
    return any;
}

uint32_t rg_ring_left(const struct rg_ring *ring, const struct rg_change *change)
{
    uint32_t left = 0;

    for (uint32_t i = 0; rg_change_runs(change) && i < ring->slot_count; i++) {
        rg_nodes members;
        uint8_t copies;

        left += ring->slots[i].change == 1 + (change - ring->changes) ||
                rg_change_wants(change, &ring->slots[i], &members, &copies);
    }
    return left;
}

rg_nodes rg_slot_everyone(const struct rg_slot *slot)
{
    return rg_owners_set(&slot->owners) | rg_owners_set(&slot->to);
}

rg_nodes rg_slot_newcomers(const struct rg_slot *slot)
{
    return rg_owners_set(&slot->to) & ~rg_owners_set(&slot->owners);
}

static bool is_quorum(const struct rg_ring *ring, const struct rg_owners *owners, rg_nodes yes)
{
    unsigned up = 0;

    if (!rg_off(ring, RG_UNSAFE_UP_COUNT))
        return rg_is_quorum(owners, yes);
    for (unsigned i = 0; i < owners->count; i++)
        up += !ring->nodes[owners->nodes[i]].down;
    return rg_nodes_count(rg_owners_set(owners) & yes) >= rg_quorum(up);
}

bool rg_slot_quorum(const struct rg_ring *ring, const struct rg_slot *slot, rg_nodes yes)
{
    bool old = is_quorum(ring, &slot->owners, yes);

    if (!slot->change)
        return old;
    if (rg_off(ring, RG_UNSAFE_NEW_ALONE))
        return is_quorum(ring, &slot->to, yes);
    if (rg_off(ring, RG_UNSAFE_EITHER))
        return old || is_quorum(ring, &slot->to, yes);
    return old && is_quorum(ring, &slot->to, yes);
}

void rg_ring_altered(const struct rg_ring *ring, uint64_t since, struct rg_slot_set *ret_slots)
{
    *ret_slots = (struct rg_slot_set){ { 0 } };
    for (uint32_t i = 0; i < ring->slot_count; i++)
        if (ring->slots[i].epoch > since)
            rg_slot_set_add(ret_slots, i);
}

struct rg_health rg_ring_health(const struct rg_ring *ring, int64_t now_ms, int64_t dead_ms)
{
    struct rg_health health = { 0 };
    rg_nodes down = 0;

    for (uint8_t n = 0; n < RG_NODES_MAX; n++) {
        if (rg_node_state(ring, n) != RG_NODE_DOWN)
            continue;
        down |= RG_NODE(n);
        if (now_ms - ring->nodes[n].down_ms >= dead_ms)
            health.dead_nodes |= RG_NODE(n);
    }
    for (uint32_t i = 0; i < ring->slot_count; i++) {
        const struct rg_slot *slot = &ring->slots[i];
        rg_nodes everyone = rg_slot_everyone(slot);

        health.moving += slot->change != 0;
        health.down += (everyone & down) != 0;
        health.dead += (everyone & health.dead_nodes) != 0;
        health.no_quorum += !rg_slot_quorum(ring, slot, everyone & ~down);
        health.stale += slot->stale != 0;
    }
    return health;
}
