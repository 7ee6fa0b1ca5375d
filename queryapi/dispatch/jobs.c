/* jobs.c - background jobs in the coordinator. */
#include "queryapi/dispatch/jobs.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryapi/dispatch/coordinator_int.h"
#include "workcoord/rendezvous.h"

/* Given to the machine at once; more than that wait here. */
#define JOBS_MAX 1024
/* Shown to who asks what is going on. */
#define JOBS_SHOWN 200
/* How often the thread that waits looks whether it shall wait any longer. */
#define LOOK_MS 200

/* --- the thread that waits --- */

void qa_job_add_owner(struct qa_job *job, struct qf_str worker_id)
{
    if (job->owner_count < WC_OWNERS_MAX)
        job->owners[job->owner_count++] = wc_worker_key(worker_id);
}

void qa_coord_run_jobs(struct qa_coord *coord, struct qa_job *jobs, size_t count,
                       const atomic_bool *cancel)
{
    struct job_batch batch = { .jobs = jobs, .count = count };
    bool told = false;

    if (!count)
        return;
    co_post(coord, (struct msg){ .kind = MSG_JOBS, .tag = &batch });
    while (!qf_mailbox_receive(coord->lane.back, LOOK_MS)) {
        if (told || !atomic_load(cancel))
            continue;
        told = true;
        co_post(coord, (struct msg){ .kind = MSG_JOBS_CANCEL });
    }
}

struct qa_lane_figures qa_coord_lane(const struct qa_coord *coord)
{
    return (struct qa_lane_figures){ .workers = atomic_load(&coord->lane.workers),
                                     .slots = atomic_load(&coord->lane.slots),
                                     .pending = atomic_load(&coord->lane.pending),
                                     .sent = atomic_load(&coord->lane.sent) };
}

void qa_coord_tell_compaction(struct qa_coord *coord, char *members)
{
    co_post(coord, (struct msg){ .kind = MSG_COMPACTION, .text = members });
}

/* --- the machine --- */

static struct qa_job *find_job(const struct qa_coord *coord, struct wc_job_id id)
{
    const struct job_batch *batch = coord->lane.batch;

    return batch && id.v >= batch->first && id.v - batch->first < batch->next
               ? &batch->jobs[id.v - batch->first]
               : NULL;
}

static void send_job(struct qa_coord *coord, const struct wc_lane_effect *effect)
{
    struct qa_job *job = find_job(coord, effect->job);
    const struct endpoint *endpoint = co_endpoint(coord, effect->worker);
    struct pb_api_message message = { .kind = PB_API_JOB };

    job->job.job_id = effect->job.v;
    job->job.attempt = effect->attempt;
    job->sent_ns = qf_clock_mono_ns();
    job->progress = (struct pb_job_progress){ 0 };
    (void)snprintf(job->worker, sizeof(job->worker), "%s", endpoint ? endpoint->name : "?");
    message.u.job = job->job;
    qa_rpc_send(coord->rpc, effect->session.v, &message);
    QF_LOG_AT(effect->attempt > 1 ? QF_LOG_LEVEL_INFO : QF_LOG_LEVEL_DEBUG,
              effect->attempt > 1 ? "background job assigned again" : "background job assigned",
              QF_KV_U64("job_id", effect->job.v), QF_KV_U64("attempt", effect->attempt),
              QF_KV_STR("worker_id", job->worker));
}

static void send_cancel(struct qa_coord *coord, const struct wc_lane_effect *effect)
{
    struct pb_api_message message = { .kind = PB_API_JOB_CANCEL,
                                      .u.job_cancel = { effect->job.v, effect->attempt } };

    qa_rpc_send(coord->rpc, effect->session.v, &message);
}

/* As many as the machine has room for. */
static void feed(struct qa_coord *coord, struct job_batch *batch)
{
    while (!batch->canceled && batch->next < batch->count &&
           batch->next - batch->ended < JOBS_MAX) {
        const struct qa_job *job = &batch->jobs[batch->next];
        struct wc_lane_event event = { .type = WC_LANE_EV_SUBMIT,
                                       .job = { batch->first + batch->next++ },
                                       .owners.count = job->owner_count };

        memcpy(event.owners.keys, job->owners, sizeof(job->owners));
        co_lane_tell(coord, event);
    }
}

/* Once all are over, whoever waits for them goes on, and @batch is gone. */
static void finish_batch(struct qa_coord *coord, struct job_batch *batch)
{
    bool sent;

    if (batch->ended < batch->count)
        return;
    coord->lane.batch = NULL;
    sent = qf_mailbox_try_send(coord->lane.back, batch);
    assert(sent); /* there is one at a time */
    (void)sent;
}

static void end_job(struct qa_coord *coord, const struct wc_lane_effect *effect)
{
    struct job_batch *batch = coord->lane.batch;
    struct qa_job *job = find_job(coord, effect->job);

    job->rc = effect->rc;
    job->attempts = effect->attempt;
    job->seconds = job->sent_ns ? (double)(qf_clock_mono_ns() - job->sent_ns) / 1e9 : 0;
    if (job->rc != QF_OK && job->err.rc != job->rc)
        job->err.subject = 0;
    if (job->rc == QF_EQUARANTINED)
        (void)qf_err_set(&job->err, job->rc, "workers died of merging %zu files from %.*s on",
                         job->job.input_count, QF_STR_ARG(job->job.inputs[0]));
    else if (job->rc != QF_OK && job->err.rc != job->rc)
        (void)qf_err_set(&job->err, job->rc, "%s", qf_rc_text(job->rc));
    batch->ended++;
    feed(coord, batch);
    finish_batch(coord, batch);
}

static void perform(struct qa_coord *coord, const struct wc_lane_effect *effect)
{
    switch (effect->type) {
    case WC_LANE_DO_ASSIGN:
        send_job(coord, effect);
        break;
    case WC_LANE_DO_CANCEL:
        send_cancel(coord, effect);
        break;
    case WC_LANE_DO_ENDED:
        end_job(coord, effect);
        break;
    case WC_LANE_DO__COUNT:
        break;
    }
}

static void step(struct qa_coord *coord, struct wc_lane_event *event)
{
    struct wc_lane_effects effects = { 0 };
    qf_rc rc;

    event->now = qf_clock_mono_ms();
    rc = wc_lane_step(coord->lane.machine, event, &effects);
    assert(rc == QF_OK); /* no more are submitted than there is room for */
    (void)rc;
    for (size_t i = 0; i < effects.count; i++)
        perform(coord, &effects.items[i]);
}

/* Effects are borrowed until the next step: what performing one leads to comes behind. */
void co_lane_tell(struct qa_coord *coord, struct wc_lane_event event)
{
    const struct wc_lane_stats *stats = wc_lane_stats(coord->lane.machine);

    QF_VEC_PUSH(&coord->lane.events, event);
    if (coord->lane.telling)
        return;
    coord->lane.telling = true;
    for (size_t i = 0; i < coord->lane.events.count; i++) {
        struct wc_lane_event next = coord->lane.events.items[i];

        step(coord, &next);
    }
    coord->lane.events.count = 0;
    coord->lane.telling = false;
    atomic_store(&coord->lane.workers, stats->workers);
    atomic_store(&coord->lane.slots, stats->slots);
    atomic_store(&coord->lane.pending, stats->pending);
    atomic_store(&coord->lane.sent, stats->sent);
}

/* --- what the coordinator is told --- */

/* All of it ends: what the machine has by its own way, the rest here. */
static void cancel_batch(struct qa_coord *coord, struct job_batch *batch)
{
    uint64_t first = batch->first;
    size_t submitted = batch->next;

    if (batch->canceled)
        return;
    batch->canceled = true;
    for (size_t i = submitted; i < batch->count; i++)
        batch->jobs[i].rc = qf_err_set(&batch->jobs[i].err, QF_ECANCELED, "canceled");
    batch->ended += batch->count - submitted;
    finish_batch(coord, batch);
    /* The youngest first, so that none is sent in place of another. With the last of these the batch is gone; those that
     * were over are stale. */
    for (size_t i = submitted; i-- > 0;)
        co_lane_tell(coord,
                     (struct wc_lane_event){ .type = WC_LANE_EV_CANCEL, .job = { first + i } });
}

void co_jobs(struct qa_coord *coord, struct job_batch *batch)
{
    assert(!coord->lane.batch);
    batch->first = coord->lane.numbers + 1;
    coord->lane.numbers += batch->count;
    coord->lane.batch = batch;
    if (coord->stopping)
        cancel_batch(coord, batch);
    else
        feed(coord, batch);
}

void co_jobs_cancel(struct qa_coord *coord)
{
    if (coord->lane.batch)
        cancel_batch(coord, coord->lane.batch);
}

void co_lane_status(struct qa_coord *coord, struct endpoint *endpoint,
                    const struct pb_status *status)
{
    endpoint->background_slots = status->background_slots;
    endpoint->background_running = status->background_running;
    co_lane_tell(coord,
                 (struct wc_lane_event){ .type = WC_LANE_EV_STATUS,
                                         .worker = endpoint->worker,
                                         .session = { endpoint->session },
                                         .status = { .slots = status->background_slots,
                                                     .key = wc_worker_key(status->worker_id),
                                                     .load = status->running + status->queue_depth,
                                                     .draining = status->draining } });
}

void co_lane_lost(struct qa_coord *coord, struct wc_worker_id worker, bool died)
{
    co_lane_tell(coord,
                 (struct wc_lane_event){ .type = WC_LANE_EV_LOST, .worker = worker, .died = died });
}

/* --- what workers say --- */

/* The job a message is about, if it is about its attempt of now. */
static struct qa_job *job_of(const struct qa_coord *coord, uint64_t id, uint32_t attempt)
{
    struct qa_job *job = find_job(coord, (struct wc_job_id){ id });

    return job && job->job.attempt == attempt ? job : NULL;
}

static void hear_failed(struct qa_coord *coord, const struct endpoint *endpoint,
                        struct wc_lane_event *event, const struct pb_job_failed *failed)
{
    struct qa_job *job = job_of(coord, failed->job_id, failed->attempt);
    char code[64];

    (void)snprintf(code, sizeof(code), "%.*s", QF_STR_ARG(failed->code));
    event->type = WC_LANE_EV_FAILED;
    event->failure.rc = qf_rc_from_name(code);
    event->failure.retryable = failed->retryable;
    if (job) {
        (void)qf_err_set(&job->err, event->failure.rc, "%.*s", QF_STR_ARG(failed->reason));
        if (failed->input && failed->input <= job->job.input_count)
            qf_err_about(&job->err, failed->input - 1);
    }
    QF_LOG_WARN(failed->retryable ? "background job failed, will be run again"
                                  : "background job failed",
                QF_KV_U64("job_id", failed->job_id), QF_KV_U64("attempt", failed->attempt),
                QF_KV_STR("worker_id", endpoint->name), QF_KV_STR("code", code),
                QF_KV_SLICE("reason", failed->reason));
}

void co_lane_heard(struct qa_coord *coord, const struct endpoint *endpoint,
                   const struct pb_worker_message *message)
{
    struct wc_lane_event event = { .worker = endpoint->worker, .session = { endpoint->session } };
    struct qa_job *job;

    if (message->kind == PB_WORKER_JOB_PROGRESS) {
        job = job_of(coord, message->u.job_progress.job_id, message->u.job_progress.attempt);
        if (job)
            job->progress = message->u.job_progress;
        return;
    }
    if (message->kind == PB_WORKER_JOB_DONE) {
        event.type = WC_LANE_EV_DONE;
        event.job.v = message->u.job_done.job_id;
        event.attempt = message->u.job_done.attempt;
        job = job_of(coord, event.job.v, event.attempt);
        if (job)
            job->done = message->u.job_done;
    } else if (message->kind == PB_WORKER_JOB_REJECTED) {
        event.type = WC_LANE_EV_REJECTED;
        event.job.v = message->u.job_rejected.job_id;
        event.attempt = message->u.job_rejected.attempt;
    } else {
        event.job.v = message->u.job_failed.job_id;
        event.attempt = message->u.job_failed.attempt;
        hear_failed(coord, endpoint, &event, &message->u.job_failed);
    }
    co_lane_tell(coord, event);
}

/* --- now and then --- */

void co_lane_tick(struct qa_coord *coord, qf_time_ms now)
{
    if (now >= wc_lane_deadline(coord->lane.machine))
        co_lane_tell(coord, (struct wc_lane_event){ .type = WC_LANE_EV_TICK });
}

void co_lane_metrics(struct qa_coord *coord)
{
    const struct wc_lane_stats *now = wc_lane_stats(coord->lane.machine);
    struct wc_lane_stats *seen = &coord->lane.seen;
    struct qa_metrics *m = coord->options.metrics;

    qf_metric_set(m->background_queued, 0, now->pending);
    qf_metric_set(m->background_running, 0, now->sent);
    qf_metric_set(m->background_slots, 0, now->slots);
    qf_metric_add(m->background_reassigned, 0,
                  (double)(now->rejected + now->retried + now->lost + now->expired) -
                      (double)(seen->rejected + seen->retried + seen->lost + seen->expired));
    *seen = *now;
}

static void put_job(const struct qa_coord *coord, const struct qa_job *job, uint64_t id,
                    struct qf_strbuf *buf)
{
    struct wc_lane_job_view view;

    if (!wc_lane_job(coord->lane.machine, (struct wc_job_id){ id }, &view))
        return;
    qf_strbuf_printf(buf, "%s{\"job_id\":%" PRIu64 ",\"tenant\":",
                     buf->data[buf->len - 1] == '[' ? "" : ",", id);
    qf_strbuf_json(buf, job->job.tenant);
    qf_strbuf_printf(buf,
                     ",\"state\":\"%s\",\"attempt\":%" PRIu32 ",\"segments\":%zu,\"bytes\":%" PRIu64
                     ",\"shard\":%" PRIu32 ",\"age_seconds\":%.3f",
                     view.sent ? "running" : "waiting", view.attempt, job->job.input_count,
                     job->job.input_bytes, job->job.shard,
                     (double)(qf_clock_mono_ms() - view.since) / 1000);
    if (view.sent) {
        qf_strbuf_puts(buf, ",\"worker_id\":");
        qf_strbuf_json(buf, qf_str_from(job->worker));
        qf_strbuf_printf(
            buf, ",\"samples\":%" PRIu64 ",\"bytes_moved\":%" PRIu64 ",\"paused_seconds\":%.3f",
            job->progress.samples, job->progress.bytes_read,
            (double)job->progress.paused_ms / 1000);
    }
    qf_strbuf_putc(buf, '}');
}

void co_show_compaction(struct qa_coord *coord, struct qh_stream *stream)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct wc_lane_stats *stats = wc_lane_stats(coord->lane.machine);
    const struct job_batch *batch = coord->lane.batch;
    size_t shown = 0;

    qf_strbuf_printf(&buf, "{\"status\":\"success\",\"data\":{%s%s",
                     coord->lane.compaction ? coord->lane.compaction : "\"enabled\":false", ",");
    qf_strbuf_printf(&buf,
                     "\"workers\":%" PRIu32 ",\"slots\":%" PRIu32 ",\"waiting\":%" PRIu64
                     ",\"running\":%" PRIu32 ",\"jobs\":[",
                     stats->workers, stats->slots,
                     (uint64_t)stats->pending + (batch ? batch->count - batch->next : 0),
                     stats->sent);
    for (size_t i = 0; batch && i < batch->next && shown < JOBS_SHOWN; i++) {
        size_t before = buf.len;

        put_job(coord, &batch->jobs[i], batch->first + i, &buf);
        shown += buf.len > before;
    }
    qf_strbuf_puts(&buf, "]}}");
    qh_stream_answer(stream, 200, "application/json", qf_strbuf_view(&buf));
}

bool co_lane_init(struct qa_coord *coord)
{
    struct wc_lane_limits limits = { .jobs_max = JOBS_MAX,
                                     .sent_max = coord->options.jobs_sent_max };

    coord->lane.back = qf_mailbox_new(2);
    coord->lane.machine = wc_lane_new(&limits);
    return coord->lane.machine != NULL;
}

void co_lane_done(struct qa_coord *coord)
{
    coord->lane.machine = wc_lane_free(coord->lane.machine);
    (void)qf_mailbox_free(coord->lane.back, NULL);
    QF_VEC_DONE(&coord->lane.events);
    free(coord->lane.compaction);
}
