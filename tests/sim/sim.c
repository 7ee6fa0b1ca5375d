/* sim.c - the clock, the queue of events, and the end of the world. */
#include "tests/sim/sim_int.h"

#include <stdlib.h>

/* Longer than every delay and lifetime in the cores put together; steps for each stream. */
enum { CALM_MS = 1500000, STEPS_CALM_MIN = 1000000, STEPS_CALM_STREAM = 30000 };

void sim_fail(struct sim *sim, const char *why)
{
    if (!sim->result.failure)
        sim->result.failure = why;
}

static bool sooner(const void *a, const void *b, void *ctx)
{
    const struct sim_slot *left = a, *right = b;

    (void)ctx;
    if (left->at != right->at)
        return left->at < right->at;
    return left->order < right->order;
}

void sim_post(struct sim *sim, qf_time_ms delay, const struct sim_event *event)
{
    struct sim_slot slot = { .at = sim->now + delay, .order = sim->order++ };

    if (sim->free_events.count) {
        slot.event = sim->free_events.items[--sim->free_events.count];
    } else {
        slot.event = (uint32_t)sim->events.count;
        QF_VEC_PUSH(&sim->events, *event);
    }
    sim->events.items[slot.event] = *event;
    QF_VEC_RESERVE(&sim->slots, sim->queue.count + 1);
    sim->queue.items = sim->slots.items;
    sim->queue.capacity = sim->slots.capacity;
    (void)qf_heap_push(&sim->queue, &slot);
}

/* Mostly fast, sometimes slow, now and then very slow. */
qf_time_ms sim_delay(struct sim *sim)
{
    if (sim_chance(sim, 0.9))
        return (qf_time_ms)sim_below(sim, 3);
    return (qf_time_ms)sim_below(sim, sim_chance(sim, 0.1) ? 1500 : 40);
}

/* Does a message still find the one it was meant for? */
static bool arrives(struct sim *sim, const struct sim_event *event)
{
    bool to_api = event->kind != SIM_TO_WORKER;
    const struct sim_session *session;

    if (to_api &&
        (!sim->apis[event->api].core || sim->apis[event->api].life_number != event->api_life))
        return false;
    if (!to_api && (!sim->workers[event->worker].core ||
                    sim->workers[event->worker].life != event->worker_life))
        return false;
    if (event->closing || event->kind == SIM_FETCH_END || event->kind == SIM_DIAL)
        return true;
    session = &sim->sessions.items[event->session - 1];
    if (session->deaf[to_api ? 0 : 1])
        return false;
    return !session->lossy || sim_below(sim, 2);
}

static void chaos(struct sim *sim)
{
    struct sim_event next = { .kind = SIM_CHAOS };

    if (sim->calm)
        return;
    sim_chaos(sim);
    sim_post(sim, 10 + (qf_time_ms)sim_below(sim, 600), &next);
}

static void start_or_stop_worker(struct sim *sim, const struct sim_event *event)
{
    if (!event->closing)
        sim_worker_start(sim, event->worker);
    else if (sim->workers[event->worker].life == event->worker_life)
        sim_worker_stop(sim, event->worker, false);
}

static bool worker_lives(const struct sim *sim, const struct sim_event *event)
{
    const struct sim_worker *worker = &sim->workers[event->worker];

    return worker->core && worker->life == event->worker_life;
}

static void run_event(struct sim *sim, struct sim_event *event)
{
    switch (event->kind) {
    case SIM_TO_API:
        if (arrives(sim, event))
            sim_api_step(sim, event->api, &event->api_event);
        break;
    case SIM_TO_WORKER:
        if (arrives(sim, event))
            sim_worker_step(sim, event->worker, &event->worker_event);
        break;
    case SIM_DIAL:
        if (arrives(sim, event))
            sim_api_dialed(sim, event);
        break;
    case SIM_FETCH_END:
        if (arrives(sim, event))
            sim_api_fetch_end(sim, event);
        break;
    case SIM_LOAD_END:
        if (worker_lives(sim, event))
            sim_worker_load_end(sim, event);
        break;
    case SIM_RUN_END:
        if (worker_lives(sim, event))
            sim_worker_run_end(sim, event);
        break;
    case SIM_QUERY:
        if (sim->apis[event->api].core && sim->apis[event->api].life_number == event->api_life)
            sim_query_submit(sim, event->api);
        break;
    case SIM_TO_LIFE:
        if (sim->apis[event->api].core && sim->apis[event->api].life_number == event->api_life)
            sim_query_life(sim, event->api, &event->life_event);
        break;
    case SIM_BEGIN:
        if (sim->apis[event->api].core && sim->apis[event->api].life_number == event->api_life)
            sim_query_begin(sim, event);
        break;
    case SIM_CHAOS:
        chaos(sim);
        break;
    case SIM_START_API:
        sim_api_start(sim, event->api);
        break;
    case SIM_START_WORKER:
        start_or_stop_worker(sim, event);
        break;
    }
}

static qf_time_ms api_deadline(const struct sim_api *api)
{
    return api->core ? QF_MIN(wc_api_deadline(api->core), wc_life_deadline(api->life))
                     : QF_TIME_NEVER;
}

/* APIs first, then workers. */
static qf_time_ms deadline_of(const struct sim *sim, uint32_t node)
{
    const struct wc_worker *worker;

    if (node < sim->api_count)
        return api_deadline(&sim->apis[node]);
    worker = sim->workers[node - sim->api_count].core;
    return worker ? wc_worker_deadline(worker) : QF_TIME_NEVER;
}

static void tick_api(struct sim *sim, uint32_t api)
{
    struct wc_api_event work = { .type = WC_API_EV_TICK };
    struct wc_life_event life = { .type = WC_LIFE_EV_TICK };

    if (wc_api_deadline(sim->apis[api].core) <= sim->now)
        sim_api_step(sim, api, &work);
    if (wc_life_deadline(sim->apis[api].life) <= sim->now)
        sim_query_life(sim, api, &life);
}

/* The node whose timer is due first, if that is before @limit: tick it. */
static bool tick_before(struct sim *sim, qf_time_ms limit)
{
    struct wc_worker_event worker_tick = { .type = WC_WORKER_EV_TICK };
    uint32_t first = UINT32_MAX;

    for (uint32_t i = 0; i < sim->api_count + sim->worker_count; i++) {
        qf_time_ms due = deadline_of(sim, i);

        if (due < limit) {
            limit = due;
            first = i;
        }
    }
    if (first == UINT32_MAX)
        return false;
    sim->now = QF_MAX(sim->now, limit);
    if (first < sim->api_count)
        tick_api(sim, first);
    else
        sim_worker_step(sim, first - sim->api_count, &worker_tick);
    return true;
}

static bool advance(struct sim *sim)
{
    const struct sim_slot *top = qf_heap_top(&sim->queue);
    qf_time_ms next = top ? top->at : QF_TIME_NEVER;
    struct sim_event event;
    uint32_t slot;

    if (tick_before(sim, next))
        return true;
    if (!top)
        return false;
    slot = top->event;
    qf_heap_pop(&sim->queue);
    event = sim->events.items[slot];
    QF_VEC_PUSH(&sim->free_events, slot);
    sim->now = next;
    run_event(sim, &event);
    return true;
}

/* A daemon has nothing of runs that are over. */
static bool records_empty(const struct sim_worker *worker)
{
    for (size_t i = 0; i < worker->runs.count; i++) {
        const struct sim_run_record *run = &worker->runs.items[i];

        if (!run->over || run->held || run->executing || run->artifact)
            return false;
    }
    return true;
}

static bool workers_empty(const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->worker_count; i++) {
        const uint32_t *runs;

        if (!sim->workers[i].core)
            continue;
        runs = wc_worker_stats(sim->workers[i].core)->runs;
        for (int state = 0; state < WC_RUN_GONE; state++) {
            if (runs[state])
                return false;
        }
        if (!records_empty(&sim->workers[i]))
            return false;
    }
    return true;
}

/* The faults are over: half-open streams are cut, unwilling workers willing again. */
static void calm_down(struct sim *sim)
{
    sim->calm = true;
    for (size_t i = 0; i < sim->sessions.count; i++) {
        struct sim_session *session = &sim->sessions.items[i];

        if (session->deaf[0] || session->deaf[1]) {
            session->deaf[0] = session->deaf[1] = false;
            sim_close(sim, i + 1, true, true);
        }
    }
    for (uint32_t i = 0; i < sim->worker_count; i++) {
        struct wc_worker_event event = { .type = WC_WORKER_EV_ACCEPTING, .accepting = true };

        sim->workers[i].slow = false;
        if (sim->workers[i].core)
            sim_worker_step(sim, i, &event);
    }
}

static void run_until_quiet(struct sim *sim)
{
    qf_time_ms end = sim->now + CALM_MS;
    uint64_t streams = (uint64_t)sim->api_count * sim->worker_count;
    uint64_t steps =
        sim->result.steps + QF_MAX((uint64_t)STEPS_CALM_MIN, streams * STEPS_CALM_STREAM);

    while (!sim->result.failure && (sim->queries_open || !workers_empty(sim)) && sim->now < end &&
           sim->result.steps < steps && advance(sim))
        ;
    sim->result.ended_ms = sim->now;
    if (sim->queries_open)
        sim_fail(sim, "the faults are over but a query did not end");
    else if (!workers_empty(sim))
        sim_fail(sim, "every query has ended but a worker still holds work");
}

static void done(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->api_count; i++)
        sim_api_stop(sim, i);
    for (uint32_t i = 0; i < sim->worker_count; i++) {
        wc_worker_free(sim->workers[i].core);
        QF_VEC_DONE(&sim->workers[i].runs);
    }
    QF_VEC_DONE(&sim->sessions);
    QF_VEC_DONE(&sim->queries);
    QF_VEC_DONE(&sim->works);
    QF_VEC_DONE(&sim->events);
    QF_VEC_DONE(&sim->free_events);
    QF_VEC_DONE(&sim->slots);
}

struct sim_result sim_run(const struct sim_options *options)
{
    struct sim sim = { .options = *options, .prng = { options->seed } };
    struct sim_event first_fault = { .kind = SIM_CHAOS };
    uint32_t apis_max = options->apis_max ? options->apis_max : 3;
    uint32_t workers_max = options->workers_max ? options->workers_max : 12;

    sim.queue = (struct qf_heap){ .item_size = sizeof(struct sim_slot), .before = sooner };
    apis_max = QF_MIN(apis_max, (uint32_t)SIM_APIS);
    workers_max = QF_MIN(workers_max, (uint32_t)SIM_WORKERS);
    sim.api_count = options->exactly ? apis_max : 1 + (uint32_t)sim_below(&sim, apis_max);
    sim.worker_count = options->exactly ? workers_max : 1 + (uint32_t)sim_below(&sim, workers_max);
    for (uint32_t i = 0; i < sim.worker_count; i++)
        sim_worker_start(&sim, i);
    for (uint32_t i = 0; i < sim.api_count; i++)
        sim_api_start(&sim, i);
    sim_post(&sim, 100, &first_fault);
    while (!sim.result.failure && sim.result.steps < options->events && advance(&sim))
        ;
    calm_down(&sim);
    run_until_quiet(&sim);
    done(&sim);
    return sim.result;
}
