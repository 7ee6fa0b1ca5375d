/* jobs.c - background jobs: what APIs ask for, what the lane's machine decides, what comes back. */
#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryworker/work/work_int.h"

/* Disk that a job leaves free, beside what it needs for copies of its inputs and for its outputs. */
#define DISK_LEFT (UINT64_C(64) << 20)

#define KV_JOB(task)                                                                               \
    QF_KV_U64("job_id", (task)->job.job_id), QF_KV_U64("attempt", (task)->job.attempt),            \
        QF_KV_SLICE("tenant", (task)->job.tenant), QF_KV_U64("inputs", (task)->job.input_count)

static void send_rejected(struct qw_coordinator *co, const struct wc_lane_worker_effect *effect)
{
    const char *reason = wc_reject_name(effect->reject);
    struct pb_worker_message message = {
        .kind = PB_WORKER_JOB_REJECTED,
        .u.job_rejected = { effect->job.v, effect->attempt, qf_str_from(reason) },
    };

    (void)qw_server_send(co->server, effect->session.v, &message);
    QF_LOG_INFO("background job not done here", QF_KV_U64("job_id", effect->job.v),
                QF_KV_U64("attempt", effect->attempt), QF_KV_STR("reason", reason));
}

static void send_done(struct qw_coordinator *co, const struct wc_lane_worker_effect *effect)
{
    const struct sg_job_result *r = &co->jobs[effect->slot]->result;
    struct pb_worker_message message = {
        .kind = PB_WORKER_JOB_DONE,
        .u.job_done = { .job_id = effect->job.v,
                        .attempt = effect->attempt,
                        .series = r->series,
                        .samples = r->samples,
                        .bytes_read = r->bytes_read,
                        .bytes_written = r->bytes_written,
                        .outputs = (uint32_t)r->outputs,
                        .present = (uint32_t)r->present },
    };

    (void)qw_server_send(co->server, effect->session.v, &message);
}

static void send_failed(struct qw_coordinator *co, uint64_t session, const struct pb_job *job,
                        const struct qf_err *err, bool retryable)
{
    struct pb_worker_message message = {
        .kind = PB_WORKER_JOB_FAILED,
        .u.job_failed = { .job_id = job->job_id,
                          .attempt = job->attempt,
                          .code = qf_str_from(qf_rc_name(err->rc)),
                          .reason = qf_str_from(err->msg),
                          .retryable = retryable,
                          .input = (uint32_t)err->subject },
    };

    (void)qw_server_send(co->server, session, &message);
    QF_LOG_WARN("background job failed", QF_KV_U64("job_id", job->job_id),
                QF_KV_U64("attempt", job->attempt), QF_KV_SLICE("tenant", job->tenant),
                QF_KV_STR("code", qf_rc_name(err->rc)), QF_KV_STR("reason", err->msg));
}

static void perform(struct qw_coordinator *co, const struct wc_lane_worker_effect *effect,
                    struct qw_job_task **given)
{
    struct qw_job_task *task = co->jobs[effect->slot];
    bool submitted;

    switch (effect->type) {
    case WC_LANE_WORKER_DO_RUN:
        assert(!task);
        co->jobs[effect->slot] = *given;
        (*given)->slot = effect->slot;
        submitted = qf_pool_submit(co->options.background.pool, qw_job_task_run, QF_TAKE(*given));
        assert(submitted); /* the pool has room for as many as there are slots */
        (void)submitted;
        break;
    case WC_LANE_WORKER_DO_STOP:
        atomic_store(&task->cancel, true);
        break;
    case WC_LANE_WORKER_DO_REJECT:
        send_rejected(co, effect);
        break;
    case WC_LANE_WORKER_DO_DONE:
        send_done(co, effect);
        break;
    case WC_LANE_WORKER_DO_FAILED:
        send_failed(co, effect->session.v, &task->job, &task->err, effect->failure.retryable);
        break;
    case WC_LANE_WORKER_DO__COUNT:
        break;
    }
}

/* Sending may find a stream dead, which is told to the machine at once: so effects are copied first. The machine has
 * made all its moves by then, and a lost session adds no move that these are about. */
static void tell(struct qw_coordinator *co, struct wc_lane_worker_event event,
                 struct qw_job_task **given)
{
    struct wc_lane_worker_effect copy[2 * WC_LANE_SLOTS_MAX + 1];
    struct wc_lane_worker_effects effects;
    size_t count;

    wc_lane_worker_step(co->lane, &event, &effects);
    count = effects.count;
    assert(count <= QF_COUNT_OF(copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = effects.items[i];
    for (size_t i = 0; i < count; i++)
        perform(co, &copy[i], given);
}

/* --- what APIs say --- */

static qf_rc check(struct qw_coordinator *co, const struct pb_job *job, struct qf_err *err)
{
    uint64_t free_bytes = qw_spool_disk_free(co->options.spool);

    for (size_t i = 0; i < job->input_count + job->dead_count; i++) {
        struct qf_str name =
            i < job->input_count ? job->inputs[i] : job->dead[i - job->input_count];

        if (!qw_assignment_belongs(name, job->tenant))
            return qf_err_set(err, QF_EDENIED, "segment %.*s is not of the job's tenant",
                              QF_STR_ARG(name));
    }
    if (job->input_bytes > (UINT64_MAX >> 2) || free_bytes < 2 * job->input_bytes + DISK_LEFT)
        return qf_err_set(err, QF_ENOSPC, "no disk for a job over %llu bytes",
                          (unsigned long long)job->input_bytes);
    return QF_OK;
}

void qw_jobs_assign(struct qw_coordinator *co, uint64_t session, struct qf_arena *arena,
                    const struct pb_job *job)
{
    const struct qw_background *background = &co->options.background;
    struct qw_job_task *task;
    struct qf_err err = { 0 };

    if (check(co, job, &err)) {
        send_failed(co, session, job, &err, err.rc == QF_ENOSPC);
        (void)qf_arena_free(arena);
        return;
    }
    task = qf_xcalloc(1, sizeof(*task));
    task->message.kind = QW_MESSAGE_JOB;
    task->mailbox = co->options.mailbox;
    task->gate = &co->gate;
    task->session = session;
    task->arena = arena;
    task->job = *job;
    task->store = background->store;
    task->temp_dir = background->temp_dir;
    task->memory_bytes =
        job->memory_bytes ? QF_MIN(job->memory_bytes, background->memory) : background->memory;
    task->started_ns = qf_clock_mono_ns();
    tell(co,
         (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_ASSIGN,
                                        .session = { session },
                                        .job = { job->job_id },
                                        .attempt = job->attempt },
         &task);
    (void)qw_job_task_free(task); /* NULL if a slot took it */
}

void qw_jobs_cancel(struct qw_coordinator *co, uint64_t session, const struct pb_job_cancel *cancel)
{
    tell(co,
         (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_CANCEL,
                                        .session = { session },
                                        .job = { cancel->job_id },
                                        .attempt = cancel->attempt },
         NULL);
}

void qw_jobs_lost(struct qw_coordinator *co, uint64_t session)
{
    tell(co,
         (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_LOST, .session = { session } },
         NULL);
}

void qw_jobs_drain(struct qw_coordinator *co)
{
    tell(co, (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_DRAIN }, NULL);
}

/* --- what comes back --- */

static void count(struct qw_coordinator *co, const struct qw_job_task *task)
{
    qf_metric_add(co->m->background_paused, 0, (double)atomic_load(&task->paused_ms) / 1000);
    if (task->rc == QF_ECANCELED)
        QF_LOG_INFO("background job stopped", KV_JOB(task),
                    QF_KV_U64("samples", atomic_load(&task->samples)));
    if (task->rc != QF_OK)
        return;
    qf_metric_add(co->m->background_bytes, QW_BACKGROUND_READ, (double)task->result.bytes_read);
    qf_metric_add(co->m->background_bytes, QW_BACKGROUND_WRITTEN,
                  (double)task->result.bytes_written);
    qf_metric_add(co->m->background_samples, 0, (double)task->result.samples);
    QF_LOG_INFO("background job done", KV_JOB(task), QF_KV_U64("samples", task->result.samples),
                QF_KV_U64("bytes_read", task->result.bytes_read),
                QF_KV_U64("bytes_written", task->result.bytes_written),
                QF_KV_U64("outputs", task->result.outputs + task->result.present),
                QF_KV_DOUBLE("seconds", (double)(qf_clock_mono_ns() - task->started_ns) / 1e9),
                QF_KV_U64("paused_ms", atomic_load(&task->paused_ms)));
}

void qw_jobs_back(struct qw_coordinator *co, struct qw_job_task *task)
{
    uint32_t slot = task->slot;

    assert(co->jobs[slot] == task);
    if (task->rc != QF_OK && !task->err.msg[0])
        (void)qf_err_set(&task->err, task->rc, "%s", qf_rc_text(task->rc));
    task->err.rc = task->rc;
    if (task->rc == QF_ENOSPC) {
        qf_metric_inc(co->m->no_space);
        qw_co_free_some_disk(co);
    }
    count(co, task);
    tell(co,
         (struct wc_lane_worker_event){
             .type = task->rc == QF_OK ? WC_LANE_WORKER_EV_DONE : WC_LANE_WORKER_EV_FAILED,
             .slot = slot,
             /* Busy: segments are being removed, which is over later, not elsewhere. */
             .failure = { task->rc, qf_rc_retryable(task->rc) && task->rc != QF_EBUSY } },
         NULL);
    co->jobs[slot] = qw_job_task_free(task);
}

bool qw_jobs_idle(const struct qw_coordinator *co)
{
    const struct wc_lane_worker_stats *stats = wc_lane_worker_stats(co->lane);

    return stats->running + stats->stopping == 0;
}

/* --- now and then --- */

void qw_jobs_beat(struct qw_coordinator *co)
{
    for (uint32_t i = 0; i < co->options.background.slots; i++) {
        const struct qw_job_task *task = co->jobs[i];
        struct pb_worker_message message = { .kind = PB_WORKER_JOB_PROGRESS };

        if (!task || atomic_load(&task->cancel))
            continue;
        message.u.job_progress = (struct pb_job_progress){
            .job_id = task->job.job_id,
            .attempt = task->job.attempt,
            .samples = atomic_load_explicit(&task->samples, memory_order_relaxed),
            .bytes_read = atomic_load_explicit(&task->bytes_read, memory_order_relaxed),
            .paused_ms = atomic_load_explicit(&task->paused_ms, memory_order_relaxed),
        };
        (void)qw_server_send(co->server, task->session, &message);
    }
}

void qw_jobs_gate(struct qw_coordinator *co)
{
    const struct wc_worker_stats *stats = wc_worker_stats(co->wc);
    uint32_t taken =
        stats->runs[WC_RUN_LOADING] + stats->runs[WC_RUN_RUNNING] + stats->runs[WC_RUN_STOPPING];

    atomic_store_explicit(&co->gate.closed, taken >= stats->slots, memory_order_relaxed);
}

void qw_jobs_metrics(struct qw_coordinator *co)
{
    const struct wc_lane_worker_stats *stats = wc_lane_worker_stats(co->lane);
    struct qw_metrics *m = co->m;

    qf_metric_set(m->background_slots, 0, stats->slots);
    qf_metric_set(m->background_running, 0, stats->running);
    qf_metric_set(m->background_jobs, QW_BACKGROUND_DONE, (double)stats->done);
    qf_metric_set(m->background_jobs, QW_BACKGROUND_FAILED, (double)stats->failed);
    qf_metric_set(m->background_jobs, QW_BACKGROUND_STOPPED,
                  (double)(stats->stopped + stats->given_back));
    qf_metric_set(m->background_jobs, QW_BACKGROUND_REJECTED, (double)stats->rejected);
}
