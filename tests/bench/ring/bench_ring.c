/* bench_ring.c - puts to a ring: bench_ring URL COUNT BYTES THREADS NAMED.
 *
 * THREADS threads put COUNT blobs of BYTES bytes in all, one after the other each; with NAMED 1 each is named in the log as
 * well, so that it belongs to the ring. Prints one line of JSON: latencies of puts alone, and how many a second. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "segments/store/ring.h"

enum { THREADS_MAX = 64, COUNT_MAX = 100000 };

struct bench {
    struct sg_store *store;
    uint64_t count, bytes, threads, named, run;
    double ms[COUNT_MAX];
    struct qf_err err[THREADS_MAX];
};

struct worker {
    struct bench *bench;
    uint64_t number;
};

/* Nothing that a file system or a network could compress, and no two alike. */
static void fill(char *data, uint64_t size, uint64_t seed)
{
    uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;

    for (uint64_t i = 0; i < size; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        data[i] = (char)x;
    }
}

static qf_rc put(struct bench *bench, uint64_t i, struct qf_str data, struct qf_err *err)
{
    char name[128];
    int len =
        snprintf(name, sizeof(name),
                 "tenant=bench/date=2026-01-01/%" PRIu64 "-%" PRIu64 "_s%" PRIu64 "of64.parquet",
                 bench->run, i, i % 64);
    struct qf_str text = { name, (size_t)len };
    struct rg_blob blob = { .name = text, .bytes = data.len };
    struct sg_ring_change change = { .tenant = QF_STR("bench"), .added = &blob, .added_count = 1 };
    int64_t began = qf_clock_mono_ns();
    qf_rc rc = sg_ring_place_data(bench->store, text, data, NULL, &blob.slot, &change.epoch, err);

    bench->ms[i] = (double)(qf_clock_mono_ns() - began) / 1e6;
    if (rc == QF_OK && bench->named)
        rc = sg_ring_change(bench->store, &change, NULL, err);
    return rc;
}

static void run(void *arg)
{
    struct worker *worker = arg;
    struct bench *bench = worker->bench;
    char *data = qf_xcalloc(1, bench->bytes);
    qf_rc rc = QF_OK;

    for (uint64_t i = worker->number; i < bench->count && !rc; i += bench->threads) {
        fill(data, bench->bytes, bench->run + i);
        rc = put(bench, i, (struct qf_str){ data, bench->bytes }, &bench->err[worker->number]);
    }
    free(data);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static bool run_all(struct bench *bench)
{
    struct worker workers[THREADS_MAX];
    struct qf_thread *threads[THREADS_MAX];
    bool ok = true;

    for (uint64_t i = 0; i < bench->threads; i++) {
        workers[i] = (struct worker){ bench, i };
        threads[i] = qf_thread_start("bench", run, &workers[i]);
    }
    for (uint64_t i = 0; i < bench->threads; i++) {
        (void)qf_thread_join(threads[i]);
        if (bench->err[i].rc)
            fprintf(stderr, "error: %s\n", bench->err[i].msg);
        ok &= !bench->err[i].rc;
    }
    return ok;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    uint64_t *numbers[] = { &bench.count, &bench.bytes, &bench.threads, &bench.named };
    struct qf_err err = { 0 };
    int64_t began;
    double took;
    bool ok;

    for (int i = 0; i < 4; i++)
        if (argc != 6 || !qf_parse_u64(qf_str_from(argv[i + 2]), numbers[i]))
            return 2;
    if (!bench.count || bench.count > COUNT_MAX || !bench.threads || bench.threads > THREADS_MAX)
        return 2;
    bench.run = (uint64_t)qf_clock_wall_ms();
    if (sg_store_open(&(struct sg_store_options){ .url = argv[1] }, &bench.store, &err)) {
        fprintf(stderr, "error: %s\n", err.msg);
        return 1;
    }
    began = qf_clock_mono_ns();
    ok = run_all(&bench);
    took = (double)(qf_clock_mono_ns() - began) / 1e9;
    qsort(bench.ms, bench.count, sizeof(bench.ms[0]), by_value);
    if (ok)
        printf("{\"p50_ms\":%.2f,\"p99_ms\":%.2f,\"per_second\":%.1f}\n", bench.ms[bench.count / 2],
               bench.ms[bench.count * 99 / 100], (double)bench.count / took);
    (void)sg_store_free(bench.store);
    return ok ? 0 : 1;
}
