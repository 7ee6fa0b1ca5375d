/* sim.c - the world: time, what happens next, and how it ends. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/sim_queue/sim_int.h"

void sim_fail(struct sim *sim, const char *why)
{
    if (!sim->result.failure)
        sim->result.failure = why;
}

void sim_trace(struct sim *sim, const char *fmt, ...)
{
    va_list args;

    if (!sim->options.trace)
        return;
    printf("[%10.3f] ", (double)sim->now / 1e6);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
}

static bool earlier(const void *a, const void *b, void *ctx)
{
    const struct sim_slot *x = a, *y = b;

    (void)ctx;
    return x->at != y->at ? x->at < y->at : x->order < y->order;
}

void sim_post(struct sim *sim, uint64_t delay_us, const struct sim_event *event)
{
    struct sim_slot slot = { sim->now + delay_us, ++sim->order, 0 };
    bool pushed;

    if (sim->free_events.count) {
        slot.event = sim->free_events.items[--sim->free_events.count];
        sim->events.items[slot.event] = *event;
    } else {
        slot.event = (uint32_t)sim->events.count;
        QF_VEC_PUSH(&sim->events, *event);
    }
    QF_VEC_RESERVE(&sim->slots, sim->queue.count + 1);
    sim->queue.items = sim->slots.items;
    sim->queue.capacity = sim->slots.capacity;
    pushed = qf_heap_push(&sim->queue, &slot);
    assert(pushed);
}

static void repeat(struct sim *sim, enum sim_kind kind, uint64_t spread)
{
    sim_post(sim, 1 + sim_below(sim, spread), &(struct sim_event){ .kind = kind });
}

static void handle(struct sim *sim, struct sim_event *event)
{
    struct sim_node *node = &sim->nodes[event->node];
    bool same_life = node->life == event->life;

    switch (event->kind) {
    case SIM_MESSAGE:
        sim_arrive(sim, event);
        break;
    case SIM_TICK:
        if (!node->up || !same_life || node->tick_at != event->index)
            break;
        sim_node_space(sim, event->node);
        if (node->up && node->life == event->life)
            sim_node_step(sim, event->node, &(struct qc_event){ .kind = QC_EVENT_TICK });
        break;
    case SIM_SYNC:
        if (node->up && same_life)
            sim_node_sync(sim, event->node);
        break;
    case SIM_SYNCED:
        if (node->up && same_life)
            sim_node_synced(sim, event);
        break;
    case SIM_FETCHED:
        if (node->up && same_life) /* a node saves nothing while one may be installed */
            sim_node_saved(sim, event->node);
        if (node->up && node->life == event->life)
            sim_node_fetched(sim, event);
        break;
    case SIM_SAVED:
        if (node->up && same_life)
            sim_node_saved(sim, event->node);
        break;
    case SIM_RESTART:
        if (node->exists && !node->up && same_life && !node->lost)
            sim_node_start(sim, event->node);
        break;
    case SIM_REQUEST:
        sim_client_request(sim, event);
        break;
    case SIM_CLIENT:
        if (sim->clients[event->client].operation == event->life)
            sim_client_begin(sim, event->client);
        break;
    case SIM_CHAOS:
        sim_chaos(sim);
        repeat(sim, SIM_CHAOS, sim->storm);
        break;
    case SIM_OPERATOR:
        sim_operator(sim);
        repeat(sim, SIM_OPERATOR, 600000);
        break;
    case SIM_FILL:
        sim_fill(sim);
        break;
    case SIM_PROPOSE:
        sim_app_propose(sim);
        repeat(sim, SIM_PROPOSE, 25000);
        break;
    case SIM_FLUSH:
        if (node->up && same_life)
            sim_app_flush(sim, event->node);
        break;
    case SIM_RETRY:
        if (node->up && same_life)
            sim_node_retry(sim, event->node);
        break;
    }
}

static void next(struct sim *sim)
{
    const struct sim_slot *top = qf_heap_top(&sim->queue);
    struct sim_event event;

    assert(top);
    sim->now = top->at;
    event = sim->events.items[top->event];
    QF_VEC_PUSH(&sim->free_events, top->event);
    qf_heap_pop(&sim->queue);
    sim->result.events++;
    handle(sim, &event);
}

/* The faults are over: does the queue work, everywhere, with all that was promised? */
static bool recovered(struct sim *sim)
{
    if (history_acked_count(sim->history) < sim->calm_acked + 10 ||
        sim->result.reads < sim->calm_reads + 3 || !sim_is_repaired(sim) ||
        (sim->options.chains && sim->result.links_acked < sim->calm_links + 10))
        return false;
    for (uint32_t i = 0; i < sim->reference.members.count; i++) {
        struct sim_node *node = sim_node_of(sim, sim->reference.members.items[i].id);

        if (node && !node->lost && (!node->up || qc_state(node->core)->applied < sim->calm_applied))
            return false;
    }
    return true;
}

static void run_calm(struct sim *sim)
{
    sim_calm(sim);
    sim->calm_acked = history_acked_count(sim->history);
    sim->calm_reads = sim->result.reads;
    sim->calm_changes = sim->result.changes;
    sim->calm_links = sim->result.links_acked;
    sim->calm_applied = sim->reference.applied;
    sim->calm_until = sim->now + UINT64_C(200000000);
    while (!sim->result.failure && !recovered(sim)) {
        if (sim->now > sim->calm_until)
            sim_fail(sim, "the queue does not work again after the faults ended");
        else
            next(sim);
    }
}

static void begin(struct sim *sim)
{
    uint32_t nodes = sim->options.nodes;

    sim->queue = (struct qf_heap){ .item_size = sizeof(struct sim_slot), .before = earlier };
    sim->prng.state = sim->options.seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    if (!nodes)
        nodes = 1 + 2 * (uint32_t)sim_below(sim, 3);
    sim->node_count = QF_MIN(nodes + 3, (uint32_t)SIM_NODES);
    /* Some worlds hardly get anything done, others have time to grow old between two faults. */
    sim->storm = UINT64_C(60000) << sim_below(sim, 6);
    sim->history = history_new();
    qc_state_init(&sim->reference);
    QF_VEC_PUSH(&sim->truth, (struct sim_truth){ 0 });
    for (uint32_t i = 0; i < nodes; i++)
        sim_node_create(sim, i, i == 0);
    for (uint32_t i = 0; i < SIM_CLIENTS; i++)
        sim_client_begin(sim, i);
    repeat(sim, SIM_OPERATOR, 600000);
    sim_post(sim, 3000000, &(struct sim_event){ .kind = SIM_CHAOS });
    sim->fill_prng.state = sim->options.seed;
    if (sim->options.full_disks)
        sim_post(sim, 2000000, &(struct sim_event){ .kind = SIM_FILL });
    if (sim->options.chains)
        repeat(sim, SIM_PROPOSE, 25000);
}

static void describe(struct sim *sim, const struct sim_node *node)
{
    struct qc_members members;

    sim_trace(sim, "%s %016" PRIx64 ": exists %d up %d lost %d", node->name, node->id, node->exists,
              node->up, node->lost);
    if (!node->up)
        return;
    sim_trace(sim,
              "    term %" PRIu64 " leads %d serves %d leader %016" PRIx64 " applied %" PRIu64
              " commit %" PRIu64 " log %" PRIu64 "..%" PRIu64 " snapshot %" PRIu64,
              qc_term(node->core), qc_leads(node->core), qc_serves(node->core),
              qc_leader(node->core), qc_state(node->core)->applied, qc_commit(node->core),
              ql_log_first(node->store.log), ql_log_last(node->store.log),
              node->store.snapshot.index);
    qc_members(node->core, &members);
    for (uint32_t i = 0; i < members.count; i++)
        sim_trace(sim, "    member %s %016" PRIx64 " role %d", members.items[i].name,
                  members.items[i].id, (int)members.items[i].role);
}

static void end(struct sim *sim)
{
    for (uint32_t i = 0; sim->result.failure && i < sim->node_count; i++)
        describe(sim, &sim->nodes[i]);
    for (size_t i = 0; i < sim->queue.count; i++)
        free(sim->events.items[sim->slots.items[i].event].owned);
    for (uint32_t i = 0; i < SIM_NODES; i++) {
        if (sim->nodes[i].core)
            sim->result.restarts += qc_figures(sim->nodes[i].core).restarts;
        if (sim->nodes[i].disk)
            sim_node_free(&sim->nodes[i]);
    }
    sim->history = history_free(sim->history);
    QF_VEC_DONE(&sim->truth);
    QF_VEC_DONE(&sim->leaders);
    QF_VEC_DONE(&sim->events);
    QF_VEC_DONE(&sim->free_events);
    QF_VEC_DONE(&sim->slots);
    qf_strbuf_done(&sim->scratch);
}

struct sim_result sim_run(const struct sim_options *options)
{
    struct sim *sim = qf_xcalloc(1, sizeof(*sim));
    struct sim_result result;

    sim->options = *options;
    begin(sim);
    while (!sim->result.failure && sim->result.events < options->events)
        next(sim);
    if (!sim->result.failure)
        run_calm(sim);
    end(sim);
    result = sim->result;
    free(sim);
    return result;
}
