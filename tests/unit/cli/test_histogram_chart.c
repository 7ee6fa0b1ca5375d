/* test_histogram_chart.c - native histograms as bars. */
#include "cli/histogram_chart.h"

#include <string.h>

#include "tests/lib/test.h"

static const struct cli_look wide = { .columns = 68, .utf8 = true };

static const char *drawn(struct qf_strbuf *buf, const char *json, const struct cli_look *look)
{
    json_t *histogram = json_loads(json, JSON_DECODE_ANY, NULL);

    qf_strbuf_reset(buf);
    cli_histogram_chart(buf, histogram, look);
    json_decref(histogram);
    return qf_strbuf_cstr(buf);
}

static const char *chart(struct qf_strbuf *buf, const char *json)
{
    return drawn(buf, json, &wide);
}

static size_t lines_of(const char *text)
{
    size_t lines = 1;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* The fullest bucket has the longest bar; brackets say which bounds belong to a bucket. */
TEST(each_bucket_is_a_bar)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    CHECK_STR(chart(&buf,
                    "{\"count\":\"15\",\"sum\":\"1.5\",\"buckets\":[[1,\"-2\",\"-1\",\"1\"],"
                    "[3,\"-0.001\",\"0.001\",\"4\"],[0,\"0.7071067811865475\",\"1\",\"8\"]]}"),
              "count 15, sum 1.5\n"
              "  [    -2,    -1)         1 █████\n"
              "  [-0.001, 0.001]         4 ████████████████████\n"
              "  (0.7071,     1]         8 ████████████████████████████████████████");
}

/* However small, what is there is seen; what is negative or no number does no harm. */
TEST(bars_are_never_longer_than_the_longest)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    CHECK_STR(chart(&buf, "{\"count\":\"3\",\"sum\":\"NaN\",\"buckets\":[[0,\"1\",\"2\",\"0.001\"],"
                          "[0,\"2\",\"4\",\"-2\"],[0,\"4\",\"+Inf\",\"NaN\"]]}"),
              "count 3, sum NaN\n"
              "  (1,    2]     0.001 ▏\n"
              "  (2,    4]        -2 ██████████████████████████████████████████████\n"
              "  (4, +Inf]       NaN ");
}

/* A hundred buckets are 20 lines of five, and nothing is lost. */
TEST(many_buckets_share_lines)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf json = QF_STRBUF_INIT;
    const char *text;

    qf_strbuf_puts(&json, "{\"count\":\"100\",\"sum\":\"1\",\"buckets\":[");
    for (int i = 0; i < 100; i++)
        qf_strbuf_printf(&json, "%s[0,\"%d\",\"%d\",\"1\"]", i ? "," : "", i, i + 1);
    qf_strbuf_puts(&json, "]}");
    text = chart(&buf, qf_strbuf_cstr(&json));
    CHECK_EQ(lines_of(text), 1 + 20);
    CHECK(strstr(text, "\n  ( 0,   5]         5 ") != NULL);
    CHECK(strstr(text, "\n  (95, 100]         5 ") != NULL);
}

TEST(an_empty_histogram_is_one_line)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    CHECK_STR(chart(&buf, "{\"count\":\"0\",\"sum\":\"0\"}"), "count 0, sum 0");
    CHECK_STR(chart(&buf, "{\"bounds\":1}"), "{\"bounds\":1}");
}

TEST(without_utf_8_bars_are_ascii)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct cli_look narrow = { .columns = 28 };

    CHECK_STR(
        drawn(&buf,
              "{\"count\":\"12345678\",\"sum\":\"0.123456\",\"buckets\":[[0,\"1\",\"2\",\"1\"],"
              "[0,\"2\",\"4\",\"12345677\"]]}",
              &narrow),
        "count 12.35M, sum 0.1235\n"
        "  (1, 2]         1 #\n"
        "  (2, 4]    12.35M ##########");
}
