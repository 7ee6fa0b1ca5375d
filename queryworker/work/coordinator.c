/* coordinator.c - the loop: mailbox, signals, timers, and an orderly end. */
#include "queryworker/work/coordinator.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/signals.h"
#include "queryworker/work/work_int.h"

#define MESSAGES_PER_TURN 256 /* then timers and signals get their turn */
#define TASKS_END_MS 5000     /* how long canceled tasks may take to come back */
#define STREAMS_END_MS 2000

struct qw_coordinator *qw_coordinator_new(const struct qw_coordinator_options *options)
{
    struct qw_coordinator *co = qf_xcalloc(1, sizeof(*co));

    co->options = *options;
    co->m = options->metrics;
    co->wc = wc_worker_new(&options->limits);
    co->lane = wc_lane_worker_new(options->background.slots);
    co->gate.rate = options->background.rate;
    if (!co->wc || !co->lane)
        abort(); /* out of memory, as qf_xmalloc would */
    return co;
}

static void free_runs(struct qw_coordinator *co)
{
    for (size_t i = 0; i < QW_TABLE_BUCKETS; i++)
        while (co->runs.buckets[i])
            qw_run_forget(co, (struct qw_run *)co->runs.buckets[i]);
}

struct qw_coordinator *qw_coordinator_free(struct qw_coordinator *co)
{
    if (!co)
        return NULL;
    free_runs(co);
    for (size_t i = 0; i < QW_TABLE_BUCKETS; i++)
        while (co->sessions.buckets[i])
            qw_co_forget_session(co, co->sessions.buckets[i]->key);
    QF_VEC_DONE(&co->events);
    co->wc = wc_worker_free(co->wc);
    co->lane = wc_lane_worker_free(co->lane);
    free(co->worker_id);
    free(co->base_url);
    free(co);
    return NULL;
}

void qw_coordinator_attach(struct qw_coordinator *co, struct qw_server *server,
                           struct qw_cache *cache, const char *worker_id, const char *base_url)
{
    co->worker_id = qf_xstrdup(worker_id);
    co->server = server;
    co->cache = cache;
    co->base_url = qf_xstrdup(base_url);
}

static void dispatch(struct qw_coordinator *co, struct qw_message *message)
{
    switch (message->kind) {
    case QW_MESSAGE_RPC:
        qw_server_dispatch(co->server, message);
        break;
    case QW_MESSAGE_RUN:
        qw_run_task_back(co, (struct qw_task *)message);
        break;
    case QW_MESSAGE_DOWNLOAD:
        qw_cache_dispatch(co->cache, message);
        qw_run_downloads_back(co);
        break;
    case QW_MESSAGE_JOB:
        qw_jobs_back(co, (struct qw_job_task *)message);
        break;
    case QW_MESSAGE_FETCH:
        qw_artifact_fetched(co, (struct qw_fetch *)message);
        break;
    }
    qw_co_run(co);
    qw_jobs_gate(co);
}

static void update_metrics(struct qw_coordinator *co)
{
    const struct wc_worker_stats *stats = wc_worker_stats(co->wc);
    struct qw_cache_stats cache = qw_cache_stats(co->cache);
    struct qw_metrics *m = co->m;

    qf_metric_set(m->sessions, 0, stats->sessions);
    qf_metric_set(m->slots, 0, stats->slots);
    qf_metric_set(m->accepting, 0, stats->accepting);
    qf_metric_set(m->draining, 0, stats->draining);
    qf_metric_set(m->queue_depth, 0, stats->runs[WC_RUN_QUEUED]);
    for (size_t i = 0; i < WC_RUN__COUNT; i++)
        qf_metric_set(m->runs, i, stats->runs[i]);
    qf_metric_set(m->works_accepted, 0, (double)stats->accepted);
    for (size_t i = 0; i < WC_REJECT__COUNT; i++)
        qf_metric_set(m->works_rejected, i, (double)stats->rejected[i]);
    qf_metric_set(m->works_ready, 0, (double)stats->ready);
    qf_metric_set(m->artifact_expiries, QW_ARTIFACT_UNACKED, (double)stats->expired_unacked);
    qf_metric_set(m->artifact_expiries, QW_ARTIFACT_ACKED, (double)stats->expired_acked);
    qf_metric_set(m->cache_bytes, 0, (double)cache.bytes);
    qf_metric_set(m->readers_open, 0, (double)cache.readers);
    qf_metric_set(m->reader_bytes, 0, (double)cache.reader_bytes);
    qf_metric_set(m->hot_bytes, 0, (double)cache.hot.bytes);
    qf_metric_set(m->hot_hits, 0, (double)cache.hot.hits);
    qf_metric_set(m->hot_misses, 0, (double)cache.hot.misses);
    qf_metric_set(m->hot_evicted, 0, (double)cache.hot.evicted);
    qf_metric_set(m->result_bytes, 0, (double)cache.results.bytes);
    qf_metric_set(m->result_uses, 0, (double)cache.results.uses);
    qf_metric_set(m->result_evicted, 0, (double)cache.results.evicted);
    qf_metric_set(m->spool_bytes, 0, (double)(co->spool_bytes + co->memory_bytes));
    qf_metric_set(m->artifacts, 0, (double)(co->unacked.count + co->acked.count));
    qw_jobs_metrics(co);
}

/* What statuses say of the disk until the next beat: asking it takes a system call. */
static void keep_disk(struct qw_coordinator *co, const struct qw_budget_usage *usage)
{
    size_t segments = co->cache ? qw_cache_stats(co->cache).segments : 0;

    co->disk = (struct pb_disk){ .cache_bytes = usage->cache_bytes,
                                 .cache_segments = (uint32_t)QF_MIN(segments, (size_t)UINT32_MAX),
                                 .bytes = usage->cache_bytes + usage->spool_bytes,
                                 .bytes_max = qw_budget_limit(&co->options.budget, usage) };
}

static void beat(struct qw_coordinator *co, qf_time_ms now)
{
    struct qw_budget_usage usage;

    co->beat_at = now + WC_HEARTBEAT_MS;
    qw_identity_beat(co->options.identity, now);
    qw_co_beat(co);
    qw_jobs_beat(co);
    qw_co_look_after_disk(co);
    usage = qw_co_usage(co);
    keep_disk(co, &usage);
    qf_metric_set(co->m->disk_free_bytes, 0, (double)usage.disk_free_bytes);
    qf_metric_set(co->m->disk_limit_bytes, 0, (double)qw_budget_limit(&co->options.budget, &usage));
}

static void run_timers(struct qw_coordinator *co)
{
    qf_time_ms now = qf_clock_mono_ms();

    if (wc_worker_deadline(co->wc) <= now)
        qw_co_post(co, (struct wc_worker_event){ .type = WC_WORKER_EV_TICK });
    qw_co_run(co);
    if (qw_server_deadline(co->server) <= now)
        qw_server_tick(co->server, now);
    if (co->beat_at <= now)
        beat(co, now);
    qw_co_run(co);
    qw_jobs_gate(co);
}

static int wait_ms(const struct qw_coordinator *co)
{
    qf_time_ms at = QF_MIN(wc_worker_deadline(co->wc), co->beat_at);
    qf_time_ms now = qf_clock_mono_ms();

    at = QF_MIN(at, qw_server_deadline(co->server));
    if (at <= now)
        return 0;
    return (int)QF_MIN(at - now, WC_HEARTBEAT_MS);
}

static void start_draining(struct qw_coordinator *co)
{
    if (co->draining) {
        QF_LOG_WARN("second signal: ending now");
        co->done = true;
        return;
    }
    QF_LOG_INFO("draining", QF_KV_I64("timeout_ms", co->options.drain_timeout_ms));
    co->draining = true;
    atomic_store(&co->options.http_state->ready, false);
    qw_server_set_serving(co->server, false);
    qw_jobs_drain(co);
    qw_co_post(co, (struct wc_worker_event){ .type = WC_WORKER_EV_DRAIN,
                                             .drain_deadline = qf_clock_mono_ms() +
                                                               co->options.drain_timeout_ms });
    qw_co_run(co);
}

static void take_signals(struct qw_coordinator *co, int signal_fd)
{
    int signal_number;

    while ((signal_number = qf_signals_next(signal_fd)) != 0)
        if (signal_number == SIGTERM || signal_number == SIGINT)
            start_draining(co);
        else if (signal_number == SIGHUP)
            QF_LOG_INFO("SIGHUP: certificates are read again with the next connection");
}

static void take_messages(struct qw_coordinator *co)
{
    struct qw_message *message;

    for (int i = 0; i < MESSAGES_PER_TURN; i++) {
        message = qf_mailbox_try_receive(co->options.mailbox);
        if (!message)
            return;
        dispatch(co, message);
    }
}

/* End what runs and wait until it is back; then the same for the streams. */
static bool wind_down(struct qw_coordinator *co)
{
    qf_time_ms give_up = qf_clock_mono_ms() + TASKS_END_MS;
    struct qw_message *message;

    qw_jobs_drain(co); /* the first signal did, if there was one */
    qw_co_post(co, (struct wc_worker_event){ .type = WC_WORKER_EV_END });
    qw_co_run(co);
    while (wc_worker_stats(co->wc)->runs[WC_RUN_STOPPING] || !qw_jobs_idle(co) ||
           qw_cache_stats(co->cache).downloads) {
        if (qf_clock_mono_ms() > give_up)
            return false;
        message = qf_mailbox_receive(co->options.mailbox, 20);
        if (message)
            dispatch(co, message);
    }
    qw_server_stop(co->server);
    give_up = qf_clock_mono_ms() + STREAMS_END_MS;
    while (!qw_server_stopped(co->server)) {
        if (qf_clock_mono_ms() > give_up)
            return false;
        message = qf_mailbox_receive(co->options.mailbox, 20);
        if (message)
            dispatch(co, message);
        qw_server_tick(co->server, qf_clock_mono_ms());
    }
    return true;
}

bool qw_coordinator_run(struct qw_coordinator *co, int signal_fd)
{
    struct pollfd fds[] = {
        { .fd = signal_fd, .events = POLLIN },
        { .fd = qf_mailbox_fd(co->options.mailbox), .events = POLLIN },
    };

    atomic_store(&co->options.http_state->ready, true);
    qw_server_set_serving(co->server, true);
    qw_co_post(co, (struct wc_worker_event){ .type = WC_WORKER_EV_ACCEPTING, .accepting = true });
    qw_co_run(co);
    while (!co->done) {
        (void)poll(fds, QF_COUNT_OF(fds), wait_ms(co));
        atomic_store(&co->options.http_state->alive_ms, qf_clock_mono_ms());
        take_signals(co, signal_fd);
        take_messages(co);
        run_timers(co);
        update_metrics(co);
    }
    return wind_down(co);
}
