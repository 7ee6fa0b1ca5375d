/* test_worker.c - a real worker process: from AssignWork to the acknowledged artifact, and all that
 * may go wrong on the way. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segments/parquet/artifact.h"
#include "tests/integration/worker/harness.h"
#include "tests/lib/test.h"

static void send_ack(struct client *client, const struct pb_ready *ready)
{
    CHECK(client_send(client, &(struct pb_api_message){ .kind = PB_API_ACK,
                                                        .u.ack = { ready->work_id, ready->attempt,
                                                                   ready->artifact_checksum } }));
}

static void send_cancel(struct client *client, uint64_t work, uint32_t attempt)
{
    CHECK(client_send(client,
                      &(struct pb_api_message){ .kind = PB_API_CANCEL,
                                                .u.cancel = { work, attempt, QF_STR("test") } }));
}

/* Assign, accept, ready, fetch, verify, read, acknowledge; in the end nothing is left. */
TEST(a_leaf_is_executed_fetched_and_acknowledged)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;
    struct pb_worker_message message;
    struct pq_leaf_reader *reader;
    struct http_answer answer;
    struct worker worker;
    struct client *client;
    struct qf_err err = { 0 };
    struct pq_rows rows;
    char checksum[38];

    (void)bench_dir();
    segment = make_segment(arena, 3, 60, 1);
    worker = worker_start((const char *const[]){ "--artifact-ttl-after-ack", "100ms", NULL });
    client = client_to(&worker);
    assign(client, 42, 1, make_spec(arena, LEAF_INSTANT, 6), &segment, 1);
    CHECK(client_receive_kind(client, PB_WORKER_ACCEPTED, &message, 10000));
    CHECK_EQ(message.u.accepted.work_id, 42);
    CHECK_EQ(message.u.accepted.attempt, 1);
    CHECK(client_receive_kind(client, PB_WORKER_READY, &message, 10000));
    CHECK_EQ(message.u.ready.work_id, 42);
    CHECK_EQ(message.u.ready.row_count, 18);
    CHECK_EQ(message.u.ready.min_ts, 0);
    CHECK_EQ(message.u.ready.max_ts, 50000);
    CHECK_EQ(message.u.ready.parquet_schema_version, 2);
    CHECK_EQ(message.u.ready.series_count, 3);
    CHECK_EQ(message.u.ready.cache_hits, 1);
    CHECK(message.u.ready.timings.total_us > 0);

    answer = http_request(arena, worker.http_port, "GET",
                          url_path(arena, message.u.ready.artifact_url), NULL);
    CHECK_EQ(answer.status, 200);
    CHECK_EQ(answer.body_len, message.u.ready.artifact_size_bytes);
    sg_artifact_checksum((struct qf_str){ answer.body, answer.body_len }, checksum);
    CHECK(qf_str_is(message.u.ready.artifact_checksum, checksum));
    reader =
        sg_artifact_open_memory((struct qf_str){ answer.body, answer.body_len }, "a", NULL, &err);
    CHECK_MSG(reader, "%s", err.msg);
    CHECK_EQ(reader->series_count, 3);
    CHECK_OK(reader->next(reader, &rows, &err), &err);
    CHECK_EQ(rows.count, 18);
    for (size_t i = 0; i < rows.count; i++) {
        CHECK_EQ(rows.ts[i], 10000 * (int64_t)(i / 3));
        CHECK_EQ(rows.series[i], i % 3);
        CHECK_BITS(rows.columns[0][i], 1000.0 * (double)(i % 3) + 10.0 * (double)(i / 3));
    }
    reader->close(reader);

    send_ack(client, &message.u.ready);
    /* Gauges may be those from before the artifact: the counter goes first. */
    CHECK(metric_becomes(&worker, "promfabric_worker_artifact_ttl_cleanups_total{state=\"acked\"}",
                         1, 60000));
    CHECK(metric_becomes(&worker, "promfabric_worker_artifacts", 0, 60000));
    CHECK(metric_becomes(&worker, "promfabric_worker_spool_bytes", 0, 60000));
    CHECK_EQ(metric(&worker, "promfabric_worker_works_ready_total"), 1);
    CHECK_EQ(metric(&worker, "promfabric_worker_ready_to_fetch_seconds_count"), 1);
    CHECK_EQ(metric(&worker, "promfabric_worker_fetch_seconds_count"), 1);
    CHECK_EQ(http_request(arena, worker.http_port, "GET",
                          url_path(arena, message.u.ready.artifact_url), NULL)
                 .status,
             404);
    client = client_free(client);
    worker_end(&worker);
}

/* Only the exact URL gets at an artifact, by GET and HEAD, whole or in part. */
TEST(artifacts_are_served_by_token_alone)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;
    struct http_answer whole, answer;
    struct worker worker;
    struct client *client;
    struct pb_ready ready;
    const char *path;
    char *wrong;

    (void)bench_dir();
    segment = make_segment(arena, 3, 60, 1);
    worker = worker_start(NULL);
    client = client_to(&worker);
    ready = run_work(client, 1, make_spec(arena, LEAF_INSTANT, 6), &segment, 1);
    path = url_path(arena, ready.artifact_url);
    whole = http_request(arena, worker.http_port, "GET", path, NULL);
    CHECK_EQ(whole.status, 200);
    CHECK(strstr(whole.headers, "Accept-Ranges: bytes\r\n"));

    answer = http_request(arena, worker.http_port, "HEAD", path, NULL);
    CHECK_EQ(answer.status, 200);
    CHECK_EQ(answer.body_len, 0);
    CHECK(
        strstr(answer.headers, qf_arena_printf(arena, "Content-Length: %zu\r\n", whole.body_len)));
    answer = http_request(arena, worker.http_port, "GET", path, "Range: bytes=4-9\r\n");
    CHECK_EQ(answer.status, 206);
    CHECK(answer.body_len == 6 && memcmp(answer.body, whole.body + 4, 6) == 0);
    CHECK(strstr(answer.headers,
                 qf_arena_printf(arena, "Content-Range: bytes 4-9/%zu\r\n", whole.body_len)));
    answer = http_request(arena, worker.http_port, "GET", path, "Range: bytes=-4\r\n");
    CHECK_EQ(answer.status, 206);
    CHECK(answer.body_len == 4 && memcmp(answer.body, "PAR1", 4) == 0);
    answer = http_request(arena, worker.http_port, "GET", path, "Range: bytes=99999999-\r\n");
    CHECK_EQ(answer.status, 416);
    CHECK_EQ(http_request(arena, worker.http_port, "POST", path, "Content-Length: 0\r\n").status,
             405);
    CHECK_EQ(http_request(arena, worker.http_port, "DELETE", path, NULL).status, 405);

    wrong = qf_arena_printf(arena, "%s", path);
    wrong[strlen(wrong) - 1] = wrong[strlen(wrong) - 1] == '0' ? '1' : '0';
    CHECK_EQ(http_request(arena, worker.http_port, "GET", wrong, NULL).status, 404);
    for (const char *const *bad =
             (const char *const[]){ "/artifacts/", "/artifacts/../lock", "/artifacts/..%2flock",
                                    "/artifacts/%2e%2e/lock", "/artifacts//etc/passwd", "/",
                                    "/artifacts/.", "/spool", "/artifacts/../../store", NULL };
         *bad; bad++)
        CHECK_MSG(http_request(arena, worker.http_port, "GET", *bad, NULL).status == 404, "%s",
                  *bad);
    CHECK_EQ(
        http_request(arena, worker.http_port, "GET", qf_arena_printf(arena, "%s.part", path), NULL)
            .status,
        404);
    client = client_free(client);
    worker_end(&worker);
}

TEST(another_protocol_version_is_a_clear_error)
{
    struct worker worker;
    struct client *client;
    const char *details;

    (void)bench_dir();
    worker = worker_start(NULL);
    client =
        client_new(&(struct client_options){ .target = worker.target, .protocol_version = 99 });
    CHECK_EQ(client_wait_end(client, 5000, &details), 9);
    CHECK_STR(details, "protocol version 99 is not supported, only 2 to 3 are");
    client = client_free(client);
    client = client_new(&(struct client_options){ .target = worker.target, .no_hello = true });
    send_cancel(client, 1, 1);
    CHECK_EQ(client_wait_end(client, 5000, &details), 9);
    CHECK_STR(details, "the first message must be Hello");
    client = client_free(client);
    worker_end(&worker);
}

static struct pb_failed expect_failure(struct client *client, uint64_t work)
{
    struct pb_worker_message message;

    CHECK(client_receive_kind(client, PB_WORKER_FAILED, &message, 10000));
    CHECK_EQ(message.u.failed.work_id, work);
    return message.u.failed;
}

/* Whatever is wrong with a leaf, the answer says so and the worker lives on. */
TEST(bad_works_fail_with_a_reason_and_the_right_retryable)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    const char *dir = bench_dir();
    struct pb_segment segment = make_segment(arena, 50, 200, 1);
    struct pb_segment corrupt = make_segment(arena, 50, 201, 2);
    struct pb_segment missing = segment, outside = segment, resized = segment, foreign = segment;
    struct qf_str spec = make_spec(arena, LEAF_INSTANT, 20);
    struct worker worker;
    struct client *client;
    struct pb_failed failed;
    int fd;

    missing.name = QF_STR("tenant=t/date=1970-01-01/missing.parquet");
    outside.name = QF_STR("../../etc/passwd");
    foreign.name = QF_STR("tenant=u/date=1970-01-01/missing.parquet");
    resized.size_bytes++;
    fd = open(qf_arena_printf(arena, "%s/store/%.*s", dir, QF_STR_ARG(corrupt.name)),
              O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(pwrite(fd, "\xff\x00\xff\x00", 4, (off_t)corrupt.size_bytes / 3), 4);
    (void)close(fd);
    worker = worker_start(NULL);
    client = client_to(&worker);

    assign(client, 1, 1, QF_STR("no leaf"), &segment, 1);
    failed = expect_failure(client, 1);
    CHECK(!failed.retryable && failed.reason.len > 0);
    assign(client, 2, 1, spec, &missing, 1);
    failed = expect_failure(client, 2);
    CHECK(qf_str_is(failed.code, "not_found") && !failed.retryable);
    CHECK(strstr(qf_arena_cstr(arena, failed.reason), "missing.parquet"));
    assign(client, 3, 1, spec, &outside, 1);
    failed = expect_failure(client, 3);
    CHECK(qf_str_is(failed.code, "bad_data") && !failed.retryable);
    assign(client, 4, 1, spec, &corrupt, 1);
    failed = expect_failure(client, 4);
    CHECK(qf_str_is(failed.code, "corrupt") && !failed.retryable);
    CHECK(strstr(qf_arena_cstr(arena, failed.reason), qf_arena_cstr(arena, corrupt.name)));
    assign(client, 5, 1, spec, &resized, 1);
    failed = expect_failure(client, 5); /* replaced: planned anew */
    CHECK(qf_str_is(failed.code, "not_found") && !failed.retryable);
    assign(client, 7, 1, spec, &foreign, 1);
    failed = expect_failure(client, 7);
    CHECK(qf_str_is(failed.code, "denied") && !failed.retryable);
    (void)run_work(client, 6, spec, &segment, 1); /* and it lives on */
    client = client_free(client);
    worker_end(&worker);
}

static void assign_with(struct client *client, uint64_t work, struct qf_str spec,
                        struct pb_segment *segment, struct pb_limits limits, uint64_t timeout_ms)
{
    struct pb_api_message message = {
        .kind = PB_API_ASSIGN,
        .u.assign = { .query_id = QF_STR("query-2"),
                      .work_id = work,
                      .attempt = 1,
                      .tenant = QF_STR("t"),
                      .spec = spec,
                      .segments = segment,
                      .segment_count = 1,
                      .limits = limits,
                      .timeout_ms = timeout_ms },
    };

    CHECK(client_send(client, &message));
}

/* Samples, memory, artifact size and time: over any of them the work fails for good. */
TEST(limits_end_a_work)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;
    struct worker worker;
    struct client *client;
    struct pb_failed failed;
    struct qf_str spec;
    int64_t started;

    (void)bench_dir();
    segment = make_segment(arena, 1000, 100, 1);
    spec = make_spec(arena, LEAF_INSTANT, 10);
    worker = worker_start(NULL);
    client = client_to(&worker);
    assign_with(client, 1, spec, &segment, (struct pb_limits){ .samples_max = 100 }, 0);
    failed = expect_failure(client, 1);
    CHECK(qf_str_is(failed.code, "limit") && !failed.retryable);
    assign_with(client, 2, spec, &segment, (struct pb_limits){ .memory_bytes_max = 20000 }, 0);
    failed = expect_failure(client, 2);
    CHECK(qf_str_is(failed.code, "limit") && !failed.retryable);
    assign_with(client, 3, spec, &segment, (struct pb_limits){ .artifact_bytes_max = 500 }, 0);
    failed = expect_failure(client, 3);
    CHECK(qf_str_is(failed.code, "limit") && !failed.retryable);
    started = now_ms();
    assign_with(client, 4, make_spec(arena, LEAF_SLOW, 100000), &segment, (struct pb_limits){ 0 },
                200);
    failed = expect_failure(client, 4);
    CHECK(qf_str_is(failed.code, "timeout") && !failed.retryable);
    CHECK(now_ms() - started < 5000);
    client = client_free(client);
    worker_end(&worker);
}

/* One slot: the second work waits; both can be canceled, and the slot is free again soon. */
TEST(running_and_queued_works_are_canceled)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;
    struct worker worker;
    struct client *client;
    struct qf_str slow;
    int64_t started;

    (void)bench_dir();
    segment = make_segment(arena, 1000, 100, 1);
    slow = make_spec(arena, LEAF_SLOW, 100000);
    worker = worker_start((const char *const[]){ "--slots", "1", NULL });
    client = client_to(&worker);
    assign(client, 1, 1, slow, &segment, 1);
    assign(client, 2, 1, slow, &segment, 1);
    CHECK(metric_becomes(&worker, "promfabric_worker_works{state=\"running\"}", 1, 3000));
    CHECK(metric_becomes(&worker, "promfabric_worker_queue_depth", 1, 3000));
    send_cancel(client, 2, 1);
    CHECK(metric_becomes(&worker, "promfabric_worker_queue_depth", 0, 5000));
    started = now_ms();
    send_cancel(client, 1, 0);
    (void)run_work(client, 3, make_spec(arena, LEAF_INSTANT, 2), &segment, 1);
    CHECK_MSG(now_ms() - started < 5000, "took %lld ms", (long long)(now_ms() - started));
    CHECK_EQ(metric(&worker, "promfabric_worker_works_failed_total{code=\"canceled\"}"), 1);
    CHECK_EQ(metric(&worker, "promfabric_worker_cancel_seconds_count"), 1);
    client = client_free(client);
    worker_end(&worker);
}

/* A lost stream cancels what it asked for and frees its artifacts; other sessions do not notice. */
TEST(a_lost_session_takes_its_works_and_artifacts_along)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;
    struct pb_ready own, other;
    struct worker worker;
    struct client *client, *bystander;
    struct qf_str spec;
    const char *path;

    (void)bench_dir();
    segment = make_segment(arena, 1000, 100, 1);
    spec = make_spec(arena, LEAF_INSTANT, 2);
    worker = worker_start((const char *const[]){ "--slots", "1", NULL });
    client = client_to(&worker);
    bystander = client_to(&worker);
    own = run_work(client, 1, spec, &segment, 1);
    path = url_path(arena, own.artifact_url);
    other = run_work(bystander, 1, spec, &segment, 1);
    assign(client, 2, 1, make_spec(arena, LEAF_SLOW, 100000), &segment, 1);
    assign(client, 3, 1, make_spec(arena, LEAF_SLOW, 100000), &segment, 1);
    CHECK(metric_becomes(&worker, "promfabric_worker_queue_depth", 1, 3000));
    client = client_free(client);
    CHECK(metric_becomes(&worker, "promfabric_worker_sessions", 1, 5000));
    CHECK(metric_becomes(&worker, "promfabric_worker_works{state=\"stopping\"}", 0, 5000));
    CHECK_EQ(metric(&worker, "promfabric_worker_works{state=\"running\"}"), 0);
    CHECK_EQ(metric(&worker, "promfabric_worker_queue_depth"), 0);
    CHECK_EQ(http_request(arena, worker.http_port, "GET", path, NULL).status, 404);
    CHECK_EQ(http_request(arena, worker.http_port, "GET", url_path(arena, other.artifact_url), NULL)
                 .status,
             200);
    bystander = client_free(bystander);
    worker_end(&worker);
}

struct early {
    struct pb_ready items[2];
    size_t count;
};

/* As client_receive_kind(), but what is ready meanwhile is kept. */
static void receive_beside(struct client *client, enum pb_worker_kind kind, struct early *early,
                           struct pb_worker_message *ret_message)
{
    do {
        CHECK(client_receive(client, ret_message, 5000));
        if (ret_message->kind == PB_WORKER_READY && early->count < QF_COUNT_OF(early->items))
            early->items[early->count++] = ret_message->u.ready;
    } while (ret_message->kind != kind);
}

/* SIGTERM in the middle of work: no new work, the running one is finished, fetched, acknowledged;
 * then the worker exits with 0. */
TEST(a_draining_worker_finishes_what_it_accepted)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;
    struct pb_worker_message message;
    struct early early = { 0 };
    struct pb_ready ready;
    struct worker worker;
    struct client *client;

    (void)bench_dir();
    segment = make_segment(arena, 50, 100, 1);
    worker = worker_start((const char *const[]){ "--slots", "1", NULL });
    client = client_to(&worker);
    CHECK_EQ(http_request(arena, worker.http_port, "GET", "/readyz", NULL).status, 200);
    CHECK_EQ(http_request(arena, worker.http_port, "GET", "/-/ready", NULL).status, 200);
    assign(client, 1, 1, make_spec(arena, LEAF_SLOW, 100000), &segment, 1);
    assign(client, 2, 1, make_spec(arena, LEAF_INSTANT, 2), &segment, 1);
    CHECK(client_receive_kind(client, PB_WORKER_ACCEPTED, &message, 5000));
    CHECK(client_receive_kind(client, PB_WORKER_ACCEPTED, &message, 5000));
    CHECK_EQ(worker_stop(&worker, SIGTERM, 0), -1);
    do /* a status about the queue may come before */
        receive_beside(client, PB_WORKER_STATUS, &early, &message);
    while (!message.u.status.draining);
    CHECK(!message.u.status.accepting_work);
    CHECK_EQ(http_request(arena, worker.http_port, "GET", "/readyz", NULL).status, 503);
    CHECK_EQ(http_request(arena, worker.http_port, "GET", "/livez", NULL).status, 200);
    assign(client, 3, 1, make_spec(arena, LEAF_INSTANT, 2), &segment, 1);
    receive_beside(client, PB_WORKER_REJECTED, &early, &message);
    CHECK_EQ(message.u.rejected.work_id, 3);
    CHECK(qf_str_is(message.u.rejected.reason, "draining"));
    for (uint64_t work = 1; work <= 2; work++) {
        if (work <= early.count) {
            ready = early.items[work - 1];
        } else {
            CHECK(client_receive_kind(client, PB_WORKER_READY, &message, 30000));
            ready = message.u.ready;
        }
        CHECK_EQ(ready.work_id, work);
        CHECK_EQ(
            http_request(arena, worker.http_port, "GET", url_path(arena, ready.artifact_url), NULL)
                .status,
            200);
        CHECK_EQ(worker_stop(&worker, 0, 0), -1);
        send_ack(client, &ready);
    }
    while (client_receive(client, &message, 200))
        continue;
    CHECK_EQ(worker_stop(&worker, 0, 5000), 0);
    client = client_free(client);
}
