/* segment_fixture.c - write segments and, as text, what an independent reader must find in them.
 *
 * usage: segment_fixture DIR    writes two shards to DIR, and the rows of both to stdout:
 *                               metric, labels as JSON, timestamp, bits of the value in hex */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "segments/demo/demo.h"
#include "segments/parquet/segment_writer.h"

static void die(const struct qf_err *err)
{
    fprintf(stderr, "segment_fixture: %s\n", err->msg);
    exit(1);
}

static void print_rows(struct qf_labels labels, const int64_t *ts, const double *values,
                       size_t count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf json = QF_STRBUF_INIT;
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_str metric = qf_labels_get(labels, QF_STR(QF_METRIC_NAME)),
                  name = QF_STR(QF_METRIC_NAME);
    struct qf_labels rest;

    if (!qf_labels_drop(arena, labels, &name, 1, &rest))
        abort();
    qf_labels_json(&json, rest);
    for (size_t i = 0; i < count; i++)
        printf("%.*s\t%s\t%" PRId64 "\t%016" PRIx64 "\n", QF_STR_ARG(metric), qf_strbuf_cstr(&json),
               ts[i], qf_double_bits(values[i]));
}

/* Some values no demo would have: any bits, odd NaNs, stale markers, extremes of time. */
static void add_odd(struct seg_writer *writer, struct qf_err *err)
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
    if (seg_writer_add(writer, labels, ts, values, QF_COUNT_OF(ts), err))
        die(err);
    print_rows(labels, ts, values, QF_COUNT_OF(ts));
}

static void write_shard(const struct demo *demo, const char *dir, uint32_t shard, uint32_t shards)
{
    size_t max = demo_samples_max(demo);
    QF_CLEANUP(qf_freep) int64_t *ts = qf_xcalloc(max, sizeof(*ts));
    QF_CLEANUP(qf_freep) double *values = qf_xcalloc(max, sizeof(*values));
    struct qf_err err = { 0 };
    struct segment_name name;
    char path[512];
    struct seg_writer_options options = {
        .path = path, .tenant = QF_STR("default"), .shard = shard, .shard_count = shards
    };
    struct seg_writer *writer;

    (void)snprintf(path, sizeof(path), "%s/%u.parquet", dir, shard);
    writer = seg_writer_new(&options, &err);
    if (!writer)
        die(&err);
    struct qf_label odd = { QF_STR("Upper"), QF_STR("é\n\"quoted\"\\") };
    if (seg_shard_of((struct qf_labels){ &odd, 1 }, shards) == shard)
        add_odd(writer, &err);
    for (size_t i = 0; i < demo_series_count(demo); i++) {
        struct qf_labels labels = demo_labels(demo, i);
        size_t count = demo_samples(demo, i, ts, values);

        if (!count || seg_shard_of(labels, shards) != shard)
            continue;
        if (seg_writer_add(writer, labels, ts, values, count, &err))
            die(&err);
        print_rows(labels, ts, values, count);
    }
    if (seg_writer_finish(writer, &name, &err))
        die(&err);
    (void)seg_writer_free(writer);
}

int main(int argc, char **argv)
{
    struct demo_options options = {
        .seed = 3,
        .start = 1767225600000,
        .end = 1767225600000 + 3600000,
        .step = 15000,
        .instances = 10,
    };
    struct demo *demo = demo_new(&options);

    if (argc != 2) {
        fprintf(stderr, "usage: segment_fixture DIR\n");
        return 2;
    }
    write_shard(demo, argv[1], 0, 2);
    write_shard(demo, argv[1], 1, 2);
    (void)demo_free(demo);
    return 0;
}
