/* worker_message.c - messages from a worker to the API. */
#include <assert.h>

#include "control.pb-c.h"
#include "proto/codec/codec_int.h"
#include "proto/codec/control.h"

typedef Promfabric__Control__V1__WorkerMessage worker_msg;
typedef Promfabric__Control__V1__WorkerStatus status_msg;
typedef Promfabric__Control__V1__WorkReady ready_msg;
typedef Promfabric__Control__V1__WorkTimings timings_msg;

uint32_t pb_protocol_agree(uint32_t oldest, uint32_t newest)
{
    uint32_t both = QF_MAX(oldest, newest);

    both = QF_MIN(both, pb_protocol_newest);
    return both >= oldest && both >= pb_protocol_oldest ? both : 0;
}

static void fill_status(struct qf_arena *arena, const struct pb_status *in, status_msg *out)
{
    out->protocol_version = in->protocol_version;
    out->protocol_newest = in->protocol_newest;
    out->worker_id = pb_cstr(arena, in->worker_id);
    out->accepting_work = in->accepting_work;
    out->draining = in->draining;
    out->slots = in->slots;
    out->running = in->running;
    out->queue_depth = in->queue_depth;
    out->artifact_base_url = pb_cstr(arena, in->artifact_base_url);
    out->software = pb_cstr(arena, in->software);
    out->cache_bytes = in->disk.cache_bytes;
    out->cache_segments = in->disk.cache_segments;
    out->disk_bytes = in->disk.bytes;
    out->disk_bytes_max = in->disk.bytes_max;
    out->store_id = pb_cstr(arena, in->store_id);
    out->background_slots = in->background_slots;
    out->background_running = in->background_running;
}

static void fill_ready(struct qf_arena *arena, const struct pb_ready *in, ready_msg *out)
{
    timings_msg *timings = QF_ARENA_NEW(arena, timings_msg);

    promfabric__control__v1__work_timings__init(timings);
    timings->queued_us = in->timings.queued_us;
    timings->download_us = in->timings.download_us;
    timings->scan_us = in->timings.scan_us;
    timings->write_us = in->timings.write_us;
    timings->total_us = in->timings.total_us;
    out->work_id = in->work_id;
    out->attempt = in->attempt;
    out->artifact_url = pb_cstr(arena, in->artifact_url);
    out->artifact_size_bytes = in->artifact_size_bytes;
    out->artifact_checksum = pb_cstr(arena, in->artifact_checksum);
    out->row_count = in->row_count;
    out->min_ts = in->min_ts;
    out->max_ts = in->max_ts;
    out->parquet_schema_version = in->parquet_schema_version;
    out->timings = timings;
    out->series_count = in->series_count;
    out->samples_read = in->samples_read;
    out->download_bytes = in->download_bytes;
    out->cache_hits = in->cache_hits;
    out->cache_misses = in->cache_misses;
    out->head_samples = in->head_samples;
    out->head_bytes = in->head_bytes;
}

/* Messages about a job; their parts live in the encoder's arena. */
static void fill_job_message(struct qf_arena *arena, const struct pb_worker_message *in,
                             worker_msg *out)
{
    if (in->kind == PB_WORKER_JOB_REJECTED) {
        out->job_rejected = QF_ARENA_NEW(arena, Promfabric__Control__V1__JobRejected);
        promfabric__control__v1__job_rejected__init(out->job_rejected);
        out->job_rejected->job_id = in->u.job_rejected.job_id;
        out->job_rejected->attempt = in->u.job_rejected.attempt;
        out->job_rejected->reason = pb_cstr(arena, in->u.job_rejected.reason);
        out->body_case = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_JOB_REJECTED;
    } else if (in->kind == PB_WORKER_JOB_DONE) {
        Promfabric__Control__V1__JobDone *done =
            QF_ARENA_NEW(arena, Promfabric__Control__V1__JobDone);

        promfabric__control__v1__job_done__init(done);
        done->job_id = in->u.job_done.job_id;
        done->attempt = in->u.job_done.attempt;
        done->series = in->u.job_done.series;
        done->samples = in->u.job_done.samples;
        done->bytes_read = in->u.job_done.bytes_read;
        done->bytes_written = in->u.job_done.bytes_written;
        done->outputs = in->u.job_done.outputs;
        done->present = in->u.job_done.present;
        out->job_done = done;
        out->body_case = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_JOB_DONE;
    } else if (in->kind == PB_WORKER_JOB_FAILED) {
        Promfabric__Control__V1__JobFailed *failed =
            QF_ARENA_NEW(arena, Promfabric__Control__V1__JobFailed);

        promfabric__control__v1__job_failed__init(failed);
        failed->job_id = in->u.job_failed.job_id;
        failed->attempt = in->u.job_failed.attempt;
        failed->code = pb_cstr(arena, in->u.job_failed.code);
        failed->reason = pb_cstr(arena, in->u.job_failed.reason);
        failed->retryable = in->u.job_failed.retryable;
        failed->input = in->u.job_failed.input;
        out->job_failed = failed;
        out->body_case = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_JOB_FAILED;
    } else {
        out->job_progress = QF_ARENA_NEW(arena, Promfabric__Control__V1__JobProgress);
        promfabric__control__v1__job_progress__init(out->job_progress);
        out->job_progress->job_id = in->u.job_progress.job_id;
        out->job_progress->attempt = in->u.job_progress.attempt;
        out->job_progress->samples = in->u.job_progress.samples;
        out->job_progress->bytes_read = in->u.job_progress.bytes_read;
        out->job_progress->paused_ms = in->u.job_progress.paused_ms;
        out->body_case = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_JOB_PROGRESS;
    }
}

void pb_worker_encode(struct qf_strbuf *buf, const struct pb_worker_message *message)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    worker_msg out = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__INIT;
    status_msg status = PROMFABRIC__CONTROL__V1__WORKER_STATUS__INIT;
    Promfabric__Control__V1__WorkAccepted accepted = PROMFABRIC__CONTROL__V1__WORK_ACCEPTED__INIT;
    Promfabric__Control__V1__WorkRejected rejected = PROMFABRIC__CONTROL__V1__WORK_REJECTED__INIT;
    ready_msg ready = PROMFABRIC__CONTROL__V1__WORK_READY__INIT;
    Promfabric__Control__V1__WorkFailed failed = PROMFABRIC__CONTROL__V1__WORK_FAILED__INIT;
    Promfabric__Control__V1__Heartbeat heartbeat = PROMFABRIC__CONTROL__V1__HEARTBEAT__INIT;

    switch (message->kind) {
    case PB_WORKER_STATUS:
        fill_status(arena, &message->u.status, &status);
        out.worker_status = &status;
        out.body_case = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_WORKER_STATUS;
        break;
    case PB_WORKER_ACCEPTED:
        accepted.work_id = message->u.accepted.work_id;
        accepted.attempt = message->u.accepted.attempt;
        out.work_accepted = &accepted;
        out.body_case = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_WORK_ACCEPTED;
        break;
    case PB_WORKER_REJECTED:
        rejected.work_id = message->u.rejected.work_id;
        rejected.attempt = message->u.rejected.attempt;
        rejected.reason = pb_cstr(arena, message->u.rejected.reason);
        out.work_rejected = &rejected;
        out.body_case = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_WORK_REJECTED;
        break;
    case PB_WORKER_READY:
        fill_ready(arena, &message->u.ready, &ready);
        out.work_ready = &ready;
        out.body_case = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_WORK_READY;
        break;
    case PB_WORKER_FAILED:
        failed.work_id = message->u.failed.work_id;
        failed.attempt = message->u.failed.attempt;
        failed.code = pb_cstr(arena, message->u.failed.code);
        failed.reason = pb_cstr(arena, message->u.failed.reason);
        failed.retryable = message->u.failed.retryable;
        out.work_failed = &failed;
        out.body_case = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_WORK_FAILED;
        break;
    case PB_WORKER_HEARTBEAT:
        heartbeat.sent_us = message->u.heartbeat.sent_us;
        heartbeat.echo = message->u.heartbeat.echo;
        out.heartbeat = &heartbeat;
        out.body_case = PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_HEARTBEAT;
        break;
    case PB_WORKER_JOB_REJECTED:
    case PB_WORKER_JOB_DONE:
    case PB_WORKER_JOB_FAILED:
    case PB_WORKER_JOB_PROGRESS:
        fill_job_message(arena, message, &out);
        break;
    case PB_WORKER_UNKNOWN:
        assert(message->kind != PB_WORKER_UNKNOWN); /* cannot be encoded */
        break;
    }
    pb_pack(buf, &out.base);
}

static qf_rc take_status(const status_msg *in, struct pb_status *out, struct qf_err *err)
{
    *out = (struct pb_status){
        .protocol_version = in->protocol_version,
        .protocol_newest = in->protocol_newest,
        .worker_id = qf_str_from(in->worker_id),
        .accepting_work = in->accepting_work,
        .draining = in->draining,
        .slots = in->slots,
        .running = in->running,
        .queue_depth = in->queue_depth,
        .artifact_base_url = qf_str_from(in->artifact_base_url),
        .software = qf_str_from(in->software),
        .disk = { .cache_bytes = in->cache_bytes,
                  .bytes = in->disk_bytes,
                  .bytes_max = in->disk_bytes_max,
                  .cache_segments = in->cache_segments },
        .store_id = qf_str_from(in->store_id),
        .background_slots = in->background_slots,
        .background_running = in->background_running,
    };
    if (out->worker_id.len == 0 || out->worker_id.len > PB_ID_BYTES_MAX)
        return qf_err_set(err, QF_EPROTO, "WorkerStatus without a usable worker id");
    if (out->artifact_base_url.len > PB_TEXT_BYTES_MAX || out->software.len > PB_TEXT_BYTES_MAX ||
        out->store_id.len > PB_ID_BYTES_MAX)
        return qf_err_set(err, QF_EPROTO, "WorkerStatus with overlong text");
    return QF_OK;
}

static qf_rc take_ready(const ready_msg *in, struct pb_ready *out, struct qf_err *err)
{
    *out = (struct pb_ready){
        .work_id = in->work_id,
        .attempt = in->attempt,
        .artifact_url = qf_str_from(in->artifact_url),
        .artifact_size_bytes = in->artifact_size_bytes,
        .artifact_checksum = qf_str_from(in->artifact_checksum),
        .row_count = in->row_count,
        .min_ts = in->min_ts,
        .max_ts = in->max_ts,
        .parquet_schema_version = in->parquet_schema_version,
        .series_count = in->series_count,
        .samples_read = in->samples_read,
        .download_bytes = in->download_bytes,
        .cache_hits = in->cache_hits,
        .cache_misses = in->cache_misses,
        .head_samples = in->head_samples,
        .head_bytes = in->head_bytes,
    };
    if (in->timings)
        out->timings = (struct pb_timings){
            .queued_us = in->timings->queued_us,
            .download_us = in->timings->download_us,
            .scan_us = in->timings->scan_us,
            .write_us = in->timings->write_us,
            .total_us = in->timings->total_us,
        };
    if (out->artifact_url.len == 0 || out->artifact_url.len > PB_TEXT_BYTES_MAX)
        return qf_err_set(err, QF_EPROTO, "WorkReady without a usable URL");
    if (out->artifact_checksum.len == 0 || out->artifact_checksum.len > PB_ID_BYTES_MAX)
        return qf_err_set(err, QF_EPROTO, "WorkReady without a usable checksum");
    return QF_OK;
}

static void take_job_done(const Promfabric__Control__V1__JobDone *in, struct pb_job_done *out)
{
    *out = (struct pb_job_done){ .job_id = in->job_id,
                                 .attempt = in->attempt,
                                 .series = in->series,
                                 .samples = in->samples,
                                 .bytes_read = in->bytes_read,
                                 .bytes_written = in->bytes_written,
                                 .outputs = in->outputs,
                                 .present = in->present };
}

static void take_job_failed(const Promfabric__Control__V1__JobFailed *in, struct pb_job_failed *out)
{
    *out = (struct pb_job_failed){
        .job_id = in->job_id,
        .attempt = in->attempt,
        .code = qf_str_sub(qf_str_from(in->code), 0, PB_ID_BYTES_MAX),
        .reason = qf_str_sub(qf_str_from(in->reason), 0, PB_TEXT_BYTES_MAX),
        .retryable = in->retryable,
        .input = in->input,
    };
}

qf_rc pb_worker_decode(struct qf_arena *arena, struct qf_str bytes,
                       struct pb_worker_message *ret_message, struct qf_err *err)
{
    struct pb_worker_message message = { .kind = PB_WORKER_UNKNOWN };
    ProtobufCMessage *unpacked;
    const worker_msg *in;
    qf_rc rc = pb_unpack(arena, bytes, &promfabric__control__v1__worker_message__descriptor,
                         &unpacked, err);

    if (rc)
        return rc;
    in = (const worker_msg *)unpacked;
    switch (in->body_case) {
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_WORKER_STATUS:
        message.kind = PB_WORKER_STATUS;
        rc = take_status(in->worker_status, &message.u.status, err);
        break;
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_WORK_ACCEPTED:
        message.kind = PB_WORKER_ACCEPTED;
        message.u.accepted =
            (struct pb_accepted){ in->work_accepted->work_id, in->work_accepted->attempt };
        break;
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_WORK_REJECTED:
        message.kind = PB_WORKER_REJECTED;
        message.u.rejected =
            (struct pb_rejected){ in->work_rejected->work_id, in->work_rejected->attempt,
                                  qf_str_sub(qf_str_from(in->work_rejected->reason), 0,
                                             PB_TEXT_BYTES_MAX) };
        break;
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_WORK_READY:
        message.kind = PB_WORKER_READY;
        rc = take_ready(in->work_ready, &message.u.ready, err);
        break;
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_WORK_FAILED:
        message.kind = PB_WORKER_FAILED;
        message.u.failed = (struct pb_failed){
            .work_id = in->work_failed->work_id,
            .attempt = in->work_failed->attempt,
            .code = qf_str_sub(qf_str_from(in->work_failed->code), 0, PB_ID_BYTES_MAX),
            .reason = qf_str_sub(qf_str_from(in->work_failed->reason), 0, PB_TEXT_BYTES_MAX),
            .retryable = in->work_failed->retryable,
        };
        break;
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_HEARTBEAT:
        message.kind = PB_WORKER_HEARTBEAT;
        message.u.heartbeat = (struct pb_heartbeat){ in->heartbeat->sent_us, in->heartbeat->echo };
        break;
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_JOB_REJECTED:
        message.kind = PB_WORKER_JOB_REJECTED;
        message.u.job_rejected =
            (struct pb_job_rejected){ in->job_rejected->job_id, in->job_rejected->attempt,
                                      qf_str_sub(qf_str_from(in->job_rejected->reason), 0,
                                                 PB_TEXT_BYTES_MAX) };
        break;
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_JOB_DONE:
        message.kind = PB_WORKER_JOB_DONE;
        take_job_done(in->job_done, &message.u.job_done);
        break;
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_JOB_FAILED:
        message.kind = PB_WORKER_JOB_FAILED;
        take_job_failed(in->job_failed, &message.u.job_failed);
        break;
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY_JOB_PROGRESS:
        message.kind = PB_WORKER_JOB_PROGRESS;
        message.u.job_progress =
            (struct pb_job_progress){ in->job_progress->job_id, in->job_progress->attempt,
                                      in->job_progress->samples, in->job_progress->bytes_read,
                                      in->job_progress->paused_ms };
        break;
    case PROMFABRIC__CONTROL__V1__WORKER_MESSAGE__BODY__NOT_SET:
    default:
        break;
    }
    if (rc == QF_OK)
        *ret_message = message;
    return rc;
}
