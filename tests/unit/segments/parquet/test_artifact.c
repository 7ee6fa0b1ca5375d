/* test_artifact.c - a leaf result read back from an artifact is the one that was written. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "promql/partial/partial.h"
#include "segments/parquet/artifact.h"
#include "tests/lib/test.h"

/* A random result; everything lives in the arena. */
static struct pq_leaf_result make_result(struct qf_arena *arena, const struct pq_leaf_kind *kind,
                                         size_t series_count, size_t steps, bool histograms,
                                         uint64_t seed)
{
    struct qf_prng prng = { seed };
    size_t capacity = series_count * steps, rows = 0;
    int64_t *ts = QF_ARENA_ARRAY(arena, int64_t, capacity + 1);
    uint32_t *series = QF_ARENA_ARRAY(arena, uint32_t, capacity + 1);
    double *columns[PQ_LEAF_COLUMNS_MAX];
    const struct pq_histogram **hist = QF_ARENA_ARRAY(arena, const struct pq_histogram *, capacity);
    struct pq_leaf_result result = { .kind = kind, .series_count = series_count };

    result.series = QF_ARENA_ARRAY(arena, struct qf_labels, series_count + 1);
    for (size_t i = 0; i < series_count; i++) {
        struct qf_label *label = QF_ARENA_ARRAY(arena, struct qf_label, 1);

        label->name = QF_STR("instance");
        label->value = qf_str_from(qf_arena_printf(arena, "host-%06zu", i));
        result.series[i] = (struct qf_labels){ label, 1 };
    }
    for (size_t c = 0; c < PQ_LEAF_COLUMNS_MAX; c++)
        columns[c] = QF_ARENA_ARRAY(arena, double, capacity + 1);
    for (size_t step = 0; step < steps; step++) {
        for (size_t i = 0; i < series_count; i++) {
            if (qf_prng_chance(&prng, 0.1))
                continue;
            ts[rows] = 1700000000000 + (int64_t)step * 15000;
            series[rows] = (uint32_t)i;
            for (size_t c = 0; c < PQ_LEAF_COLUMNS_MAX; c++)
                columns[c][rows] = qf_double_from_bits(qf_prng_next(&prng));
            if (histograms && qf_prng_chance(&prng, 0.5)) {
                struct pq_histogram *h = QF_ARENA_NEW(arena, struct pq_histogram);
                struct pq_span *span = QF_ARENA_NEW(arena, struct pq_span);
                double *bucket = QF_ARENA_NEW(arena, double);

                *span = (struct pq_span){ -3, 1 };
                *bucket = 7;
                *h = (struct pq_histogram){ .schema = 2,
                                            .count = (double)rows,
                                            .sum = -0.5,
                                            .positive_spans = span,
                                            .positive_span_count = 1,
                                            .positive_buckets = bucket,
                                            .positive_bucket_count = 1 };
                hist[rows] = h;
            }
            rows++;
        }
    }
    result.rows = (struct pq_rows){ .count = rows, .ts = ts, .series = series };
    for (size_t c = 0; c < kind->column_count; c++)
        result.rows.columns[c] = columns[c];
    if (histograms)
        result.rows.histograms = hist;
    result.samples_read = seed * 3 + 1;
    result.points = seed * 5 + 2;
    result.notes.arena = arena;
    pq_note_add(&result.notes, PQ_NOTE_INFO, (struct pq_pos){ 3, 9 }, "seed %llu",
                (unsigned long long)seed);
    result.notes.omitted = 2;
    return result;
}

static void check_histogram(const struct pq_histogram *got, const struct pq_histogram *want)
{
    CHECK(!got == !want);
    if (!got)
        return;
    CHECK_EQ(got->schema, want->schema);
    CHECK_BITS(got->count, want->count);
    CHECK_BITS(got->sum, want->sum);
    CHECK_EQ(got->positive_span_count, want->positive_span_count);
    CHECK_EQ(got->positive_spans[0].offset, want->positive_spans[0].offset);
    CHECK_BITS(got->positive_buckets[0], want->positive_buckets[0]);
}

/* QF_OK and everything equal, or an error; anything else fails the test. */
static qf_rc compare(struct pq_leaf_reader *reader, const struct pq_leaf_result *want,
                     struct qf_err *err)
{
    size_t at = 0;

    CHECK(reader->kind == want->kind);
    CHECK_EQ(reader->samples_read, want->samples_read);
    CHECK_EQ(reader->points, want->points);
    CHECK_EQ(reader->series_count, want->series_count);
    for (size_t i = 0; i < want->series_count; i++)
        CHECK(qf_labels_eq(reader->series[i], want->series[i]));
    CHECK_EQ(reader->notes.count, want->notes.count);
    CHECK_EQ(reader->notes.omitted, want->notes.omitted);
    CHECK(qf_str_eq(reader->notes.items[0].text, want->notes.items[0].text));
    CHECK_EQ(reader->notes.items[0].pos.end, want->notes.items[0].pos.end);
    for (;;) {
        struct pq_rows rows;
        qf_rc rc = reader->next(reader, &rows, err);

        if (rc != QF_OK)
            return rc;
        if (rows.count == 0)
            break;
        CHECK(at + rows.count <= want->rows.count);
        CHECK(memcmp(rows.ts, want->rows.ts + at, rows.count * sizeof(*rows.ts)) == 0);
        CHECK(memcmp(rows.series, want->rows.series + at, rows.count * sizeof(*rows.series)) == 0);
        for (size_t c = 0; c < want->kind->column_count; c++)
            CHECK(memcmp(rows.columns[c], want->rows.columns[c] + at,
                         rows.count * sizeof(double)) == 0);
        CHECK(!rows.histograms == !want->rows.histograms);
        for (size_t i = 0; rows.histograms && i < rows.count; i++)
            check_histogram(rows.histograms[i], want->rows.histograms[at + i]);
        at += rows.count;
    }
    CHECK_EQ(at, want->rows.count);
    return QF_OK;
}

static void check_round_trip(const struct pq_leaf_kind *kind, size_t series, size_t steps,
                             bool histograms, uint64_t seed)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct pq_leaf_result result = make_result(arena, kind, series, steps, histograms, seed);
    struct sg_artifact_info info;
    struct qf_err err = { 0 };
    struct pq_leaf_reader *reader;
    char checksum[38];

    CHECK_OK(sg_artifact_write_memory(&result, &buf, &info, &err), &err);
    CHECK_EQ(info.size_bytes, buf.len);
    CHECK_EQ(info.row_count, result.rows.count);
    sg_artifact_checksum(qf_strbuf_view(&buf), checksum);
    CHECK_STR(info.checksum, checksum);
    reader = sg_artifact_open_memory(qf_strbuf_view(&buf), "a.parquet", NULL, &err);
    CHECK_MSG(reader, "%s", err.msg);
    CHECK_OK(compare(reader, &result, &err), &err);
    reader->close(reader);
}

TEST(every_kind_of_leaf_survives_the_trip_bit_for_bit)
{
    check_round_trip(&pq_leaf_series, 17, 23, false, 1);
    check_round_trip(&pq_leaf_samples, 17, 23, false, 2);
    for (size_t agg = 0; agg < PQ_AGG__COUNT; agg++) {
        const struct pq_leaf_kind *kind = pq_aggregation_get((enum pq_agg)agg)->kind;

        if (kind) {
            check_round_trip(kind, 17, 23, false, agg + 3);
            check_round_trip(kind, 60, 40, false, agg + 3); /* more than are written plainly */
        }
    }
}

TEST(native_histograms_travel_beside_floats)
{
    check_round_trip(&pq_leaf_series, 5, 40, true, 9);
}

TEST(results_of_many_row_groups_come_back_whole)
{
    check_round_trip(pq_aggregation_avg.kind, 700, 220, false, 4);
}

TEST(an_empty_result_is_an_artifact_too)
{
    check_round_trip(pq_aggregation_sum.kind, 0, 0, false, 1);
    check_round_trip(pq_aggregation_sum.kind, 3, 0, false, 1);
}

TEST(equal_results_give_equal_bytes)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf a = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf b = QF_STRBUF_INIT;
    struct pq_leaf_result result = make_result(arena, pq_aggregation_sum.kind, 10, 10, false, 1);
    struct qf_err err = { 0 };

    CHECK_OK(sg_artifact_write_memory(&result, &a, NULL, &err), &err);
    CHECK_OK(sg_artifact_write_memory(&result, &b, NULL, &err), &err);
    CHECK(qf_str_eq(qf_strbuf_view(&a), qf_strbuf_view(&b)));
}

TEST(a_file_has_the_same_bytes_as_memory)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct pq_leaf_result result = make_result(arena, pq_aggregation_sum.kind, 10, 10, false, 1);
    struct sg_artifact_info in_memory, in_file;
    struct qf_err err = { 0 };
    struct pq_leaf_reader *reader;
    char path[] = "/tmp/promfabric-test-XXXXXX";
    atomic_bool canceled = true;

    CHECK(mkdtemp(path));
    char *name = qf_arena_printf(arena, "%s/a.parquet", path);
    CHECK_OK(sg_artifact_write_memory(&result, &buf, &in_memory, &err), &err);
    CHECK_OK(sg_artifact_write_file(&result, name, NULL, &in_file, &err), &err);
    CHECK_STR(in_file.checksum, in_memory.checksum);
    CHECK_EQ(sg_artifact_write_file(&result, name, NULL, NULL, &err), QF_EEXIST);
    CHECK_EQ(sg_artifact_write_file(&result, qf_arena_printf(arena, "%s/b", path), &canceled, NULL,
                                    &err),
             QF_ECANCELED); /* and nothing is left of it: the folder is empty in the end */
    err = (struct qf_err){ 0 };
    reader = sg_artifact_open_file(name, NULL, &err);
    CHECK_MSG(reader, "%s", err.msg);
    CHECK_OK(compare(reader, &result, &err), &err);
    reader->close(reader);
    CHECK_EQ(unlink(name), 0);
    CHECK(!sg_artifact_open_file(name, NULL, &err));
    CHECK_EQ(err.rc, QF_ENOTFOUND);
    CHECK_EQ(rmdir(path), 0);
}

/* Open and read all of it; the error, or QF_OK if it equals @want. */
static qf_rc try_read(struct qf_str bytes, const struct pq_leaf_result *want, struct qf_err *err)
{
    struct pq_leaf_reader *reader = sg_artifact_open_memory(bytes, "x.parquet", NULL, err);
    qf_rc rc;

    if (!reader)
        return err->rc;
    rc = compare(reader, want, err);
    reader->close(reader);
    return rc;
}

static void check_flips(bool histograms)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct pq_leaf_result result = make_result(arena, pq_aggregation_sum.kind, 6, 6, histograms, 1);
    struct qf_err err = { 0 };

    CHECK_OK(sg_artifact_write_memory(&result, &buf, NULL, &err), &err);
    for (size_t i = 0; i < buf.len; i++) {
        char saved = buf.data[i];

        buf.data[i] = (char)(saved ^ (1 << (i % 8)));
        err = (struct qf_err){ 0 };
        CHECK_MSG(try_read(qf_strbuf_view(&buf), &result, &err) == QF_ECORRUPT, "byte %zu: %s", i,
                  err.msg);
        CHECK(strstr(err.msg, "x.parquet"));
        buf.data[i] = saved;
    }
}

/* Those that are written plainly, and those by Arrow. */
TEST(any_flipped_byte_of_an_artifact_is_a_clean_error)
{
    check_flips(false);
    check_flips(true);
}

static void check_cuts(bool histograms)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct pq_leaf_result result = make_result(arena, pq_aggregation_sum.kind, 6, 6, histograms, 1);
    struct qf_err err = { 0 };

    CHECK_OK(sg_artifact_write_memory(&result, &buf, NULL, &err), &err);
    for (size_t len = 0; len < buf.len; len++) {
        /* A copy of its own, so that ASan sees a read beyond the end. */
        QF_CLEANUP(qf_freep) char *copy = qf_xmalloc(len + !len);

        memcpy(copy, buf.data, len);
        err = (struct qf_err){ 0 };
        CHECK_EQ(try_read((struct qf_str){ copy, len }, &result, &err), QF_ECORRUPT);
    }
}

TEST(any_cut_artifact_is_a_clean_error)
{
    check_cuts(false);
    check_cuts(true);
}
