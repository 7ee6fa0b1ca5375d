/* bench_worker.c - what the worker adds to a leaf: time per tiny work, and scan rate of a big one
 * against the library alone. Prints figures; fails only if they are absurd. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/sys/clock.h"
#include "base/sys/memory.h"
#include "promql/leaf.h"
#include "segments/parquet/artifact.h"
#include "segments/parquet/segment_reader.h"
#include "tests/integration/worker/harness.h"
#include "tests/lib/test.h"

#define TINY_WORKS 400
#define BIG_RUNS 21
#define BIG_WARM 4 /* runs that are not counted: caches and allocators fill */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double percentile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[(size_t)(q * (double)(count - 1))];
}

static void acknowledge(struct client *client, const struct pb_ready *ready)
{
    CHECK(client_send(client, &(struct pb_api_message){ .kind = PB_API_ACK,
                                                        .u.ack = { .work_id = ready->work_id,
                                                                   .attempt = ready->attempt } }));
}

/* AssignWork received to WorkReady sent, as the worker measures it, and what a client sees. */
TEST(tiny_leaf_on_a_warm_cache)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    static double inside[TINY_WORKS], outside[TINY_WORKS], scan[TINY_WORKS], write[TINY_WORKS];
    struct pb_segment segment;
    struct worker worker;
    struct client *client;
    struct qf_str spec;
    double p50;

    (void)bench_dir();
    segment = make_segment(arena, 10, 100, 1);
    spec = make_spec(arena, LEAF_INSTANT, 10);
    worker = worker_start((const char *const[]){ "--artifact-ttl-after-ack", "10ms", NULL });
    client = client_to(&worker);
    (void)run_work(client, TINY_WORKS + 1, spec, &segment, 1);
    for (uint64_t i = 0; i < TINY_WORKS; i++) {
        int64_t started = qf_clock_mono_ns();
        struct pb_ready ready = run_work(client, i + 1, spec, &segment, 1);

        outside[i] = (double)(qf_clock_mono_ns() - started) / 1e6;
        inside[i] = (double)ready.timings.total_us / 1e3;
        scan[i] = (double)ready.timings.scan_us / 1e3;
        write[i] = (double)ready.timings.write_us / 1e3;
        acknowledge(client, &ready);
    }
    client = client_free(client);
    worker_end(&worker);
    p50 = percentile(inside, TINY_WORKS, 0.5);
    printf("tiny leaf, AssignWork received -> WorkReady sent: p50 %.3f ms, p99 %.3f ms\n", p50,
           percentile(inside, TINY_WORKS, 0.99));
    printf("  of which p50: scan %.3f ms, artifact %.3f ms\n", percentile(scan, TINY_WORKS, 0.5),
           percentile(write, TINY_WORKS, 0.5));
    printf("tiny leaf, as the client sees it: p50 %.3f ms, p99 %.3f ms\n",
           percentile(outside, TINY_WORKS, 0.5), percentile(outside, TINY_WORKS, 0.99));
    CHECK_MSG(p50 < 50, "p50 is %.3f ms", p50);
}

static double library_alone(const char *path, struct qf_str spec, uint64_t *ret_samples)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_err err = { 0 };
    struct sg_reader *reader = sg_reader_open(path, &err);
    struct pq_leaf_result result;
    struct pq_source *source;
    struct pq_leaf *leaf;
    int64_t started;

    CHECK_MSG(reader, "%s", err.msg);
    started = qf_clock_mono_ns();
    CHECK_OK(pq_leaf_decode(arena, spec, &leaf, &err), &err);
    source = sg_source_new(&reader, 1, &leaf->select, NULL, 0);
    CHECK_OK(pq_leaf_run(leaf, source, &(struct pq_leaf_limits){ 0 }, NULL, arena, &result, &err),
             &err);
    source->close(source);
    *ret_samples = result.samples_read;
    started = qf_clock_mono_ns() - started;
    (void)sg_reader_free(reader);
    return (double)started / 1e9;
}

static double in_the_worker(struct client *client, uint64_t work, struct qf_str spec,
                            struct pb_segment *segment)
{
    struct pb_ready ready = run_work(client, work, spec, segment, 1);

    acknowledge(client, &ready);
    return (double)(ready.timings.total_us - ready.timings.write_us) / 1e6;
}

/* Processor time of a whole process, which others on the machine change little; 0: this one. */
static double cpu_seconds(pid_t pid)
{
    struct timespec used = { 0 };
    clockid_t clock;

    CHECK_EQ(clock_getcpuclockid(pid, &clock), 0);
    CHECK_EQ(clock_gettime(clock, &used), 0);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Both in turn, first one then the other in front, so that a noisy moment hurts both alike. */
TEST(big_leaf_against_the_library_alone)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    double alone[BIG_RUNS], inside[BIG_RUNS], share[BIG_RUNS], share_of_medians;
    const char *dir = bench_dir();
    struct pb_segment segment = make_segment(arena, 1000, 7200, 1);
    struct qf_str spec = make_spec(arena, LEAF_SUM, 720);
    const char *path = qf_arena_printf(arena, "%s/store/%.*s", dir, QF_STR_ARG(segment.name));
    struct worker worker = worker_start(NULL);
    struct client *client = client_to(&worker);
    uint64_t samples = 0, work = 1;
    double alone_cpu = 0, inside_cpu = 0;

    qf_memory_setup(); /* as the worker does */
    for (int i = -BIG_WARM; i < BIG_RUNS; i++) {
        double one = 0, other;

        if (i == 0)
            inside_cpu = -cpu_seconds(worker.pid);
        if (i % 2)
            one = in_the_worker(client, work++, spec, &segment);
        alone_cpu -= i < 0 ? 0 : cpu_seconds(0);
        other = library_alone(path, spec, &samples);
        alone_cpu += i < 0 ? 0 : cpu_seconds(0);
        if (i % 2 == 0)
            one = in_the_worker(client, work++, spec, &segment);
        if (i < 0)
            continue;
        inside[i] = one;
        alone[i] = other;
        share[i] = 100 * other / one;
    }
    inside_cpu += cpu_seconds(worker.pid);
    client = client_free(client);
    worker_end(&worker);
    share_of_medians = percentile(alone, BIG_RUNS, 0.5) / percentile(inside, BIG_RUNS, 0.5);
    printf("big leaf, %.1f M samples, medians of %d: library alone %.1f M samples/s, in the worker "
           "%.1f M/s: %.0f %%\n",
           (double)samples / 1e6, BIG_RUNS,
           (double)samples / 1e6 / percentile(alone, BIG_RUNS, 0.5),
           (double)samples / 1e6 / percentile(inside, BIG_RUNS, 0.5), 100 * share_of_medians);
    printf("  pair by pair: median %.0f %%, from %.0f to %.0f %%\n",
           percentile(share, BIG_RUNS, 0.5), percentile(share, BIG_RUNS, 0),
           percentile(share, BIG_RUNS, 1));
    printf(
        "  processor time of a run: library alone %.1f ms, worker %.1f ms, artifact and messages "
        "included: %.0f %%\n",
        alone_cpu * 1e3 / BIG_RUNS, inside_cpu * 1e3 / BIG_RUNS, 100 * alone_cpu / inside_cpu);
    CHECK(share_of_medians > 0.3);
}

/* How long a stopped work goes on: told to cancel, and left by its API. The aims are 50 ms and
 * 100 ms; a busy machine may need more. */
TEST(stopping_a_running_work)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;
    struct qf_str slow;
    struct worker worker;
    struct client *client;
    double cancel_ms, loss_ms;
    int64_t started;

    (void)bench_dir();
    segment = make_segment(arena, 1000, 100, 1);
    slow = make_spec(arena, LEAF_SLOW, 100000);
    worker = worker_start((const char *const[]){ "--work-samples-max", "1000000000000", NULL });
    client = client_to(&worker);
    for (uint64_t work = 1; work <= 10; work++) {
        assign(client, work, 1, slow, &segment, 1);
        CHECK(metric_becomes(&worker, "promfabric_worker_works{state=\"running\"}", 1, 3000));
        CHECK(client_send(client, &(struct pb_api_message){ .kind = PB_API_CANCEL,
                                                            .u.cancel = { .work_id = work } }));
        CHECK(
            metric_becomes(&worker, "promfabric_worker_cancel_seconds_count", (double)work, 3000));
    }
    cancel_ms = 100 * metric(&worker, "promfabric_worker_cancel_seconds_sum");
    assign(client, 11, 1, slow, &segment, 1);
    CHECK(metric_becomes(&worker, "promfabric_worker_works{state=\"running\"}", 1, 3000));
    started = qf_clock_mono_ns();
    client = client_free(client);
    CHECK(metric_becomes(&worker, "promfabric_worker_cancel_seconds_count", 11, 3000));
    loss_ms = (double)(qf_clock_mono_ns() - started) / 1e6;
    worker_end(&worker);
    printf(
        "a running work stops %.1f ms after CancelWork (mean of 10), %.1f ms after its API left\n",
        cancel_ms, loss_ms);
    CHECK(cancel_ms < 500 && loss_ms < 1000);
}
