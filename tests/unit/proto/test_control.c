/* test_control.c - control messages keep every field on their way over the wire. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "proto/codec/control.h"
#include "proto/codec/health.h"
#include "tests/lib/test.h"

static bool str_is(struct qf_str s, const char *want)
{
    return qf_str_is(s, want);
}

static struct pb_api_message send_api(struct qf_arena *arena, const struct pb_api_message *message)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct pb_api_message got;
    struct qf_err err = { 0 };

    pb_api_encode(&buf, message);
    CHECK_OK(pb_api_decode(arena, qf_arena_str(arena, qf_strbuf_view(&buf)), &got, &err), &err);
    qf_strbuf_done(&buf);
    CHECK_EQ(got.kind, message->kind);
    return got;
}

static struct pb_worker_message send_worker(struct qf_arena *arena,
                                            const struct pb_worker_message *message)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct pb_worker_message got;
    struct qf_err err = { 0 };

    pb_worker_encode(&buf, message);
    CHECK_OK(pb_worker_decode(arena, qf_arena_str(arena, qf_strbuf_view(&buf)), &got, &err), &err);
    qf_strbuf_done(&buf);
    CHECK_EQ(got.kind, message->kind);
    return got;
}

static struct pb_api_message sample_assign(void)
{
    static struct pb_segment segments[2] = {
        { .name = QF_STR_INIT("tenant=a/date=2026-01-02/s0.parquet"),
          .size_bytes = UINT64_C(1) << 40,
          .etag = QF_STR_INIT("\"abc\""),
          .mtime_ms = 1700000000123,
          .shard = 3,
          .shard_count = 8,
          .generation = UINT64_MAX },
        { .name = QF_STR_INIT("b"), .mtime_ms = -1 },
    };

    static const struct qf_str replicas[2] = { QF_STR_INIT("http://a:1"),
                                               QF_STR_INIT("http://b:2") };
    static const struct pb_head heads[2] = {
        { .partition = 1,
          .queue = QF_STR_INIT("00ff"),
          .generation = UINT64_MAX - 2,
          .cut = UINT64_MAX - 3,
          .shard = 5,
          .shard_count = 8,
          .replicas = replicas,
          .replica_count = 2 },
        { .queue = QF_STR_INIT("01"),
          .shard_count = 1,
          .replicas = replicas + 1,
          .replica_count = 1 },
    };

    static const struct pb_map maps[2] = {
        { .name = QF_STR_INIT("on_call"),
          .kind = QF_STR_INIT("session"),
          .metric = QF_STR_INIT("on_call_info"),
          .interval_ms = PB_MAP_INTERVAL_MS_MAX,
          .created = UINT64_MAX - 4,
          .version = UINT64_MAX - 5,
          .bytes = INT64_MAX },
        { .name = QF_STR_INIT("team"),
          .kind = QF_STR_INIT("state"),
          .metric = QF_STR_INIT("team_info"),
          .short_keys = true,
          .interval_ms = 1,
          .version = 1,
          .bytes = 1 },
    };

    return (struct pb_api_message){
        .kind = PB_API_ASSIGN,
        .u.assign = { .query_id = QF_STR("q-1"),
                      .heads = { .inputs = heads,
                                 .count = 2,
                                 .match = QF_STR("{__name__=\"up\"}"),
                                 .min_ts = -5,
                                 .max_ts = INT64_MAX },
                      .maps = { .inputs = maps,
                                .count = 2,
                                .nodes = replicas,
                                .node_count = 2,
                                .shard = 3,
                                .shard_count = 4 },
                      .leaf_id = 7,
                      .work_id = UINT64_MAX - 1,
                      .attempt = 2,
                      .affinity_key = QF_STR("a/3"),
                      .tenant = QF_STR("a"),
                      .spec = { "\0\1\2", 3 },
                      .segments = segments,
                      .segment_count = 2,
                      .limits = { 1, 2, 3 },
                      .timeout_ms = 29999,
                      .traceparent =
                          QF_STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") },
    };
}

/* An assignment arrives with its binary spec, its segments, limits and trace context. */
TEST(assign_work_keeps_every_field)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct pb_api_message sent = sample_assign();
    struct pb_api_message message = send_api(arena, &sent);
    const struct pb_assign *got = &message.u.assign;

    CHECK(str_is(got->query_id, "q-1"));
    CHECK_EQ(got->leaf_id, 7);
    CHECK(got->work_id == UINT64_MAX - 1);
    CHECK_EQ(got->attempt, 2);
    CHECK(str_is(got->affinity_key, "a/3"));
    CHECK(str_is(got->tenant, "a"));
    CHECK(got->spec.len == 3 && memcmp(got->spec.data, "\0\1\2", 3) == 0);
    CHECK_EQ(got->segment_count, 2);
    CHECK(str_is(got->segments[0].name, "tenant=a/date=2026-01-02/s0.parquet"));
    CHECK(got->segments[0].size_bytes == UINT64_C(1) << 40);
    CHECK(str_is(got->segments[0].etag, "\"abc\""));
    CHECK_EQ(got->segments[0].mtime_ms, 1700000000123);
    CHECK_EQ(got->segments[0].shard, 3);
    CHECK_EQ(got->segments[0].shard_count, 8);
    CHECK(got->segments[0].generation == UINT64_MAX);
    CHECK_EQ(got->segments[1].mtime_ms, -1);
    CHECK_EQ(got->limits.samples_max, 1);
    CHECK_EQ(got->limits.memory_bytes_max, 2);
    CHECK_EQ(got->limits.artifact_bytes_max, 3);
    CHECK_EQ(got->timeout_ms, 29999);
    CHECK(str_is(got->traceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
}

/* Head inputs arrive with the log positions they are cut at and where they can be had. */
TEST(head_inputs_keep_every_field)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct pb_api_message sent = sample_assign();
    struct pb_api_message message = send_api(arena, &sent);
    const struct pb_heads *got = &message.u.assign.heads;

    CHECK_EQ(got->count, 2);
    CHECK(str_is(got->match, "{__name__=\"up\"}"));
    CHECK_EQ(got->min_ts, -5);
    CHECK(got->max_ts == INT64_MAX);
    CHECK_EQ(got->inputs[0].partition, 1);
    CHECK(str_is(got->inputs[0].queue, "00ff"));
    CHECK(got->inputs[0].generation == UINT64_MAX - 2);
    CHECK(got->inputs[0].cut == UINT64_MAX - 3);
    CHECK_EQ(got->inputs[0].shard, 5);
    CHECK_EQ(got->inputs[0].shard_count, 8);
    CHECK_EQ(got->inputs[0].replica_count, 2);
    CHECK(str_is(got->inputs[0].replicas[1], "http://b:2"));
    CHECK_EQ(got->inputs[1].replica_count, 1);
}

/* What a worker could not ask for is refused where it arrives. */
TEST(head_inputs_that_cannot_be_read_are_refused)
{
    static const struct qf_str none = QF_STR_INIT("");
    struct pb_head bad[] = { *sample_assign().u.assign.heads.inputs,
                             *sample_assign().u.assign.heads.inputs,
                             *sample_assign().u.assign.heads.inputs,
                             *sample_assign().u.assign.heads.inputs };

    bad[0].shard = bad[0].shard_count;
    bad[1].queue = QF_STR("");
    bad[2].replica_count = 0;
    bad[3].replicas = &none;
    bad[3].replica_count = 1;
    for (size_t i = 0; i <= QF_COUNT_OF(bad); i++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
        struct pb_api_message sent = sample_assign(), got;
        struct qf_err err = { 0 };

        if (i < QF_COUNT_OF(bad))
            sent.u.assign.heads = (struct pb_heads){ &bad[i], 1, QF_STR("{a=\"b\"}"), 0, 1 };
        else
            sent.u.assign.heads.match = QF_STR("");
        pb_api_encode(&bytes, &sent);
        CHECK_EQ(pb_api_decode(arena, qf_strbuf_view(&bytes), &got, &err), QF_EPROTO);
    }
}

/* State maps arrive with the copy that is to be read. */
TEST(state_maps_keep_every_field)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct pb_api_message sent = sample_assign();
    struct pb_api_message message = send_api(arena, &sent);
    const struct pb_maps *got = &message.u.assign.maps;

    CHECK_EQ(got->count, 2);
    CHECK_EQ(got->shard, 3);
    CHECK_EQ(got->shard_count, 4);
    CHECK_EQ(got->node_count, 2);
    CHECK(str_is(got->nodes[1], "http://b:2"));
    CHECK(str_is(got->inputs[0].name, "on_call"));
    CHECK(str_is(got->inputs[0].kind, "session"));
    CHECK(str_is(got->inputs[0].metric, "on_call_info"));
    CHECK(!got->inputs[0].short_keys && got->inputs[1].short_keys);
    CHECK_EQ(got->inputs[0].interval_ms, PB_MAP_INTERVAL_MS_MAX);
    CHECK(got->inputs[0].created == UINT64_MAX - 4);
    CHECK(got->inputs[0].version == UINT64_MAX - 5);
    CHECK(got->inputs[0].bytes == INT64_MAX);
}

TEST(state_maps_that_cannot_be_read_are_refused)
{
    enum { CASES = 11 };

    for (int i = 0; i < CASES; i++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
        struct pb_api_message sent = sample_assign(), got;
        struct pb_maps *maps = &sent.u.assign.maps;
        struct pb_map bad[2] = { maps->inputs[0], maps->inputs[1] };
        struct qf_err err = { 0 };

        maps->inputs = bad;
        maps->shard = i == 0 ? 4 : maps->shard;
        maps->shard_count = i == 1 ? 6 : maps->shard_count;
        maps->node_count = i == 2 ? 0 : maps->node_count;
        bad[1].name = i == 3 ? QF_STR("") : i == 4 ? bad[0].name : bad[1].name; /* twice */
        bad[1].kind = i == 5 ? QF_STR("") : bad[1].kind;
        bad[1].metric = i == 6 ? QF_STR("") : bad[1].metric;
        bad[1].interval_ms = i == 7 ? 0 : i == 8 ? PB_MAP_INTERVAL_MS_MAX + 1 : 1;
        bad[1].version = i == 9 ? 0 : 1;
        bad[1].bytes = i == 10 ? UINT64_MAX : 1;
        pb_api_encode(&bytes, &sent);
        CHECK_MSG(pb_api_decode(arena, qf_strbuf_view(&bytes), &got, &err) == QF_EPROTO, "%d", i);
    }
}

TEST(small_api_messages_keep_every_field)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct pb_api_message got;

    got = send_api(arena, &(struct pb_api_message){
                              .kind = PB_API_HELLO,
                              .u.hello = { 1, QF_STR("api-0"), QF_STR("promfabric 0.1.0"), 3 } });
    CHECK_EQ(got.u.hello.protocol_version, 1);
    CHECK(str_is(got.u.hello.api_id, "api-0"));
    CHECK(str_is(got.u.hello.software, "promfabric 0.1.0"));
    CHECK_EQ(got.u.hello.protocol_newest, 3);
    got = send_api(arena, &(struct pb_api_message){ .kind = PB_API_CANCEL,
                                                    .u.cancel = { 5, 6, QF_STR("client gone") } });
    CHECK_EQ(got.u.cancel.work_id, 5);
    CHECK_EQ(got.u.cancel.attempt, 6);
    CHECK(str_is(got.u.cancel.reason, "client gone"));
    got = send_api(arena, &(struct pb_api_message){ .kind = PB_API_ACK,
                                                    .u.ack = { 8, 9, QF_STR("xxh3:00") } });
    CHECK_EQ(got.u.ack.work_id, 8);
    CHECK_EQ(got.u.ack.attempt, 9);
    CHECK(str_is(got.u.ack.artifact_checksum, "xxh3:00"));
    got = send_api(
        arena, &(struct pb_api_message){ .kind = PB_API_HEARTBEAT, .u.heartbeat = { -77, true } });
    CHECK_EQ(got.u.heartbeat.sent_us, -77);
    CHECK(got.u.heartbeat.echo);
}

TEST(jobs_keep_every_field)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct qf_str inputs[] = { QF_STR("tenant=t/a"), QF_STR("tenant=t/b") };
    struct qf_str dead[] = { QF_STR("tenant=t/c") };
    struct pb_api_message got =
        send_api(arena, &(struct pb_api_message){ .kind = PB_API_JOB,
                                                  .u.job = { .job_id = 1,
                                                             .attempt = 2,
                                                             .tenant = QF_STR("t"),
                                                             .inputs = inputs,
                                                             .input_count = 2,
                                                             .dead = dead,
                                                             .dead_count = 1,
                                                             .window_ms = 3,
                                                             .shard = 4,
                                                             .shard_count = 5,
                                                             .generation = 6,
                                                             .input_bytes = 7,
                                                             .memory_bytes = 8,
                                                             .file_bytes = 9 } });
    const struct pb_job *job = &got.u.job;

    CHECK_EQ(got.kind, PB_API_JOB);
    CHECK_EQ(job->job_id, 1);
    CHECK_EQ(job->attempt, 2);
    CHECK(str_is(job->tenant, "t"));
    CHECK_EQ(job->input_count, 2);
    CHECK(str_is(job->inputs[1], "tenant=t/b"));
    CHECK_EQ(job->dead_count, 1);
    CHECK(str_is(job->dead[0], "tenant=t/c"));
    CHECK_EQ(job->window_ms, 3);
    CHECK_EQ(job->shard, 4);
    CHECK_EQ(job->shard_count, 5);
    CHECK_EQ(job->generation, 6);
    CHECK_EQ(job->input_bytes, 7);
    CHECK_EQ(job->memory_bytes, 8);
    CHECK_EQ(job->file_bytes, 9);
    got = send_api(
        arena, &(struct pb_api_message){ .kind = PB_API_JOB_CANCEL, .u.job_cancel = { 10, 11 } });
    CHECK_EQ(got.u.job_cancel.job_id, 10);
    CHECK_EQ(got.u.job_cancel.attempt, 11);
}

TEST(what_becomes_of_jobs_keeps_every_field)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct pb_worker_message got =
        send_worker(arena, &(struct pb_worker_message){ .kind = PB_WORKER_JOB_DONE,
                                                        .u.job_done = { 1, 2, 3, 4, 5, 6, 7, 8 } });

    CHECK_EQ(got.u.job_done.job_id, 1);
    CHECK_EQ(got.u.job_done.attempt, 2);
    CHECK_EQ(got.u.job_done.series, 3);
    CHECK_EQ(got.u.job_done.samples, 4);
    CHECK_EQ(got.u.job_done.bytes_read, 5);
    CHECK_EQ(got.u.job_done.bytes_written, 6);
    CHECK_EQ(got.u.job_done.outputs, 7);
    CHECK_EQ(got.u.job_done.present, 8);
    got = send_worker(arena,
                      &(struct pb_worker_message){
                          .kind = PB_WORKER_JOB_FAILED,
                          .u.job_failed = { 1, 2, QF_STR("corrupt"), QF_STR("why"), true, 3 } });
    CHECK_EQ(got.u.job_failed.job_id, 1);
    CHECK_EQ(got.u.job_failed.attempt, 2);
    CHECK(str_is(got.u.job_failed.code, "corrupt"));
    CHECK(str_is(got.u.job_failed.reason, "why"));
    CHECK(got.u.job_failed.retryable);
    CHECK_EQ(got.u.job_failed.input, 3);
    got = send_worker(arena,
                      &(struct pb_worker_message){ .kind = PB_WORKER_JOB_REJECTED,
                                                   .u.job_rejected = { 1, 2, QF_STR("full") } });
    CHECK_EQ(got.u.job_rejected.job_id, 1);
    CHECK(str_is(got.u.job_rejected.reason, "full"));
    got = send_worker(arena, &(struct pb_worker_message){ .kind = PB_WORKER_JOB_PROGRESS,
                                                          .u.job_progress = { 1, 2, 3, 4, 5 } });
    CHECK_EQ(got.u.job_progress.attempt, 2);
    CHECK_EQ(got.u.job_progress.samples, 3);
    CHECK_EQ(got.u.job_progress.bytes_read, 4);
    CHECK_EQ(got.u.job_progress.paused_ms, 5);
}

TEST(a_job_without_inputs_or_with_a_shard_beyond_all_is_refused)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct qf_str input = QF_STR("tenant=t/a");
    struct pb_api_message message = {
        .kind = PB_API_JOB,
        .u.job = { .tenant = QF_STR("t"), .inputs = &input, .window_ms = 1, .shard_count = 1 }
    };
    struct pb_api_message got;

    for (int i = 0; i < 3; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
        struct qf_err err = { 0 };

        message.u.job.input_count = i > 0;
        message.u.job.shard = i == 1;
        pb_api_encode(&bytes, &message);
        CHECK_EQ(pb_api_decode(arena, qf_strbuf_view(&bytes), &got, &err),
                 i == 2 ? QF_OK : QF_EPROTO);
    }
}

TEST(work_ready_keeps_every_field)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct pb_worker_message sent = {
        .kind = PB_WORKER_READY,
        .u.ready = { .work_id = 1,
                     .attempt = 2,
                     .artifact_url = QF_STR("http://127.0.0.1:8081/artifacts/t"),
                     .artifact_size_bytes = 3,
                     .artifact_checksum = QF_STR("xxh3:aa"),
                     .row_count = 4,
                     .min_ts = -5,
                     .max_ts = 6,
                     .parquet_schema_version = 1,
                     .timings = { 10, 11, 12, 13, 14 },
                     .series_count = 20,
                     .samples_read = 21,
                     .download_bytes = 22,
                     .cache_hits = 23,
                     .cache_misses = 24,
                     .head_samples = 25,
                     .head_bytes = 26 },
    };
    struct pb_worker_message message = send_worker(arena, &sent);
    const struct pb_ready *got = &message.u.ready;

    CHECK_EQ(got->work_id, 1);
    CHECK_EQ(got->attempt, 2);
    CHECK(str_is(got->artifact_url, "http://127.0.0.1:8081/artifacts/t"));
    CHECK_EQ(got->artifact_size_bytes, 3);
    CHECK(str_is(got->artifact_checksum, "xxh3:aa"));
    CHECK_EQ(got->row_count, 4);
    CHECK_EQ(got->min_ts, -5);
    CHECK_EQ(got->max_ts, 6);
    CHECK_EQ(got->parquet_schema_version, 1);
    CHECK_EQ(got->timings.queued_us, 10);
    CHECK_EQ(got->timings.download_us, 11);
    CHECK_EQ(got->timings.scan_us, 12);
    CHECK_EQ(got->timings.write_us, 13);
    CHECK_EQ(got->timings.total_us, 14);
    CHECK_EQ(got->series_count, 20);
    CHECK_EQ(got->samples_read, 21);
    CHECK_EQ(got->download_bytes, 22);
    CHECK_EQ(got->cache_hits, 23);
    CHECK_EQ(got->cache_misses, 24);
    CHECK_EQ(got->head_samples, 25);
    CHECK_EQ(got->head_bytes, 26);
}

TEST(small_worker_messages_keep_every_field)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct pb_worker_message got;

    got = send_worker(arena, &(struct pb_worker_message){ .kind = PB_WORKER_STATUS,
                                                          .u.status = { 1,
                                                                        QF_STR("w"),
                                                                        true,
                                                                        true,
                                                                        2,
                                                                        3,
                                                                        4,
                                                                        QF_STR("http://h"),
                                                                        QF_STR("s"),
                                                                        { 5, 6, 7, 8 },
                                                                        QF_STR("0f"),
                                                                        9,
                                                                        10,
                                                                        11 } });
    CHECK_EQ(got.u.status.protocol_version, 1);
    CHECK_EQ(got.u.status.protocol_newest, 11);
    CHECK_EQ(got.u.status.background_slots, 9);
    CHECK_EQ(got.u.status.background_running, 10);
    CHECK(str_is(got.u.status.worker_id, "w"));
    CHECK(got.u.status.accepting_work && got.u.status.draining);
    CHECK_EQ(got.u.status.slots, 2);
    CHECK_EQ(got.u.status.running, 3);
    CHECK_EQ(got.u.status.queue_depth, 4);
    CHECK(str_is(got.u.status.artifact_base_url, "http://h"));
    CHECK(str_is(got.u.status.software, "s"));
    CHECK_EQ(got.u.status.disk.cache_bytes, 5);
    CHECK_EQ(got.u.status.disk.bytes, 6);
    CHECK_EQ(got.u.status.disk.bytes_max, 7);
    CHECK_EQ(got.u.status.disk.cache_segments, 8);
    CHECK(str_is(got.u.status.store_id, "0f"));
    got = send_worker(
        arena, &(struct pb_worker_message){ .kind = PB_WORKER_ACCEPTED, .u.accepted = { 1, 2 } });
    CHECK_EQ(got.u.accepted.work_id, 1);
    CHECK_EQ(got.u.accepted.attempt, 2);
    got = send_worker(arena, &(struct pb_worker_message){ .kind = PB_WORKER_REJECTED,
                                                          .u.rejected = { 3, 4, QF_STR("r") } });
    CHECK_EQ(got.u.rejected.work_id, 3);
    CHECK_EQ(got.u.rejected.attempt, 4);
    CHECK(str_is(got.u.rejected.reason, "r"));
    got = send_worker(arena, &(struct pb_worker_message){
                                 .kind = PB_WORKER_FAILED,
                                 .u.failed = { 5, 6, QF_STR("limit"), QF_STR("m"), true } });
    CHECK_EQ(got.u.failed.work_id, 5);
    CHECK_EQ(got.u.failed.attempt, 6);
    CHECK(str_is(got.u.failed.code, "limit"));
    CHECK(str_is(got.u.failed.reason, "m"));
    CHECK(got.u.failed.retryable);
}

/* A body from a later version is no error: the receiver ignores it. */
TEST(an_unknown_body_decodes_as_unknown)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct pb_api_message api;
    struct pb_worker_message worker;
    struct qf_err err = { 0 };

    CHECK_OK(pb_api_decode(arena, QF_STR("\xfa\x01\x02\x08\x01"), &api, &err), &err);
    CHECK_EQ(api.kind, PB_API_UNKNOWN);
    CHECK_OK(pb_worker_decode(arena, (struct qf_str){ NULL, 0 }, &worker, &err), &err);
    CHECK_EQ(worker.kind, PB_WORKER_UNKNOWN);
}

TEST(bounds_are_checked_when_decoding)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
    struct pb_api_message message = sample_assign(), got;
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    message.u.assign.query_id = QF_STR("");
    pb_api_encode(&buf, &message);
    CHECK_EQ(pb_api_decode(arena, qf_strbuf_view(&buf), &got, &err), QF_EPROTO);
    CHECK_STR(err.msg, "work without a usable query id, tenant or affinity key");
    message = sample_assign();
    message.u.assign.segments[1].name = QF_STR("");
    qf_strbuf_reset(&buf);
    pb_api_encode(&buf, &message);
    CHECK_EQ(pb_api_decode(arena, qf_strbuf_view(&buf), &got, NULL), QF_EPROTO);
    message.u.assign.segments[1].name = QF_STR("b");
    CHECK_EQ(pb_api_decode(arena, QF_STR("\x12\xff"), &got, NULL), QF_EPROTO);
    qf_strbuf_done(&buf);
}

/* A message that needs more memory than the receiver grants is refused, not served in part. */
TEST(a_spent_budget_is_an_error)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(64);
    struct pb_api_message message = sample_assign(), got;
    struct qf_strbuf buf = QF_STRBUF_INIT;

    pb_api_encode(&buf, &message);
    CHECK_EQ(pb_api_decode(arena, qf_strbuf_view(&buf), &got, NULL), QF_ELIMIT);
    qf_strbuf_done(&buf);
}

/* Cut, flipped and random bytes decode to something valid or to an error, never to a crash. */
TEST(damaged_bytes_never_crash)
{
    struct qf_prng prng = { 42 };
    struct pb_api_message message = sample_assign(), got;
    struct pb_worker_message worker;
    struct qf_strbuf buf = QF_STRBUF_INIT;
    size_t refused = 0;

    pb_api_encode(&buf, &message);
    for (int i = 0; i < 5000; i++) {
        struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX);
        size_t len = qf_prng_below(&prng, buf.len + 1);
        char *bytes = qf_xmemdup0(buf.data, buf.len);

        for (uint64_t flips = qf_prng_below(&prng, 4); flips; flips--)
            bytes[qf_prng_below(&prng, buf.len)] ^= (char)(1 << qf_prng_below(&prng, 8));
        refused += pb_api_decode(arena, (struct qf_str){ bytes, len }, &got, NULL) != QF_OK;
        (void)!pb_worker_decode(arena, (struct qf_str){ bytes, len }, &worker, NULL);
        free(bytes);
        (void)qf_arena_free(arena);
    }
    CHECK(refused > 1000);
    qf_strbuf_done(&buf);
}

/* Work whose head inputs are unusable, decoded by someone who does not ask why. */
TEST(nobody_has_to_ask_what_was_wrong)
{
    static const unsigned char bytes[] = { 0x12, 0x18, 0x62, 0x02, 0x0a, 0x00, 0x0a, 0x10, 0x40,
                                           0x00, 0x0a, 0x00, 0x0a, 0x00, 0x0a, 0x00, 0x00, 0x0a,
                                           0x40, 0x00, 0x40, 0x00, 0x40, 0x00, 0x18, 0x00 };
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qf_str message = { (const char *)bytes, sizeof(bytes) };
    struct pb_api_message decoded;

    CHECK_EQ(pb_api_decode(arena, message, &decoded, NULL), QF_EPROTO);
}

TEST(traceparent_is_checked)
{
    static const char *const bad[] = {
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
    };

    CHECK(pb_traceparent_valid(QF_STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")));
    for (size_t i = 0; i < QF_COUNT_OF(bad); i++)
        CHECK_MSG(!pb_traceparent_valid(qf_str_from(bad[i])), "accepted: %s", bad[i]);
}

TEST(health_messages_match_the_standard)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_str service;
    struct qf_err err = { 0 };

    pb_health_response_encode(&buf, PB_HEALTH_SERVING);
    CHECK(qf_str_eq(qf_strbuf_view(&buf), QF_STR("\x08\x01")));
    CHECK_OK(pb_health_request_decode(arena, QF_STR("\x0a\x01x"), &service, &err), &err);
    CHECK(qf_str_is(service, "x"));
    CHECK_OK(pb_health_request_decode(arena, QF_STR(""), &service, &err), &err);
    CHECK_EQ(service.len, 0);
    qf_strbuf_done(&buf);
}
