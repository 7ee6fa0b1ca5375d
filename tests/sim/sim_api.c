/* sim_api.c - the API daemon of the simulation: effects become messages, dials and downloads. */
#include "tests/sim/sim_int.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/core/check.h"
#include "workcoord/rendezvous.h"

static void on_trace(void *ctx, const char *line, size_t len)
{
    printf("a%u %.*s\n", *(uint32_t *)ctx, (int)len, line);
}

void sim_api_start(struct sim *sim, uint32_t api)
{
    static uint32_t names[SIM_APIS];
    struct wc_api_limits limits = wc_api_limits_default();
    struct sim_event query = { .kind = SIM_QUERY, .api = api };

    limits.workers_max = sim->worker_count;
    limits.queries_max = 16;
    limits.items_max = 48;
    limits.hedge_after = sim_chance(sim, 0.7) ? 1.5 : 0;
    limits.hedges_min = 1 + (uint32_t)sim_below(sim, 4);
    sim->apis[api].core = wc_api_new(&limits);
    sim->apis[api].life = wc_life_new(&(struct wc_life_limits){
        .queries_max = 20, .active_max = 6, .tenant_queue_max = 5, .replans_max = 2 });
    memset(sim->apis[api].passed, 0, sizeof(sim->apis[api].passed));
    sim->apis[api].life_number++;
    names[api] = api + 1;
    if (sim->options.trace) {
        wc_api_trace(sim->apis[api].core, on_trace, &names[api]);
        wc_life_trace(sim->apis[api].life, on_trace, &names[api]);
    }
    for (uint32_t worker = 0; worker < sim->worker_count; worker++) {
        struct wc_api_event event = { .type = WC_API_EV_DISCOVERED, .worker = { worker + 1 } };

        sim_api_step(sim, api, &event);
    }
    query.api_life = sim->apis[api].life_number;
    sim_post(sim, (qf_time_ms)sim_below(sim, 200), &query);
}

static void add_stats(struct sim *sim, const struct wc_api *core)
{
    const struct wc_api_stats *stats = wc_api_stats(core);

    sim->result.assigned += stats->assigned;
    sim->result.reassigned += stats->reassigned;
    sim->result.late += stats->late;
    sim->result.hedged += stats->hedged;
    sim->result.hedges_won += stats->hedges_won;
    sim->result.owner_hits += stats->owner_hits;
    sim->result.owner_misses += stats->owner_misses;
    sim->result.duplicates += stats->duplicates;
    sim->result.illegal += stats->illegal;
    sim->result.stale += stats->stale;
    sim->result.lost += stats->workers_lost;
    if (stats->conflicts)
        sim_fail(sim, "two completions of one work have different bytes");
}

/* Its queries die with it; workers notice by their streams. */
void sim_api_stop(struct sim *sim, uint32_t api)
{
    struct sim_api *node = &sim->apis[api];

    if (!node->core)
        return;
    add_stats(sim, node->core);
    sim->result.replanned += wc_life_stats(node->life)->replanned;
    sim->result.refused += wc_life_stats(node->life)->refused;
    node->life = wc_life_free(node->life);
    node->core = wc_api_free(node->core);
    for (size_t i = 0; i < sim->queries.count; i++) {
        struct sim_query *query = &sim->queries.items[i];

        if (query->api == api && query->api_life == node->life_number && !query->ended) {
            query->ended = true;
            sim->queries_open--;
        }
    }
    for (size_t i = 0; i < sim->sessions.count; i++) {
        if (sim->sessions.items[i].api == api)
            sim_close(sim, i + 1, false, true);
    }
}

static void on_dial(struct sim *sim, uint32_t api, const struct wc_api_effect *effect)
{
    struct sim_event event = {
        .kind = SIM_DIAL,
        .api = api,
        .worker = (uint32_t)effect->worker.v - 1,
        .api_life = sim->apis[api].life_number,
    };

    sim_post(sim, sim_delay(sim), &event);
}

static void on_fetch(struct sim *sim, uint32_t api, const struct wc_api_effect *effect)
{
    uint32_t worker = (uint32_t)effect->worker.v - 1;
    struct sim_event event = {
        .kind = SIM_FETCH_END,
        .api = api,
        .worker = worker,
        .api_life = sim->apis[api].life_number,
        .worker_life = sim->workers[worker].life,
        .session = effect->session.v,
        .api_event = { .work = effect->work, .attempt = effect->attempt },
    };

    sim_post(sim, sim_delay(sim) + (qf_time_ms)sim_below(sim, 50), &event);
}

static void to_worker(struct sim *sim, enum wc_worker_event_type type,
                      const struct wc_api_effect *effect)
{
    struct wc_worker_event event = {
        .type = type,
        .work = effect->work,
        .attempt = effect->attempt,
    };

    if (type == WC_WORKER_EV_ASSIGN) {
        event.assign.query = effect->query;
        event.assign.leaf = effect->leaf;
    }
    if (type == WC_WORKER_EV_HEARTBEAT)
        event.sent_at = sim->now;
    sim_send_worker(sim, effect->session.v, &event);
}

/* Nobody else gets it while an owner could have it that has not had it yet. */
static void check_owner(struct sim *sim, uint32_t api, const struct wc_api_effect *effect)
{
    struct sim_work *work = &sim->works.items[effect->work.v - 1];
    uint32_t bit = effect->worker.v <= 8 ? UINT32_C(1) << (effect->worker.v - 1) : 0;

    if (effect->owner != ((work->owners & bit) != 0))
        sim_fail(sim, "owner and stranger are mixed up");
    for (uint64_t w = 1; w <= 8 && !effect->owner; w++) {
        struct wc_api_worker_view view;

        if (((work->owners & ~work->sent) >> (w - 1) & 1) &&
            wc_api_worker(sim->apis[api].core, (struct wc_worker_id){ w }, &view) && view.available)
            sim_fail(sim, "work was not sent to an owner that would have it");
    }
    work->sent |= bit;
}

static void on_assign(struct sim *sim, uint32_t api, const struct wc_api_effect *effect)
{
    struct wc_api_worker_view view;

    check_owner(sim, api, effect);
    if (!wc_api_worker(sim->apis[api].core, effect->worker, &view) || !view.available)
        sim_fail(sim, "work was sent to a worker that is not available");
    to_worker(sim, WC_WORKER_EV_ASSIGN, effect);
}

static void on_hedge(struct sim *sim, uint32_t api, const struct wc_api_effect *effect)
{
    struct sim_work *work = &sim->works.items[effect->work.v - 1];

    if (work->hedged)
        sim_fail(sim, "an item was hedged twice");
    work->hedged = true;
    on_assign(sim, api, effect);
}

static void on_effect(struct sim *sim, uint32_t api, const struct wc_api_effect *effect)
{
    switch (effect->type) {
    case WC_API_DO_DIAL:
        on_dial(sim, api, effect);
        break;
    case WC_API_DO_HANGUP:
        sim_close(sim, effect->session.v, false, true);
        break;
    case WC_API_DO_HEARTBEAT:
        to_worker(sim, WC_WORKER_EV_HEARTBEAT, effect);
        break;
    case WC_API_DO_ASSIGN:
        on_assign(sim, api, effect);
        break;
    case WC_API_DO_HEDGE:
        on_hedge(sim, api, effect);
        break;
    case WC_API_DO_CANCEL:
        to_worker(sim, WC_WORKER_EV_CANCEL, effect);
        break;
    case WC_API_DO_ACK:
        to_worker(sim, WC_WORKER_EV_ACK, effect);
        break;
    case WC_API_DO_FETCH:
        on_fetch(sim, api, effect);
        break;
    case WC_API_DO_COMMITTED:
        sim_query_committed(sim, effect);
        break;
    case WC_API_DO_QUERY_ENDED:
        sim_query_work_over(sim, effect->query, effect->rc);
        break;
    case WC_API_DO_BLAMED:
        if (sim->sessions.items[effect->session.v - 1].open)
            sim_fail(sim, "a worker whose stream is up is taken for dead");
        break;
    case WC_API_DO_LOST:
    case WC_API_DO__COUNT:
        break;
    }
}

qf_rc sim_api_try(struct sim *sim, uint32_t api, struct wc_api_event *event)
{
    struct wc_api *core = sim->apis[api].core;
    struct wc_api_effects effects;
    qf_rc rc;

    event->now = sim->now;
    event->random = qf_prng_next(&sim->prng);
    rc = wc_api_step(core, event, &effects);
    sim->result.steps++;
    for (size_t i = 0; i < effects.count; i++)
        on_effect(sim, api, &effects.items[i]);
    if (sim->options.check && core_check_api(core))
        sim_fail(sim, core_check_api(core));
    return rc;
}

void sim_api_step(struct sim *sim, uint32_t api, struct wc_api_event *event)
{
    if (sim_api_try(sim, api, event) != QF_OK)
        sim_fail(sim, "a step was refused");
}

void sim_api_dialed(struct sim *sim, const struct sim_event *event)
{
    struct sim_session session = { .api = event->api, .worker = event->worker, .open = true };
    struct wc_api_event answer = { .worker = { event->worker + 1 } };
    struct wc_worker_event hello = { .type = WC_WORKER_EV_SESSION_OPEN };

    if (!sim->workers[event->worker].core || sim_chance(sim, 0.05)) {
        answer.type = WC_API_EV_DISCONNECTED;
        sim_api_step(sim, event->api, &answer);
        return;
    }
    QF_VEC_PUSH(&sim->sessions, session);
    answer.type = WC_API_EV_CONNECTED;
    answer.session.v = sim->sessions.count;
    sim_api_step(sim, event->api, &answer);
    sim_send_worker(sim, answer.session.v, &hello);
}

/* Whether the bytes come depends on what the worker still has when the download ends. */
void sim_api_fetch_end(struct sim *sim, const struct sim_event *event)
{
    struct sim_worker *worker = &sim->workers[event->worker];
    struct wc_api_event end = event->api_event;
    struct wc_run_id run = { 0 };

    end.type = WC_API_EV_FETCH_FAILED;
    end.fetch_error = WC_FETCH_IO;
    if (worker->core && worker->life == event->worker_life)
        run = wc_worker_find(worker->core, (struct wc_session_id){ event->session }, end.work,
                             end.attempt);
    if (sim_chance(sim, 0.03)) {
        end.fetch_error = (enum wc_fetch_error)sim_below(sim, WC_FETCH__COUNT);
    } else if (run.v && run.v <= worker->runs.count && worker->runs.items[run.v - 1].artifact) {
        if (worker->runs.items[run.v - 1].work != end.work.v)
            sim_fail(sim, "a worker serves the artifact of another work");
        end.type = WC_API_EV_FETCHED;
        end.checksum = (struct wc_checksum){ end.work.v, ~end.work.v };
    } else if (worker->core) {
        end.fetch_error = WC_FETCH_EXPIRED;
    }
    sim_api_step(sim, event->api, &end);
}
