/* handoff.c - events in, effects out; caps and ends of references. */
#include "ring/handoff/handoff.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "ring/handoff/handoff_int.h"

#define OR(value, other) ((value) ? (value) : (other))

struct rg_handoff *rg_handoff_new(const struct rg_handoff_options *options)
{
    struct rg_handoff *h = qf_xcalloc(1, sizeof(*h));

    h->options = *options;
    h->options.node_bytes = OR(options->node_bytes, UINT64_C(1) << 30);
    h->options.store_bytes = OR(options->store_bytes, UINT64_C(10) << 30);
    h->options.quantum = OR(options->quantum, 100);
    h->options.rest_ms = OR(options->rest_ms, 1000);
    h->options.life_ms = OR(options->life_ms, RG_HANDOFF_LIFE_MS);
    h->options.unnamed_ms = OR(options->unnamed_ms, INT64_C(24) * 60 * 60 * 1000);
    h->options.backoff_ms = OR(options->backoff_ms, 1000);
    h->options.backoff_max_ms = OR(options->backoff_max_ms, 5 * 60 * 1000);
    h->options.turns = OR(options->turns, 4);
    for (uint8_t i = 0; i < RG_HANDOFF_NODES; i++) {
        h->nodes[i].sending = RG_NO_PAYLOAD;
        h->nodes[i].next_ms = INT64_MIN;
    }
    return h;
}

static void bury(struct rg_handoff *h)
{
    for (size_t i = 0; i < h->graves.count; i++)
        free(h->graves.items[i]);
    h->graves.count = 0;
}

struct rg_handoff *rg_handoff_free(struct rg_handoff *h)
{
    if (!h)
        return NULL;
    bury(h);
    for (size_t i = 0; i < h->payloads.count; i++)
        free(h->payloads.items[i].name);
    for (uint8_t i = 0; i < RG_HANDOFF_NODES; i++)
        QF_VEC_DONE(&h->nodes[i].references);
    QF_VEC_DONE(&h->payloads);
    QF_VEC_DONE(&h->live);
    QF_VEC_DONE(&h->effects);
    QF_VEC_DONE(&h->graves);
    free(h);
    return NULL;
}

/* Does one more of @bytes fit @node's share? */
static bool node_fits(const struct rg_handoff *h, uint8_t node, uint64_t bytes)
{
    return h->nodes[node].references.count < RG_REFERENCES_MAX &&
           h->nodes[node].bytes + bytes <= h->options.node_bytes;
}

static bool store_fits(const struct rg_handoff *h, uint64_t bytes)
{
    return h->payload_count < RG_PAYLOADS_MAX && h->bytes + bytes <= h->options.store_bytes;
}

/* The node with the oldest reference. */
static uint8_t oldest_node(const struct rg_handoff *h)
{
    uint8_t best = RG_HANDOFF_NODES;

    for (uint8_t i = 0; i < RG_HANDOFF_NODES; i++)
        if (h->nodes[i].references.count &&
            (best == RG_HANDOFF_NODES ||
             h->nodes[i].references.items[0].time_ms < h->nodes[best].references.items[0].time_ms))
            best = i;
    return best;
}

static void drop_oldest(struct rg_handoff *h, uint8_t node)
{
    h->figures.dropped++;
    rg_reference_drop(h, node, 0, true);
}

/* Make room for a reference of @node; @stored: its payload is there already. False: backpressure, or never. */
static bool make_room(struct rg_handoff *h, const struct rg_handoff_event *event, bool stored)
{
    uint64_t more = stored ? 0 : event->bytes;

    if (event->bytes > h->options.node_bytes || more > h->options.store_bytes)
        return false;
    if (h->options.policy == RG_BACKPRESSURE)
        return node_fits(h, event->node, event->bytes) && (stored || store_fits(h, more));
    while (!node_fits(h, event->node, event->bytes))
        drop_oldest(h, event->node);
    while (!stored && !store_fits(h, more))
        drop_oldest(h, oldest_node(h));
    return true;
}

static qf_rc on_add(struct rg_handoff *h, const struct rg_handoff_event *event)
{
    uint32_t payload = rg_payload_find(h, event->name);

    if (payload != RG_NO_PAYLOAD && rg_reference_find(h, event->node, payload) != SIZE_MAX)
        return QF_OK;
    if (!make_room(h, event, payload != RG_NO_PAYLOAD)) {
        struct rg_handoff_effect mark = { RG_HANDOFF_MARK, event->node, event->slot, event->name,
                                          0 };

        h->figures.refused++;
        if (h->options.policy == RG_BACKPRESSURE)
            return QF_EBUSY;
        QF_VEC_PUSH(&h->effects, mark); /* larger than a cap: repair is all there is */
        return QF_OK;
    }
    payload = rg_payload_find(h, event->name); /* room may have been made of it */
    if (payload == RG_NO_PAYLOAD) {
        payload = rg_payload_add(h, event);
        rg_handoff_emit(h, RG_HANDOFF_STORE, event->node, payload);
    }
    rg_reference_add(h, event->node, payload, event->time_ms);
    rg_handoff_emit(h, RG_HANDOFF_REF, event->node, payload);
    return QF_OK;
}

static void on_status(struct rg_handoff *h, const struct rg_handoff_event *event)
{
    struct rg_handoff_node *n = &h->nodes[event->node];

    if (n->up == event->up)
        return;
    n->up = event->up;
    n->failures = 0;
    n->next_ms = event->now_ms;
    if (!event->up) {
        rg_replay_end_turn(h, event->node, event->now_ms);
        return;
    }
    for (size_t i = 0; i < n->references.count; i++) {
        n->references.items[i].parked = false;
        n->references.items[i].tries = 0;
    }
}

static qf_rc on_live(struct rg_handoff *h, const struct rg_handoff_event *event)
{
    const struct rg_handoff_node *n = &h->nodes[event->node];
    struct rg_live live = { .node = event->node };

    memcpy(live.name, event->name.data, event->name.len);
    if (rg_live_has(h, event->node, live.name) ||
        (n->sending != RG_NO_PAYLOAD && rg_payload_find(h, event->name) == n->sending))
        return QF_EEXIST;
    if (h->live.count < RG_LIVE_MAX)
        QF_VEC_PUSH(&h->live, live);
    return QF_OK;
}

static void on_live_ended(struct rg_handoff *h, const struct rg_handoff_event *event)
{
    uint32_t payload = rg_payload_find(h, event->name);
    size_t at = payload == RG_NO_PAYLOAD ? SIZE_MAX : rg_reference_find(h, event->node, payload);

    for (size_t i = h->live.count; i > 0; i--)
        if (h->live.items[i - 1].node == event->node &&
            qf_str_is(event->name, h->live.items[i - 1].name))
            h->live.items[i - 1] = h->live.items[--h->live.count];
    if (event->ok && at != SIZE_MAX) {
        rg_reference_drop(h, event->node, at, false);
        h->figures.delivered++;
    }
}

/* Every reference to @name goes; how many there were. */
static uint64_t drop_all(struct rg_handoff *h, struct qf_str name, bool mark)
{
    uint32_t payload = rg_payload_find(h, name);
    uint64_t count = payload == RG_NO_PAYLOAD ? 0 : h->payloads.items[payload].references, left;

    left = count;
    for (uint8_t i = 0; left && i < RG_HANDOFF_NODES; i++) {
        size_t at = rg_reference_find(h, i, payload);

        if (at == SIZE_MAX)
            continue;
        rg_reference_drop(h, i, at, mark);
        left--;
    }
    return count;
}

static void on_listed(struct rg_handoff *h, const struct rg_handoff_event *event)
{
    uint32_t at = rg_payload_find(h, event->name);
    struct rg_payload *payload = at == RG_NO_PAYLOAD ? NULL : &h->payloads.items[at];

    if (!payload)
        return;
    if (event->ok)
        payload->named = true;
    else if (payload->named || event->now_ms - payload->time_ms >= h->options.unnamed_ms)
        h->figures.unnamed += drop_all(h, event->name, false);
}

static void on_removed(struct rg_handoff *h, const struct rg_handoff_event *event)
{
    struct rg_handoff_node *n = &h->nodes[event->node];

    while (n->references.count)
        rg_reference_drop(h, event->node, n->references.count - 1, false);
    rg_replay_end_turn(h, event->node, event->now_ms);
    n->up = false;
    n->turn = 0;
}

static void expire(struct rg_handoff *h, int64_t now_ms)
{
    for (uint8_t i = 0; i < RG_HANDOFF_NODES; i++)
        while (h->nodes[i].references.count &&
               now_ms - h->nodes[i].references.items[0].time_ms >= h->options.life_ms) {
            h->figures.expired++;
            rg_reference_drop(h, i, 0, true);
        }
}

static qf_rc take(struct rg_handoff *h, const struct rg_handoff_event *event)
{
    switch (event->kind) {
    case RG_HANDOFF_ADD:
        return on_add(h, event);
    case RG_HANDOFF_STATUS:
        on_status(h, event);
        break;
    case RG_HANDOFF_LIVE:
        return on_live(h, event);
    case RG_HANDOFF_LIVE_ENDED:
        on_live_ended(h, event);
        break;
    case RG_HANDOFF_SENT:
        rg_replay_sent(h, event);
        break;
    case RG_HANDOFF_UNNAMED:
        h->figures.unnamed += drop_all(h, event->name, false);
        break;
    case RG_HANDOFF_LISTED:
        on_listed(h, event);
        break;
    case RG_HANDOFF_LOST:
        h->figures.lost += drop_all(h, event->name, true);
        break;
    case RG_HANDOFF_REMOVED:
        on_removed(h, event);
        break;
    case RG_HANDOFF_TICK:
        expire(h, event->now_ms);
        break;
    }
    return QF_OK;
}

static bool names_something(enum rg_handoff_event_kind kind)
{
    return kind != RG_HANDOFF_STATUS && kind != RG_HANDOFF_REMOVED && kind != RG_HANDOFF_TICK;
}

qf_rc rg_handoff_step(struct rg_handoff *h, const struct rg_handoff_event *event,
                      struct rg_handoff_effects *ret_effects)
{
    qf_rc rc = QF_EINVAL;

    bury(h);
    h->effects.count = 0;
    if (event->node < RG_HANDOFF_NODES &&
        (!names_something(event->kind) ||
         (event->name.len > 0 && event->name.len <= RG_HANDOFF_NAME_MAX))) {
        rc = take(h, event);
        rg_replay_plan(h, event->now_ms);
    }
    *ret_effects = (struct rg_handoff_effects){ h->effects.items, h->effects.count };
    return rc;
}

int64_t rg_handoff_deadline(const struct rg_handoff *h, int64_t now_ms)
{
    int64_t deadline = INT64_MAX;

    for (uint8_t i = 0; i < RG_HANDOFF_NODES; i++) {
        const struct rg_handoff_node *n = &h->nodes[i];

        if (n->references.count == 0)
            continue;
        deadline = QF_MIN(deadline, n->references.items[0].time_ms + h->options.life_ms);
        if (n->up && !n->has_turn) {
            int64_t turn_ms = QF_MAX(now_ms, n->next_ms);

            deadline = QF_MIN(deadline, turn_ms);
        }
    }
    return deadline;
}

struct rg_handoff_figures rg_handoff_figures(const struct rg_handoff *h)
{
    struct rg_handoff_figures figures = h->figures;
    uint8_t oldest = oldest_node(h);

    figures.payloads = h->payload_count;
    figures.bytes = h->bytes;
    figures.oldest_ms =
        oldest == RG_HANDOFF_NODES ? INT64_MAX : h->nodes[oldest].references.items[0].time_ms;
    for (uint8_t i = 0; i < RG_HANDOFF_NODES; i++)
        figures.waiting += h->nodes[i].references.count > 0;
    return figures;
}

bool rg_handoff_has(const struct rg_handoff *h, uint8_t node, struct qf_str name)
{
    uint32_t payload = rg_payload_find(h, name);

    return payload != RG_NO_PAYLOAD && rg_reference_find(h, node, payload) != SIZE_MAX;
}

bool rg_handoff_stores(const struct rg_handoff *h, struct qf_str name)
{
    return rg_payload_find(h, name) != RG_NO_PAYLOAD;
}

bool rg_handoff_refuses(const struct rg_handoff *h, uint8_t node, struct qf_str name,
                        uint64_t bytes)
{
    bool stored = rg_handoff_stores(h, name);

    return h->options.policy == RG_BACKPRESSURE && !rg_handoff_has(h, node, name) &&
           !(node_fits(h, node, bytes) && (stored || store_fits(h, bytes)));
}

size_t rg_handoff_waiting(const struct rg_handoff *h, uint8_t node)
{
    return h->nodes[node].references.count;
}

size_t rg_handoff_rows(const struct rg_handoff *h)
{
    return h->payloads.count;
}

struct qf_str rg_handoff_payload(const struct rg_handoff *h, size_t row)
{
    const char *name = h->payloads.items[row].name;

    return name ? qf_str_from(name) : QF_STR("");
}
