/* test_parse.c - texts to trees. */
#include "promql/functions.h"
#include "promql/parse.h"
#include "tests/lib/test.h"

static const struct pq_parse_options all = {
    .experimental_functions = true,
    .extended_range_selectors = true,
    .fill_modifiers = true,
};

/* Parse what must parse. The arena is the caller's. */
static struct pq_expr *parse(struct qf_arena *arena, const char *text)
{
    struct pq_expr *node = NULL;
    struct qf_err err = { 0 };

    if (pq_parse(arena, qf_str_from(text), &all, &node, &err) != QF_OK)
        test_fail(__FILE__, __LINE__, "%s: [%zu,%zu) %s", text, err.pos_start, err.pos_end,
                  err.msg);
    return node;
}

#define WITH_ARENA QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX)

TEST(operators_bind_by_their_levels)
{
    WITH_ARENA;
    struct pq_expr *node = parse(arena, "a or b and c == d + e * -f ^ g ^ h");

    CHECK_EQ(node->binary.op, PQ_OP_OR);
    node = node->binary.rhs;
    CHECK_EQ(node->binary.op, PQ_OP_AND);
    node = node->binary.rhs;
    CHECK_EQ(node->binary.op, PQ_OP_EQLC);
    node = node->binary.rhs;
    CHECK_EQ(node->binary.op, PQ_OP_ADD);
    node = node->binary.rhs;
    CHECK_EQ(node->binary.op, PQ_OP_MUL);
    node = node->binary.rhs;
    CHECK_EQ(node->kind, PQ_UNARY);
    node = node->unary.expr;
    CHECK_EQ(node->binary.op, PQ_OP_POW);
    CHECK_EQ(node->binary.lhs->kind, PQ_VECTOR_SELECTOR);
    CHECK_EQ(node->binary.rhs->binary.op, PQ_OP_POW);
}

TEST(equal_levels_group_to_the_left)
{
    WITH_ARENA;
    struct pq_expr *node = parse(arena, "a - b + c");

    CHECK_EQ(node->binary.op, PQ_OP_ADD);
    CHECK_EQ(node->binary.lhs->binary.op, PQ_OP_SUB);
    CHECK_EQ(node->height, 3);
    CHECK_EQ(node->type, PQ_TYPE_VECTOR);
}

TEST(a_selector_carries_its_modifiers_in_any_order)
{
    WITH_ARENA;
    struct pq_expr *node = parse(arena, "rate(foo{a=~\"x.*\"}[5m] @ 12.5 offset -1h)");
    const struct pq_expr *selector;

    CHECK_EQ(node->kind, PQ_CALL);
    CHECK_EQ(node->call.function->id, PQ_FN_RATE);
    node = node->call.args[0];
    CHECK_EQ(node->kind, PQ_MATRIX_SELECTOR);
    CHECK_EQ(node->matrix.range_ms, 300000);
    selector = node->matrix.selector;
    CHECK_EQ(selector->vector.matcher_count, 2);
    CHECK(pq_matcher_matches(&selector->vector.matchers[0], QF_STR("xyz")));
    CHECK(!pq_matcher_matches(&selector->vector.matchers[0], QF_STR("yz")));
    CHECK_EQ(selector->vector.shift.at, PQ_AT_TIME);
    CHECK_EQ(selector->vector.shift.at_ms, 12500);
    CHECK_EQ(selector->vector.shift.offset_ms, -3600000);
}

/* Every form that the other parts of the language library rely on. */
TEST(the_whole_language_parses)
{
    static const char *const texts[] = {
        "1",
        "-1.5e-3",
        "0x1f",
        "1_000",
        "1h30m",
        "Inf",
        "nan",
        "'text'",
        "foo",
        "foo:bar:baz",
        "{\"utf-8 name\", \"label.name\"=\"v\"}",
        "{__name__=~\"a|b\", c!=\"d\", e!~\"f\",}",
        "foo offset 5m",
        "foo offset -(1h + step())",
        "foo @ start() offset 5m",
        "foo offset 5m @ end()",
        "foo[5m]",
        "foo[2 * 5m - 1]",
        "foo[max_of(range(), 5s)]",
        "foo[1h:]",
        "foo[1h:5m] @ 7 offset 1m",
        "rate(foo[5m])[1h:1m]",
        "foo[5m] anchored",
        "foo smoothed",
        "sum by (a, \"b.c\",) (foo)",
        "sum(foo) without ()",
        "topk(5, foo)",
        "count_values(\"v\", foo)",
        "limitk by (a) (2, foo)",
        "quantile(scalar(foo), foo)",
        "foo + on(a) group_left(b) bar",
        "foo == bool ignoring(a) group_right bar",
        "foo and on() bar",
        "foo + fill(0) bar",
        "foo + on(a) fill_left(1) fill_right(-1) bar",
        "foo </ 1",
        "foo atan2 bar",
        "1 + # a comment\n 2",
        "time()",
        "hour()",
        "label_join(foo, \"d\", \",\")",
        "label_join(foo, \"d\", \",\", \"a\", \"b\")",
        "info(foo, {})",
        "histogram_quantiles(foo, \"q\", 0.5, 0.9)",
        "start() + step()",
        "min_of(1, 2)",
        "sum + by + offset + start",
        "fill + fill_left",
        "(((foo)))",
        "-(-foo)",
        "SUM(foo) BY (x)",
    };

    for (size_t i = 0; i < QF_COUNT_OF(texts); i++) {
        WITH_ARENA;

        (void)parse(arena, texts[i]);
    }
}
