/* replay.c - whose turn it is, and what is sent in it. */
#include <string.h>

#include "ring/handoff/handoff_int.h"

bool rg_live_has(const struct rg_handoff *h, uint8_t node, const char *name)
{
    for (size_t i = 0; i < h->live.count; i++)
        if (h->live.items[i].node == node && strcmp(h->live.items[i].name, name) == 0)
            return true;
    return false;
}

/* The oldest reference of @node that may be sent now; SIZE_MAX: none. */
static size_t sendable(const struct rg_handoff *h, uint8_t node)
{
    const struct rg_handoff_node *n = &h->nodes[node];

    for (size_t i = 0; i < n->references.count; i++)
        if (!n->references.items[i].parked &&
            !rg_live_has(h, node, h->payloads.items[n->references.items[i].payload].name))
            return i;
    return SIZE_MAX;
}

void rg_replay_end_turn(struct rg_handoff *h, uint8_t node, int64_t now_ms)
{
    struct rg_handoff_node *n = &h->nodes[node];

    n->has_turn = false;
    n->send = 0;
    n->sending = RG_NO_PAYLOAD;
    n->next_ms = now_ms + h->options.rest_ms;
}

static void back_off(struct rg_handoff *h, uint8_t node, int64_t now_ms)
{
    struct rg_handoff_node *n = &h->nodes[node];
    int64_t wait_ms = h->options.backoff_ms;

    for (uint32_t i = 0; i < n->failures && wait_ms < h->options.backoff_max_ms; i++)
        wait_ms *= 2;
    n->failures += n->failures < UINT32_MAX;
    rg_replay_end_turn(h, node, now_ms);
    n->next_ms = now_ms + QF_MIN(wait_ms, h->options.backoff_max_ms);
}

static void failed(struct rg_handoff *h, uint8_t node, size_t at, int64_t now_ms)
{
    struct rg_reference *reference = &h->nodes[node].references.items[at];

    if (++reference->tries >= RG_TRIES_MAX) {
        reference->parked = true;
        h->figures.parked++;
        rg_handoff_emit(h, RG_HANDOFF_MARK, node, reference->payload);
    }
    back_off(h, node, now_ms);
}

void rg_replay_sent(struct rg_handoff *h, const struct rg_handoff_event *event)
{
    struct rg_handoff_node *n = &h->nodes[event->node];
    uint32_t payload = rg_payload_find(h, event->name);
    size_t at = payload == RG_NO_PAYLOAD ? SIZE_MAX : rg_reference_find(h, event->node, payload);
    bool expected = event->send && n->send == event->send;

    if (expected) {
        n->send = 0;
        n->sending = RG_NO_PAYLOAD;
    }
    if (at == SIZE_MAX)
        return;      /* it went while it was sent */
    if (event->ok) { /* also if it is heard of late: the node has it */
        n->failures = 0;
        rg_reference_drop(h, event->node, at, false);
        h->figures.delivered++;
    } else if (expected) {
        failed(h, event->node, at, event->now_ms);
    }
}

/* Who waits longest for a turn: by the number of the last one, then by the oldest reference. */
static uint8_t next_node(const struct rg_handoff *h, int64_t now_ms)
{
    uint8_t best = RG_HANDOFF_NODES;

    for (uint8_t i = 0; i < RG_HANDOFF_NODES; i++) {
        const struct rg_handoff_node *n = &h->nodes[i], *b = &h->nodes[best % RG_HANDOFF_NODES];

        if (!n->up || n->has_turn || now_ms < n->next_ms || sendable(h, i) == SIZE_MAX)
            continue;
        if (best == RG_HANDOFF_NODES || n->turn < b->turn ||
            (n->turn == b->turn && n->references.items[0].time_ms < b->references.items[0].time_ms))
            best = i;
    }
    return best;
}

static uint32_t turns_now(const struct rg_handoff *h)
{
    uint32_t count = 0;

    for (uint8_t i = 0; i < RG_HANDOFF_NODES; i++)
        count += h->nodes[i].has_turn;
    return count;
}

/* Send the next of @node's turn, or end it. */
static void go_on(struct rg_handoff *h, uint8_t node, int64_t now_ms)
{
    struct rg_handoff_node *n = &h->nodes[node];
    size_t at;

    if (n->send)
        return;
    at = sendable(h, node);
    if (!n->up || n->left == 0 || at == SIZE_MAX) {
        rg_replay_end_turn(h, node, now_ms);
        return;
    }
    n->left--;
    n->sending = n->references.items[at].payload;
    n->send = ++h->sends;
    rg_handoff_emit(h, RG_HANDOFF_SEND, node, n->sending);
    h->effects.items[h->effects.count - 1].send = n->send;
}

void rg_replay_plan(struct rg_handoff *h, int64_t now_ms)
{
    for (uint8_t i = 0; i < RG_HANDOFF_NODES; i++)
        if (h->nodes[i].has_turn)
            go_on(h, i, now_ms);
    while (turns_now(h) < h->options.turns) {
        uint8_t node = next_node(h, now_ms);

        if (node == RG_HANDOFF_NODES)
            return;
        h->nodes[node].has_turn = true;
        h->nodes[node].left = h->options.quantum;
        h->nodes[node].turn = ++h->turns;
        go_on(h, node, now_ms);
    }
}
