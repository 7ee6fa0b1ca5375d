/* test_prom_json.c - what the encoders write. */
#include "queryapi/encode/prom_json.h"

#include <math.h>

#include "tests/lib/test.h"

TEST(times_have_three_decimals_unless_whole)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qa_json_time(&buf, 1500);
    qf_strbuf_putc(&buf, ' ');
    qa_json_time(&buf, 2000);
    qf_strbuf_putc(&buf, ' ');
    qa_json_time(&buf, -1);
    qf_strbuf_putc(&buf, ' ');
    qa_json_time(&buf, INT64_MIN);
    CHECK_STR(qf_strbuf_cstr(&buf), "1.500 2 -0.001 -9223372036854775.808");
    qf_strbuf_done(&buf);
}

TEST(points_are_pairs_of_time_and_text)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qa_json_point(&buf, 1435781430781, 0.1, NULL);
    qa_json_point(&buf, 0, 1e-7, NULL);
    qa_json_point(&buf, 0, 1e21, NULL);
    qa_json_point(&buf, 0, NAN, NULL);
    qa_json_point(&buf, 0, -INFINITY, NULL);
    CHECK_STR(qf_strbuf_cstr(&buf), "[1435781430.781,\"0.1\"][0,\"1e-07\"][0,\"1e+21\"]"
                                    "[0,\"NaN\"][0,\"-Inf\"]");
    qf_strbuf_done(&buf);
}

/* Negative buckets first, the zero bucket, positive ones; empty buckets are left out. */
TEST(histograms_list_their_buckets_in_order)
{
    const struct pq_span spans[] = { { 0, 2 }, { 1, 1 } };
    const double positive[] = { 1, 0, 2 }, negative[] = { 3, 4, 5 };
    const struct pq_histogram histogram = {
        .schema = 0,
        .count = 16,
        .sum = 1.5,
        .zero_threshold = 0.001,
        .zero_count = 1,
        .positive_spans = spans,
        .positive_span_count = 2,
        .positive_buckets = positive,
        .positive_bucket_count = 3,
        .negative_spans = spans,
        .negative_span_count = 2,
        .negative_buckets = negative,
        .negative_bucket_count = 3,
    };
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qa_json_histogram(&buf, &histogram);
    CHECK_STR(qf_strbuf_cstr(&buf),
              "{\"count\":\"16\",\"sum\":\"1.5\",\"buckets\":[[1,\"-8\",\"-4\",\"5\"],"
              "[1,\"-2\",\"-1\",\"4\"],[1,\"-1\",\"-0.5\",\"3\"],[3,\"-0.001\",\"0.001\",\"1\"],"
              "[0,\"0.5\",\"1\",\"1\"],[0,\"4\",\"8\",\"2\"]]}");
    qf_strbuf_done(&buf);
}

/* 3 is a bucket with both its ends: the zero bucket, however narrow, and the first custom one. */
TEST(histograms_say_which_bounds_belong_to_a_bucket)
{
    const struct pq_span span = { 0, 3 };
    const double buckets[] = { 1, 2, 3 }, bounds[] = { -1, 0 };
    const struct pq_histogram zero = { .count = 1, .zero_count = 1 };
    const struct pq_histogram custom = {
        .schema = PQ_SCHEMA_CUSTOM,
        .count = 6,
        .positive_spans = &span,
        .positive_span_count = 1,
        .positive_buckets = buckets,
        .positive_bucket_count = 3,
        .custom_values = bounds,
        .custom_value_count = 2,
    };
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qa_json_histogram(&buf, &zero);
    qa_json_histogram(&buf, &custom);
    CHECK_STR(qf_strbuf_cstr(&buf),
              "{\"count\":\"1\",\"sum\":\"0\",\"buckets\":[[3,\"-0\",\"0\",\"1\"]]}"
              "{\"count\":\"6\",\"sum\":\"0\",\"buckets\":[[3,\"-Inf\",\"-1\",\"1\"],"
              "[0,\"-1\",\"0\",\"2\"],[0,\"0\",\"+Inf\",\"3\"]]}");
    qf_strbuf_done(&buf);
}

TEST(annotations_beyond_ten_are_counted)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 20);
    struct pq_notes notes = { .arena = arena };
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qa_json_notes(&buf, &notes, QF_STR("up"), false);
    CHECK_STR(qf_strbuf_cstr(&buf), "");
    pq_note_add(&notes, PQ_NOTE_INFO, (struct pq_pos){ 0, 2 }, "look \"here\"");
    qa_json_notes(&buf, &notes, QF_STR("up"), true);
    CHECK_STR(qf_strbuf_cstr(&buf), ",\"warnings\":[\"results truncated due to limit\"],"
                                    "\"infos\":[\"PromQL info: look \\\"here\\\" (1:1)\"]");
    for (int i = 0; i < 12; i++)
        pq_note_add(&notes, PQ_NOTE_WARNING, (struct pq_pos){ 0, 2 }, "w%d", i);
    qf_strbuf_reset(&buf);
    qa_json_notes(&buf, &notes, QF_STR("up"), false);
    CHECK(strstr(buf.data, "w9 (1:1)\",\"2 more warning annotations omitted\"]"));
    qf_strbuf_done(&buf);
}

/* Scalars go another way through Prometheus than samples do. */
TEST(scalars_have_no_exponent)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qa_json_scalar(&buf, 1e21);
    qa_json_scalar(&buf, 1e-7);
    qa_json_value(&buf, 1e-7);
    CHECK_STR(qf_strbuf_cstr(&buf), "\"1000000000000000000000\"\"0.0000001\"\"1e-07\"");
    qf_strbuf_reset(&buf);
    qa_json_scalar_time(&buf, 1500);
    qf_strbuf_putc(&buf, ' ');
    qa_json_scalar_time(&buf, 10000);
    qf_strbuf_putc(&buf, ' ');
    qa_json_time(&buf, 1500);
    CHECK_STR(qf_strbuf_cstr(&buf), "1.5 10 1.500");
    qf_strbuf_done(&buf);
}
