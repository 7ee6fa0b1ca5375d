/* test_print.c - trees back to text. */
#include "promql/parse.h"
#include "tests/lib/test.h"

static const struct pq_parse_options all = {
    .experimental_functions = true,
    .extended_range_selectors = true,
    .fill_modifiers = true,
};

enum form { LINE, PRETTY, JSON };

static void print(struct qf_strbuf *out, const char *text, enum form form, size_t columns)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_expr *node = NULL;
    struct qf_err err = { 0 };

    CHECK_OK(pq_parse(arena, qf_str_from(text), &all, &node, &err), &err);
    qf_strbuf_reset(out);
    if (form == LINE)
        pq_print(out, node);
    else if (form == PRETTY)
        pq_pretty(out, node, columns);
    else
        pq_ast_json(out, node);
}

static void check_print(const char *text, const char *want, enum form form, size_t columns)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf out = QF_STRBUF_INIT;

    print(&out, text, form, columns);
    CHECK_STR(qf_strbuf_cstr(&out), want);
}

TEST(a_tree_prints_in_its_canonical_form)
{
    static const char *const pairs[][2] = {
        { "SUM(foo)by(a,\"b c\")", "sum by (a, \"b c\") (foo)" },
        { "foo{b='x',a=\"y\"}[90s]offset-1h@1.5",
          "foo{a=\"y\",b=\"x\"}[1m30s] @ 1.500 offset -1h" },
        { "a+on()b", "a + on () b" },
        { "a*ignoring(c)group_right()b", "a * ignoring (c) group_right () b" },
        { "a==bool b", "a == bool b" },
        { "-(1)^2", "-(1) ^ 2" },
        { "- - 1", "1" },
        { "1e3", "1000" },
        { "+inf", "+Inf" },
        { "inf ^ 2 ^ inf", "Inf ^ 2 ^ +Inf" },
        { "\"\\ufffd\"", "\"\\ufffd\"" },
        { "0x10", "16" },
        { "5m", "5m" },
        { "-90s", "-1m30s" },
        { "info(foo,{})", "info(foo, {})" },
        { "foo[1h:]", "foo[1h:]" },
        { "foo[step()*2:min_of(1m,range())]", "foo[step() * 2:min_of(1m, range())]" },
        { "{\"a b\"}", "{__name__=\"a b\"}" },
        { "'it\\'s \"q\"'", "\"it's \\\"q\\\"\"" },
        { "a + fill_left(1) b", "a + fill_left (1) b" },
        { "a + fill(2) b", "a + fill (2) b" },
        { "topk(5,a)", "topk(5, a)" },
        { "rate(a[5m] anchored)", "rate(a[5m] anchored)" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(pairs); i++)
        check_print(pairs[i][0], pairs[i][1], LINE, 0);
}

TEST(long_expressions_are_split_and_indented)
{
    check_print("sum(rate(foo[5m]))", "sum(rate(foo[5m]))", PRETTY, 100);
    check_print("sum by (a) (rate(foo[5m])) / -topk(5, bar)",
                "  sum by (a) (\n"
                "    rate(foo[5m])\n"
                "  )\n"
                "/\n"
                "  -topk(5, bar)",
                PRETTY, 15);
    check_print("max_over_time(rate(some_metric[5m])[1h:1m])",
                "max_over_time(\n"
                "  rate(\n"
                "    some_metric[5m]\n"
                "  )[1h:1m]\n"
                ")",
                PRETTY, 10);
}

TEST(a_tree_is_shown_as_json)
{
    check_print("1", "{\"type\":\"numberLiteral\",\"val\":\"1\"}", JSON, 0);
    check_print("-(2)",
                "{\"expr\":{\"expr\":{\"type\":\"numberLiteral\",\"val\":\"2\"},"
                "\"type\":\"parenExpr\"},\"op\":\"-\",\"type\":\"unaryExpr\"}",
                JSON, 0);
    check_print("'a\"'", "{\"type\":\"stringLiteral\",\"val\":\"a\\\"\"}", JSON, 0);
}

TEST(selectors_and_calls_are_shown_as_json)
{
    check_print(
        "round(foo @ end())",
        "{\"args\":[{\"anchored\":false,\"matchers\":[{\"name\":\"__name__\",\"type\":\"=\","
        "\"value\":\"foo\"}],\"name\":\"foo\",\"offset\":0,\"smoothed\":false,"
        "\"startOrEnd\":\"end\",\"timestamp\":null,\"type\":\"vectorSelector\"}],"
        "\"func\":{\"argTypes\":[\"vector\",\"scalar\"],\"name\":\"round\","
        "\"returnType\":\"vector\",\"variadic\":1},\"type\":\"call\"}",
        JSON, 0);
}

TEST(binary_operators_are_shown_as_json)
{
    check_print("1 + 2",
                "{\"bool\":false,\"lhs\":{\"type\":\"numberLiteral\",\"val\":\"1\"},"
                "\"matching\":null,\"op\":\"+\",\"rhs\":{\"type\":\"numberLiteral\",\"val\":\"2\"},"
                "\"type\":\"binaryExpr\"}",
                JSON, 0);
}
