#include "ingest/core/remote_write.h"

#include <math.h>

#include "tests/lib/test.h"
#include "tests/unit/ingest/core/build.h"

static const struct in_check_limits limits = { 30, 100, 1000, 0, 1000000 };

static struct qf_arena *arena;
static struct in_request request;
static struct qf_err err;

/* Decode and check @body, which is emptied. The request stays until drop(). */
static qf_rc take(enum in_remote_write version, struct qf_strbuf *body)
{
    static struct qf_strbuf kept;
    qf_rc rc;

    qf_strbuf_done(&kept);
    kept = *body;
    *body = (struct qf_strbuf)QF_STRBUF_INIT;
    qf_arena_freep(&arena);
    arena = qf_arena_new(1 << 20);
    err = (struct qf_err){ 0 };
    rc = in_remote_write_decode(version, qf_strbuf_view(&kept), arena, &request, &err);
    if (rc == QF_OK)
        in_request_check(&request, &limits);
    if (rc)
        CHECK(err.msg[0]);
    return rc;
}

static struct qf_str label(const struct in_series *series, const char *name)
{
    return qf_labels_get(in_series_labels(series), qf_str_from(name));
}

/* --- version 1.0 --- */

TEST(a_write_request_has_series_samples_and_metadata)
{
    struct qf_strbuf body = QF_STRBUF_INIT, part = QF_STRBUF_INIT;

    put_label(&part, "__name__", "up");
    put_label(&part, "job", "a");
    put_sample(&part, 1, 1000);
    put_sample(&part, 0, 2000);
    put_number(&part, 99, 7); /* a field of a later version */
    put_message(&body, 1, &part);
    put_number(&part, 1, 2);
    put_text(&part, 2, "up");
    put_text(&part, 4, "Whether it is up.");
    put_text(&part, 5, "");
    put_message(&body, 3, &part);
    CHECK_EQ(take(IN_REMOTE_WRITE_1, &body), QF_OK);
    CHECK(request.series_count == 1 && request.accepted.samples == 2 && !request.first[0]);
    CHECK(qf_str_is(label(&request.series[0], "job"), "a"));
    CHECK(request.series[0].samples[1].ts == 2000 && request.series[0].samples[1].value == 0);
    CHECK(request.metadata_count == 1 && request.metadata[0].type == QF_METRIC_GAUGE);
    CHECK(qf_str_is(request.metadata[0].help, "Whether it is up."));
    qf_strbuf_done(&part);
}

TEST(exemplars_keep_labels_value_and_time)
{
    struct qf_strbuf body = QF_STRBUF_INIT, part = QF_STRBUF_INIT, exemplar = QF_STRBUF_INIT;

    put_label(&part, "__name__", "a");
    put_label(&exemplar, "trace_id", "xyz");
    put_double(&exemplar, 2, 1.5);
    put_number(&exemplar, 3, 12);
    put_message(&part, 3, &exemplar);
    put_message(&body, 1, &part);
    CHECK_EQ(take(IN_REMOTE_WRITE_1, &body), QF_OK);
    CHECK(request.accepted.exemplars == 1 && request.series[0].exemplar_count == 1);
    CHECK(request.series[0].exemplars[0].value == 1.5 && request.series[0].exemplars[0].ts == 12);
    CHECK(qf_str_is(request.series[0].exemplars[0].labels[0].value, "xyz"));
    qf_strbuf_done(&part);
    qf_strbuf_done(&exemplar);
}

TEST(stale_markers_keep_their_bits)
{
    static const uint64_t stale = UINT64_C(0x7ff0000000000002);
    struct qf_strbuf body = QF_STRBUF_INIT, part = QF_STRBUF_INIT, histogram = QF_STRBUF_INIT;
    double marker;

    memcpy(&marker, &stale, sizeof(marker));
    put_label(&part, "__name__", "a");
    put_sample(&part, marker, 1);
    put_double(&histogram, 3, marker);
    put_number(&histogram, 15, 2);
    put_message(&part, 4, &histogram);
    put_message(&body, 1, &part);
    CHECK_EQ(take(IN_REMOTE_WRITE_1, &body), QF_OK);
    CHECK(request.accepted.samples == 2 && request.series[0].samples[1].ts == 2);
    for (size_t i = 0; i < 2; i++)
        CHECK(!request.series[0].samples[i].histogram &&
              memcmp(&request.series[0].samples[i].value, &stale, sizeof(stale)) == 0);
    qf_strbuf_done(&part);
    qf_strbuf_done(&histogram);
}

/* --- histograms --- */

static void put_span(struct qf_strbuf *histogram, uint32_t field, int32_t offset, uint32_t length)
{
    struct qf_strbuf span = QF_STRBUF_INIT;

    put_number(&span, 1, qf_zigzag(offset));
    put_number(&span, 2, length);
    put_message(histogram, field, &span);
    qf_strbuf_done(&span);
}

/* 3 in the zero bucket, 1, 3, 2 above it, 4 below. */
static void put_integer_histogram(struct qf_strbuf *histogram, uint64_t count)
{
    struct qf_strbuf packed = QF_STRBUF_INIT;

    put_number(histogram, 1, count);
    put_double(histogram, 3, 18.5);
    put_number(histogram, 4, qf_zigzag(-2));
    put_double(histogram, 5, 0.001);
    put_number(histogram, 6, 3);
    put_span(histogram, 8, 0, 1);
    put_number(histogram, 9, qf_zigzag(4)); /* not packed */
    put_span(histogram, 11, -1, 2);
    put_span(histogram, 11, 3, 1);
    put_varint(&packed, qf_zigzag(1));
    put_varint(&packed, qf_zigzag(2));
    put_varint(&packed, qf_zigzag(-1));
    put_message(histogram, 12, &packed);
    put_number(histogram, 14, 3);
    put_number(histogram, 15, 5000);
    qf_strbuf_done(&packed);
}

static void put_histogram_series(struct qf_strbuf *body, struct qf_strbuf *histogram)
{
    struct qf_strbuf part = QF_STRBUF_INIT;

    put_label(&part, "__name__", "h");
    put_message(&part, 4, histogram);
    put_message(body, 1, &part);
    qf_strbuf_done(&part);
}

TEST(integer_histograms_become_absolute_counts)
{
    struct qf_strbuf body = QF_STRBUF_INIT, histogram = QF_STRBUF_INIT;
    const struct pq_histogram *h;

    put_integer_histogram(&histogram, 13);
    put_histogram_series(&body, &histogram);
    CHECK_EQ(take(IN_REMOTE_WRITE_1, &body), QF_OK);
    CHECK(request.accepted.histograms == 1 && request.series[0].samples[0].ts == 5000);
    h = request.series[0].samples[0].histogram;
    CHECK(h->schema == -2 && h->count == 13 && h->sum == 18.5 && h->zero_count == 3);
    CHECK(h->reset_hint == PQ_RESET_GAUGE && h->zero_threshold == 0.001);
    CHECK(h->positive_span_count == 2 && h->positive_spans[0].offset == -1 &&
          h->positive_spans[1].offset == 3);
    CHECK(h->positive_bucket_count == 3 && h->positive_buckets[0] == 1 &&
          h->positive_buckets[1] == 3 && h->positive_buckets[2] == 2);
    CHECK(h->negative_bucket_count == 1 && h->negative_buckets[0] == 4);
    qf_strbuf_done(&histogram);
}

TEST(float_histograms_with_custom_bounds_are_kept)
{
    struct qf_strbuf body = QF_STRBUF_INIT, histogram = QF_STRBUF_INIT, packed = QF_STRBUF_INIT;
    const struct pq_histogram *h;

    put_double(&histogram, 2, 2.5);
    put_number(&histogram, 4, qf_zigzag(PQ_SCHEMA_CUSTOM));
    put_span(&histogram, 11, 0, 2);
    put_fixed64(&packed, 1.5);
    put_fixed64(&packed, 1);
    put_message(&histogram, 13, &packed);
    put_fixed64(&packed, 0.5);
    put_message(&histogram, 16, &packed);
    put_number(&histogram, 15, 1);
    put_histogram_series(&body, &histogram);
    CHECK_EQ(take(IN_REMOTE_WRITE_1, &body), QF_OK);
    CHECK(request.accepted.histograms == 1);
    h = request.series[0].samples[0].histogram;
    CHECK(h->custom_value_count == 1 && h->custom_values[0] == 0.5 && h->count == 2.5);
    CHECK(h->positive_bucket_count == 2 && h->positive_buckets[0] == 1.5);
    qf_strbuf_done(&histogram);
    qf_strbuf_done(&packed);
}

TEST(a_histogram_that_does_not_add_up_is_refused_alone)
{
    struct qf_strbuf body = QF_STRBUF_INIT, histogram = QF_STRBUF_INIT, part = QF_STRBUF_INIT;

    put_integer_histogram(&histogram, 14);
    put_label(&part, "__name__", "h");
    put_message(&part, 4, &histogram);
    put_sample(&part, 1, 10);
    put_message(&body, 1, &part);
    CHECK_EQ(take(IN_REMOTE_WRITE_1, &body), QF_OK);
    CHECK(request.refused.histograms == 1 && request.accepted.samples == 1);
    CHECK_STR(request.first, "a histogram's buckets do not add up to its count (time 5000): series "
                             "{__name__=\"h\"}");
    qf_strbuf_done(&part);
    qf_strbuf_done(&histogram);
}

TEST(bucket_counts_that_overflow_or_go_below_zero_are_refused)
{
    static const int64_t deltas[] = { -1, INT64_MAX, INT64_MIN };

    for (size_t i = 0; i < QF_COUNT_OF(deltas); i++) {
        struct qf_strbuf body = QF_STRBUF_INIT, histogram = QF_STRBUF_INIT;

        put_number(&histogram, 1, 1);
        put_span(&histogram, 11, 0, 3);
        put_number(&histogram, 12, qf_zigzag(deltas[i]));
        put_number(&histogram, 12, qf_zigzag(deltas[i]));
        put_number(&histogram, 12, qf_zigzag(1));
        put_histogram_series(&body, &histogram);
        CHECK_EQ(take(IN_REMOTE_WRITE_1, &body), QF_OK);
        CHECK(request.refused.histograms == 1 && request.series_count == 0);
        qf_strbuf_done(&histogram);
    }
}

/* --- version 2.0 --- */

static void put_references(struct qf_strbuf *series, const uint32_t *refs, size_t count)
{
    struct qf_strbuf packed = QF_STRBUF_INIT;

    for (size_t i = 0; i < count; i++)
        put_varint(&packed, refs[i]);
    put_message(series, 1, &packed);
    qf_strbuf_done(&packed);
}

static void put_symbols(struct qf_strbuf *body)
{
    static const char *const symbols[] = { "", "__name__", "up", "job", "a", "Is it up?", "s" };

    for (size_t i = 0; i < QF_COUNT_OF(symbols); i++)
        put_text(body, 4, symbols[i]);
}

TEST(symbols_are_looked_up_wherever_they_stand)
{
    struct qf_strbuf body = QF_STRBUF_INIT, part = QF_STRBUF_INIT, inner = QF_STRBUF_INIT;

    put_references(&part, (const uint32_t[]){ 1, 2, 3, 4 }, 4);
    put_double(&inner, 1, 4.5);
    put_number(&inner, 2, 9);
    put_number(&inner, 3, 5); /* start */
    put_message(&part, 2, &inner);
    put_sample(&part, 5, 10);
    put_number(&inner, 1, 2);
    put_number(&inner, 3, 5);
    put_number(&inner, 4, 6);
    put_message(&part, 5, &inner);
    put_number(&part, 6, 7); /* created */
    put_message(&body, 5, &part);
    put_symbols(&body);
    CHECK_EQ(take(IN_REMOTE_WRITE_2, &body), QF_OK);
    CHECK(request.series_count == 1 && request.accepted.samples == 2);
    CHECK(qf_str_is(label(&request.series[0], "__name__"), "up"));
    CHECK(request.series[0].samples[0].start_ts == 5 && request.series[0].samples[1].start_ts == 7);
    CHECK(request.metadata_count == 1 && qf_str_is(request.metadata[0].help, "Is it up?") &&
          qf_str_is(request.metadata[0].unit, "s") && qf_str_is(request.metadata[0].name, "up"));
    qf_strbuf_done(&part);
    qf_strbuf_done(&inner);
}

TEST(references_to_no_symbol_cost_their_series_alone)
{
    struct qf_strbuf body = QF_STRBUF_INIT, part = QF_STRBUF_INIT;

    put_symbols(&body);
    put_references(&part, (const uint32_t[]){ 1, 2, 3, 7 }, 4);
    put_sample(&part, 1, 1);
    put_message(&body, 5, &part);
    put_references(&part, (const uint32_t[]){ 1, 2, 3 }, 3);
    put_sample(&part, 1, 1);
    put_message(&body, 5, &part);
    put_references(&part, (const uint32_t[]){ 1, 2 }, 2);
    put_sample(&part, 1, 1);
    put_message(&body, 5, &part);
    CHECK_EQ(take(IN_REMOTE_WRITE_2, &body), QF_OK);
    CHECK(request.refused.series == 2 && request.refused.samples == 2);
    CHECK(request.accepted.series == 1 && request.accepted.samples == 1);
    qf_strbuf_done(&part);
}

/* --- what is no request --- */

TEST(bytes_that_are_no_message_are_refused_whole)
{
    static const struct qf_str bad[] = {
        QF_STR_INIT("\x0a\x05"
                    "abc"),                      /* ends in the middle */
        QF_STR_INIT("\x08\x01"),                 /* series as a number */
        QF_STR_INIT("\x0a\x02\x08\x01"),         /* labels as a number */
        QF_STR_INIT("\x0a\x04\x12\x02\x08\x01"), /* a value as a number */
        QF_STR_INIT("\x0a\x03\x12\x01\x08"),     /* a sample that ends in the middle */
        QF_STR_INIT("\x1a\x02\x12\x05"),         /* metadata that end in the middle */
    };

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        struct qf_strbuf body = QF_STRBUF_INIT;

        qf_strbuf_str(&body, bad[i]);
        CHECK_MSG(take(IN_REMOTE_WRITE_1, &body) == QF_EPARSE, "%zu was taken", i);
    }
}

TEST(an_empty_body_is_an_empty_request)
{
    struct qf_strbuf body = QF_STRBUF_INIT;

    CHECK_EQ(take(IN_REMOTE_WRITE_1, &body), QF_OK);
    CHECK(request.series_count == 0 && !request.first[0]);
    CHECK_EQ(take(IN_REMOTE_WRITE_2, &body), QF_OK);
    CHECK(request.series_count == 0 && !request.first[0]);
}

TEST(memory_is_bounded_by_the_arena)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *small = qf_arena_new(16 << 10);
    struct qf_strbuf body = QF_STRBUF_INIT;
    struct in_request big;

    for (int i = 0; i < 10000; i++)
        put_text(&body, 1, "");
    CHECK_EQ(in_remote_write_decode(IN_REMOTE_WRITE_1, qf_strbuf_view(&body), small, &big, &err),
             QF_ELIMIT);
    qf_strbuf_done(&body);
}
