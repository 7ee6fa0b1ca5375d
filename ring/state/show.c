/* show.c - nodes, changes and health as JSON. */
#include "ring/state/show.h"

#include <inttypes.h>

static void add_text(struct qf_strbuf *buf, const char *name, const char *text)
{
    qf_strbuf_printf(buf, ",\"%s\":", name);
    qf_strbuf_json(buf, qf_str_from(text));
}

static void add_time(struct qf_strbuf *buf, const char *name, int64_t time_ms)
{
    if (time_ms)
        qf_strbuf_printf(buf, ",\"%s\":%" PRId64, name, time_ms);
}

/* Whose turn it is on this node: the id of the change that holds its lock; 0: nobody's. */
static uint64_t change_of_node(const struct rg_ring *ring, uint8_t node)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++) {
        const struct rg_change *change = &ring->changes[i];

        if (rg_change_runs(change) && change->kind != RG_CHANGE_FACTOR && change->node == node)
            return change->id;
    }
    return 0;
}

void rg_show_node(struct qf_strbuf *buf, const struct rg_ring *ring, uint8_t number)
{
    const struct rg_node *node = &ring->nodes[number];
    uint64_t change = change_of_node(ring, number);
    uint32_t slots = 0, stale = 0;

    for (uint32_t i = 0; i < ring->slot_count; i++) {
        slots += (rg_slot_everyone(&ring->slots[i]) & RG_NODE(number)) != 0;
        stale += (ring->slots[i].stale & RG_NODE(number)) != 0;
    }
    qf_strbuf_puts(buf, "{\"name\":");
    qf_strbuf_json(buf, qf_str_from(node->name));
    qf_strbuf_printf(buf, ",\"number\":%u", number);
    add_text(buf, "zone", node->zone);
    add_text(buf, "url", node->url);
    add_text(buf, "state", rg_node_state_name(node->state));
    qf_strbuf_printf(buf, ",\"down\":%s", node->down ? "true" : "false");
    add_time(buf, "down_since", node->down_ms);
    qf_strbuf_printf(
        buf, ",\"incarnation\":\"%" PRIx64 "\",\"slots\":%" PRIu32 ",\"slots_to_clean\":%" PRIu32,
        node->incarnation, slots, stale);
    if (change)
        qf_strbuf_printf(buf, ",\"migration\":\"%" PRIu64 "\"", change);
    qf_strbuf_putc(buf, '}');
}

static void add_health(struct qf_strbuf *buf, const struct rg_ring *ring, int64_t now_ms,
                       int64_t dead_ms)
{
    struct rg_health health = rg_ring_health(ring, now_ms, dead_ms);

    qf_strbuf_printf(buf,
                     "{\"founded\":%s,\"epoch\":%" PRIu64 ",\"copies\":%u,\"slots\":%" PRIu32
                     ",\"grace_ms\":%" PRId64 ",\"slots_moving\":%" PRIu32
                     ",\"slots_with_node_down\":%" PRIu32 ",\"slots_under_replicated\":%" PRIu32
                     ",\"slots_without_quorum\":%" PRIu32 ",\"slots_to_clean\":%" PRIu32 "}",
                     ring->founded ? "true" : "false", ring->epoch, ring->copies, ring->slot_count,
                     ring->grace_ms, health.moving, health.down, health.dead,
                     ring->founded ? health.no_quorum : ring->slot_count, health.stale);
}

void rg_show_nodes(struct qf_strbuf *buf, const struct rg_ring *ring, int64_t now_ms,
                   int64_t dead_ms)
{
    bool first = true;

    qf_strbuf_puts(buf, "{\"nodes\":[");
    for (uint8_t i = 0; i < RG_NODES_MAX; i++) {
        if (ring->nodes[i].state == RG_NODE_NONE)
            continue;
        if (!first)
            qf_strbuf_putc(buf, ',');
        first = false;
        rg_show_node(buf, ring, i);
    }
    qf_strbuf_puts(buf, "],\"ring\":");
    add_health(buf, ring, now_ms, dead_ms);
    qf_strbuf_putc(buf, '}');
}

static uint32_t slots_left_behind(const struct rg_ring *ring, const struct rg_change *change)
{
    uint32_t count = 0;

    for (uint32_t at = rg_slot_set_next(&change->slots, 0); at < ring->slot_count;
         at = rg_slot_set_next(&change->slots, at + 1))
        count += ring->slots[at].stale != 0;
    return count;
}

/* How far it is, and when it will be over if it goes on like this. */
static void add_progress(struct qf_strbuf *buf, const struct rg_ring *ring,
                         const struct rg_change *change, int64_t now_ms)
{
    uint32_t left = rg_ring_left(ring, change), done = ring->slot_count - left, moving = 0;
    int64_t took_ms = now_ms - change->started_ms;

    for (uint32_t i = 0; i < ring->slot_count; i++)
        moving += ring->slots[i].change == 1 + (change - ring->changes);
    qf_strbuf_printf(buf,
                     ",\"progress\":{\"slots\":%" PRIu32 ",\"slots_done\":%" PRIu32
                     ",\"slots_moving\":%" PRIu32 ",\"segments\":%" PRIu64 ",\"bytes\":%" PRIu64
                     ",\"percent\":%.1f",
                     ring->slot_count, done, moving, change->blobs, change->bytes,
                     100.0 * done / ring->slot_count);
    if (left && done && took_ms > 0)
        qf_strbuf_printf(buf, ",\"eta_ms\":%.0f", (double)took_ms / done * left);
    qf_strbuf_putc(buf, '}');
}

void rg_show_change(struct qf_strbuf *buf, const struct rg_ring *ring,
                    const struct rg_change *change, int64_t now_ms)
{
    static const char *const kinds[] = { "", "node_addition", "node_deletion", "copies" };
    static const char *const states[] = { "running", "rolling_back", "completed", "rolled_back" };

    qf_strbuf_printf(buf, "{\"id\":\"%" PRIu64 "\",\"type\":\"%s\",\"status\":\"%s\"", change->id,
                     kinds[change->kind], states[change->state]);
    if (change->kind == RG_CHANGE_FACTOR)
        qf_strbuf_printf(buf, ",\"from\":%u,\"to\":%u", change->from, change->to);
    else
        add_text(buf, "node", ring->nodes[change->node].name);
    add_time(buf, "started", change->started_ms);
    add_time(buf, "completed", change->completed_ms);
    qf_strbuf_printf(buf, ",\"failures\":%" PRIu32, change->failures);
    if (change->reason[0])
        add_text(buf, "reason", change->reason);
    qf_strbuf_printf(buf, ",\"slots_to_clean\":%" PRIu32, slots_left_behind(ring, change));
    add_progress(buf, ring, change, now_ms);
    qf_strbuf_putc(buf, '}');
}

void rg_show_changes(struct qf_strbuf *buf, const struct rg_ring *ring, int64_t now_ms)
{
    uint64_t after = 0;

    qf_strbuf_puts(buf, "{\"migrations\":[");
    for (;;) {
        const struct rg_change *next = NULL;

        for (size_t i = 0; i < RG_CHANGES_MAX; i++) {
            const struct rg_change *change = &ring->changes[i];

            if (change->kind != RG_CHANGE_NONE && change->id > after &&
                (!next || change->id < next->id))
                next = change;
        }
        if (!next)
            break;
        if (after)
            qf_strbuf_putc(buf, ',');
        after = next->id;
        rg_show_change(buf, ring, next, now_ms);
    }
    qf_strbuf_puts(buf, "]}");
}
