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
    struct wc_worker_limits limits = { .sessions_max = 64,
                                       .runs_max = 40,
                                       .spec_bytes_max = 16000 };
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

uint64_t sim_worker_key(uint32_t worker)
{
    return (worker + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void send_status(struct sim *sim, uint32_t worker, const struct wc_worker_effect *effect)
{
    const struct wc_worker_stats *stats = wc_worker_stats(sim->workers[worker].core);
    struct wc_api_event event = { 0 };

    event.status.worker_key = sim_worker_key(worker);
    event.status.accepting = stats->accepting;
    event.status.draining = stats->draining;
    event.status.slots = stats->slots;
    event.status.queue_depth = stats->runs[WC_RUN_QUEUED];
    to_api(sim, WC_API_EV_STATUS, effect, &event);
}

static struct sim_run_record *record_of(struct sim *sim, uint32_t worker, struct wc_run_id run)
{
    struct sim_worker *node = &sim->workers[worker];

    while (node->runs.count < run.v)
        QF_VEC_PUSH(&node->runs, (struct sim_run_record){ 0 });
    if (node->runs.items[run.v - 1].over)
        sim_fail(sim, "an effect for a run that is over");
    return &node->runs.items[run.v - 1];
}

static void require(struct sim *sim, bool holds, const char *otherwise)
{
    if (!holds)
        sim_fail(sim, otherwise);
}

static void post_end(struct sim *sim, enum sim_kind kind, uint32_t worker, struct wc_run_id run,
                     qf_time_ms time)
{
    struct sim_event end = { .kind = kind,
                             .worker = worker,
                             .worker_life = sim->workers[worker].life };

    end.worker_event.run = run;
    sim_post(sim, sim->workers[worker].slow ? 20 * time : time, &end);
}

/* Half of the segments are on the disk already: the event comes right behind this step. */
static void load(struct sim *sim, uint32_t worker, const struct wc_worker_effect *effect)
{
    struct sim_run_record *record = record_of(sim, worker, effect->run);

    require(sim, !record->held, "a run was started twice");
    record->work = effect->work.v;
    record->held = true;
    post_end(sim, SIM_LOAD_END, worker, effect->run,
             sim_below(sim, 2) ? (qf_time_ms)sim_below(sim, 60) : 0);
}

static void execute(struct sim *sim, uint32_t worker, struct wc_run_id run)
{
    struct sim_run_record *record = record_of(sim, worker, run);

    require(sim, record->held && !record->executing, "executed without segments, or twice");
    record->executing = true;
    post_end(sim, SIM_RUN_END, worker, run, 5 + (qf_time_ms)sim_below(sim, 100));
}

/* A canceled task notices within a batch. */
static void stop(struct sim *sim, uint32_t worker, struct wc_run_id run)
{
    struct sim_event end = { .kind = SIM_RUN_END, .worker = worker };
    struct sim_run_record *record = record_of(sim, worker, run);

    require(sim, record->executing && !record->stopped, "stopped what does not run, or twice");
    record->stopped = true;
    end.worker_life = sim->workers[worker].life;
    end.worker_event.run = run;
    sim_post(sim, 1 + (qf_time_ms)sim_below(sim, 20), &end);
}

static void let_go(struct sim *sim, uint32_t worker, struct wc_run_id run)
{
    struct sim_run_record *record = record_of(sim, worker, run);

    require(sim, record->held && !record->executing,
            "released segments it does not hold, or that its task reads");
    record->held = false;
}

static void drop(struct sim *sim, uint32_t worker, struct wc_run_id run)
{
    struct sim_run_record *record = record_of(sim, worker, run);

    require(sim, record->artifact, "an artifact was dropped that is not there");
    record->artifact = false;
}

static void forget(struct sim *sim, uint32_t worker, struct wc_run_id run)
{
    struct sim_run_record *record = record_of(sim, worker, run);

    require(sim, !record->held && !record->executing && !record->artifact,
            "a run was forgotten that still has something");
    record->over = true;
}

static void send_ready(struct sim *sim, uint32_t worker, const struct wc_worker_effect *effect)
{
    struct wc_api_event event = { .checksum = effect->checksum };
    struct sim_run_record *record = record_of(sim, worker, effect->run);

    require(sim, record->artifact && !record->stopped && !record->reported,
            "an artifact was announced that is not there or not wanted, or twice");
    record->reported = true;
    to_api(sim, WC_API_EV_READY, effect, &event);
}

static void send_failed(struct sim *sim, uint32_t worker, const struct wc_worker_effect *effect)
{
    struct wc_api_event event = { 0 };
    struct sim_run_record *record = record_of(sim, worker, effect->run);

    require(sim, !record->reported || effect->failure.rc == QF_ENOTFOUND, "a run failed twice");
    record->reported = true;
    event.failure.rc = effect->failure.rc;
    event.failure.retryable = effect->failure.retryable;
    to_api(sim, WC_API_EV_FAILED, effect, &event);
}

static void exit_after(struct sim *sim, uint32_t worker, qf_time_ms delay)
{
    struct sim_event stop = { .kind = SIM_START_WORKER, .worker = worker, .closing = true };

    stop.worker_life = sim->workers[worker].life;
    sim_post(sim, delay, &stop);
}

/* The second signal: what runs is stopped and may still come back before the process is gone. */
void sim_worker_end(struct sim *sim, uint32_t worker)
{
    struct wc_worker_event end = { .type = WC_WORKER_EV_END };

    exit_after(sim, worker, (qf_time_ms)sim_below(sim, 100));
    sim_worker_step(sim, worker, &end);
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
    case WC_WORKER_DO_LOAD:
        load(sim, worker, effect);
        break;
    case WC_WORKER_DO_EXECUTE:
        execute(sim, worker, effect->run);
        break;
    case WC_WORKER_DO_STOP:
        stop(sim, worker, effect->run);
        break;
    case WC_WORKER_DO_RELEASE:
        let_go(sim, worker, effect->run);
        break;
    case WC_WORKER_DO_READY:
        send_ready(sim, worker, effect);
        break;
    case WC_WORKER_DO_FAILED:
        send_failed(sim, worker, effect);
        break;
    case WC_WORKER_DO_DROP:
        drop(sim, worker, effect->run);
        break;
    case WC_WORKER_DO_FORGET:
        forget(sim, worker, effect->run);
        break;
    case WC_WORKER_DO_DRAINED:
        exit_after(sim, worker, 0); /* after this step */
        break;
    case WC_WORKER_DO_ACKED:
    case WC_WORKER_DO__COUNT:
        break;
    }
}

void sim_worker_step(struct sim *sim, uint32_t worker, struct wc_worker_event *event)
{
    struct wc_worker *core = sim->workers[worker].core;
    struct wc_worker_effects effects;

    event->now = sim->now;
    /* Now and then a query is nearly out of time: by the worker's clock it ends there first. */
    if (event->type == WC_WORKER_EV_ASSIGN)
        event->assign.bytes = sim_below(sim, 1000);
    if (event->type == WC_WORKER_EV_ASSIGN && sim_chance(sim, 0.02))
        event->assign.deadline = sim->now + 1 + (qf_time_ms)sim_below(sim, 150);
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

void sim_worker_load_end(struct sim *sim, const struct sim_event *event)
{
    struct wc_worker_event end = event->worker_event;

    /* Its run may be over: the core has to cope with that, not the daemon. */
    end.type = WC_WORKER_EV_RUN_LOADED;
    if (sim_chance(sim, 0.03)) {
        end.type = WC_WORKER_EV_RUN_FAILED;
        end.failure.rc = QF_EIO;
        end.failure.retryable = true;
    }
    sim_worker_step(sim, event->worker, &end);
}

void sim_worker_run_end(struct sim *sim, const struct sim_event *event)
{
    struct sim_worker *node = &sim->workers[event->worker];
    struct sim_run_record *record;
    struct wc_worker_event end = event->worker_event;

    record = &node->runs.items[end.run.v - 1];
    if (!record->executing)
        return; /* It was stopped before. */
    record->executing = false;
    end.type = WC_WORKER_EV_RUN_FAILED;
    end.failure.rc = QF_ECANCELED;
    if (record->over)
        sim_fail(sim, "the core forgot a run that was still running");
    if (sim_chance(sim, 0.03)) {
        end.failure.rc = QF_ENOSPC;
        end.failure.retryable = true;
    } else if (sim_chance(sim, 0.002)) {
        end.failure.rc = QF_ECORRUPT;
    } else if (!record->stopped || sim_chance(sim, 0.5)) {
        end.type = WC_WORKER_EV_RUN_DONE;
        end.checksum = (struct wc_checksum){ record->work, ~record->work };
        record->artifact = true;
    }
    sim_worker_step(sim, event->worker, &end);
}
