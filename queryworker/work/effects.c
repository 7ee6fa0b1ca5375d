/* effects.c - what a step of the state machine asks for. */
#include <assert.h>
#include <stdlib.h>

#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryworker/work/work_int.h"

static void send_status(struct qw_coordinator *co, uint64_t session)
{
    const struct wc_worker_stats *stats = wc_worker_stats(co->wc);
    struct pb_worker_message message = {
        .kind = PB_WORKER_STATUS,
        .u.status = { .protocol_version = pb_protocol_oldest,
                      .protocol_newest = pb_protocol_newest,
                      .worker_id = qf_str_from(co->worker_id ? co->worker_id : ""),
                      .accepting_work = stats->accepting,
                      .draining = stats->draining,
                      .slots = stats->slots,
                      .running = stats->runs[WC_RUN_LOADING] + stats->runs[WC_RUN_RUNNING] +
                                 stats->runs[WC_RUN_STOPPING],
                      .queue_depth = stats->runs[WC_RUN_QUEUED],
                      .artifact_base_url = qf_str_from(co->base_url ? co->base_url : ""),
                      .software = QF_STR("promfabric " PROMFABRIC_VERSION),
                      .disk = co->disk,
                      .store_id = qf_str_from(qw_identity_text(co->options.identity)),
                      .background_slots = wc_lane_worker_stats(co->lane)->slots,
                      .background_running = wc_lane_worker_stats(co->lane)->running },
    };

    (void)qw_server_send(co->server, session, &message);
}

static void send_echo(struct qw_coordinator *co, const struct wc_worker_effect *effect)
{
    struct pb_worker_message message = { .kind = PB_WORKER_HEARTBEAT,
                                         .u.heartbeat = { effect->sent_at, true } };

    (void)qw_server_send(co->server, effect->session.v, &message);
}

static void send_accepted(struct qw_coordinator *co, const struct wc_worker_effect *effect)
{
    struct pb_worker_message message = { .kind = PB_WORKER_ACCEPTED,
                                         .u.accepted = { effect->work.v, effect->attempt } };

    (void)qw_server_send(co->server, effect->session.v, &message);
}

static void send_rejected(struct qw_coordinator *co, const struct wc_worker_effect *effect,
                          const struct pb_assign *assign)
{
    const char *reason = wc_reject_name(effect->reject);
    struct pb_worker_message message = {
        .kind = PB_WORKER_REJECTED,
        .u.rejected = { effect->work.v, effect->attempt, qf_str_from(reason) },
    };

    (void)qw_server_send(co->server, effect->session.v, &message);
    QF_LOG_INFO("work rejected", QF_KV_SLICE("query_id", assign->query_id),
                QF_KV_U64("work_id", effect->work.v), QF_KV_U64("attempt", effect->attempt),
                QF_KV_STR("reason", reason));
}

static void send_ready(struct qw_coordinator *co, const struct wc_worker_effect *effect,
                       struct qw_run *run)
{
    struct pb_worker_message message = { .kind = PB_WORKER_READY };
    int64_t total_ns;

    run->ready_ns = qf_clock_mono_ns();
    run->told = true;
    total_ns = run->ready_ns - run->received_ns;
    run->ready.timings.total_us = (uint64_t)(total_ns / 1000);
    message.u.ready = run->ready;
    (void)qw_server_send(co->server, effect->session.v, &message);
    qf_metric_observe(co->m->turnaround_seconds, (double)total_ns / 1e9);
    QF_LOG_DEBUG("work ready", QW_KV_RUN(run), QF_KV_U64("rows", run->ready.row_count),
                 QF_KV_U64("bytes", run->ready.artifact_size_bytes),
                 QF_KV_DOUBLE("seconds", (double)total_ns / 1e9));
}

/* The words for a failure: the run's own, or those for what the state machine found. */
static const char *failure_text(const struct qw_run *run, qf_rc rc)
{
    if (run->err.rc == rc && run->err.msg[0])
        return run->err.msg;
    if (run->ready_ns)
        return "the artifact expired or was evicted";
    if (rc == QF_ETIMEOUT)
        return run->started_ns ? "the query's deadline passed"
                               : "the query's deadline passed before it started";
    if (rc == QF_EUNAVAILABLE)
        return "the worker is shutting down";
    return qf_rc_text(rc);
}

static void send_failed(struct qw_coordinator *co, const struct wc_worker_effect *effect,
                        struct qw_run *run)
{
    const char *reason = failure_text(run, effect->failure.rc);
    struct pb_worker_message message = {
        .kind = PB_WORKER_FAILED,
        .u.failed = { .work_id = effect->work.v,
                      .attempt = effect->attempt,
                      .code = qf_str_from(qf_rc_name(effect->failure.rc)),
                      .reason = qf_str_from(reason),
                      .retryable = effect->failure.retryable },
    };

    if (!run->ready_ns)
        qf_metric_add(co->m->works_failed, qw_metrics_error_index(effect->failure.rc), 1);
    run->told = true;
    (void)qw_server_send(co->server, effect->session.v, &message);
    QF_LOG_WARN("work failed", QW_KV_RUN(run), QF_KV_STR("code", qf_rc_name(effect->failure.rc)),
                QF_KV_U64("retryable", effect->failure.retryable), QF_KV_STR("reason", reason));
}

static void hang_up(struct qw_coordinator *co, uint64_t session)
{
    QF_LOG_WARN("session silent, closing it", QF_KV_U64("session", session));
    qf_metric_add(co->m->sessions_closed, QW_SESSION_END_SILENT, 1);
    qw_server_end(co->server, session, QF_EUNAVAILABLE, "no heartbeat for three seconds", false);
    qw_co_forget_session(co, session);
    qw_jobs_lost(co, session);
}

static void perform_run(struct qw_coordinator *co, const struct wc_worker_effect *effect,
                        struct qw_run *run)
{
    assert(run); /* the state machine names a run from ACCEPT to FORGET, and so do we */
    switch (effect->type) {
    case WC_WORKER_DO_LOAD:
        qw_run_load(co, run);
        break;
    case WC_WORKER_DO_EXECUTE:
        qw_run_execute(co, run);
        break;
    case WC_WORKER_DO_STOP:
        qw_run_stop(run);
        break;
    case WC_WORKER_DO_RELEASE:
        qw_run_release(co, run);
        break;
    case WC_WORKER_DO_READY:
        send_ready(co, effect, run);
        break;
    case WC_WORKER_DO_FAILED:
        send_failed(co, effect, run);
        break;
    case WC_WORKER_DO_ACKED:
        qw_artifact_acked(co, run);
        break;
    case WC_WORKER_DO_DROP:
        qw_artifact_drop(co, run);
        break;
    case WC_WORKER_DO_FORGET:
        qw_run_forget(co, run);
        break;
    case WC_WORKER_DO_STATUS:
    case WC_WORKER_DO_ECHO:
    case WC_WORKER_DO_HANGUP:
    case WC_WORKER_DO_ACCEPT:
    case WC_WORKER_DO_REJECT:
    case WC_WORKER_DO_DRAINED:
    case WC_WORKER_DO__COUNT:
        abort(); /* effects about no run: qw_co_perform() has these */
        break;
    }
}

void qw_co_perform(struct qw_coordinator *co, const struct wc_worker_effect *effect,
                   struct qw_event *cause)
{
    switch (effect->type) {
    case WC_WORKER_DO_STATUS:
        send_status(co, effect->session.v);
        break;
    case WC_WORKER_DO_ECHO:
        send_echo(co, effect);
        break;
    case WC_WORKER_DO_HANGUP:
        hang_up(co, effect->session.v);
        break;
    case WC_WORKER_DO_ACCEPT:
        qw_run_accept(co, effect->session.v, effect->run.v, QF_TAKE(cause->assignment));
        send_accepted(co, effect);
        break;
    case WC_WORKER_DO_REJECT:
        send_rejected(co, effect, &cause->assignment->message);
        break;
    case WC_WORKER_DO_DRAINED:
        QF_LOG_INFO("drained", QF_KV_U64("unfinished", effect->count));
        co->done = true;
        break;
    case WC_WORKER_DO_LOAD:
    case WC_WORKER_DO_EXECUTE:
    case WC_WORKER_DO_STOP:
    case WC_WORKER_DO_RELEASE:
    case WC_WORKER_DO_READY:
    case WC_WORKER_DO_FAILED:
    case WC_WORKER_DO_ACKED:
    case WC_WORKER_DO_DROP:
    case WC_WORKER_DO_FORGET:
        perform_run(co, effect, qw_run_find(co, effect->run.v));
        break;
    case WC_WORKER_DO__COUNT:
        break;
    }
}
