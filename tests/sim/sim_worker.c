/* sim_worker.c - the worker daemon of the simulation: runs take time, artifacts take space. */
#include "tests/sim/sim_int.h"

#include <stdio.h>

#include "tests/lib/core/check.h"

static void on_trace(void *ctx, const char *line, size_t len)
{
    printf("w%u %.*s\n", *(uint32_t *)ctx, (int)len, line);
}

void sim_worker_start(struct sim *sim, uint32_t worker)
{
    static uint32_t names[SIM_WORKERS];
    struct wc_worker_limits limits = { .sessions_max = 64, .runs_max = 40 };
    struct sim_worker *node = &sim->workers[worker];

    if (node->core)
        return;
    limits.slots = 1 + (uint32_t)sim_below(sim, 3);
    /* Some workers are tight, so that full tables happen. */
    if (sim_chance(sim, 0.2))
        limits.runs_max = 4;
    node->core = wc_worker_new(&limits);
    node->life++;
    node->runs.count = 0;
    node->slow = false;
    names[worker] = worker + 1;
    if (sim->options.trace)
        wc_worker_trace(node->core, on_trace, &names[worker]);
}

/* The process is gone and comes back later; @silently: its streams do not even close. */
void sim_worker_stop(struct sim *sim, uint32_t worker, bool silently)
{
    struct sim_worker *node = &sim->workers[worker];
    struct sim_event start = { .kind = SIM_START_WORKER, .worker = worker };

    if (!node->core)
        return;
    node->core = wc_worker_free(node->core);
    for (size_t i = 0; i < sim->sessions.count; i++) {
        if (sim->sessions.items[i].worker == worker)
            sim_close(sim, i + 1, !silently, false);
    }
    sim_post(sim, 50 + (qf_time_ms)sim_below(sim, 3000), &start);
}

static void to_api(struct sim *sim, enum wc_api_event_type type,
                   const struct wc_worker_effect *effect, struct wc_api_event *event)
{
    event->type = type;
    event->work = effect->work;
    event->attempt = effect->attempt;
    sim_send_api(sim, effect->session.v, event);
}

static void send_status(struct sim *sim, uint32_t worker, const struct wc_worker_effect *effect)
{
    const struct wc_worker_stats *stats = wc_worker_stats(sim->workers[worker].core);
    struct wc_api_event event = { 0 };

    event.status.worker_key = (worker + 1) * UINT64_C(0x9e3779b97f4a7c15);
    event.status.accepting = stats->accepting;
    event.status.draining = stats->draining;
    event.status.slots = stats->slots;
    event.status.queue_depth = stats->runs[WC_RUN_QUEUED];
    to_api(sim, WC_API_EV_STATUS, effect, &event);
}

static void start_run(struct sim *sim, uint32_t worker, const struct wc_worker_effect *effect)
{
    struct sim_worker *node = &sim->workers[worker];
    struct sim_event end = { .kind = SIM_RUN_END, .worker = worker, .worker_life = node->life };
    qf_time_ms time = 5 + (qf_time_ms)sim_below(sim, 100);

    while (node->runs.count < effect->run.v)
        QF_VEC_PUSH(&node->runs, (struct sim_run_record){ 0 });
    node->runs.items[effect->run.v - 1].work = effect->work.v;
    end.worker_event.run = effect->run;
    sim_post(sim, node->slow ? 20 * time : time, &end);
}

/* A canceled run notices within a batch. */
static void stop_run(struct sim *sim, uint32_t worker, struct wc_run_id run)
{
    struct sim_event end = { .kind = SIM_RUN_END, .worker = worker };

    end.worker_life = sim->workers[worker].life;
    end.worker_event.run = run;
    sim_post(sim, 1 + (qf_time_ms)sim_below(sim, 20), &end);
}

static void drop(struct sim *sim, uint32_t worker, struct wc_run_id run)
{
    struct sim_run_record *record = &sim->workers[worker].runs.items[run.v - 1];

    if (!record->artifact)
        sim_fail(sim, "an artifact was dropped that is not there");
    record->artifact = false;
}

static void on_drained(struct sim *sim, uint32_t worker)
{
    struct sim_event stop = { .kind = SIM_START_WORKER, .worker = worker, .closing = true };

    stop.worker_life = sim->workers[worker].life;
    sim_post(sim, 0, &stop); /* Exits after this step. */
}

static void on_effect(struct sim *sim, uint32_t worker, const struct wc_worker_effect *effect)
{
    struct wc_api_event event = { 0 };

    switch (effect->type) {
    case WC_WORKER_DO_STATUS:
        send_status(sim, worker, effect);
        break;
    case WC_WORKER_DO_ECHO:
        event.sent_at = effect->sent_at;
        to_api(sim, WC_API_EV_HEARTBEAT, effect, &event);
        break;
    case WC_WORKER_DO_HANGUP:
        sim_close(sim, effect->session.v, true, false);
        break;
    case WC_WORKER_DO_ACCEPT:
        to_api(sim, WC_API_EV_ACCEPTED, effect, &event);
        break;
    case WC_WORKER_DO_REJECT:
        event.reject = effect->reject;
        to_api(sim, WC_API_EV_REJECTED, effect, &event);
        break;
    case WC_WORKER_DO_START:
        start_run(sim, worker, effect);
        break;
    case WC_WORKER_DO_STOP:
        stop_run(sim, worker, effect->run);
        break;
    case WC_WORKER_DO_READY:
        event.checksum = effect->checksum;
        to_api(sim, WC_API_EV_READY, effect, &event);
        break;
    case WC_WORKER_DO_FAILED:
        event.failure.rc = effect->failure.rc;
        event.failure.retryable = effect->failure.retryable;
        to_api(sim, WC_API_EV_FAILED, effect, &event);
        break;
    case WC_WORKER_DO_DROP:
        drop(sim, worker, effect->run);
        break;
    case WC_WORKER_DO_DRAINED:
        on_drained(sim, worker);
        break;
    case WC_WORKER_DO_FORGET:
    case WC_WORKER_DO__COUNT:
        break;
    }
}

void sim_worker_step(struct sim *sim, uint32_t worker, struct wc_worker_event *event)
{
    struct wc_worker *core = sim->workers[worker].core;
    struct wc_worker_effects effects;

    event->now = sim->now;
    if (wc_worker_step(core, event, &effects) != QF_OK) {
        /* A repeated SESSION_OPEN, or too many streams: this one is refused. */
        if (event->type != WC_WORKER_EV_SESSION_OPEN)
            sim_fail(sim, "a step was refused");
    }
    sim->result.steps++;
    for (size_t i = 0; i < effects.count; i++)
        on_effect(sim, worker, &effects.items[i]);
    if (sim->options.check && core_check_worker(core))
        sim_fail(sim, core_check_worker(core));
}

void sim_worker_run_end(struct sim *sim, const struct sim_event *event)
{
    struct sim_worker *node = &sim->workers[event->worker];
    struct sim_run_record *record;
    struct wc_worker_run_view view;
    struct wc_worker_event end = event->worker_event;

    record = &node->runs.items[end.run.v - 1];
    if (record->ended)
        return; /* It was stopped before. */
    record->ended = true;
    end.type = WC_WORKER_EV_RUN_FAILED;
    end.failure.rc = QF_ECANCELED;
    if (!wc_worker_run(node->core, end.run, &view))
        sim_fail(sim, "the core forgot a run that was still running");
    if (sim_chance(sim, 0.03)) {
        end.failure.rc = QF_ENOSPC;
        end.failure.retryable = true;
    } else if (sim_chance(sim, 0.002)) {
        end.failure.rc = QF_ECORRUPT;
    } else if (view.state == WC_RUN_RUNNING || sim_chance(sim, 0.5)) {
        end.type = WC_WORKER_EV_RUN_DONE;
        end.checksum = (struct wc_checksum){ record->work, ~record->work };
        record->artifact = true;
    }
    sim_worker_step(sim, event->worker, &end);
}
