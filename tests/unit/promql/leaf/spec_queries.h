/* spec_queries.h - one query for every kind of leaf and stage. */
#ifndef TESTS_UNIT_PROMQL_LEAF_SPEC_QUERIES_H
#define TESTS_UNIT_PROMQL_LEAF_SPEC_QUERIES_H

#include "promql/parse.h"
#include "promql/plan.h"
#include "tests/lib/test.h"

/* One query for every kind of leaf and stage. */
static const char *const spec_queries[] = {
    "up",
    "up{a!=\"b\",c=~\"d.*\",e!~\"f|g\"} offset -5m",
    "rate(up[5m] @ 1234.567)",
    "increase(up[5m] anchored)",
    "up smoothed",
    "timestamp(up)",
    "start_timestamp(up)",
    "sum by (b, a, \"ü\") (rate(up[5m]))",
    "avg without (a) (up * 2)",
    "stddev(3 > bool up)",
    "min(clamp(up, 1, 2))",
    "max(round(up))",
    "count(up != 0)",
    "group(up)",
    "count_values(\"v\", up)",
    "topk(3, up)",
    "bottomk by (x) (3, up)",
    "limitk(3, up)",
    "quantile_over_time(0.5, up[5m])",
    "predict_linear(up[5m], 3600)",
    "double_exponential_smoothing(up[5m], 0.5, 0.25)",
    "max_over_time(abs(rate(up[1m]))[10m:30s] offset 1h)",
    "quantile_over_time(scalar(up), up[5m])",
    "-up",
};

static inline struct pq_plan *spec_plan(struct qf_arena *arena, const char *query)
{
    struct pq_parse_options options = { .experimental_functions = true,
                                        .extended_range_selectors = true };
    struct pq_query_params params = { .start_ms = 5000000, .end_ms = 6000000, .step_ms = 1000 };
    struct pq_node *expr;
    struct pq_plan *result;
    struct qf_err err = { 0 };

    CHECK_OK(pq_parse(arena, qf_str_from(query), &options, &expr, &err), &err);
    CHECK_OK(pq_plan_new(arena, expr, qf_str_from(query), &params, &result, &err), &err);
    return result;
}

#endif
