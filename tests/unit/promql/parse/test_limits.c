/* test_limits.c - hostile input: long, deep or not even text. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "promql/parse.h"
#include "promql/parse/lex.h"
#include "promql/testing/selectors.h"
#include "tests/lib/test.h"

enum { MEGABYTE = 1 << 20, DEEP = 100000 };

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* @part repeated @count times between @before and @after. */
static char *repeat(const char *before, const char *part, size_t count, const char *after)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_puts(&text, before);
    for (size_t i = 0; i < count; i++)
        qf_strbuf_puts(&text, part);
    qf_strbuf_puts(&text, after);
    return qf_strbuf_take(&text);
}

static qf_rc parse(const char *text, size_t length_max, struct qf_err *err)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_parse_options options = { .length_max = length_max };
    struct pq_expr *node;

    *err = (struct qf_err){ 0 };
    return pq_parse(arena, qf_str_from(text), &options, &node, err);
}

TEST(a_text_beyond_the_length_limit_is_refused_unread)
{
    QF_CLEANUP(qf_freep) char *text = repeat("1", "+1", 5 * MEGABYTE, "");
    struct qf_err err;
    double start = seconds();

    CHECK_EQ(parse(text, 0, &err), QF_ELIMIT);
    CHECK_STR(err.msg, "query of 10485761 bytes is longer than the limit of 1048576");
    CHECK(seconds() - start < 1);
}

/* Every construct that can nest, 100,000 levels deep. */
TEST(deep_nesting_ends_in_an_error_instead_of_the_stack)
{
    static const char *const parts[][3] = {
        { "", "(", "1" },
        { "", "-", "1" },
        { "", "- -", "1" },
        { "2", "^2", "" },
        { "", "sum(", "foo" },
        { "", "abs(", "foo" },
        { "", "sum by (a) (1+", "foo" },
        { "foo[", "(", "5m)]" },
        { "foo[", "-", "5m]" },
        { "foo[2", "^2", "]" },
        { "foo[", "min_of(1,", "5m)]" },
        { "foo offset ", "(", "5m)" },
        { "foo offset -", "(", "5m)" },
        { "", "label_replace(rate(foo[5m]) + ", "" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(parts); i++) {
        QF_CLEANUP(qf_freep) char *text = repeat(parts[i][0], parts[i][1], DEEP, parts[i][2]);
        struct qf_err err;

        CHECK_EQ(parse(text, 16 * MEGABYTE, &err), QF_ELIMIT);
        CHECK_STR(err.msg, "query is nested deeper than 1000 levels");
        CHECK(err.pos_start > 0 && err.pos_start < 20 * MEGABYTE);
    }
}

/* The deepest that is allowed must fit the stack, also with sanitizers. */
TEST(a_thousand_levels_parse_and_print)
{
    static const char *const parts[][3] = {
        { "(", "foo", ")" },
        { "-", "foo", "" },
        { "abs(", "foo", ")" },
        { "sum(1 * ", "foo", ")" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(parts); i++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf line = QF_STRBUF_INIT;
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf pretty = QF_STRBUF_INIT;
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf json = QF_STRBUF_INIT;
        QF_CLEANUP(qf_freep) char *opened = repeat("", parts[i][0], 990, parts[i][1]);
        QF_CLEANUP(qf_freep) char *text = repeat(opened, parts[i][2], 990, "");
        struct qf_err err = { 0 };
        struct pq_expr *node = NULL;
        size_t count;

        CHECK_OK(pq_parse(arena, qf_str_from(text), NULL, &node, &err), &err);
        pq_print(&line, node);
        pq_pretty(&pretty, node, 100);
        pq_ast_json(&json, node);
        CHECK_EQ(line.len, strlen(text));
        CHECK(pretty.len >= line.len);
        CHECK(pq_selectors(arena, node, &count) && count == 1);
    }
}

TEST(a_long_chain_parses_up_to_the_height_limit)
{
    QF_CLEANUP(qf_freep) char *fits = repeat("foo", "+foo", 1990, "");
    QF_CLEANUP(qf_freep) char *long_chain = repeat("1", "+1", DEEP, "");
    QF_CLEANUP(qf_freep) char *subqueries = repeat("foo", "[5m:]", DEEP, "");
    QF_CLEANUP(qf_freep) char *durations = repeat("foo[1", "+1", DEEP, "]");
    struct qf_err err;

    CHECK_EQ(parse(fits, 0, &err), QF_OK);
    CHECK_EQ(parse(long_chain, 0, &err), QF_ELIMIT);
    CHECK_STR(err.msg, "query is a tree of 100001 levels, the limit is 2000");
    CHECK_EQ(parse(subqueries, 0, &err), QF_EPARSE);
    CHECK_EQ(parse(durations, 0, &err), QF_ELIMIT);
}

/* Small texts with large programs: memory that lies outside the arena and is charged to it. */
TEST(regular_expressions_are_paid_from_the_budget)
{
    QF_CLEANUP(qf_freep)
    char *text = repeat("foo{", "a=~\"(?:a{1000}){0}(?:b{1000})c\",", 3000, "}");
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new((size_t)64 * MEGABYTE);
    struct pq_expr *node;
    struct qf_err err = { 0 };

    CHECK_EQ(pq_parse(arena, qf_str_from(text), NULL, &node, &err), QF_ELIMIT);
    CHECK_STR(err.msg, "query needs more memory to parse than its limit");
    CHECK(qf_arena_used(arena) <= (size_t)64 * MEGABYTE);
}

/* One budget for all selectors of a request, not one each. */
TEST(selectors_of_one_arena_share_its_budget)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new((size_t)8 * MEGABYTE);
    const struct pq_matcher *matchers;
    struct qf_err err = { 0 };
    qf_rc rc = QF_OK;
    size_t count, fitted = 0;

    while (rc == QF_OK && fitted < 64) {
        rc =
            pq_parse_selector(arena, QF_STR("foo{a=~\"b{1000}c\"}"), NULL, &matchers, &count, &err);
        fitted += rc == QF_OK;
    }
    CHECK_EQ(rc, QF_ELIMIT);
    CHECK(fitted > 0 && fitted < 16);
}

TEST(a_canceled_query_compiles_no_further_expression)
{
    atomic_bool canceled = true;
    struct pq_parse_options options = { .canceled = &canceled };
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_expr *node;
    struct qf_err err = { 0 };

    CHECK_EQ(pq_parse(arena, QF_STR("foo{a=~\"b.*\"}"), &options, &node, &err), QF_ECANCELED);
    CHECK_EQ(pq_parse(arena, QF_STR("foo{a=\"b\"}"), &options, &node, &err), QF_OK);
}

TEST(an_arena_over_its_budget_is_an_error)
{
    QF_CLEANUP(qf_freep) char *text = repeat("1", "+1", 1000, "");

    for (size_t budget = 1000; budget < 300000; budget += 1009) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(budget);
        struct pq_expr *node = NULL;
        struct qf_err err = { 0 };
        qf_rc rc = pq_parse(arena, qf_str_from(text), NULL, &node, &err);

        CHECK(rc == QF_OK || rc == QF_ELIMIT);
        CHECK((rc == QF_OK) == (node != NULL));
    }
}

/* Any bytes at all: a tree or an error with a place inside the text. */
TEST(bytes_that_are_no_text_are_errors)
{
    static const char *const hostile[] = {
        "\xff",           "\"\xff\"",           "foo{a=\"\xc3\x28\"}",
        "`\xed\xa0\x80`", "\xf4\x90\x80\x80",   "'\xef\xbf\xbd'",
        "foo\xc0\xaf",    "{\"\xe2\x28\xa1\"}", "# \xff\n1",
        "foo[5m\xff]",
    };
    struct qf_prng prng = { 7 };
    struct qf_err err;

    for (size_t i = 0; i < QF_COUNT_OF(hostile); i++)
        (void)parse(hostile[i], 0, &err);
    for (int round = 0; round < 3000; round++) {
        static const char alphabet[] = "(){}[]\"'`\\+-*/^%@,:=~!<>#x_ 0159amsboyr.\n\xff\xc3";
        char text[40];
        size_t len = qf_prng_below(&prng, sizeof(text) - 1);

        for (size_t i = 0; i < len; i++)
            text[i] = alphabet[qf_prng_below(&prng, sizeof(alphabet) - 1)];
        text[len] = '\0';
        if (parse(text, 0, &err) == QF_EPARSE)
            CHECK(err.msg[0] && err.pos_start <= err.pos_end && err.pos_end <= len);
    }
}
