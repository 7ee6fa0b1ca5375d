/* test_instant.c - functions of one value and operators of two. */
#include <math.h>

#include "promql/func/binary_op.h"
#include "promql/func/kernels.h"
#include "tests/lib/test.h"

static double unary(enum pq_function_id fn, double value)
{
    pq_value1_fn *kernel = pq_kernels_of(fn)->value1;

    CHECK(kernel != NULL);
    return kernel(value);
}

TEST(rounding_goes_to_the_nearest_multiple_and_halves_up)
{
    CHECK_BITS(pq_fn_round(2.5, 1), 3.0);
    CHECK_BITS(pq_fn_round(-2.5, 1), -2.0);
    CHECK_BITS(pq_fn_round(7, 5), 5.0);
    CHECK_BITS(pq_fn_round(8, 5), 10.0);
    CHECK_BITS(pq_fn_round(0.15, 0.1), 0.2);
    CHECK_BITS(pq_fn_round(-INFINITY, 1), -INFINITY);
    CHECK(isnan(pq_fn_round(NAN, 1)));
    CHECK_BITS(unary(PQ_FN_CEIL, -2.5), -2.0);
    CHECK_BITS(unary(PQ_FN_FLOOR, -2.5), -3.0);
    CHECK_BITS(unary(PQ_FN_ABS, -2.5), 2.5);
}

TEST(clamping_keeps_nan_and_knows_empty_ranges)
{
    CHECK_BITS(pq_fn_clamp(-50, -25, 75), -25.0);
    CHECK_BITS(pq_fn_clamp(100, -25, 75), 75.0);
    CHECK(isnan(pq_fn_clamp(1, 0, NAN)));
    CHECK(isnan(pq_fn_clamp_min(NAN, 0)));
    CHECK_BITS(pq_fn_clamp_max(100, 75), 75.0);
    CHECK(pq_fn_clamp_empty(5, -5));
    CHECK(!pq_fn_clamp_empty(5, NAN));
}

/* As Go defines them, which is not what fmin and fmax do. */
TEST(min_of_and_max_of_propagate_nan_unless_an_infinity_decides)
{
    CHECK_BITS(pq_fn_min_of(5, 3), 3.0);
    CHECK_BITS(pq_fn_max_of(5, 3), 5.0);
    CHECK(isnan(pq_fn_min_of(NAN, 3)));
    CHECK(isnan(pq_fn_max_of(3, NAN)));
    CHECK_BITS(pq_fn_min_of(NAN, -INFINITY), -INFINITY);
    CHECK_BITS(pq_fn_max_of(INFINITY, NAN), INFINITY);
    CHECK_BITS(pq_fn_min_of(0.0, -0.0), -0.0);
    CHECK_BITS(pq_fn_max_of(-0.0, 0.0), 0.0);
}

TEST(sgn_keeps_zero_and_nan)
{
    CHECK_BITS(unary(PQ_FN_SGN, -7), -1.0);
    CHECK_BITS(unary(PQ_FN_SGN, INFINITY), 1.0);
    CHECK_BITS(unary(PQ_FN_SGN, 0), 0.0);
    CHECK(isnan(unary(PQ_FN_SGN, NAN)));
}

TEST(logarithms_are_exact_where_go_has_them_exact)
{
    CHECK_BITS(unary(PQ_FN_LOG2, 8), 3.0);
    CHECK_BITS(unary(PQ_FN_LOG2, 0.25), -2.0);
    CHECK_BITS(unary(PQ_FN_LOG2, 0), -INFINITY);
    CHECK(isnan(unary(PQ_FN_LOG2, -1)));
    CHECK_BITS(unary(PQ_FN_LOG2, INFINITY), INFINITY);
    CHECK(fabs(unary(PQ_FN_LOG10, 1000) - 3) < 1e-15);
    CHECK_BITS(unary(PQ_FN_LN, 1), 0.0);
    CHECK_BITS(unary(PQ_FN_EXP, 0), 1.0);
    CHECK_BITS(unary(PQ_FN_SQRT, 9), 3.0);
}

TEST(angles_convert_and_curves_are_the_usual_ones)
{
    CHECK_BITS(unary(PQ_FN_DEG, M_PI), 180.0);
    CHECK_BITS(unary(PQ_FN_RAD, 180), M_PI);
    CHECK_BITS(unary(PQ_FN_SIN, 0), 0.0);
    CHECK_BITS(unary(PQ_FN_COS, 0), 1.0);
    CHECK_BITS(unary(PQ_FN_ATANH, 1), INFINITY);
    CHECK(isnan(unary(PQ_FN_ACOSH, 0)));
    CHECK(isnan(unary(PQ_FN_ASIN, 2)));
}

/* 2016-12-31 13:37:00 UTC, a Saturday, the 366th day of a leap year. */
TEST(dates_are_read_in_utc)
{
    const double t = 1483191420;

    CHECK_BITS(unary(PQ_FN_YEAR, t), 2016.0);
    CHECK_BITS(unary(PQ_FN_MONTH, t), 12.0);
    CHECK_BITS(unary(PQ_FN_DAY_OF_MONTH, t), 31.0);
    CHECK_BITS(unary(PQ_FN_DAY_OF_WEEK, t), 6.0);
    CHECK_BITS(unary(PQ_FN_DAY_OF_YEAR, t), 366.0);
    CHECK_BITS(unary(PQ_FN_HOUR, t), 13.0);
    CHECK_BITS(unary(PQ_FN_MINUTE, t + 59.9), 37.0);
    CHECK_BITS(unary(PQ_FN_DAYS_IN_MONTH, 1454284800), 29.0);
    CHECK_BITS(unary(PQ_FN_DAYS_IN_MONTH, 1485907200), 28.0);
    CHECK_BITS(unary(PQ_FN_YEAR, -1), 1969.0);
    CHECK_BITS(unary(PQ_FN_YEAR, -1e18), -31688736537.0);
}

/* No crash, and what Prometheus says. */
TEST(dates_beyond_the_calendar_are_its_end)
{
    CHECK_BITS(unary(PQ_FN_YEAR, NAN), 292277026596.0);
    CHECK_BITS(unary(PQ_FN_MONTH, INFINITY), 12.0);
    CHECK_BITS(unary(PQ_FN_DAY_OF_MONTH, -INFINITY), 4.0);
    CHECK_BITS(unary(PQ_FN_DAY_OF_WEEK, 1e300), 0.0);
    CHECK_BITS(unary(PQ_FN_MINUTE, -1e300), 30.0);
}

TEST(other_functions_have_no_unary_kernel)
{
    CHECK(pq_kernels_of(PQ_FN_RATE)->value1 == NULL);
    CHECK(pq_kernels_of(PQ_FN_CLAMP)->value1 == NULL);
    CHECK(pq_fn_arith(PQ_OP_AND) == NULL);
    CHECK(pq_fn_arith(PQ_OP_EQLC) == NULL);
    CHECK(pq_fn_compare(PQ_OP_ADD) == NULL);
}

static double arith(enum pq_op op, double left, double right)
{
    double got = -1;

    CHECK(pq_fn_binary(op, left, right, false, &got));
    return got;
}

TEST(arithmetic_follows_ieee_and_go)
{
    CHECK_BITS(arith(PQ_OP_ADD, 1, 2), 3.0);
    CHECK_BITS(arith(PQ_OP_SUB, 1, 2), -1.0);
    CHECK_BITS(arith(PQ_OP_MUL, 3, 2), 6.0);
    CHECK_BITS(arith(PQ_OP_DIV, 1, 0), INFINITY);
    CHECK(isnan(arith(PQ_OP_DIV, 0, 0)));
    CHECK_BITS(arith(PQ_OP_MOD, -7, 3), -1.0); /* the sign of the dividend */
    CHECK_BITS(arith(PQ_OP_MOD, 7, INFINITY), 7.0);
    CHECK(isnan(arith(PQ_OP_MOD, 7, 0)));
    CHECK_BITS(arith(PQ_OP_POW, 2, 10), 1024.0);
    CHECK_BITS(arith(PQ_OP_POW, 1, NAN), 1.0);
    CHECK_BITS(arith(PQ_OP_POW, NAN, 0), 1.0);
    CHECK(isnan(arith(PQ_OP_POW, -8, 1.0 / 3)));
    CHECK_BITS(arith(PQ_OP_ATAN2, 0, -1), M_PI);
}

/* A filter keeps the left value; bool answers 0 or 1. */
TEST(comparisons_filter_or_answer)
{
    double got = -1;

    CHECK(pq_fn_binary(PQ_OP_GTR, 3, 2, false, &got));
    CHECK_BITS(got, 3.0);
    CHECK(!pq_fn_binary(PQ_OP_GTR, 2, 2, false, &got));
    CHECK(pq_fn_binary(PQ_OP_GTR, 2, 2, true, &got));
    CHECK_BITS(got, 0.0);
    CHECK(pq_fn_binary(PQ_OP_GTE, 2, 2, true, &got));
    CHECK_BITS(got, 1.0);
    CHECK(pq_fn_binary(PQ_OP_LSS, 1, 2, false, &got));
    CHECK(pq_fn_binary(PQ_OP_LTE, 2, 2, false, &got));
    CHECK(pq_fn_binary(PQ_OP_EQLC, 2, 2, false, &got));
    CHECK(pq_fn_binary(PQ_OP_NEQ, NAN, NAN, false, &got));
    CHECK(!pq_fn_binary(PQ_OP_EQLC, NAN, NAN, false, &got));
    CHECK(!pq_fn_binary(PQ_OP_LTE, NAN, NAN, false, &got));
}
