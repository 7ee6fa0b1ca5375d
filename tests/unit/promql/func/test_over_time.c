/* test_over_time.c - aggregations over one window, and the accumulators they share with sum, avg.
 */
#include <math.h>
#include <string.h>

#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "promql/func/aggregate.h"
#include "promql/func/kernels.h"
#include "promql/func/quantile.h"
#include "tests/lib/test.h"

static const int64_t times[] = { 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000 };

static double eval(pq_window_fn *fn, const double *values, size_t count, double a, double b)
{
    double scratch[8], got = 0;
    struct pq_window w = { .ts = times,
                           .values = values,
                           .count = count,
                           .range_start = 0,
                           .range_end = 10000,
                           .eval_ts = 10000,
                           .params = { a, b },
                           .scratch = scratch };

    CHECK(fn(&w, &got));
    return got;
}

#define EVAL(fn, a, b, ...)                                                                        \
    eval(fn, (const double[]){ __VA_ARGS__ }, sizeof((const double[]){ __VA_ARGS__ }) / 8, a, b)

static void check_near(double got, double want)
{
    CHECK_MSG(fabs(got - want) <= 1e-12 * (1 + fabs(want)), "got %.17g, want %.17g", got, want);
}

/* 1e100 swallows both ones; the compensation remembers them. */
TEST(sums_are_compensated)
{
    CHECK_BITS(EVAL(pq_fn_sum_over_time, 0, 0, 1, 1e100, 1, -1e100), 2.0);
    CHECK_BITS(EVAL(pq_fn_avg_over_time, 0, 0, 1, 1e100, 1, -1e100), 0.5);
    CHECK_BITS(EVAL(pq_fn_sum_over_time, 0, 0, 0.1, 0.2, 0.3), 0.6);
}

/* Infinities do not turn into NaN by their compensation, but opposite ones do. */
TEST(infinite_sums_stay_infinite)
{
    CHECK_BITS(EVAL(pq_fn_sum_over_time, 0, 0, 1, INFINITY, 2), INFINITY);
    CHECK(isnan(EVAL(pq_fn_sum_over_time, 0, 0, INFINITY, -INFINITY)));
    CHECK_BITS(EVAL(pq_fn_avg_over_time, 0, 0, INFINITY, 0, INFINITY), INFINITY);
    CHECK(isnan(EVAL(pq_fn_avg_over_time, 0, 0, 1, INFINITY, -INFINITY)));
}

/* The sum of two such values overflows; their mean must not. */
TEST(averages_survive_overflow)
{
    double big = 9.9e307;

    check_near(EVAL(pq_fn_avg_over_time, 0, 0, big, big, big) / big, 1);
    check_near(EVAL(pq_fn_avg_over_time, 0, 0, -big, big), 0);
}

TEST(min_and_max_pass_over_nan)
{
    CHECK_BITS(EVAL(pq_fn_min_over_time, 0, 0, NAN, 3, 2, NAN), 2.0);
    CHECK_BITS(EVAL(pq_fn_max_over_time, 0, 0, NAN, 3, 4, NAN), 4.0);
    CHECK(isnan(EVAL(pq_fn_min_over_time, 0, 0, NAN, NAN)));
    CHECK_BITS(EVAL(pq_fn_ts_of_min_over_time, 0, 0, 2, 1, 5, 1), 4.0);
    CHECK_BITS(EVAL(pq_fn_ts_of_max_over_time, 0, 0, 5, 1, 5, 1), 3.0);
    CHECK_BITS(EVAL(pq_fn_ts_of_max_over_time, 0, 0, NAN, 1, NAN), 2.0);
}

TEST(counts_and_ends_are_what_they_say)
{
    CHECK_BITS(EVAL(pq_fn_count_over_time, 0, 0, 7, 8, 9), 3.0);
    CHECK_BITS(EVAL(pq_fn_present_over_time, 0, 0, 7, 8, 9), 1.0);
    CHECK_BITS(EVAL(pq_fn_first_over_time, 0, 0, 7, 8, 9), 7.0);
    CHECK_BITS(EVAL(pq_fn_last_over_time, 0, 0, 7, 8, 9), 9.0);
    CHECK_BITS(EVAL(pq_fn_ts_of_first_over_time, 0, 0, 7, 8, 9), 1.0);
    CHECK_BITS(EVAL(pq_fn_ts_of_last_over_time, 0, 0, 7, 8, 9), 3.0);
}

TEST(deviation_is_that_of_the_population)
{
    check_near(EVAL(pq_fn_stdvar_over_time, 0, 0, 0, 8, 8, 2, 3), 10.56);
    check_near(EVAL(pq_fn_stddev_over_time, 0, 0, 0, 8, 8, 2, 3), sqrt(10.56));
    CHECK_BITS(EVAL(pq_fn_stdvar_over_time, 0, 0, 1.6, 1.6, 1.6), 0.0);
}

TEST(quantiles_are_interpolated)
{
    check_near(EVAL(pq_fn_quantile_over_time, 0.75, 0, 4, 0, 1), 2.5);
    check_near(EVAL(pq_fn_quantile_over_time, 0, 0, 4, 0, 1), 0);
    check_near(EVAL(pq_fn_quantile_over_time, 1, 0, 4, 0, 1), 4);
    CHECK_BITS(EVAL(pq_fn_quantile_over_time, -0.1, 0, 4, 0, 1), -INFINITY);
    CHECK_BITS(EVAL(pq_fn_quantile_over_time, 1.1, 0, 4, 0, 1), INFINITY);
    CHECK(isnan(EVAL(pq_fn_quantile_over_time, NAN, 0, 4, 0, 1)));
    CHECK(isnan(EVAL(pq_fn_quantile_over_time, 0, 0, 4, NAN, 1))); /* NaN is the smallest */
    check_near(EVAL(pq_fn_quantile_over_time, 1, 0, 4, NAN, 1), 4);
    check_near(EVAL(pq_fn_mad_over_time, 0, 0, 4, 6, 2, 1, 999, 1, 2), 1);
    CHECK(isnan(EVAL(pq_fn_mad_over_time, 0, 0, 1, 2, NAN, 4)));
}

/* As a stable sort by insertion leaves them. */
static void sort_plainly(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t at = i; at > 0; at--) {
            double before = values[at - 1], value = values[at];
            bool moves = isnan(value) ? !isnan(before) : before > value;

            if (!moves)
                break;
            values[at] = before;
            values[at - 1] = value;
        }
}

/* Few values and many, zeros of both signs, infinities, NaNs that can be told from each other. */
TEST(sorting_keeps_equal_values_in_their_order)
{
    static const double odd[] = { -0.0, 0, INFINITY, -INFINITY, 1, 1 };
    double values[700], want[700];

    for (uint64_t seed = 0; seed < 400; seed++) {
        struct qf_prng prng = { seed };
        size_t count = qf_prng_below(&prng, qf_prng_chance(&prng, 0.1) ? 700 : 80);
        double few = qf_prng_chance(&prng, 0.5) ? 0.5 : 0;

        for (size_t i = 0; i < count; i++) {
            values[i] = qf_prng_chance(&prng, few) ? odd[qf_prng_below(&prng, QF_COUNT_OF(odd))]
                                                   : qf_prng_unit(&prng) - 0.5;
            if (qf_prng_chance(&prng, few / 4))
                values[i] =
                    qf_double_from_bits(UINT64_C(0x7ff8000000000000) + qf_prng_below(&prng, 9));
        }
        memcpy(want, values, sizeof(want));
        sort_plainly(want, count);
        pq_fn_sort_values(values, count, NULL);
        for (size_t i = 0; i < count; i++)
            CHECK_EQ(qf_double_bits(values[i]), qf_double_bits(want[i]));
    }
}

/* The median of many values. */
TEST(long_arrays_are_sorted_too)
{
    double values[1001];

    for (size_t i = 0; i < 1001; i++)
        values[i] = (double)((i * 37) % 1001);
    CHECK_BITS(pq_fn_quantile(0.5, values, 1001, NULL), 500.0);
    CHECK_BITS(pq_fn_quantile(0.5, values, 101, NULL), 50.0);
}

/* y = 2x + 1 with x in seconds: at eval time 10 s it is 21, five seconds later 31. */
TEST(lines_are_found_exactly)
{
    check_near(EVAL(pq_fn_deriv, 0, 0, 3, 5, 7, 9), 2);
    check_near(EVAL(pq_fn_predict_linear, 5, 0, 3, 5, 7, 9), 31);
    CHECK_BITS(EVAL(pq_fn_deriv, 0, 0, 0.1, 0.1, 0.1), 0.0);
    CHECK_BITS(EVAL(pq_fn_predict_linear, 5, 0, 0.1, 0.1, 0.1), 0.1);
    CHECK(isnan(EVAL(pq_fn_deriv, 0, 0, INFINITY, INFINITY)));
}

TEST(smoothing_follows_a_straight_trend)
{
    check_near(EVAL(pq_fn_double_exponential_smoothing, 0.5, 0.1, 10, 20, 30, 40), 40);
    /* Level 1, trend 1; then level 0.5*2 + 0.5*2 = 2; then trend 0.5*1 + 0.5*1 = 1 and
     * 0.5*5 + 0.5*3 = 4. */
    check_near(EVAL(pq_fn_double_exponential_smoothing, 0.5, 0.5, 1, 2, 5), 4);
}

TEST(windows_too_short_have_no_answer)
{
    const double values[] = { 1 };
    struct pq_window w = { .ts = times, .values = values, .count = 1 };
    double got;

    CHECK(!pq_fn_deriv(&w, &got));
    CHECK(!pq_fn_predict_linear(&w, &got));
    CHECK(!pq_fn_double_exponential_smoothing(&w, &got));
    w.count = 0;
    CHECK(!pq_fn_sum_over_time(&w, &got));
    CHECK(!pq_fn_avg_over_time(&w, &got));
    CHECK(!pq_fn_min_over_time(&w, &got));
    CHECK(!pq_fn_count_over_time(&w, &got));
    CHECK(!pq_fn_last_over_time(&w, &got));
}

static struct pq_avg avg_of(const double *values, size_t count)
{
    struct pq_avg avg = { 0 };

    for (size_t i = 0; i < count; i++)
        pq_avg_add(&avg, values[i]);
    return avg;
}

/* However the values are split, the merged average is that of all of them. */
TEST(partial_averages_merge)
{
    const double cases[][4] = {
        { 1, 2, 3, 4 },        { 1, 1e100, 1, -1e100 },      { 9e307, 9e307, 9e307, 9e307 },
        { INFINITY, 1, 2, 3 }, { 1, 2, INFINITY, INFINITY },
    };

    for (size_t c = 0; c < QF_COUNT_OF(cases); c++) {
        struct pq_avg whole = avg_of(cases[c], 4);

        for (size_t split = 0; split <= 4; split++) {
            struct pq_avg left = avg_of(cases[c], split);
            struct pq_avg right = avg_of(cases[c] + split, 4 - split);

            pq_avg_merge(&left, &right);
            if (isinf(pq_avg_value(&whole)))
                CHECK_BITS(pq_avg_value(&left), pq_avg_value(&whole));
            else
                check_near(pq_avg_value(&left) / pq_avg_value(&whole), 1);
        }
    }
}

/* Not only near: the same bits for any split of values that round. */
TEST(averages_do_not_show_how_they_were_split)
{
    struct qf_prng prng = { 11 };

    for (int round = 0; round < 2000; round++) {
        double values[9];
        struct pq_avg whole;

        for (size_t i = 0; i < 9; i++)
            values[i] = qf_prng_unit(&prng) * (qf_prng_chance(&prng, 0.3) ? 1e6 : 1) - 0.4;
        whole = avg_of(values, 9);
        for (size_t split = 1; split < 9; split++) {
            struct pq_avg left = avg_of(values, split), right = avg_of(values + split, 9 - split);

            pq_avg_merge(&left, &right);
            CHECK_BITS(pq_avg_value(&left), pq_avg_value(&whole));
        }
    }
}
