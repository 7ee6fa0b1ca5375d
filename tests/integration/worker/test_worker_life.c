/* test_worker_life.c - a real worker process: disk, expiry, ends and starts. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/integration/worker/harness.h"
#include "tests/lib/test.h"

static void send_ack(struct client *client, const struct pb_ready *ready)
{
    CHECK(client_send(client, &(struct pb_api_message){ .kind = PB_API_ACK,
                                                        .u.ack = { ready->work_id, ready->attempt,
                                                                   ready->artifact_checksum } }));
}

static struct pb_failed expect_failure(struct client *client, uint64_t work)
{
    struct pb_worker_message message;

    CHECK(client_receive_kind(client, PB_WORKER_FAILED, &message, 10000));
    CHECK_EQ(message.u.failed.work_id, work);
    return message.u.failed;
}

/* An artifact nobody acknowledges expires, and its work is said to have failed, to be run again. */
TEST(an_expired_artifact_is_reported)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;
    struct worker worker;
    struct client *client;
    struct pb_failed failed;
    struct pb_ready ready;

    (void)bench_dir();
    segment = make_segment(arena, 3, 60, 1);
    worker = worker_start((const char *const[]){ "--artifact-ttl", "200ms", NULL });
    client = client_to(&worker);
    ready = run_work(client, 1, make_spec(arena, LEAF_INSTANT, 6), &segment, 1);
    failed = expect_failure(client, 1);
    CHECK(qf_str_is(failed.code, "not_found") && failed.retryable);
    CHECK(metric_becomes(
        &worker, "promfabric_worker_artifact_ttl_cleanups_total{state=\"unacked\"}", 1, 1000));
    CHECK_EQ(http_request(arena, worker.http_port, "GET", url_path(arena, ready.artifact_url), NULL)
                 .status,
             404);
    client = client_free(client);
    worker_end(&worker);
}

/* With a budget for a few artifacts only, the oldest unacknowledged ones go and are reported. */
TEST(the_disk_budget_evicts_the_oldest_artifacts)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;
    struct worker worker;
    struct client *client;
    struct pb_failed failed;
    struct pb_ready first, ready;
    struct qf_str spec;
    char budget[32];

    (void)bench_dir();
    segment = make_segment(arena, 3, 60, 1);
    spec = make_spec(arena, LEAF_INSTANT, 6);
    worker = worker_start(NULL);
    client = client_to(&worker);
    first = run_work(client, 1, spec, &segment, 1);
    (void)snprintf(budget, sizeof(budget), "%llu",
                   (unsigned long long)first.artifact_size_bytes * 4);
    client = client_free(client);
    worker_end(&worker);
    worker = worker_start((const char *const[]){ "--disk-budget", budget, "--disk-floor", "0",
                                                 "--artifact-memory", "0B", NULL });
    client = client_to(&worker);
    first = run_work(client, 1, spec, &segment, 1);
    (void)run_work(client, 2, spec, &segment, 1);
    (void)run_work(client, 3, spec, &segment, 1);
    CHECK_EQ(metric(&worker, "promfabric_worker_evictions_total{reason=\"unacked\"}"), 0);
    ready = run_work(client, 4, spec, &segment, 1);
    failed = expect_failure(client, 1);
    CHECK(qf_str_is(failed.code, "not_found") && failed.retryable);
    CHECK_EQ(http_request(arena, worker.http_port, "GET", url_path(arena, first.artifact_url), NULL)
                 .status,
             404);
    CHECK_EQ(http_request(arena, worker.http_port, "GET", url_path(arena, ready.artifact_url), NULL)
                 .status,
             200);
    send_ack(client, &ready); /* acknowledged ones go first from now on */
    (void)run_work(client, 5, spec, &segment, 1);
    CHECK(metric_becomes(&worker, "promfabric_worker_evictions_total{reason=\"acked\"}", 1, 1000));
    CHECK_EQ(metric(&worker, "promfabric_worker_evictions_total{reason=\"unacked\"}"), 1);
    client = client_free(client);
    worker_end(&worker);
}

/* The drain timeout and a second SIGTERM both end it although work is left. */
TEST(a_drain_ends_at_its_timeout_or_at_the_second_signal)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;
    struct pb_worker_message message;
    struct worker worker;
    struct client *client;
    int64_t started;

    (void)bench_dir();
    segment = make_segment(arena, 1000, 100, 1);
    worker = worker_start((const char *const[]){ "--drain-timeout", "300ms", NULL });
    client = client_to(&worker);
    assign(client, 1, 1, make_spec(arena, LEAF_SLOW, 100000), &segment, 1);
    CHECK(metric_becomes(&worker, "promfabric_worker_works{state=\"running\"}", 1, 3000));
    started = now_ms();
    CHECK_EQ(worker_stop(&worker, SIGTERM, 5000), 0);
    CHECK(now_ms() - started >= 300);
    /* The API hears that the work may be run elsewhere, and that the worker is gone. */
    CHECK(client_receive_kind(client, PB_WORKER_FAILED, &message, 1000));
    CHECK(qf_str_is(message.u.failed.code, "unavailable") && message.u.failed.retryable);
    CHECK_EQ(client_wait_end(client, 1000, NULL), 14);
    client = client_free(client);

    worker = worker_start(NULL);
    client = client_to(&worker);
    assign(client, 1, 1, make_spec(arena, LEAF_SLOW, 100000), &segment, 1);
    CHECK(metric_becomes(&worker, "promfabric_worker_works{state=\"running\"}", 1, 3000));
    CHECK_EQ(worker_stop(&worker, SIGTERM, 300), -1);
    started = now_ms();
    CHECK_EQ(worker_stop(&worker, SIGTERM, 5000), 0);
    CHECK(now_ms() - started < 3000);
    client = client_free(client);
}

/* What a killed worker leaves behind does not confuse the next one. */
TEST(a_killed_worker_leaves_nothing_that_confuses_the_next)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    const char *dir = bench_dir();
    struct pb_segment segment = make_segment(arena, 1000, 100, 1);
    struct qf_str spec = make_spec(arena, LEAF_INSTANT, 2);
    struct worker worker;
    struct client *client;
    struct pb_ready ready;
    char *file;

    worker = worker_start((const char *const[]){ "--artifact-memory", "0B", NULL });
    client = client_to(&worker);
    ready = run_work(client, 1, spec, &segment, 1);
    file = qf_arena_printf(arena, "%s/spool%s", dir, url_path(arena, ready.artifact_url));
    CHECK_EQ(access(file, F_OK), 0);
    assign(client, 2, 1, make_spec(arena, LEAF_SLOW, 100000), &segment, 1);
    CHECK_EQ(worker_stop(&worker, SIGKILL, 5000), 128 + SIGKILL);
    client = client_free(client);
    CHECK_EQ(access(file, F_OK), 0);
    worker = worker_start(NULL);
    CHECK_EQ(access(file, F_OK), -1);
    client = client_to(&worker);
    (void)run_work(client, 1, spec, &segment, 1);
    client = client_free(client);
    worker_end(&worker);
}

/* One clear line and exit code 2 or 1. */
TEST(mistakes_on_the_command_line_are_told)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    const char *dir = bench_dir();
    struct worker worker;
    char text[2000];

    CHECK_EQ(worker_try((const char *const[]){ "--no-such-flag", NULL }, text, sizeof(text)), 2);
    CHECK_STR(text, "error: unknown flag --no-such-flag; try --help\n");
    CHECK_EQ(worker_try((const char *const[]){ "--disk-low", "95", NULL }, text, sizeof(text)), 2);
    CHECK(strstr(text, "error: --disk-low and --disk-high: "));
    CHECK_EQ(
        worker_try((const char *const[]){ "--http-listen", "nonsense", NULL }, text, sizeof(text)),
        2);
    CHECK_STR(text, "error: bad address \"nonsense\": want host:port\n");
    CHECK_EQ(
        worker_try((const char *const[]){ "--store", "/no/such/folder", NULL }, text, sizeof(text)),
        1);
    CHECK(strstr(text, "/no/such/folder"));
    CHECK_EQ(worker_try((const char *const[]){ "--control-tls-cert", "/no/such/file",
                                               "--control-tls-key", "/no/such/file", NULL },
                        text, sizeof(text)),
             1);
    CHECK_STR(text, "error: cannot open /no/such/file: No such file or directory\n");
    worker = worker_start(NULL);
    CHECK_EQ(worker_try(NULL, text, sizeof(text)), 1);
    CHECK_STR(text, qf_arena_printf(arena, "error: %s/spool is in use by another worker\n", dir));
    CHECK_EQ(worker_try(
                 (const char *const[]){
                     "--spool", qf_arena_printf(arena, "%s/other", dir), "--http-listen",
                     qf_arena_printf(arena, "127.0.0.1:%d", worker.http_port), NULL },
                 text, sizeof(text)),
             1);
    CHECK_STR(text, qf_arena_printf(arena,
                                    "error: cannot listen on 127.0.0.1:%d: Address already in "
                                    "use\n",
                                    worker.http_port));
    CHECK_EQ(worker_try((const char *const[]){ "--spool", qf_arena_printf(arena, "%s/other", dir),
                                               "--control-listen", worker.target, NULL },
                        text, sizeof(text)),
             1);
    CHECK(strstr(text, "error: cannot listen on "));
    worker_end(&worker);
}
