/* test_plan.c - what goes into leaves, what stays above, and which times leaves read. */
#include "promql/parse.h"
#include "promql/plan.h"
#include "tests/lib/test.h"

static const struct pq_query_params range = { .start_ms = 600000,
                                              .end_ms = 1200000,
                                              .step_ms = 60000 };

static struct pq_plan *plan(struct qf_arena *arena, const char *query,
                            const struct pq_query_params *params, struct qf_err *err)
{
    struct pq_parse_options options = { .experimental_functions = true,
                                        .extended_range_selectors = true };
    struct pq_expr *expr;
    struct pq_plan *result = NULL;

    CHECK_OK(pq_parse(arena, qf_str_from(query), &options, &expr, err), err);
    if (pq_plan_new(arena, expr, qf_str_from(query), params, &result, err) != QF_OK)
        return NULL;
    return result;
}

static void check_explain(const char *query, const struct pq_query_params *params, const char *want)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    struct pq_plan *p = plan(arena, query, params, &err);

    CHECK_MSG(p != NULL, "%s: %s", query, err.msg);
    pq_plan_explain(&text, p);
    CHECK_STR(qf_strbuf_cstr(&text), want);
}

static void check_reads(const char *query, int64_t min_ts, int64_t max_ts)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_err err = { 0 };
    struct pq_plan *p = plan(arena, query, &range, &err);

    CHECK_MSG(p != NULL, "%s: %s", query, err.msg);
    CHECK_EQ(p->leaf_count, 1);
    CHECK_EQ(p->leaves[0]->select.min_ts, min_ts);
    CHECK_EQ(p->leaves[0]->select.max_ts, max_ts);
}

static void check_error(const char *query, const struct pq_query_params *params, const char *want)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_err err = { 0 };

    CHECK(plan(arena, query, params, &err) == NULL);
    CHECK_STR(err.msg, want);
}

/* A sum of rates is one leaf: groups travel, not series. */
TEST(an_aggregation_of_a_range_function_is_one_leaf)
{
    check_explain("sum by (job) (rate(up[5m]))", &range,
                  "leaf 0 drops names\n"
                  "leaf 0: sum: sum by (job) (rate({__name__=\"up\"}[5m]))\n"
                  "  reads [300001, 1200000], answers 11 steps of 60000 ms from 600000\n");
}

/* Arithmetic with constants, functions and subqueries of the same series stay in the leaf. */
TEST(steps_on_one_series_go_into_the_leaf)
{
    check_explain("max_over_time((abs(up) * 2 > 1)[10m:1m])", &range,
                  "leaf 0 drops names\n"
                  "leaf 0: series: max_over_time(((abs({__name__=\"up\"}) * 2) > 1)[10m:1m])\n"
                  "  reads [-239999, 1200000], answers 11 steps of 60000 ms from 600000\n");
}

/* Quantiles are not exact from partials: series travel. */
TEST(what_partials_cannot_answer_stays_above_the_leaf)
{
    check_explain("quantile(0.9, up)", &range,
                  "aggregate quantile\n"
                  "  leaf 0\n"
                  "  number 0.90000000000000002\n"
                  "leaf 0: series: {__name__=\"up\"}\n"
                  "  reads [300001, 1200000], answers 11 steps of 60000 ms from 600000\n");
}

/* Leaves send what may be chosen, a node above chooses. */
TEST(topk_and_limitk_choose_in_the_leaves_and_above)
{
    check_explain("topk(2, up)", &range,
                  "select topk\n"
                  "  leaf 0\n"
                  "  number 2\n"
                  "leaf 0: taken: topk by () (2, {__name__=\"up\"})\n"
                  "  reads [300001, 1200000], answers 11 steps of 60000 ms from 600000\n");
    check_explain("limitk(2, up)", &range,
                  "select limitk\n"
                  "  leaf 0\n"
                  "  number 2\n"
                  "leaf 0: candidates: limitk by () (2, {__name__=\"up\"})\n"
                  "  reads [300001, 1200000], answers 11 steps of 60000 ms from 600000\n");
}

/* Series that are one once their names are gone take the place of the first, which no shard sees. */
TEST(series_of_several_names_that_go_are_chosen_above_the_leaves)
{
    check_explain("topk(2, rate({job=\"a\"}[5m]))", &range,
                  "select topk\n"
                  "  leaf 0 drops names\n"
                  "  number 2\n"
                  "leaf 0: series: rate({job=\"a\"}[5m])\n"
                  "  reads [300001, 1200000], answers 11 steps of 60000 ms from 600000\n");
}

TEST(equal_leaves_are_planned_once)
{
    check_explain("rate(up[5m]) / rate(up[5m])", &range,
                  "binary /\n"
                  "  leaf 0 drops names\n"
                  "  leaf 0 drops names\n"
                  "leaf 0: series: rate({__name__=\"up\"}[5m])\n"
                  "  reads [300001, 1200000], answers 11 steps of 60000 ms from 600000\n");
}

TEST(what_is_pinned_by_at_is_planned_for_one_step)
{
    check_explain("sum(up @ 700) + up", &range,
                  "binary +\n"
                  "  repeat x11\n"
                  "    leaf 0\n"
                  "  leaf 1\n"
                  "leaf 0: sum: sum by () ({__name__=\"up\"})\n"
                  "  reads [400001, 700000], answers 1 steps of 1 ms from 700000\n"
                  "leaf 1: series: {__name__=\"up\"}\n"
                  "  reads [300001, 1200000], answers 11 steps of 60000 ms from 600000\n");
}

TEST(constants_are_folded)
{
    check_explain("2 * (3 + 1) > bool 7", &range, "number 1\n");
    check_explain("end() - start()", &range, "number 600\n");
}

/* Windows that change their parameter by step need the raw samples. */
TEST(a_varying_parameter_ships_raw_samples)
{
    check_explain("quantile_over_time(scalar(q), up[5m])", &range,
                  "window quantile_over_time drops names\n"
                  "  leaf 0\n"
                  "  scalar\n"
                  "    leaf 1\n"
                  "leaf 0: samples: {__name__=\"up\"}[5m]\n"
                  "  reads [300001, 1200000], answers 11 steps of 60000 ms from 600000\n"
                  "leaf 1: series: {__name__=\"q\"}\n"
                  "  reads [300001, 1200000], answers 11 steps of 60000 ms from 600000\n");
}

TEST(without_pushdown_leaves_are_selectors_with_their_function)
{
    struct pq_query_params params = range;

    params.no_pushdown = true;
    check_explain("sum(rate(up[5m]))", &params,
                  "aggregate sum\n"
                  "  leaf 0 drops names\n"
                  "leaf 0: series: rate({__name__=\"up\"}[5m])\n"
                  "  reads [300001, 1200000], answers 11 steps of 60000 ms from 600000\n");
}

/* Lookback, range, offset, @ and nested subqueries each move or widen what is read, exactly. */
TEST(leaves_read_exactly_the_times_they_look_at)
{
    check_reads("up", 300001, 1200000);
    check_reads("up offset 1m", 240001, 1140000);
    check_reads("up offset -1m", 360001, 1260000);
    check_reads("rate(up[2m])", 480001, 1200000);
    check_reads("rate(up[2m] @ 100)", -19999, 100000);
    check_reads("rate(up[2m] @ end() offset 10s)", 1070001, 1190000);
    /* Steps of the subquery: multiples of 30 s in (570000, 1200000]. */
    check_reads("sum_over_time(rate(up[2m])[30s:30s])", 480001, 1200000);
    /* Outer: (0, 1200000] by 100 s; inner: (100000 - 50000 .. 1200000] by 20 s. */
    check_reads("max_over_time(sum_over_time(up[50s:20s])[10m:100s])", -239999, 1200000);
}

TEST(anchored_and_smoothed_windows_read_beyond_their_ends)
{
    check_reads("rate(up[2m] anchored)", 180001, 1200000);
    check_reads("rate(up[2m] smoothed)", 180001, 1500000);
}

TEST(range_queries_answer_scalars_and_vectors_only)
{
    check_error("up[5m]", &range,
                "invalid expression type \"range vector\" for range query, must be Scalar or "
                "instant Vector");
    check_error("\"x\"", &range,
                "invalid expression type \"string\" for range query, must be Scalar or instant "
                "Vector");
}

TEST(durations_that_come_out_as_nothing_are_an_error)
{
    struct pq_query_params instant = { 0 };

    check_error("rate(up[step()])", &instant, "8:14: duration must be greater than 0");
}

TEST(errors_that_need_no_data_are_found_by_the_planner)
{
    check_error("rate(up[5m] anchored) + deriv(up[5m] anchored)", &range,
                "anchored modifier can only be used with: changes, delta, increase, rate, resets - "
                "not with deriv");
    check_error("label_replace(up, \"a\", \"\", \"b\", \"(\")", &range,
                "invalid regular expression in label_replace(): (");
    check_error("1 </ 2", &range, "operator \"</\" not allowed for Scalar operations");
}
