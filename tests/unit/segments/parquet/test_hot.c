/* test_hot.c - what is kept of segments: bounded, the same data, and not lost to one long scan. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "segments/parquet/hot.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"
#include "tests/lib/test.h"

#define METRICS 12
#define SERIES 40
#define SAMPLES 480

static char dir[64], path[96];

/* One row group a metric, and two kinds of values. */
static void write_segment(void)
{
    struct sg_writer_options to = { .path = path, .tenant = QF_STR("t"), .shard_count = 1 };
    struct qf_err err = { 0 };
    struct sg_segment_name name;
    struct sg_writer *writer;

    (void)snprintf(dir, sizeof(dir), "/tmp/promfabric-test-XXXXXX");
    CHECK(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/a.parquet", dir);
    writer = sg_writer_new(&to, &err);
    CHECK_MSG(writer, "%s", err.msg);
    for (int i = 0; i < METRICS * SERIES; i++) {
        char metric[16], host[16];
        struct qf_label items[] = { { QF_STR("__name__"), { metric, 4 } },
                                    { QF_STR("host"), { host, 4 } } };
        int64_t ts[SAMPLES];
        double values[SAMPLES];

        (void)snprintf(metric, sizeof(metric), "m%03d", i / SERIES);
        (void)snprintf(host, sizeof(host), "h%03d", i % SERIES);
        for (int k = 0; k < SAMPLES; k++) {
            ts[k] = 1700000000000 + k * 15000;
            values[k] = i + k / (i % 2 ? 3.0 : 4.0);
        }
        CHECK_OK(sg_writer_add(writer, (struct qf_labels){ items, 2 }, ts, values, SAMPLES, &err),
                 &err);
    }
    CHECK_OK(sg_writer_finish(writer, &name, &err), &err);
    (void)sg_writer_free(writer);
}

static void remove_segment(void)
{
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(dir), 0);
}

/* The sum of one metric's values, or of all. */
static double sum(struct sg_reader *reader, const char *metric)
{
    struct pq_matcher name = { PQ_MATCH_EQUAL, QF_STR("__name__"),
                               qf_str_from(metric ? metric : ""), NULL };
    struct pq_select select = { &name, metric ? 1 : 0, INT64_MIN, INT64_MAX };
    struct pq_source *source = sg_source_new(&reader, 1, &select, NULL, 0);
    struct qf_err err = { 0 };
    struct pq_series series;
    bool more = true;
    double total = 0;

    for (;;) {
        CHECK_OK(source->next(source, &series, &more, &err), &err);
        if (!more)
            break;
        for (size_t i = 0; i < series.count; i++)
            total += series.values[i];
    }
    source->close(source);
    return total;
}

TEST(what_is_kept_is_not_read_again_and_is_the_same)
{
    struct sg_hot *hot = sg_hot_new(64 << 20);
    struct sg_reader *reader;
    struct sg_hot_stats first, second;
    double want;

    write_segment();
    reader = sg_reader_open(path, NULL);
    want = sum(reader, NULL);
    (void)sg_reader_free(reader);
    reader = sg_reader_open(path, NULL);
    sg_hot_join(hot, reader);
    CHECK_BITS(sum(reader, NULL), want);
    first = sg_hot_stats(hot);
    CHECK_EQ(first.hits, 0);
    CHECK(first.parts > 0);
    /* About as many bytes as the samples take, not 16 each. */
    CHECK_MSG(first.bytes < (uint64_t)METRICS * SERIES * SAMPLES * 8, "%llu",
              (unsigned long long)first.bytes);
    CHECK_EQ(truncate(path, 1000), 0); /* the file is not needed for what is kept */
    CHECK_BITS(sum(reader, NULL), want);
    second = sg_hot_stats(hot);
    CHECK_EQ(second.misses, first.misses);
    CHECK_EQ(second.bytes, first.bytes);
    (void)sg_reader_free(reader);
    CHECK_EQ(sg_hot_stats(hot).bytes, 0);
    (void)sg_hot_free(hot);
    remove_segment();
}

TEST(memory_stays_within_its_bound_whatever_is_read)
{
    uint64_t limits[] = { 0, 1000, 100000, 300000, 1000000 };

    write_segment();
    for (size_t i = 0; i < QF_COUNT_OF(limits); i++) {
        struct sg_hot *hot = sg_hot_new(limits[i]);
        struct sg_reader *reader = sg_reader_open(path, NULL);
        double want = sum(reader, NULL);
        char metric[16];

        sg_hot_join(hot, reader);
        for (int round = 0; round < 100; round++) {
            (void)snprintf(metric, sizeof(metric), "m%03d", round * 7 % METRICS);
            (void)sum(reader, metric);
            CHECK(sg_hot_stats(hot).bytes <= limits[i]);
        }
        CHECK_BITS(sum(reader, NULL), want);
        CHECK(sg_hot_stats(hot).bytes <= limits[i]);
        (void)sg_reader_free(reader);
        (void)sg_hot_free(hot);
    }
    remove_segment();
}

TEST(one_scan_over_everything_does_not_push_out_what_is_asked_for_again)
{
    struct sg_reader *reader;
    struct sg_hot *hot;
    struct sg_hot_stats before;
    uint64_t all;

    write_segment();
    hot = sg_hot_new(64 << 20);
    reader = sg_reader_open(path, NULL);
    sg_hot_join(hot, reader);
    (void)sum(reader, NULL);
    all = sg_hot_stats(hot).bytes;
    (void)sg_reader_free(reader);
    (void)sg_hot_free(hot);

    hot = sg_hot_new(all * 2 / 3);
    reader = sg_reader_open(path, NULL);
    sg_hot_join(hot, reader);
    for (int i = 0; i < 3; i++) {
        (void)sum(reader, "m000");
        (void)sum(reader, "m001");
    }
    (void)sum(reader, NULL);
    CHECK(sg_hot_stats(hot).evicted > 0);
    before = sg_hot_stats(hot);
    (void)sum(reader, "m000");
    (void)sum(reader, "m001");
    CHECK_EQ(sg_hot_stats(hot).misses, before.misses);
    (void)sg_reader_free(reader);
    (void)sg_hot_free(hot);
    remove_segment();
}
