/* test_functions.c - the table of PromQL functions. */
#include "promql/functions.h"
#include "tests/lib/test.h"

/* Lookup is a binary search: the rows must be sorted and the ids their positions. */
TEST(every_function_is_found_under_its_name_and_id)
{
    for (int id = 0; id < PQ_FN__COUNT; id++) {
        const struct pq_function *function = pq_function_get((enum pq_function_id)id);

        CHECK_EQ(function->id, id);
        CHECK(pq_function_find(qf_str_from(function->name)) == function);
        CHECK(function->arg_count <= QF_COUNT_OF(function->arg_types));
        CHECK(function->return_type != PQ_TYPE_NONE);
    }
    CHECK(!pq_function_find(QF_STR("nosuch")));
    CHECK(!pq_function_find(QF_STR("")));
    CHECK(!pq_function_find(QF_STR("RATE")));
}

/* Prometheus 3 has 90 functions, 17 of them experimental. */
TEST(the_table_is_complete)
{
    int experimental = 0;

    for (int id = 0; id < PQ_FN__COUNT; id++)
        experimental += pq_function_get((enum pq_function_id)id)->experimental;
    CHECK_EQ(PQ_FN__COUNT, 90);
    CHECK_EQ(experimental, 17);
}

TEST(argument_counts_follow_the_variadic_column)
{
    const struct pq_function *quantiles = pq_function_get(PQ_FN_HISTOGRAM_QUANTILES);
    const struct pq_function *join = pq_function_get(PQ_FN_LABEL_JOIN);

    CHECK_EQ(pq_function_args_min(quantiles), 3);
    CHECK_EQ(pq_function_args_max(quantiles), 12);
    CHECK_EQ(pq_function_args_min(join), 3);
    CHECK(pq_function_args_max(join) == SIZE_MAX);
    CHECK_EQ(pq_function_arg_type(join, 0), PQ_TYPE_VECTOR);
    CHECK_EQ(pq_function_arg_type(join, 70), PQ_TYPE_STRING);
    CHECK_EQ(pq_function_args_min(pq_function_get(PQ_FN_HOUR)), 0);
    CHECK_EQ(pq_function_args_max(pq_function_get(PQ_FN_PI)), 0);
    CHECK_EQ(pq_function_arg_type(pq_function_get(PQ_FN_PI), 0), PQ_TYPE_NONE);
}
