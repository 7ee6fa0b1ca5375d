/* test_large.c - inputs of ten megabytes, with the length limit lifted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "promql/parse.h"
#include "promql/parse/lex.h"
#include "tests/lib/test.h"

enum { MEGABYTE = 1 << 20 };

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

/* Ten megabytes of each; the time must grow with the length, not with its square. */
TEST(ten_megabytes_take_linear_time)
{
    static const char *const parts[][3] = {
        { "1", "+1", "" },        { "foo{", "a=\"b\",", "}" },    { "\"", "aaaaaaaa", "\"" },
        { "\"", "\\u0041", "" },  { "sum by (", "abc,", ")(x)" }, { "abs(", "foo,", "1)" },
        { "", "        ", "" },   { "#", "a comment ", "" },      { "1", "11111111", "" },
        { "a", "aaaaaaaa", "(" }, { "foo", "[5m:]", "" },         { "foo[1", "+1", "" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(parts); i++) {
        size_t count = 10 * (size_t)MEGABYTE / strlen(parts[i][1]);
        QF_CLEANUP(qf_freep) char *text = repeat(parts[i][0], parts[i][1], count, parts[i][2]);
        struct qf_err err;
        double start = seconds();

        (void)parse(text, 16 * MEGABYTE, &err);
        CHECK_MSG(seconds() - start < 10, "%s took %g s", parts[i][1], seconds() - start);
    }
}

/* What the default limits let through is lexed in less than 50 ms on an ordinary machine; the bound
 * here only catches a change of order. */
TEST(a_megabyte_is_lexed_at_once)
{
    QF_CLEANUP(qf_freep)
    char *text = repeat("", "sum(rate(foo{a=\"b\"}[5m])) + 1 ", MEGABYTE / 32, "");
    struct pq_lexer lexer;
    size_t tokens = 0;
    double start = seconds();

    pq_lex_init(&lexer, qf_str_from(text), NULL);
    while (pq_lex_next(&lexer).type > PQ_T_ERROR)
        tokens++;
    printf("  %zu bytes, %zu tokens, %.1f ms\n", strlen(text), tokens, (seconds() - start) * 1e3);
    CHECK(tokens > 500000);
    CHECK(seconds() - start < 2);
}
