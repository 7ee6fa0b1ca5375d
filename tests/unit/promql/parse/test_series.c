/* test_series.c - series descriptions of test scripts. */
#include <math.h>
#include <string.h>

#include "base/pure/number.h"
#include "promql/parse.h"
#include "promql/testing/series.h"
#include "promql/value.h"
#include "tests/lib/test.h"

struct series {
    struct qf_arena *arena;
    struct qf_labels labels;
    struct pq_sequence_value *values;
    size_t count;
};

static void series_done(struct series *series)
{
    series->arena = qf_arena_free(series->arena);
}

#define SERIES(name, text) QF_CLEANUP(series_done) struct series name = parse(text)

static struct series parse(const char *text)
{
    struct series series = { .arena = qf_arena_new(SIZE_MAX) };
    struct qf_err err = { 0 };

    if (pq_parse_series(series.arena, qf_str_from(text), &series.labels, &series.values,
                        &series.count, &err) != QF_OK)
        test_fail(__FILE__, __LINE__, "%s: [%zu,%zu) %s", text, err.pos_start, err.pos_end,
                  err.msg);
    return series;
}

TEST(a_description_is_a_metric_and_its_values)
{
    SERIES(s, "up{job=\"a\", \"inst ance\"='b', empty=\"\"} 1 2.5 -3 +4 0x1 1_000");

    CHECK_EQ(s.labels.count, 3);
    CHECK(qf_str_is(qf_labels_get(s.labels, QF_STR("__name__")), "up"));
    CHECK(qf_str_is(qf_labels_get(s.labels, QF_STR("inst ance")), "b"));
    CHECK_EQ(s.count, 7); /* 0x1 is zero, repeated once: there are no hexadecimal numbers here */
    CHECK_BITS(s.values[2].value, -3.0);
    CHECK_BITS(s.values[4].value, 0.0);
    CHECK_BITS(s.values[5].value, 0.0);
    CHECK_BITS(s.values[6].value, 1000.0);
}

TEST(steps_add_up_one_by_one)
{
    SERIES(s, "a 0+0.1x10 5x2 7-2x1");

    CHECK_EQ(s.count, 11 + 3 + 2);
    CHECK_BITS(s.values[3].value, 0.1 + 0.1 + 0.1);
    CHECK_BITS(s.values[13].value, 5.0);
    CHECK_BITS(s.values[15].value, 5.0);
}

TEST(slots_may_be_missing_or_stale)
{
    SERIES(s, "{} _ _x3 stale NaN -Inf inf");

    CHECK_EQ(s.count, 8);
    for (int i = 0; i < 4; i++)
        CHECK(s.values[i].omitted);
    CHECK(qf_is_stale(s.values[4].value));
    CHECK(isnan(s.values[5].value) && !qf_is_stale(s.values[5].value));
    CHECK(s.values[6].value == -INFINITY);
    CHECK(s.values[7].value == INFINITY);
}

TEST(keywords_are_names_of_metrics_too)
{
    SERIES(s, "sum{by=\"x\"} 1");
    SERIES(t, "start 1");
    SERIES(u, "{\"a.b\"} 1");

    CHECK(qf_str_is(qf_labels_get(s.labels, QF_STR("__name__")), "sum"));
    CHECK(qf_str_is(qf_labels_get(t.labels, QF_STR("__name__")), "start"));
    CHECK(qf_str_is(qf_labels_get(u.labels, QF_STR("__name__")), "a.b"));
    CHECK_EQ(u.count, 1);
}

TEST(a_histogram_literal_sets_every_field)
{
    SERIES(s, "h {{schema:-53 sum:1.5 count:4 custom_values:[5 10] buckets:[1 2 1] "
              "counter_reset_hint:gauge}} {{n_buckets:[1] n_offset:-2 z_bucket:3 "
              "z_bucket_w:0.5}}");
    const struct pq_histogram *h = s.values[0].histogram, *n = s.values[1].histogram;

    CHECK_EQ(s.count, 2);
    CHECK_EQ(h->schema, PQ_SCHEMA_CUSTOM);
    CHECK_BITS(h->sum, 1.5);
    CHECK_BITS(h->count, 4.0);
    CHECK_EQ(h->custom_value_count, 2);
    CHECK_BITS(h->custom_values[1], 10.0);
    CHECK_EQ(h->positive_bucket_count, 3);
    CHECK_EQ(h->positive_spans[0].length, 3);
    CHECK_EQ(h->reset_hint, PQ_RESET_GAUGE);
    CHECK(h->reset_hint_given);
    CHECK_EQ(n->negative_spans[0].offset, -2);
    CHECK_BITS(n->zero_count, 3.0);
    CHECK_BITS(n->zero_threshold, 0.5);
    CHECK(!n->reset_hint_given);
}

TEST(histograms_add_bucket_by_bucket)
{
    SERIES(s, "h {{schema:0 sum:1 count:1 buckets:[1]}}+{{schema:1 sum:2 count:2 buckets:[1 1] "
              "offset:2}}x2");
    const struct pq_histogram *h = s.values[2].histogram;

    CHECK_EQ(s.count, 3);
    CHECK_EQ(h->schema, 0);
    CHECK_BITS(h->sum, 5.0);
    CHECK_EQ(h->positive_bucket_count, 3); /* index 2 goes to 1, index 3 to 2 */
    CHECK_EQ(h->positive_span_count, 1);
    CHECK_BITS(h->positive_buckets[0], 1.0);
    CHECK_BITS(h->positive_buckets[1], 2.0);
    CHECK_BITS(h->positive_buckets[2], 2.0);
    CHECK_EQ(s.values[0].histogram->positive_bucket_count, 1); /* the first is untouched */
}

TEST(gaps_between_buckets_stay_gaps)
{
    SERIES(s, "h {{buckets:[1]}}+{{buckets:[1] offset:1000000000}}x1");
    const struct pq_histogram *h = s.values[1].histogram;

    CHECK_EQ(h->positive_span_count, 2);
    CHECK_EQ(h->positive_spans[1].offset, 999999999);
    CHECK_EQ(h->positive_bucket_count, 2);
}

/* Bucket 0 of schema 0 is (0.5, 1]: a zero bucket of 0.75 cuts it, so it takes all of it. */
TEST(the_wider_zero_bucket_takes_the_buckets_inside)
{
    SERIES(s, "h {{buckets:[1 2 4] offset:-1 z_bucket:1}}+{{z_bucket:1 z_bucket_w:0.75}}x1");
    const struct pq_histogram *h = s.values[1].histogram;

    CHECK_BITS(h->zero_threshold, 1.0);
    CHECK_BITS(h->zero_count, 5.0);
    CHECK_EQ(h->positive_bucket_count, 1);
    CHECK_EQ(h->positive_spans[0].offset, 1);
    CHECK_BITS(h->positive_buckets[0], 4.0);
}

TEST(custom_buckets_meet_in_their_common_bounds)
{
    SERIES(s, "h {{schema:-53 custom_values:[1 5 10] buckets:[1 2 3 4]}}+{{schema:-53 "
              "custom_values:[5 7] buckets:[10 20 30]}}x1");
    const struct pq_histogram *h = s.values[1].histogram;

    CHECK_EQ(h->custom_value_count, 1);
    CHECK_BITS(h->custom_values[0], 5.0);
    CHECK_EQ(h->positive_bucket_count, 2);
    CHECK_BITS(h->positive_buckets[0], 13.0);
    CHECK_BITS(h->positive_buckets[1], 57.0);
}

TEST(wrong_descriptions_are_errors_with_a_place)
{
    static const char *const wrong[][2] = {
        { "a 1+1", "1:6: parse error: unexpected end of input in series values" },
        { "a 1x", "1:5: parse error: unexpected end of input in series values" },
        { "a 1x1.5", "1:5: parse error: invalid repetition in series values: strconv.ParseUint: "
                     "parsing \"1.5\": invalid syntax" },
        { "a b", "1:3: parse error: unexpected identifier \"b\" in series values, expected number "
                 "or \"stale\"" },
        { "a 1 &", "1:5: parse error: unexpected character in series sequence: '&'" },
        { "a{b}", "1:4: parse error: unexpected \"}\" in label set, expected \"=\"" },
        { "a{b=\"c\" d=\"e\"}", "1:9: parse error: unexpected identifier \"d\" in label set, "
                                "expected \",\" or \"}\"" },
        { "a{,}", "1:3: parse error: unexpected \",\" in label set, expected identifier or \"}\"" },
        { "a {{sum:1 foo:2}}", "1:11: parse error: bad histogram descriptor found: \"foo\"" },
        { "a {{sum:1", "1:10: parse error: histogram description incomplete unexpected: "
                       "'\xef\xbf\xbd'" },
        { "a {{sum:1 2}}", "1:11: parse error: unexpected number \"2\" in histogram description, "
                           "expected histogram description key, e.g. buckets:[5 10 7]" },
        { "a {{buckets:[1 x]}}",
          "1:16: parse error: invalid character in buckets description: 'x'" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(wrong); i++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf got = QF_STRBUF_INIT;
        struct pq_sequence_value *values;
        struct qf_labels labels;
        struct qf_err err = { 0 };
        size_t count;

        CHECK_EQ(pq_parse_series(arena, qf_str_from(wrong[i][0]), &labels, &values, &count, &err),
                 QF_EPARSE);
        pq_parse_error_print(&got, qf_str_from(wrong[i][0]), &err);
        CHECK_STR(qf_strbuf_cstr(&got), wrong[i][1]);
    }
}

TEST(a_line_stands_for_a_bounded_number_of_values)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_sequence_value *values;
    struct qf_labels labels;
    struct qf_err err = { 0 };
    size_t count;

    CHECK_EQ(pq_parse_series(arena, QF_STR("a 1x999999999999"), &labels, &values, &count, &err),
             QF_ELIMIT);
    err = (struct qf_err){ 0 };
    CHECK_EQ(
        pq_parse_series(arena, QF_STR("a _x18446744073709551615"), &labels, &values, &count, &err),
        QF_ELIMIT);
}
