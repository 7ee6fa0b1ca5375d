/* test_query.c - answers in a terminal: reading them, tables, charts, CSV, hints. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/query_answer.h"
#include "cli/query_hint.h"
#include "cli/query_print.h"
#include "tests/lib/test.h"

static const struct cli_look terminal = { .columns = 42, .utf8 = true, .series_max = 2 };
static const struct cli_look pipe_look = { .columns = 42, .series_max = SIZE_MAX };

enum form { INSTANT, RANGE, CSV };

/* What is printed of @answer; free() it. */
static char *printed(struct cli_answer *answer, enum form form, const struct cli_look *look)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (form == INSTANT)
        cli_print_instant(out, answer, look);
    else if (form == RANGE)
        cli_print_range(out, answer, look);
    else
        cli_print_csv(out, answer);
    (void)fclose(out);
    cli_answer_done(answer);
    return text;
}

static struct cli_answer document(const char *text)
{
    struct cli_answer answer = { 0 };
    json_t *data = json_loads(text, 0, NULL);

    CHECK(data != NULL);
    CHECK(cli_answer_document(&answer, data));
    json_decref(data);
    return answer;
}

static void hear(struct cli_answer *answer, const char *text)
{
    json_t *event = json_loads(text, cli_event_flags(text), NULL);

    CHECK(event != NULL);
    cli_answer_event(answer, json_string_value(json_object_get(event, "type")),
                     json_object_get(event, "data"));
    json_decref(event);
}

#define CHECK_PRINTED(answer, form, look, want)                                                    \
    do {                                                                                           \
        char *printed_ = printed(answer, form, look);                                              \
        CHECK_STR(printed_, want);                                                                 \
        free(printed_);                                                                            \
    } while (0)

static const char *number(double value)
{
    static char text[CLI_NUMBER_MAX];

    return cli_number(value, text);
}

TEST(numbers_have_four_digits_and_a_unit)
{
    CHECK_STR(number(0), "0");
    CHECK_STR(number(1234), "1234");
    CHECK_STR(number(-0.123456), "-0.1235");
    CHECK_STR(number(9999.4), "9999");
    CHECK_STR(number(9999.6), "10k");
    CHECK_STR(number(12345), "12.35k");
    CHECK_STR(number(999960), "1M");
    CHECK_STR(number(-1.5e9), "-1.5G");
    CHECK_STR(number(999.9e15), "999.9P");
    CHECK_STR(number(1e19), "1e+19");
    CHECK_STR(number(0.00001234567), "1.235e-05");
    CHECK_STR(number(NAN), "NaN");
    CHECK_STR(number(-INFINITY), "-Inf");
}

/* sort_desc(up): whoever asked for an order gets it. */
TEST(an_instant_answer_keeps_its_order)
{
    struct cli_answer answer =
        document("{\"resultType\":\"vector\",\"result\":["
                 "{\"metric\":{\"__name__\":\"up\",\"job\":\"web\"},\"value\":[10,\"12345.678\"]},"
                 "{\"metric\":{\"__name__\":\"up\"},\"value\":[10,\"1\"]}]}");

    CHECK_PRINTED(&answer, INSTANT, &terminal, "up{job=\"web\"}  12.35k\nup             1\n");
}

TEST(strings_scalars_and_range_vectors_are_shown)
{
    struct cli_answer answer = document("{\"resultType\":\"string\",\"result\":[10,\"a text\"]}");

    CHECK_PRINTED(&answer, INSTANT, &terminal, "a text\n");
    answer = document("{\"resultType\":\"scalar\",\"result\":[10,\"2.5\"]}");
    CHECK_PRINTED(&answer, INSTANT, &terminal, "{}  2.5\n");
    answer = document("{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"a\":\"b\"},"
                      "\"values\":[[10,\"1\"],[30.5,\"NaN\"]],\"histograms\":[[20,{\"count\":\"3\","
                      "\"sum\":\"4\"}]]}]}");
    CHECK_PRINTED(&answer, INSTANT, &terminal,
                  "{a=\"b\"}\n  1970-01-01T00:00:10Z  1\n  1970-01-01T00:00:20Z  count 3, sum 4\n"
                  "  1970-01-01T00:00:30.500Z  NaN\n");
}

TEST(what_is_no_answer_is_refused)
{
    struct cli_answer answer = { 0 };
    json_t *data = json_loads("{\"resultType\":\"vector\",\"result\":1}", 0, NULL);

    CHECK(!cli_answer_document(&answer, data));
    CHECK(!cli_answer_document(&answer, NULL));
    json_decref(data);
}

/* 1e19 is written with all its digits, more than any integer of C has. */
TEST(whole_numbers_of_events_may_be_large)
{
    struct cli_answer answer = { 0 };

    hear(&answer, "{\"type\":\"series\",\"data\":{\"first\":0,\"list\":[{\"a\":\"b\"}]}}");
    hear(&answer,
         "{\"type\":\"batch\",\"data\":{\"start\":1700000000000,\"step\":15000,\"steps\":3,"
         "\"rows\":[[0,10000000000000000000,null,\"+Inf\"],[7,1],[-1,1]]}}");
    CHECK_EQ(answer.series.count, 1);
    CHECK_EQ(answer.series.items[0].points.count, 2);
    CHECK(answer.series.items[0].points.items[0].value == 1e19);
    CHECK_EQ(answer.series.items[0].points.items[1].ms, 1700000030000);
    CHECK(isinf(answer.series.items[0].points.items[1].value));
    cli_answer_done(&answer);
}

static struct cli_answer three_series(void)
{
    struct cli_answer answer = { 0 };

    hear(&answer,
         "{\"type\":\"series\",\"data\":{\"first\":0,\"list\":[{\"a\":\"c\"},{\"a\":\"b\"},"
         "{\"a\":\"d\"}]}}");
    hear(&answer,
         "{\"type\":\"batch\",\"data\":{\"start\":0,\"step\":1200000,\"steps\":4,\"rows\":["
         "[1,0,10,null,70],[0,5,5,5,5],[2,\"NaN\",\"NaN\",\"NaN\",\"+Inf\"]]}}");
    cli_answer_sort(&answer);
    return answer;
}

/* As wide as the line; times stand where their columns are. */
TEST(charts_fill_the_line_above_their_times)
{
    struct cli_answer answer = three_series();
    struct cli_look all = terminal;

    all.series_max = 3;
    CHECK_PRINTED(&answer, RANGE, &all,
                  "{a=\"b\"}\n"
                  "  ▁▁▁▁▁▁▁▁▁▁▁▁▁▂▂▂▂▂▂▂▂▂▂▂▂▂             █\n"
                  "  0 .. 70, last 70\n"
                  "{a=\"c\"}\n"
                  "  ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄\n"
                  "  5 .. 5, last 5\n"
                  "{a=\"d\"}\n"
                  "                                         ∞\n"
                  "  last +Inf\n"
                  "  00:00            00:30             01:00\n"
                  "  1970-01-01T00:00:00Z .. 1970-01-01T01:00:00Z\n");
}

TEST(without_utf_8_charts_are_ascii_and_a_pipe_gets_all)
{
    struct cli_answer answer = three_series();
    char *text = printed(&answer, RANGE, &pipe_look);

    for (const char *at = text; *at; at++)
        CHECK((unsigned char)*at < 0x80);
    CHECK(strstr(text, "{a=\"b\"}\n  _____________.............             #\n") != NULL);
    CHECK(strstr(text, "{a=\"d\"}\n") != NULL);
    free(text);
    answer = three_series();
    text = printed(&answer, RANGE, &terminal);
    CHECK(strstr(text, "{a=\"d\"}\n") == NULL);
    CHECK(strstr(text, "... and 1 more series: all of them into a pipe or with --csv\n") != NULL);
    free(text);
}

TEST(csv_is_exact_and_quotes_what_needs_it)
{
    struct cli_answer answer = document(
        "{\"resultType\":\"vector\",\"result\":["
        "{\"metric\":{\"__name__\":\"up\",\"z\":\"a,\\\"b\\\"\"},"
        "\"value\":[10.5,\"0.1234567890123\"]},"
        "{\"metric\":{\"job\":\"x\"},\"histogram\":[11,{\"count\":\"3\",\"sum\":\"4\"}]}]}");

    CHECK_PRINTED(
        &answer, CSV, NULL,
        "time,value,__name__,job,z\r\n"
        "1970-01-01T00:00:10.500Z,0.1234567890123,up,,\"a,\"\"b\"\"\"\r\n"
        "1970-01-01T00:00:11Z,\"{\"\"count\"\":\"\"3\"\",\"\"sum\"\":\"\"4\"\"}\",,x,\r\n");
}

static const char *hint(struct qf_strbuf *buf, struct cli_stored stored)
{
    qf_strbuf_reset(buf);
    cli_hint_text(buf, &stored);
    return qf_strbuf_cstr(buf);
}

TEST(no_series_says_where_samples_are)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    CHECK_STR(
        hint(&buf, (struct cli_stored){ .any = true,
                                        .newest_ms = 1767225660000,
                                        .asked_ms = 1767225660000 + 93784005 }),
        "(no series)\nThe newest stored sample is of 2026-01-01T00:01:00Z, 1d2h before the time "
        "asked for. Try --end=2026-01-01T00:01:00Z\n");
    CHECK(strstr(hint(&buf, (struct cli_stored){ .any = false }), "Nothing is stored"));
    CHECK(strstr(hint(&buf, (struct cli_stored){ .at_that_time = true, .any = true }),
                 "none that this selects"));
}
