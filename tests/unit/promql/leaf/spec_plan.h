/* spec_plan.h - the plan of a query, for tests of its leaves. */
#ifndef TESTS_UNIT_PROMQL_LEAF_SPEC_PLAN_H
#define TESTS_UNIT_PROMQL_LEAF_SPEC_PLAN_H

#include "promql/parse.h"
#include "promql/plan.h"
#include "tests/lib/promql/spec_queries.h"
#include "tests/lib/test.h"

static inline struct pq_plan *spec_plan(struct qf_arena *arena, const char *query)
{
    struct pq_parse_options options = { .experimental_functions = true,
                                        .extended_range_selectors = true };
    struct pq_query_params params = { .start_ms = 5000000, .end_ms = 6000000, .step_ms = 1000 };
    struct pq_expr *expr;
    struct pq_plan *result;
    struct qf_err err = { 0 };

    CHECK_OK(pq_parse(arena, qf_str_from(query), &options, &expr, &err), &err);
    CHECK_OK(pq_plan_new(arena, expr, qf_str_from(query), &params, &result, &err), &err);
    return result;
}

#endif
