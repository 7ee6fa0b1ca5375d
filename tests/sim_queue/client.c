/* client.c - clients with one operation each under way, and what they are told. */
#include "queue/log/bytes.h"
#include "tests/sim_queue/sim_int.h"

enum { TIMEOUT_US = 3000000, WINDOW = 200, TOGETHER_MAX = 7 };

/* Most ask who leads; some ask anyone. */
static uint32_t choose_node(struct sim *sim)
{
    uint32_t any = (uint32_t)sim_below(sim, sim->node_count);

    if (sim_below(sim, 10) == 0)
        return any;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        uint32_t node = (any + i) % sim->node_count;

        if (sim->nodes[node].up && qc_leads(sim->nodes[node].core))
            return node;
    }
    return any;
}

void sim_client_begin(struct sim *sim, uint32_t number)
{
    struct sim_client *client = &sim->clients[number];
    uint64_t what = sim_below(sim, 20);
    struct sim_event event = { .kind = SIM_REQUEST, .client = number };

    if (client->operation && client->kind == SIM_OFFER)
        sim->result.unknown++;
    client->operation = ++sim->operations;
    client->kind = what < 11   ? SIM_OFFER
                   : what < 15 ? SIM_READ
                   : what < 17 ? SIM_CONSUME
                   : what < 19 ? SIM_OFFSET
                               : SIM_TRIM;
    if (sim->reference.applied - sim->reference.first > WINDOW)
        client->kind = SIM_TRIM;
    client->begin = history_begin(sim->history);
    if (client->kind == SIM_OFFER) {
        client->value = history_offer(sim->history);
        client->level = what == 0 ? QC_LEVEL_ONE : what == 1 ? QC_LEVEL_ALL : QC_LEVEL_QUORUM;
        sim->result.offers++;
    }
    event.life = client->operation;
    event.node = choose_node(sim);
    if (!sim_chance(sim, sim->loss))
        sim_post(sim, 100 + sim_below(sim, 2000), &event);
    sim_post(
        sim, TIMEOUT_US,
        &(struct sim_event){ .kind = SIM_CLIENT, .client = number, .life = client->operation });
}

static void encode(struct sim *sim, const struct sim_client *client, uint32_t number,
                   const struct qc_state *state, struct qf_strbuf *buf)
{
    struct qc_command command = { 0 };
    unsigned char record[96] = { 0 };
    char name[8];

    switch (client->kind) {
    case SIM_OFFER:
        ql_put(record, client->value, 8);
        command.kind = QC_OFFER;
        command.data = (struct qf_str){ (const char *)record, 8 + (size_t)sim_below(sim, 88) };
        break;
    case SIM_CONSUME:
        command = (struct qc_command){ .kind = QC_CONSUME, .from = client->from, .to = client->to };
        break;
    case SIM_OFFSET:
        snprintf(name, sizeof(name), "c%u", number);
        command = (struct qc_command){ .kind = QC_OFFSET,
                                       .offset = client->offset,
                                       .data = qf_str_from(name) };
        break;
    case SIM_TRIM:
        command.kind = QC_TRIM;
        command.offset = state->applied > 40 ? state->applied - sim_below(sim, 40) : 1;
        break;
    case SIM_READ:
        break;
    }
    qc_command_encode(buf, &command);
}

static void begin_again(struct sim *sim, uint32_t number, uint64_t delay)
{
    sim_post(sim, delay,
             &(struct sim_event){
                 .kind = SIM_CLIENT, .client = number, .life = sim->clients[number].operation });
}

/* What else is offered together with a client's record: the request's number says which value. */
struct together {
    struct qc_request items[TOGETHER_MAX + 1];
    uint32_t count;
    struct qf_strbuf bytes;
};

static void gather(struct sim *sim, const struct qc_event *ask, struct together *all)
{
    uint32_t count = (uint32_t)sim_below(sim, TOGETHER_MAX + 1), own;

    all->count = count + 1;
    own = (uint32_t)sim_below(sim, all->count);
    for (uint32_t i = 0; i < all->count; i++) {
        uint64_t value = i == own ? 0 : history_offer(sim->history);
        unsigned char record[96] = { 0 };
        size_t at = all->bytes.len;

        if (i == own) {
            all->items[i] = (struct qc_request){ ask->request, ask->data, ask->level };
            continue;
        }
        ql_put(record, value, 8);
        qc_command_encode(&all->bytes,
                          &(struct qc_command){
                              .kind = QC_OFFER,
                              .data = { (const char *)record, 8 + (size_t)sim_below(sim, 88) } });
        all->items[i] =
            (struct qc_request){ SIM_TOGETHER_REQUEST | value,
                                 { (const char *)at, all->bytes.len - at }, /* it moves */
                                 QC_LEVEL_QUORUM };
        sim->result.together++;
    }
    for (uint32_t i = 0; i < all->count; i++)
        if (i != own)
            all->items[i].data.data = all->bytes.data + (size_t)all->items[i].data.data;
}

static void request_together(struct sim *sim, uint32_t node, const struct qc_event *ask)
{
    struct together all = { .bytes = QF_STRBUF_INIT };

    gather(sim, ask, &all);
    sim_node_step(
        sim, node,
        &(struct qc_event){ .kind = QC_EVENT_COMMANDS, .commands = all.items, .count = all.count });
    qf_strbuf_done(&all.bytes);
}

void sim_client_request(struct sim *sim, const struct sim_event *event)
{
    struct sim_client *client = &sim->clients[event->client];
    struct sim_node *node = &sim->nodes[event->node];
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qc_event ask = { .kind = QC_EVENT_COMMAND, .request = event->life };
    const struct qc_state *state;

    if (client->operation != event->life || !node->up)
        return;
    state = qc_state(node->core);
    client->from = state->position;
    client->to = client->from + sim_below(sim, 5);
    if (client->kind == SIM_CONSUME && client->to > state->applied)
        client->to = client->from = 0;
    if (client->kind == SIM_OFFSET)
        client->offset = client->offset_acked + sim_below(sim, 3);
    if (client->kind == SIM_READ) {
        ask.kind = QC_EVENT_READ;
    } else {
        encode(sim, client, event->client, state, &buf);
        ask.data = qf_strbuf_view(&buf);
        ask.level = client->kind == SIM_OFFER ? client->level : QC_LEVEL_QUORUM;
    }
    client->submitting = sim->submitting = true;
    if (client->kind == SIM_OFFER && sim->options.together)
        request_together(sim, event->node, &ask);
    else
        sim_node_step(sim, event->node, &ask);
    client->submitting = sim->submitting = false;
}

/* All records that @node has between what is kept and @last, as its client gets them. */
static void read_done(struct sim *sim, struct sim_client *client, uint32_t number,
                      struct sim_node *node, uint64_t last)
{
    const struct qc_state *state = qc_state(node->core);
    QF_VEC(struct history_record) records = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct qc_consumer *consumer;
    const char *wrong = NULL;
    char name[8];

    for (uint64_t i = state->first; i <= last && !wrong; i++) {
        struct ql_entry entry;
        struct qc_command command;

        qf_strbuf_reset(&buf);
        if (ql_log_read(node->store.log, i, &buf, &entry, NULL) != QF_OK)
            wrong = "lost write: a leader cannot read a record that is kept";
        else if (entry.type == QL_COMMAND && qc_command_decode(entry.data, &command) == QF_OK &&
                 command.kind == QC_OFFER)
            QF_VEC_PUSH(&records, (struct history_record){
                                      i, ql_get((const unsigned char *)command.data.data, 8) });
    }
    if (!wrong)
        wrong = history_read(sim->history, &client->begin, state->first, last, records.items,
                             records.count);
    snprintf(name, sizeof(name), "c%u", number);
    consumer = qc_state_consumer(state, qf_str_from(name));
    if (!wrong)
        wrong = history_offset(consumer ? consumer->offset : 0, client->offset_acked);
    if (wrong)
        sim_fail(sim, wrong);
    sim->result.reads++;
    QF_VEC_DONE(&records);
}

static void succeed(struct sim *sim, struct sim_client *client, uint32_t number,
                    struct sim_node *node, uint64_t index)
{
    const char *wrong = NULL;

    switch (client->kind) {
    case SIM_OFFER:
        /* On one disk only: nothing is promised. */
        if (client->level != QC_LEVEL_ONE)
            wrong = history_acked(sim->history, client->value, index);
        sim->result.acked++;
        break;
    case SIM_READ:
        read_done(sim, client, number, node, index);
        break;
    case SIM_CONSUME:
        wrong = history_consumed(sim->history, client->from, client->to);
        sim->result.consumed += client->to - client->from + 1;
        break;
    case SIM_OFFSET:
        client->offset_acked = client->offset;
        break;
    case SIM_TRIM:
        break;
    }
    if (wrong)
        sim_fail(sim, wrong);
}

static void together_done(struct sim *sim, uint64_t value, qf_rc rc, uint64_t index)
{
    const char *wrong = NULL;

    if (rc == QF_OK)
        wrong = history_acked(sim->history, value, index);
    else if (sim->submitting)
        wrong = history_refused(sim->history, value);
    sim->result.together_acked += rc == QF_OK;
    if (wrong)
        sim_fail(sim, wrong);
}

void sim_client_done(struct sim *sim, struct sim_node *node, uint64_t request, qf_rc rc,
                     uint64_t index)
{
    if (request & SIM_OPERATOR_REQUEST) {
        if (request == sim->change_request)
            sim_operator_done(sim, rc);
        return;
    }
    if (request & SIM_LINK_REQUEST) {
        sim_app_done(node, request & ~SIM_LINK_REQUEST, rc, index);
        return;
    }
    if (request & SIM_TOGETHER_REQUEST) {
        together_done(sim, request & ~SIM_TOGETHER_REQUEST, rc, index);
        return;
    }
    for (uint32_t i = 0; i < SIM_CLIENTS; i++) {
        struct sim_client *client = &sim->clients[i];

        if (client->operation != request)
            continue;
        if (rc == QF_OK) {
            succeed(sim, client, i, node, index);
        } else if (client->kind == SIM_OFFER && client->submitting) {
            const char *wrong = history_refused(sim->history, client->value);

            sim->result.refused++;
            if (wrong)
                sim_fail(sim, wrong);
        } else if (client->kind == SIM_OFFER) {
            sim->result.unknown++;
        }
        if (client->kind == SIM_OFFER)
            client->kind = SIM_TRIM; /* told: not to be counted again */
        begin_again(sim, i, 1000 + sim_below(sim, rc == QF_OK ? 5000 : 100000));
        return;
    }
}
