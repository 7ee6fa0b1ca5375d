/* segment_fixture.c - write segments and, as text, what an independent reader must find in them.
 *
 * usage: segment_fixture DIR    writes two shards and a file with start timestamps and native
 *                               histograms to DIR, and the rows of all to stdout: metric, labels as
 *                               JSON, timestamp, bits of the value in hex, start timestamp and
 *                               histogram in hex, or "null" where the file has no such column */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "segments/demo/demo.h"
#include "promql/histogram/codec.h"
#include "segments/parquet/segment_writer.h"

static void die(const struct qf_err *err)
{
    fprintf(stderr, "segment_fixture: %s\n", err->msg);
    exit(1);
}

static void print_hex(struct qf_str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        printf("%02x", (unsigned char)bytes.data[i]);
}

static void print_rows(struct qf_labels labels, const struct sg_samples *samples)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf json = QF_STRBUF_INIT;
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_str metric = qf_labels_get(labels, QF_STR(QF_METRIC_NAME)),
                  name = QF_STR(QF_METRIC_NAME);
    struct qf_labels rest;

    if (!qf_labels_drop(arena, labels, &name, 1, &rest))
        abort();
    qf_labels_json(&json, rest);
    for (size_t i = 0; i < samples->count; i++) {
        printf("%.*s\t%s\t%" PRId64 "\t%016" PRIx64 "\t", QF_STR_ARG(metric), qf_strbuf_cstr(&json),
               samples->ts[i], qf_double_bits(samples->values[i]));
        if (samples->start_ts) {
            printf("%" PRId64 "\t", samples->start_ts[i]);
            print_hex(samples->histograms[i]);
            printf("\n");
        } else {
            printf("null\tnull\n");
        }
    }
}

static void add(struct sg_writer *writer, struct qf_labels labels, const struct sg_samples *samples)
{
    struct qf_err err = { 0 };

    if (sg_writer_add_samples(writer, labels, samples, &err))
        die(&err);
    print_rows(labels, samples);
}

/* Every third sample is a histogram, every fourth knows when it started. */
static void write_extras(const char *dir)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    char path[512];
    struct sg_writer_options options = { .path = path,
                                         .tenant = QF_STR("default"),
                                         .shard_count = 1,
                                         .start_ts = true,
                                         .histograms = true };
    struct qf_label item = { QF_STR("__name__"), QF_STR("extras") };
    double values[300], counts[] = { 1, 2.5 };
    int64_t ts[300], start_ts[300];
    struct qf_str histograms[300];
    struct sg_samples samples = { ts, values, QF_COUNT_OF(ts), start_ts, histograms };
    struct pq_span span = { -3, 2 };
    struct pq_histogram histogram = { .count = 3.5,
                                      .sum = -1,
                                      .positive_spans = &span,
                                      .positive_span_count = 1,
                                      .positive_buckets = counts,
                                      .positive_bucket_count = 2 };
    struct sg_segment_name name;
    struct qf_err err = { 0 };
    struct sg_writer *writer;

    pq_histogram_encode(&bytes, &histogram);
    for (size_t i = 0; i < QF_COUNT_OF(ts); i++) {
        ts[i] = (int64_t)i * 15000;
        start_ts[i] = i % 4 ? 0 : ts[i] - 1234;
        values[i] = i % 3 ? (double)i / 7 : 0;
        histograms[i] = i % 3 ? QF_STR("") : qf_strbuf_view(&bytes);
    }
    (void)snprintf(path, sizeof(path), "%s/2.parquet", dir);
    writer = sg_writer_new(&options, &err);
    if (!writer)
        die(&err);
    add(writer, (struct qf_labels){ &item, 1 }, &samples);
    if (sg_writer_finish(writer, &name, &err))
        die(&err);
    (void)sg_writer_free(writer);
}

/* Some values no demo would have: any bits, odd NaNs, stale markers, extremes of time. */
static void add_odd(struct sg_writer *writer)
{
    struct qf_label items[] = { { QF_STR("Upper"), QF_STR("é\n\"quoted\"\\") },
                                { QF_STR("__name__"), QF_STR("odd") } };
    struct qf_labels labels = { items, 2 };
    struct qf_prng prng = { 99 };
    int64_t ts[500];
    double values[500];

    for (size_t i = 0; i < QF_COUNT_OF(ts); i++) {
        ts[i] = -1000000000000 + (int64_t)i * 7919 * 100003;
        values[i] = qf_double_from_bits(i == 7 ? QF_STALE_NAN_BITS : qf_prng_next(&prng));
    }
    add(writer, labels, &(struct sg_samples){ ts, values, QF_COUNT_OF(ts) });
}

static void write_shard(const struct sg_demo *demo, const char *dir, uint32_t shard,
                        uint32_t shards)
{
    size_t max = sg_demo_samples_max(demo);
    QF_CLEANUP(qf_freep) int64_t *ts = qf_xcalloc(max, sizeof(*ts));
    QF_CLEANUP(qf_freep) double *values = qf_xcalloc(max, sizeof(*values));
    struct qf_err err = { 0 };
    struct sg_segment_name name;
    char path[512];
    struct sg_writer_options options = {
        .path = path,
        .tenant = QF_STR("default"),
        .shard = shard,
        .shard_count = shards,
        .schema_version = shard == 0 ? 1 : SG_SCHEMA_VERSION,
    };
    struct sg_writer *writer;

    (void)snprintf(path, sizeof(path), "%s/%u.parquet", dir, shard);
    writer = sg_writer_new(&options, &err);
    if (!writer)
        die(&err);
    struct qf_label odd = { QF_STR("Upper"), QF_STR("é\n\"quoted\"\\") };
    if (sg_shard_of((struct qf_labels){ &odd, 1 }, shards) == shard)
        add_odd(writer);
    for (size_t i = 0; i < sg_demo_series_count(demo); i++) {
        struct qf_labels labels = sg_demo_labels(demo, i);
        size_t count = sg_demo_samples(demo, i, ts, values);

        if (!count || sg_shard_of(labels, shards) != shard)
            continue;
        add(writer, labels, &(struct sg_samples){ ts, values, count });
    }
    if (sg_writer_finish(writer, &name, &err))
        die(&err);
    (void)sg_writer_free(writer);
}

int main(int argc, char **argv)
{
    struct sg_demo_options options = {
        .seed = 3,
        .start = 1767225600000,
        .end = 1767225600000 + 3600000,
        .step = 15000,
        .instances = 10,
    };
    struct sg_demo *demo = sg_demo_new(&options);

    if (argc != 2) {
        fprintf(stderr, "usage: segment_fixture DIR\n");
        return 2;
    }
    write_shard(demo, argv[1], 0, 2);
    write_shard(demo, argv[1], 1, 2);
    write_extras(argv[1]);
    (void)sg_demo_free(demo);
    return 0;
}
