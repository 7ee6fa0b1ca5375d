#include "ingest/core/record.h"

#include <math.h>

#include "tests/lib/test.h"

static const struct qf_label one[] = { { QF_STR_INIT("__name__"), QF_STR_INIT("up") },
                                       { QF_STR_INIT("job"), QF_STR_INIT("a") } };
static const struct pq_span span = { 3, 2 };
static const double buckets[] = { 1, 2 };
static const struct pq_histogram histogram = { .schema = 2,
                                               .count = 3,
                                               .sum = 5,
                                               .positive_spans = &span,
                                               .positive_span_count = 1,
                                               .positive_buckets = buckets,
                                               .positive_bucket_count = 2 };
static const struct in_sample floats[] = { { .ts = 1000, .value = 1.5 },
                                           { .ts = 999, .value = -0.0 } };
static const struct in_sample far_apart[] = { { .ts = INT64_MAX, .value = INFINITY },
                                              { .ts = INT64_MIN, .start_ts = -7, .value = 2 } };
static const struct in_sample natives[] = { { .ts = 5, .histogram = &histogram },
                                            { .ts = 6, .value = 4 } };

static const struct in_record_series series[] = {
    { .number = 7, .fresh = true, .labels = { one, 2 }, .samples = floats, .sample_count = 2 },
    { .number = 3, .samples = far_apart, .sample_count = 2 },
    { .number = IN_SERIES_MAX - 1, .samples = natives, .sample_count = 2 },
    { .number = 0, .fresh = true, .labels = { one, 1 } },
};

static void put_example(struct qf_strbuf *buf)
{
    struct in_record record = {
        .tenant = QF_STR("team"),
        .time_ms = 1234567,
        .key = { .key = "0123456789abcde", .body = "fedcba987654321", .given = true },
        .accepted = { 1, 2, 3, 4 },
        .refused = { 5, 6, 7, 8 }
    };

    in_record_put_samples(buf, &record, series, QF_COUNT_OF(series));
}

static void check_same_sample(const struct in_sample *got, const struct in_sample *want)
{
    CHECK(got->ts == want->ts && got->start_ts == want->start_ts);
    CHECK(!got->histogram == !want->histogram);
    if (want->histogram)
        CHECK(got->histogram->positive_bucket_count == 2 &&
              got->histogram->positive_buckets[1] == 2 && got->histogram->sum == 5);
    else
        CHECK_BITS(got->value, want->value);
}

TEST(samples_come_back_as_they_were_written)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_record_cursor cursor;
    struct in_record_series got;
    struct in_record record;
    struct in_sample sample;

    put_example(&buf);
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_OK);
    CHECK(record.kind == IN_SAMPLES && qf_str_is(record.tenant, "team"));
    CHECK(record.time_ms == 1234567 && record.key.given && record.key.body[0] == 'f');
    CHECK(record.accepted.exemplars == 4 && record.refused.series == 5);
    CHECK(record.sample_count == 6 && record.min_ts == INT64_MIN && record.max_ts == INT64_MAX);
    cursor = in_record_series_of(&record);
    for (size_t i = 0; i < QF_COUNT_OF(series); i++) {
        CHECK(in_record_next_series(&cursor, arena, &got));
        CHECK(got.number == series[i].number && got.fresh == series[i].fresh);
        CHECK(!got.fresh || qf_labels_eq(got.labels, series[i].labels));
        for (size_t j = 0; j < series[i].sample_count; j++) {
            CHECK(in_record_next_sample(&cursor, arena, &sample));
            check_same_sample(&sample, &series[i].samples[j]);
        }
        CHECK(!in_record_next_sample(&cursor, arena, &sample));
    }
    CHECK(!in_record_next_series(&cursor, arena, &got) && !qf_arena_failed(arena));
    qf_strbuf_done(&buf);
}

TEST(samples_may_be_passed_over)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_record_cursor cursor;
    struct in_record_series got;
    struct in_record record;
    struct in_sample sample;

    put_example(&buf);
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_OK);
    cursor = in_record_series_of(&record);
    CHECK(in_record_next_series(&cursor, arena, &got) && got.number == 7);
    CHECK(in_record_next_series(&cursor, arena, &got) && got.number == 3);
    CHECK(in_record_next_series(&cursor, arena, &got));
    CHECK(in_record_next_sample(&cursor, arena, &sample));
    check_same_sample(&sample, &natives[0]);
    qf_strbuf_done(&buf);
}

TEST(a_sample_in_steady_state_takes_eleven_bytes)
{
    enum { COUNT = 1000 };
    static struct in_record_series many[COUNT];
    static struct in_sample samples[COUNT];
    struct in_record record = { .tenant = QF_STR("default"), .key.given = true };
    struct qf_strbuf buf = QF_STRBUF_INIT;

    for (uint32_t i = 0; i < COUNT; i++) {
        samples[i] = (struct in_sample){ .ts = 1700000000000, .value = i / 3.0 };
        many[i] =
            (struct in_record_series){ .number = 5 * i, .samples = &samples[i], .sample_count = 1 };
    }
    in_record_put_samples(&buf, &record, many, COUNT);
    CHECK_MSG(buf.len <= 12 * COUNT + 100, "%zu bytes", buf.len);
    qf_strbuf_done(&buf);
}

TEST(the_other_kinds_come_back)
{
    static const struct in_sealed_file files[] = { { QF_STR_INIT("t/d/a"), QF_STR_INIT("x"), 10 },
                                                   { QF_STR_INIT("t/d/b"), QF_STR_INIT(""), 0 } };
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_sealed_file file;
    struct in_record record;

    in_record_put_seal(&buf, QF_STR("t"), UINT64_MAX);
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_OK);
    CHECK(record.kind == IN_SEAL && record.generation == UINT64_MAX);
    qf_strbuf_reset(&buf);
    in_record_put_sealed(&buf, QF_STR("t"), 4, 9, files, 2);
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_OK);
    CHECK(record.kind == IN_SEALED && record.from == 4 && record.to == 9 && record.file_count == 2);
    CHECK(in_record_next_file(&record.files, &file) && qf_str_is(file.name, "t/d/a") &&
          qf_str_is(file.etag, "x") && file.size == 10);
    CHECK(in_record_next_file(&record.files, &file) && qf_str_is(file.name, "t/d/b"));
    CHECK(!in_record_next_file(&record.files, &file));
    qf_strbuf_reset(&buf);
    in_record_put_floor(&buf, -5);
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_OK);
    CHECK(record.kind == IN_FLOOR && record.floor_ms == -5);
    qf_strbuf_reset(&buf);
    in_record_put_below(&buf, QF_STR("t"), 77, -6, 9);
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_OK);
    CHECK(record.kind == IN_BELOW && record.generation == 77 && record.time_ms == -6 &&
          record.keep_ms == 9);
    qf_strbuf_reset(&buf);
    in_record_put_elect(&buf, &(struct in_record){ .tenant = QF_STR("t"),
                                                   .time_ms = 8,
                                                   .cluster = QF_STR("c"),
                                                   .replica = QF_STR("r1"),
                                                   .newest_ts = -3 });
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_OK);
    CHECK(record.kind == IN_ELECT && qf_str_is(record.cluster, "c") &&
          qf_str_is(record.replica, "r1") && record.newest_ts == -3 && record.time_ms == 8);
    for (size_t len = 0; len < buf.len; len++)
        CHECK_EQ(in_record_decode((struct qf_str){ buf.data, len }, &record, NULL), QF_ECORRUPT);
    qf_strbuf_reset(&buf);
    in_record_put_pin(&buf, &(struct in_record){ .tenant = QF_STR("t"),
                                                 .time_ms = -8,
                                                 .key = { .key = "a key", .body = "a body" },
                                                 .position = UINT64_MAX });
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_OK);
    CHECK(record.kind == IN_PIN && record.time_ms == -8 && record.position == UINT64_MAX &&
          record.key.given && memcmp(record.key.key, "a key", 6) == 0 &&
          memcmp(record.key.body, "a body", 7) == 0);
    for (size_t len = 0; len < buf.len; len++)
        CHECK_EQ(in_record_decode((struct qf_str){ buf.data, len }, &record, NULL), QF_ECORRUPT);
    buf.data[1] = IN_PIN + 1; /* of a newer release, not damaged */
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_EUNSUPPORTED);
    qf_strbuf_done(&buf);
}

/* Each prefix, and each byte changed: refused, or another record that is whole. */
TEST(records_that_were_cut_are_refused)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_record record;

    put_example(&buf);
    for (size_t len = 0; len < buf.len; len++)
        CHECK_MSG(in_record_decode((struct qf_str){ buf.data, len }, &record, NULL) == QF_ECORRUPT,
                  "%zu bytes were taken", len);
    qf_strbuf_putc(&buf, 0);
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_ECORRUPT);
    qf_strbuf_done(&buf);
}

TEST(a_later_version_is_told_apart_from_damage)
{
    struct in_record record;
    struct qf_err err = { 0 };

    CHECK_EQ(in_record_decode(QF_STR("\x02\x01"), &record, &err), QF_EUNSUPPORTED);
    CHECK_STR(err.msg, "a record of the log has version 2, this is a node for version 1");
    CHECK_EQ(in_record_decode(QF_STR("\x01\x05\x01t"), &record, NULL), QF_ECORRUPT);
    CHECK_EQ(in_record_decode(QF_STR("\x01\x00\x01t"), &record, NULL), QF_ECORRUPT);
    CHECK_EQ(in_record_decode(QF_STR("\x01\x02\x00\x05"), &record, NULL), QF_ECORRUPT);
}
