/* show.c - queues, members and consumers as JSON, for people and their tools. */
#include <inttypes.h>

#include "queue/node/node_int.h"

static void show_name(struct qf_strbuf *buf, const struct qn_queue *queue, uint64_t id)
{
    const char *name = id ? qn_name_of(queue, id) : NULL;

    if (name)
        qf_strbuf_json(buf, qf_str_from(name));
    else
        qf_strbuf_puts(buf, "null");
}

static const char *standing(const struct qn_queue *queue)
{
    struct qc_members members;
    const struct qc_member *self;

    if (qc_leads(queue->core))
        return "leader";
    qc_members(queue->core, &members);
    self = qc_members_find(&members, queue->node->incarnation);
    return !self ? "none" : self->role == QC_VOTER ? "follower" : "standby";
}

static void show_members(struct qn_queue *queue, struct qf_strbuf *buf)
{
    struct qc_members members;

    qc_members(queue->core, &members);
    qf_strbuf_puts(buf, ",\"members\":[");
    for (uint32_t i = 0; i < members.count; i++) {
        const struct qc_member *member = &members.items[i];

        qf_strbuf_printf(buf, "%s{\"name\":", i ? "," : "");
        qf_strbuf_json(buf, qf_str_from(member->name));
        qf_strbuf_printf(buf, ",\"incarnation\":\"%016" PRIx64 "\",\"role\":\"%s\"}", member->id,
                         member->role == QC_VOTER ? "voter" : "standby");
    }
    qf_strbuf_putc(buf, ']');
}

static void show_line(struct qn_queue *queue, struct qf_strbuf *buf)
{
    const struct qc_state *state = qc_state(queue->core);

    qf_strbuf_puts(buf, "\"name\":");
    qf_strbuf_json(buf, qf_str_from(queue->name));
    qf_strbuf_puts(buf, ",\"tenant\":");
    qf_strbuf_json(buf, qf_str_from(queue->tenant));
    qf_strbuf_puts(buf, ",\"leader\":");
    show_name(buf, queue, qc_leader(queue->core));
    qf_strbuf_printf(buf,
                     ",\"this_node\":\"%s\",\"first\":%" PRIu64 ",\"next\":%" PRIu64
                     ",\"position\":%" PRIu64 ",\"bytes\":%" PRIu64 ",",
                     standing(queue), state->first, state->applied + 1, state->position,
                     ql_log_bytes(queue->store.log));
    qn_queue_options_json(buf, &queue->options);
}

void qn_show(struct qn_queue *queue, struct qf_strbuf *buf)
{
    qf_strbuf_putc(buf, '{');
    show_line(queue, buf);
    qf_strbuf_printf(buf,
                     ",\"term\":%" PRIu64 ",\"commit\":%" PRIu64 ",\"applied\":%" PRIu64
                     ",\"snapshot\":%" PRIu64 ",\"log_first\":%" PRIu64 ",\"log_last\":%" PRIu64,
                     qc_term(queue->core), qc_commit(queue->core), qc_state(queue->core)->applied,
                     queue->store.snapshot.index, ql_log_first(queue->store.log),
                     ql_log_last(queue->store.log));
    show_members(queue, buf);
    qf_strbuf_putc(buf, '}');
}

void qn_show_all(struct qn_node *node, const struct qn_ask *ask, struct qf_strbuf *buf)
{
    bool any = false;

    qf_strbuf_puts(buf, "{\"node\":");
    qf_strbuf_json(buf, qf_str_from(node->name));
    qf_strbuf_printf(
        buf, ",\"cluster\":\"%016" PRIx64 "\",\"incarnation\":\"%016" PRIx64 "\",\"queues\":[",
        (uint64_t)atomic_load(&node->cluster), node->incarnation);
    for (size_t i = 0; i < node->queue_count; i++) {
        struct qn_queue *queue = node->queues[i];

        if (!queue->core || queue->closing ||
            (!ask->operates && strcmp(queue->tenant, ask->tenant) != 0))
            continue;
        qf_strbuf_puts(buf, any ? ",{" : "{");
        show_line(queue, buf);
        qf_strbuf_putc(buf, '}');
        any = true;
    }
    qf_strbuf_puts(buf, "]}");
}

void qn_show_offsets(struct qn_queue *queue, struct qf_strbuf *buf)
{
    const struct qc_state *state = qc_state(queue->core);

    qf_strbuf_printf(
        buf, "{\"first\":%" PRIu64 ",\"next\":%" PRIu64 ",\"position\":%" PRIu64 ",\"consumers\":[",
        state->first, state->applied + 1, state->position);
    for (uint32_t i = 0; i < state->consumer_count; i++) {
        qf_strbuf_puts(buf, i ? ",{\"consumer\":" : "{\"consumer\":");
        qf_strbuf_json(buf, qf_str_from(state->consumers[i].name));
        qf_strbuf_printf(buf, ",\"offset\":%" PRIu64 "}", state->consumers[i].offset);
    }
    qf_strbuf_puts(buf, "]}");
}
