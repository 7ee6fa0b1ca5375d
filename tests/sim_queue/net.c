/* net.c - messages are lost, late, doubled and reordered. */
#include "tests/sim_queue/sim_int.h"

/* A copy of @message with its @count entries in one block; false if the log no longer has them. */
static bool fill(struct sim *sim, struct sim_node *from, struct sim_event *event)
{
    struct qc_message *message = &event->message;
    struct ql_entry *entries;
    char *data;

    if (message->kind != QC_APPEND || !message->count)
        return true;
    qf_strbuf_reset(&sim->scratch);
    entries = qf_xcalloc(message->count, sizeof(*entries));
    for (uint32_t i = 0; i < message->count; i++)
        if (ql_log_read(from->store.log, message->index + 1 + i, &sim->scratch, &entries[i],
                        NULL) != QF_OK) {
            free(entries);
            return false;
        }
    entries = qf_xrealloc(entries, message->count * sizeof(*entries) + sim->scratch.len);
    data = (char *)(entries + message->count);
    memcpy(data, sim->scratch.data, sim->scratch.len);
    for (uint32_t i = 0; i < message->count; i++) {
        entries[i].data.data = data + QL_ENTRY_HEADER;
        data += ql_entry_bytes(entries[i].data.len);
    }
    event->owned = entries;
    message->entries = entries;
    return true;
}

static uint64_t delay(struct sim *sim)
{
    if (sim_chance(sim, sim->slow))
        return sim_below(sim, 2000000);
    return 100 + sim_below(sim, 3000);
}

static void send_once(struct sim *sim, struct sim_node *from, const struct qc_message *message,
                      uint32_t to)
{
    struct sim_event event = { .kind = SIM_MESSAGE, .node = to, .message = *message };

    if (!fill(sim, from, &event))
        return;
    sim_post(sim, delay(sim), &event);
}

void sim_send(struct sim *sim, struct sim_node *from, const struct qc_message *message)
{
    struct sim_node *to = sim_node_of(sim, message->to);

    sim->result.messages++;
    if (!to || sim->cut[from->number][to->number] || sim_chance(sim, sim->loss)) {
        sim->result.lost++;
        return;
    }
    send_once(sim, from, message, to->number);
    if (sim_chance(sim, sim->doubling)) {
        sim->result.doubled++;
        send_once(sim, from, message, to->number);
    }
}

void sim_arrive(struct sim *sim, struct sim_event *event)
{
    if (sim->nodes[event->node].up)
        sim_node_step(sim, event->node,
                      &(struct qc_event){ .kind = QC_EVENT_MESSAGE, .message = &event->message });
    free(event->owned);
}
