/* test_worker_jobs.c - background jobs on a real worker: done, refused, stopped, given back, and never in the way. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/worker/harness.h"
#include "tests/lib/test.h"

enum { WAIT_MS = 60000, SEGMENTS = 3 };

/* A job over a few segments of some series, and what it needs. */
struct bench {
    const char *dir;
    struct qf_arena *arena;
    struct pb_segment segments[SEGMENTS];
    struct qf_str names[SEGMENTS];
    uint64_t bytes;
};

static struct bench bench_new(unsigned series)
{
    struct bench bench = { .arena = qf_arena_new(SIZE_MAX) };

    bench.dir = bench_dir();
    for (unsigned i = 0; i < SEGMENTS; i++) {
        bench.segments[i] = make_segment(bench.arena, series, 60 + i, i + 1);
        bench.names[i] = bench.segments[i].name;
        bench.bytes += bench.segments[i].size_bytes;
    }
    return bench;
}

static void send_job(struct client *client, const struct bench *bench, uint64_t job,
                     uint32_t attempt)
{
    struct pb_api_message message = { .kind = PB_API_JOB,
                                      .u.job = { .job_id = job,
                                                 .attempt = attempt,
                                                 .tenant = QF_STR("t"),
                                                 .inputs = bench->names,
                                                 .input_count = SEGMENTS,
                                                 .window_ms = 7200000,
                                                 .shard_count = 1,
                                                 .generation = SEGMENTS,
                                                 .input_bytes = bench->bytes,
                                                 .file_bytes = 1 << 30 } };

    CHECK(client_send(client, &message));
}

static struct pb_worker_message expect(struct client *client, enum pb_worker_kind kind)
{
    struct pb_worker_message message;

    CHECK(client_receive_kind(client, kind, &message, WAIT_MS));
    return message;
}

TEST(a_job_is_done_and_done_again_it_changes_nothing)
{
    struct bench bench = bench_new(4);
    struct worker worker = worker_start((const char *const[]){ NULL });
    struct client *client = client_to(&worker);
    struct pb_worker_message message = expect(client, PB_WORKER_STATUS);

    CHECK_EQ(message.u.status.background_slots, 1);
    send_job(client, &bench, 7, 1);
    message = expect(client, PB_WORKER_JOB_DONE);
    CHECK_EQ(message.u.job_done.job_id, 7);
    CHECK_EQ(message.u.job_done.attempt, 1);
    CHECK_EQ(message.u.job_done.series, 4);
    CHECK_EQ(message.u.job_done.samples, 4 * (60 + SEGMENTS - 1));
    CHECK_EQ(message.u.job_done.outputs, 1);
    CHECK_EQ(message.u.job_done.present, 0);
    CHECK(message.u.job_done.bytes_read == bench.bytes);
    send_job(client, &bench, 8, 1);
    message = expect(client, PB_WORKER_JOB_DONE);
    CHECK_EQ(message.u.job_done.job_id, 8);
    CHECK_EQ(message.u.job_done.outputs, 0);
    CHECK_EQ(message.u.job_done.present, 1);
    CHECK(metric_becomes(&worker, "promfabric_worker_background_jobs_total{outcome=\"done\"}", 2,
                         WAIT_MS));
    CHECK(metric(&worker, "promfabric_worker_background_samples_total") > 0);
    (void)client_free(client);
    worker_end(&worker);
    (void)qf_arena_free(bench.arena);
}

TEST(a_worker_without_slots_for_them_says_so_and_takes_none)
{
    struct bench bench = bench_new(1);
    struct worker worker = worker_start((const char *const[]){ "--background-slots", "0", NULL });
    struct client *client = client_to(&worker);

    CHECK_EQ(expect(client, PB_WORKER_STATUS).u.status.background_slots, 0);
    send_job(client, &bench, 7, 1);
    CHECK(qf_str_is(expect(client, PB_WORKER_JOB_REJECTED).u.job_rejected.reason, "full"));
    (void)client_free(client);
    worker_end(&worker);
    (void)qf_arena_free(bench.arena);
}

TEST(files_of_others_and_damaged_ones_are_named)
{
    struct bench bench = bench_new(2);
    struct worker worker = worker_start((const char *const[]){ NULL });
    struct client *client = client_to(&worker);
    struct qf_str whole = bench.names[1];
    struct pb_worker_message message;
    char *path;
    int fd;

    bench.names[1] = QF_STR("tenant=other/date=1970-01-01/0-1-00000-of-00001-1.parquet");
    send_job(client, &bench, 7, 1);
    message = expect(client, PB_WORKER_JOB_FAILED);
    CHECK(qf_str_is(message.u.job_failed.code, "denied"));
    CHECK(!message.u.job_failed.retryable);
    bench.names[1] = whole;
    path = qf_arena_printf(bench.arena, "%s/store/%.*s", bench.dir, QF_STR_ARG(whole));
    fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, "PAR1 no longer", 14) == 14);
    (void)close(fd);
    send_job(client, &bench, 8, 1);
    message = expect(client, PB_WORKER_JOB_FAILED);
    CHECK_EQ(message.u.job_failed.job_id, 8);
    CHECK(qf_str_is(message.u.job_failed.code, "corrupt"));
    CHECK_EQ(message.u.job_failed.input, 2);
    CHECK(!message.u.job_failed.retryable);
    (void)client_free(client);
    worker_end(&worker);
    (void)qf_arena_free(bench.arena);
}

/* A rate so low that a job takes for ever. */
static struct worker slow_worker(void)
{
    return worker_start((const char *const[]){ "--background-rate", "1B", NULL });
}

TEST(a_slot_takes_one_job_until_that_is_stopped)
{
    struct bench bench = bench_new(2);
    struct worker worker = slow_worker();
    struct client *client = client_to(&worker), *other = client_to(&worker);
    struct pb_worker_message message;

    send_job(client, &bench, 7, 1);
    CHECK_EQ(expect(client, PB_WORKER_JOB_PROGRESS).u.job_progress.job_id, 7);
    send_job(other, &bench, 1, 1);
    CHECK(qf_str_is(expect(other, PB_WORKER_JOB_REJECTED).u.job_rejected.reason, "full"));
    CHECK(client_send(
        client, &(struct pb_api_message){ .kind = PB_API_JOB_CANCEL, .u.job_cancel = { 7, 1 } }));
    CHECK(metric_becomes(&worker, "promfabric_worker_background_running", 0, WAIT_MS));
    do { /* its thread takes a moment to notice */
        send_job(other, &bench, 2, 1);
        CHECK(client_receive(other, &message, WAIT_MS));
    } while (message.kind != PB_WORKER_JOB_PROGRESS);
    (void)client_free(other); /* a lost stream stops what it asked for */
    CHECK(metric_becomes(&worker, "promfabric_worker_background_running", 0, WAIT_MS));
    (void)client_free(client);
    worker_end(&worker);
    (void)qf_arena_free(bench.arena);
}

TEST(a_drain_gives_the_job_back_and_does_not_wait_for_it)
{
    struct bench bench = bench_new(2);
    struct worker worker = slow_worker();
    struct client *client = client_to(&worker);

    send_job(client, &bench, 7, 3);
    (void)expect(client, PB_WORKER_JOB_PROGRESS);
    CHECK_EQ(kill(worker.pid, SIGTERM), 0);
    {
        struct pb_worker_message message = expect(client, PB_WORKER_JOB_REJECTED);

        CHECK_EQ(message.u.job_rejected.job_id, 7);
        CHECK_EQ(message.u.job_rejected.attempt, 3);
        CHECK(qf_str_is(message.u.job_rejected.reason, "draining"));
    }
    CHECK_EQ(worker_stop(&worker, 0, WAIT_MS), 0);
    (void)client_free(client);
    (void)qf_arena_free(bench.arena);
}

TEST(works_run_while_a_job_does)
{
    struct bench bench = bench_new(2);
    struct worker worker = slow_worker();
    struct client *client = client_to(&worker);
    struct pb_ready ready;

    send_job(client, &bench, 7, 1);
    (void)expect(client, PB_WORKER_JOB_PROGRESS);
    ready = run_work(client, 42, make_spec(bench.arena, LEAF_INSTANT, 6), &bench.segments[0], 1);
    CHECK_EQ(ready.row_count, 12);
    CHECK_EQ(metric(&worker, "promfabric_worker_background_running"), 1);
    (void)client_free(client);
    worker_end(&worker);
    (void)qf_arena_free(bench.arena);
}

TEST(a_job_stands_aside_while_works_need_every_slot)
{
    struct bench bench = bench_new(1000);
    /* Only the cancellation may end the work: a fast machine meets the default limit within a second. */
    struct worker worker = worker_start(
        (const char *const[]){ "--slots", "1", "--work-samples-max", "1000000000000", NULL });
    struct client *client = client_to(&worker);
    struct pb_worker_message message;

    assign(client, 42, 1, make_spec(bench.arena, LEAF_SLOW, 2000000), &bench.segments[0], 1);
    CHECK(metric_becomes(&worker, "promfabric_worker_works{state=\"running\"}", 1, WAIT_MS));
    send_job(client, &bench, 7, 1);
    do
        message = expect(client, PB_WORKER_JOB_PROGRESS);
    while (message.u.job_progress.paused_ms == 0 && message.u.job_progress.samples == 0);
    CHECK_EQ(message.u.job_progress.samples, 0);
    CHECK_EQ(metric(&worker, "promfabric_worker_background_running"), 1);
    CHECK(client_send(client, &(struct pb_api_message){ .kind = PB_API_CANCEL,
                                                        .u.cancel = { 42, 1, QF_STR("enough") } }));
    message = expect(client, PB_WORKER_JOB_DONE);
    CHECK_EQ(message.u.job_done.series, 1000);
    CHECK(metric(&worker, "promfabric_worker_background_paused_seconds_total") > 0);
    (void)client_free(client);
    worker_end(&worker);
    (void)qf_arena_free(bench.arena);
}
