/* bench_segments.c - bytes and nanoseconds per sample of segments and artifacts, on one thread.
 *
 * usage: bench_segments [DIR]                   files go to DIR (default /tmp) and are removed
 *        bench_segments --scan FILE [ROUNDS]    read a segment again and again, for profilers */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "segments/demo/demo.h"
#include "segments/parquet/artifact.h"
#include "segments/parquet/hot.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"

#define HOUR INT64_C(3600000)

static double now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const struct qf_err *err)
{
    fprintf(stderr, "%s\n", err->msg);
    exit(1);
}

struct data {
    size_t series, samples;
    struct qf_labels *labels;
    int64_t **ts;
    double **values;
    size_t *counts;
};

static struct data make_data(const struct sg_demo *demo)
{
    struct data d = { .series = sg_demo_series_count(demo) };
    size_t max = sg_demo_samples_max(demo);

    d.labels = qf_xcalloc(d.series, sizeof(*d.labels));
    d.ts = qf_xcalloc(d.series, sizeof(*d.ts));
    d.values = qf_xcalloc(d.series, sizeof(*d.values));
    d.counts = qf_xcalloc(d.series, sizeof(*d.counts));
    for (size_t i = 0; i < d.series; i++) {
        d.labels[i] = sg_demo_labels(demo, i);
        d.ts[i] = qf_xcalloc(max, sizeof(int64_t));
        d.values[i] = qf_xcalloc(max, sizeof(double));
        d.counts[i] = sg_demo_samples(demo, i, d.ts[i], d.values[i]);
        d.samples += d.counts[i];
    }
    return d;
}

static uint32_t version; /* of the segments to write; 0: the newest */

static void write_segment(const struct data *d, const char *path)
{
    struct sg_writer_options options = {
        .path = path, .tenant = QF_STR("default"), .shard_count = 1, .schema_version = version
    };
    struct qf_err err = { 0 };
    struct sg_segment_name name;
    struct sg_writer *writer;

    (void)unlink(path);
    writer = sg_writer_new(&options, &err);
    if (!writer)
        die(&err);
    for (size_t i = 0; i < d->series; i++)
        if (d->counts[i] &&
            sg_writer_add(writer, d->labels[i], d->ts[i], d->values[i], d->counts[i], &err))
            die(&err);
    if (sg_writer_finish(writer, &name, &err))
        die(&err);
    (void)sg_writer_free(writer);
}

/* Open and read the selection; returns the samples. */
static size_t scan(const char *path, const struct pq_select *select,
                   struct sg_source_stats *ret_stats)
{
    struct qf_err err = { 0 };
    struct sg_reader *reader = sg_reader_open(path, &err);
    struct pq_source *source;
    struct pq_series series;
    bool more = true;
    size_t samples = 0;

    if (!reader)
        die(&err);
    source = sg_source_new(&reader, 1, select, NULL, 0);
    for (;;) {
        if (source->next(source, &series, &more, &err))
            die(&err);
        if (!more)
            break;
        samples += series.count;
    }
    *ret_stats = sg_source_stats(source);
    source->close(source);
    (void)sg_reader_free(reader);
    return samples;
}

/* What Prometheus's chunks would need for the same data, to have something to compare with: bits of
 * delta-of-delta timestamps and XOR values, without its index. */
static double prometheus_bits(const struct data *d)
{
    double bits = 0;

    for (size_t i = 0; i < d->series; i++) {
        int leading = 64, trailing = 0;

        for (size_t k = 2; k < d->counts[i]; k++) {
            const int64_t *t = d->ts[i] + k;
            int64_t dod = (t[0] - t[-1]) - (t[-1] - t[-2]);
            uint64_t x = qf_double_bits(d->values[i][k]) ^ qf_double_bits(d->values[i][k - 1]);

            bits += dod == 0                          ? 1
                    : dod >= -8191 && dod <= 8192     ? 16
                    : dod >= -65535 && dod <= 65536   ? 20
                    : dod >= -524287 && dod <= 524288 ? 24
                                                      : 68;
            if (!x) {
                bits += 1;
            } else if (leading < 64 && __builtin_clzll(x) >= leading &&
                       __builtin_ctzll(x) >= trailing) {
                bits += 2 + 64 - leading - trailing;
            } else {
                leading = QF_MIN(__builtin_clzll(x), 31);
                trailing = __builtin_ctzll(x);
                bits += 2 + 5 + 6 + 64 - leading - trailing;
            }
        }
    }
    return bits;
}

/* Noise everywhere: scrapes jitter by some milliseconds, counters grow by anything, a sixth of the
 * gauges is random in every bit. */
static struct data make_noisy(struct qf_arena *arena)
{
    struct data d = { .series = 5000 };
    struct qf_prng prng = { 42 };
    size_t steps = (size_t)(6 * HOUR / 15000);

    d.labels = qf_xcalloc(d.series, sizeof(*d.labels));
    d.ts = qf_xcalloc(d.series, sizeof(*d.ts));
    d.values = qf_xcalloc(d.series, sizeof(*d.values));
    d.counts = qf_xcalloc(d.series, sizeof(*d.counts));
    for (size_t i = 0; i < d.series; i++) {
        struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, 2);
        size_t kind = i * 6 / d.series;
        double value = 0;

        items[0] = (struct qf_label){ QF_STR("__name__"),
                                      qf_str_from(qf_arena_printf(arena, "kind_%zu", kind)) };
        items[1] = (struct qf_label){ QF_STR("instance"),
                                      qf_str_from(qf_arena_printf(arena, "host-%05zu", i)) };
        d.labels[i] = (struct qf_labels){ items, 2 };
        d.ts[i] = qf_xcalloc(steps, sizeof(int64_t));
        d.values[i] = qf_xcalloc(steps, sizeof(double));
        for (size_t k = 0; k < steps; k++) {
            double noise = qf_prng_unit(&prng);

            d.ts[i][k] = 1767225600000 + (int64_t)k * 15000;
            if (qf_prng_chance(&prng, 0.1))
                d.ts[i][k] += (int64_t)qf_prng_below(&prng, 5);
            if (kind < 2) /* counters */
                value += (double)qf_prng_below(&prng, kind ? 20000 : 200);
            else if (kind == 2) /* buckets of a histogram, many idle */
                value += i % 3 ? (double)qf_prng_below(&prng, 30) : 0;
            else if (kind == 3) /* seconds */
                value += floor(noise * 1500) / 100;
            else if (kind == 4) /* a gauge of whole bytes */
                value = floor(noise * 4e9);
            else
                value = noise * 100;
            d.values[i][k] = value;
        }
        d.counts[i] = steps;
        d.samples += steps;
    }
    return d;
}

static void bench_data(const char *what, const struct data *d, const char *path)
{
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct sg_source_stats stats;
    struct stat status;
    double best_write = 1e9, best_scan = 1e9;

    for (int round = 0; round < 3; round++) {
        double start = now();

        write_segment(d, path);
        best_write = QF_MIN(best_write, now() - start);
    }
    for (int round = 0; round < 5; round++) {
        double start = now();

        if (scan(path, &all, &stats) != d->samples)
            abort();
        best_scan = QF_MIN(best_scan, now() - start);
    }
    (void)stat(path, &status);
    printf("%s: %zu series, %zu samples, %.2f bytes/sample (Prometheus's chunks: %.2f)\n", what,
           d->series, d->samples, (double)status.st_size / (double)d->samples,
           prometheus_bits(d) / 8 / (double)d->samples);
    printf("  write %.1f M samples/s, full scan %.1f M samples/s, %.1f MiB held at most\n",
           (double)d->samples / best_write / 1e6, (double)d->samples / best_scan / 1e6,
           (double)stats.memory_peak / 1048576);
}

static void bench_mixed(const char *path)
{
    struct sg_demo_options options = { .seed = 1,
                                       .start = 1767225600000,
                                       .end = 1767225600000 + 6 * HOUR,
                                       .step = 15000,
                                       .instances = 61 };
    struct sg_demo *demo = sg_demo_new(&options);
    struct data d = make_data(demo);

    bench_data("demo data", &d, path);
    (void)sg_demo_free(demo);
}

static void bench_noisy(const char *path)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct data d = make_noisy(arena);

    bench_data("noisy data", &d, path);
    (void)qf_arena_free(arena);
}

/* 10,000 series of one metric, two hours: one of them, the file opened each time. */
static void bench_select(const char *path)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct data d = { .series = 10000 };
    struct pq_matcher matchers[] = {
        { PQ_MATCH_EQUAL, QF_STR("__name__"), QF_STR("requests_total"), NULL },
        { PQ_MATCH_EQUAL, QF_STR("instance"), QF_STR("host-06213:9100"), NULL },
    };
    struct pq_select one = { matchers, 2, INT64_MIN, INT64_MAX };
    struct sg_source_stats stats;
    struct qf_prng prng = { 1 };
    double best = 1e9, total = 0;

    d.labels = qf_xcalloc(d.series, sizeof(*d.labels));
    d.ts = qf_xcalloc(d.series, sizeof(*d.ts));
    d.values = qf_xcalloc(d.series, sizeof(*d.values));
    d.counts = qf_xcalloc(d.series, sizeof(*d.counts));
    for (size_t i = 0; i < d.series; i++) {
        struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, 5);
        double value = 0;

        items[0] = (struct qf_label){ QF_STR("__name__"), QF_STR("requests_total") };
        items[1] = (struct qf_label){ QF_STR("cluster"), QF_STR("eu-west-1a") };
        items[2] = (struct qf_label){ QF_STR("instance"),
                                      qf_str_from(qf_arena_printf(arena, "host-%05zu:9100", i)) };
        items[3] = (struct qf_label){ QF_STR("job"), QF_STR("node") };
        items[4] = (struct qf_label){
            QF_STR("pod"), qf_str_from(qf_arena_printf(
                               arena, "web-%08llx", (unsigned long long)qf_prng_next(&prng) >> 32))
        };
        d.labels[i] = (struct qf_labels){ items, 5 };
        d.counts[i] = 480;
        d.ts[i] = qf_xcalloc(480, sizeof(int64_t));
        d.values[i] = qf_xcalloc(480, sizeof(double));
        for (size_t k = 0; k < 480; k++) {
            d.ts[i][k] = (int64_t)k * 15000;
            d.values[i][k] = value += (double)qf_prng_below(&prng, 300);
        }
    }
    write_segment(&d, path);
    for (int round = 0; round < 20; round++) {
        double start = now();

        if (scan(path, &one, &stats) != 480)
            abort();
        best = QF_MIN(best, now() - start);
        total += now() - start;
    }
    printf("select 1 of 10,000 series, with open: best %.2f ms, mean %.2f ms, %.1f MiB held at "
           "most\n",
           best * 1e3, total / 20 * 1e3, (double)stats.memory_peak / 1048576);
    (void)qf_arena_free(arena);
}

/* A small segment, as most are: what opening it costs, and what one metric of it costs when it is
 * open already. */
static void bench_small(const char *path)
{
    struct sg_demo_options options = { .seed = 1, .end = 2 * HOUR, .step = 15000, .instances = 2 };
    struct sg_demo *demo = sg_demo_new(&options);
    struct data d = make_data(demo);
    struct pq_matcher name = { PQ_MATCH_EQUAL, QF_STR("__name__"), QF_STR("http_requests_total"),
                               NULL };
    struct pq_select one = { &name, 1, INT64_MIN, INT64_MAX };
    struct qf_err err = { 0 };
    struct sg_reader *reader = NULL;
    struct pq_series series;
    double opening = 1e9, reading = 1e9;

    write_segment(&d, path);
    for (int round = 0; round < 200; round++) {
        double start = now();
        struct pq_source *source;
        bool more = true;

        (void)sg_reader_free(reader);
        reader = sg_reader_open(path, &err);
        if (!reader)
            die(&err);
        opening = QF_MIN(opening, now() - start);
        start = now();
        source = sg_source_new(&reader, 1, &one, NULL, 0);
        while (more)
            if (source->next(source, &series, &more, &err))
                die(&err);
        source->close(source);
        reading = QF_MIN(reading, now() - start);
    }
    (void)sg_reader_free(reader);
    printf("small segment of %zu series, %zu samples: open %.0f us, one metric %.0f us\n", d.series,
           d.samples, opening * 1e6, reading * 1e6);
    (void)sg_demo_free(demo);
}

/* The demo data cut into files of one hour each, and read as one. */
static void bench_merge(const char *path)
{
    struct sg_demo_options options = { .seed = 1, .end = 6 * HOUR, .step = 15000, .instances = 61 };
    struct sg_demo *demo = sg_demo_new(&options);
    struct data d = make_data(demo), part = d;
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct sg_reader *readers[6];
    struct qf_err err = { 0 };
    double best = 1e9;

    part.ts = qf_xcalloc(d.series, sizeof(*part.ts));
    part.values = qf_xcalloc(d.series, sizeof(*part.values));
    part.counts = qf_xcalloc(d.series, sizeof(*part.counts));
    for (int hour = 0; hour < 6; hour++) {
        for (size_t i = 0; i < d.series; i++) {
            size_t start = 0, end;

            while (start < d.counts[i] && d.ts[i][start] < hour * HOUR)
                start++;
            for (end = start; end < d.counts[i] && d.ts[i][end] < (hour + 1) * HOUR;)
                end++;
            part.ts[i] = d.ts[i] + start;
            part.values[i] = d.values[i] + start;
            part.counts[i] = end - start;
        }
        write_segment(&part, path);
        readers[hour] = sg_reader_open(path, &err);
        if (!readers[hour])
            die(&err);
    }
    for (int round = 0; round < 5; round++) {
        double start = now();
        struct pq_source *source = sg_source_new(readers, 6, &all, NULL, 0);
        struct pq_series series;
        bool more = true;

        while (more)
            if (source->next(source, &series, &more, &err))
                die(&err);
        source->close(source);
        best = QF_MIN(best, now() - start);
    }
    printf("six segments of an hour merged: %.1f M samples/s\n", (double)d.samples / best / 1e6);
    for (int hour = 0; hour < 6; hour++)
        (void)sg_reader_free(readers[hour]);
    free(part.ts);
    free(part.values);
    free(part.counts);
    (void)sg_demo_free(demo);
}

static void bench_artifact(size_t series_count, size_t steps, int rounds)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    size_t rows = series_count * steps;
    int64_t *ts = qf_xcalloc(rows, sizeof(*ts));
    uint32_t *series = qf_xcalloc(rows, sizeof(*series));
    double *values = qf_xcalloc(rows, sizeof(*values));
    struct pq_leaf_result result = { .kind = &pq_leaf_series, .series_count = series_count };
    struct qf_prng prng = { 1 };
    double write = 1e9, read = 1e9;
    size_t size = 0;
    struct qf_err err = { 0 };

    result.series = QF_ARENA_ARRAY(arena, struct qf_labels, series_count);
    for (size_t i = 0; i < series_count; i++) {
        struct qf_label *item = QF_ARENA_NEW(arena, struct qf_label);

        *item = (struct qf_label){ QF_STR("instance"),
                                   qf_str_from(qf_arena_printf(arena, "host-%07zu", i)) };
        result.series[i] = (struct qf_labels){ item, 1 };
    }
    for (size_t i = 0; i < rows; i++) {
        ts[i] = (int64_t)(i / series_count) * 15000;
        series[i] = (uint32_t)(i % series_count);
        values[i] = qf_prng_unit(&prng);
    }
    result.rows =
        (struct pq_rows){ .count = rows, .ts = ts, .series = series, .columns = { values } };
    for (int round = 0; round < rounds; round++) {
        struct qf_strbuf buf = QF_STRBUF_INIT;
        struct pq_leaf_reader *reader;
        struct pq_rows batch = { .count = 1 };
        double start = now();

        if (sg_artifact_write_memory(&result, &buf, NULL, &err))
            die(&err);
        write = QF_MIN(write, now() - start);
        start = now();
        reader = sg_artifact_open_memory(qf_strbuf_view(&buf), "bench", NULL, &err);
        if (!reader)
            die(&err);
        while (batch.count)
            if (reader->next(reader, &batch, &err))
                die(&err);
        reader->close(reader);
        read = QF_MIN(read, now() - start);
        size = buf.len;
        qf_strbuf_done(&buf);
    }
    printf("artifact of %zu rows, %zu bytes: write %.0f us (%.1f M rows/s), read %.0f us (%.1f M "
           "rows/s)\n",
           rows, size, write * 1e6, (double)rows / write / 1e6, read * 1e6,
           (double)rows / read / 1e6);
    free(ts);
    free(series);
    free(values);
    (void)qf_arena_free(arena);
}

/* One kind of data in both versions of the format: bytes, and processor time to write, to read with
 * the file opened each time, and to read again what is kept in memory. */
struct kind {
    const char *name;
    double (*next)(struct qf_prng *prng, double before);
    unsigned jitter_ms;
};

static double next_counter(struct qf_prng *prng, double before)
{
    return before + (double)qf_prng_below(prng, 200);
}

static double next_slow_counter(struct qf_prng *prng, double before)
{
    return before + (qf_prng_chance(prng, 0.05) ? 1 : 0);
}

static double next_seconds(struct qf_prng *prng, double before)
{
    return round((before + qf_prng_unit(prng) * 15) * 1e3) / 1e3;
}

static double next_bytes(struct qf_prng *prng, double before)
{
    (void)before;
    return floor(qf_prng_unit(prng) * 4e9 / 4096) * 4096;
}

static double next_percent(struct qf_prng *prng, double before)
{
    double next = before + qf_prng_unit(prng) * 4 - 2;

    return round((next < 0 || next > 100 ? 50 : next) * 100) / 100;
}

static double next_noise(struct qf_prng *prng, double before)
{
    (void)before;
    return qf_prng_unit(prng) * 100;
}

static struct data make_kind(const struct kind *kind, struct qf_arena *arena)
{
    struct data d = { .series = 2000 };
    struct qf_prng prng = { 7 };
    size_t steps = (size_t)(2 * HOUR / 15000);

    d.labels = qf_xcalloc(d.series, sizeof(*d.labels));
    d.ts = qf_xcalloc(d.series, sizeof(*d.ts));
    d.values = qf_xcalloc(d.series, sizeof(*d.values));
    d.counts = qf_xcalloc(d.series, sizeof(*d.counts));
    for (size_t i = 0; i < d.series; i++) {
        struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, 2);
        int64_t phase = (int64_t)qf_prng_below(&prng, 15000);
        double value = floor(qf_prng_unit(&prng) * 1e6);

        items[0] = (struct qf_label){ QF_STR("__name__"), QF_STR("m") };
        items[1] = (struct qf_label){ QF_STR("instance"),
                                      qf_str_from(qf_arena_printf(arena, "host-%05zu", i)) };
        d.labels[i] = (struct qf_labels){ items, 2 };
        d.ts[i] = qf_xcalloc(steps, sizeof(int64_t));
        d.values[i] = qf_xcalloc(steps, sizeof(double));
        for (size_t k = 0; k < steps; k++) {
            d.ts[i][k] = 1767225600000 + (int64_t)k * 15000 + phase +
                         (int64_t)qf_prng_below(&prng, kind->jitter_ms + 1);
            d.values[i][k] = value = kind->next(&prng, value);
        }
        d.counts[i] = steps;
        d.samples += steps;
    }
    return d;
}

/* Nanoseconds a sample, the file opened once and its parts kept, read before. */
static double bench_hot(const char *path, const struct pq_select *select, size_t samples)
{
    struct sg_hot *hot = sg_hot_new((uint64_t)1 << 30);
    struct qf_err err = { 0 };
    struct sg_reader *reader = sg_reader_open(path, &err);
    struct pq_series series;
    double best = 1e9;

    if (!reader)
        die(&err);
    sg_hot_join(hot, reader);
    for (int round = 0; round < 6; round++) {
        double start = now();
        struct pq_source *source = sg_source_new(&reader, 1, select, NULL, 0);
        bool more = true;

        while (more)
            if (source->next(source, &series, &more, &err))
                die(&err);
        source->close(source);
        best = QF_MIN(best, now() - start);
    }
    (void)sg_reader_free(reader);
    (void)sg_hot_free(hot);
    return best / (double)samples * 1e9;
}

static void bench_kind(const struct kind *kind, const char *path)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct data d = make_kind(kind, arena);
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct sg_source_stats stats;
    struct stat status;

    printf("%-28s %5.2f", kind->name, prometheus_bits(&d) / 8 / (double)d.samples);
    for (version = 1; version <= SG_SCHEMA_VERSION; version++) {
        double writing = 1e9, reading = 1e9;

        for (int round = 0; round < 3; round++) {
            double start = now();

            write_segment(&d, path);
            writing = QF_MIN(writing, now() - start);
        }
        for (int round = 0; round < 5; round++) {
            double start = now();

            if (scan(path, &all, &stats) != d.samples)
                abort();
            reading = QF_MIN(reading, now() - start);
        }
        (void)stat(path, &status);
        printf(" | %5.2f %6.1f %5.2f %5.2f", (double)status.st_size / (double)d.samples,
               writing / (double)d.samples * 1e9, reading / (double)d.samples * 1e9,
               bench_hot(path, &all, d.samples));
    }
    printf("\n");
    version = 0;
    for (size_t i = 0; i < d.series; i++) {
        free(d.ts[i]);
        free(d.values[i]);
    }
    free(d.labels);
    free(d.ts);
    free(d.values);
    free(d.counts);
    (void)qf_arena_free(arena);
}

static void bench_kinds(const char *path)
{
    static const struct kind kinds[] = {
        { "counter", next_counter, 0 },
        { "counter, scrapes scattered", next_counter, 5 },
        { "counter that hardly moves", next_slow_counter, 0 },
        { "seconds, three decimals", next_seconds, 0 },
        { "gauge of whole pages", next_bytes, 0 },
        { "gauge of percents", next_percent, 0 },
        { "gauge of noise, all bits", next_noise, 0 },
    };

    printf(
        "2,000 series of 480 samples; bytes a sample (Prometheus's chunks; version 1; version 2),\n"
        "and nanoseconds a sample to write, to read with the file opened, to read what is hot\n");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        bench_kind(&kinds[i], path);
}

static int scan_again(const char *path, int rounds)
{
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct sg_source_stats stats;
    double start = now();
    size_t samples = 0;

    for (int i = 0; i < rounds; i++)
        samples += scan(path, &all, &stats);
    printf("%.2f ns a sample\n", (now() - start) / (double)samples * 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    char path[256];

    if (argc > 2 && strcmp(argv[1], "--scan") == 0)
        return scan_again(argv[2], argc > 3 ? (int)strtol(argv[3], NULL, 10) : 10);
    (void)snprintf(path, sizeof(path), "%s/bench-%d.parquet", argc > 1 ? argv[1] : "/tmp",
                   (int)getpid());
    bench_kinds(path);
    bench_mixed(path);
    bench_noisy(path);
    bench_select(path);
    bench_small(path);
    bench_merge(path);
    (void)unlink(path);
    bench_artifact(5, 4, 200);
    bench_artifact(200, 240, 20);
    bench_artifact(5000, 600, 3);
    bench_artifact(200000, 2, 5);
    return 0;
}
