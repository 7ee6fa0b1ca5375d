/* test_rate.c - rate, increase, delta and the counting of resets and changes. */
#include <math.h>

#include "promql/func/extended.h"
#include "promql/func/rate.h"
#include "tests/lib/test.h"

static struct pq_window window(const int64_t *ts, const double *values, size_t count, int64_t start,
                               int64_t end)
{
    return (struct pq_window){
        .ts = ts, .values = values, .count = count, .range_start = start, .range_end = end
    };
}

static void check_near(double got, double want)
{
    CHECK_MSG(fabs(got - want) <= 1e-9 * (1 + fabs(want)), "got %.17g, want %.17g", got, want);
}

/* Samples at both edges of the range seen: nothing to extrapolate but the left-open edge. */
TEST(a_full_window_extrapolates_to_its_open_edge)
{
    const int64_t ts[] = { 60000, 120000, 180000 };
    const double values[] = { 60, 120, 180 };
    struct pq_window w = window(ts, values, 3, 0, 180000);
    double got;

    CHECK(pq_fn_rate(&w, &got));
    check_near(got, 1);
    CHECK(pq_fn_increase(&w, &got));
    check_near(got, 180);
}

/* A gap longer than 1.1 intervals is filled by half an interval only. */
TEST(a_missing_sample_is_extrapolated_by_half_an_interval)
{
    const int64_t ts[] = { 200000, 210000 };
    const double values[] = { 1000, 1010 };
    struct pq_window w = window(ts, values, 2, 100000, 300000);
    double got;

    CHECK(pq_fn_increase(&w, &got));
    check_near(got, 20);
}

/* A counter is never extrapolated to a time at which it would have been negative; a gauge may. */
TEST(counters_do_not_go_below_zero_but_gauges_do)
{
    const int64_t ts[] = { 10000, 20000 };
    const double values[] = { 1, 11 };
    struct pq_window w = window(ts, values, 2, 0, 20000);
    double got;

    CHECK(pq_fn_increase(&w, &got));
    check_near(got, 11);
    CHECK(pq_fn_delta(&w, &got));
    check_near(got, 20);
}

TEST(a_drop_of_a_counter_is_a_restart_from_zero)
{
    const int64_t ts[] = { 10000, 20000, 30000, 40000 };
    const double values[] = { 10, 20, 5, 15 };
    struct pq_window w = window(ts, values, 4, 0, 40000);
    double got;

    CHECK(pq_fn_increase(&w, &got)); /* 10 + 5 + 10 = 25 over 30 s, 10 s more to the left */
    check_near(got, 25.0 * 40 / 30);
    CHECK(pq_fn_resets(&w, &got));
    check_near(got, 1);
    CHECK(pq_fn_changes(&w, &got));
    check_near(got, 3);
    CHECK(pq_fn_irate(&w, &got));
    check_near(got, 1);
    CHECK(pq_fn_idelta(&w, &got));
    check_near(got, 10);
    w.count = 3;
    CHECK(pq_fn_irate(&w, &got)); /* the last step is the restart: 5 in 10 s */
    check_near(got, 0.5);
    CHECK(pq_fn_idelta(&w, &got));
    check_near(got, -15);
}

TEST(one_sample_has_no_rate_but_can_be_counted)
{
    const int64_t ts[] = { 10000 };
    const double values[] = { 10 };
    struct pq_window w = window(ts, values, 1, 0, 40000);
    double got;

    CHECK(!pq_fn_rate(&w, &got));
    CHECK(!pq_fn_delta(&w, &got));
    CHECK(!pq_fn_irate(&w, &got));
    CHECK(pq_fn_resets(&w, &got));
    check_near(got, 0);
    w.count = 0;
    CHECK(!pq_fn_rate(&w, &got));
    CHECK(!pq_fn_irate(&w, &got));
    CHECK(!pq_fn_resets(&w, &got));
    CHECK(!pq_fn_changes(&w, &got));
}

/* NaN after NaN is no change, NaN after a number is. */
TEST(changes_takes_nan_as_one_value)
{
    const int64_t ts[] = { 1, 2, 3, 4 };
    const double values[] = { 0, NAN, NAN, 0 };
    struct pq_window w = window(ts, values, 4, 0, 4);
    double got;

    CHECK(pq_fn_changes(&w, &got));
    check_near(got, 2);
}

/* The counter was zero when it started, and that is inside the window. */
TEST(a_start_inside_the_window_replaces_the_extrapolation)
{
    const int64_t ts[] = { 120000, 180000 };
    const double values[] = { 10, 20 };
    const int64_t starts[] = { 90000, 90000 };
    struct pq_window w = window(ts, values, 2, 0, 180000);
    double got;

    w.start_ts = starts;
    CHECK(pq_fn_increase(&w, &got));
    check_near(got, 20);
    w.count = 1;
    CHECK(pq_fn_increase(&w, &got)); /* one sample is enough, but shows no interval */
    check_near(got, 10);
    w.range_start = 90000; /* the window is left-open: the start is outside now */
    CHECK(!pq_fn_increase(&w, &got));
}

TEST(start_timestamps_tell_restarts_that_values_hide)
{
    CHECK(pq_fn_start_says_reset(100, 50, 200, 150));   /* started after the previous sample */
    CHECK(pq_fn_start_says_reset(100, 50, 200, 100));   /* a delta sample */
    CHECK(!pq_fn_start_says_reset(100, 0, 200, 100));   /* cumulative, unknown start */
    CHECK(!pq_fn_start_says_reset(100, 100, 200, 100)); /* the same, written otherwise */
    CHECK(!pq_fn_start_says_reset(100, 160, 200, 100)); /* the previous start is nonsense */
    CHECK(!pq_fn_start_says_reset(100, 50, 200, 50));
    CHECK(!pq_fn_start_says_reset(100, 50, 200, 0));
    CHECK(!pq_fn_start_says_reset(100, 50, 200, 200));
    CHECK(!pq_fn_start_says_reset(100, 50, 200, 250));
}

TEST(a_start_before_the_previous_sample_is_flagged)
{
    const int64_t ts[] = { 100000, 200000 };
    const double values[] = { 1, 2 };
    int64_t starts[] = { 50000, 60000 };
    unsigned flags = 0;
    struct pq_window w = window(ts, values, 2, 60000, 200000);
    double got;

    w.start_ts = starts;
    w.flags = &flags;
    CHECK(pq_fn_rate(&w, &got));
    CHECK_EQ(flags, PQ_WINDOW_START_OVERLAP);
    flags = 0;
    starts[1] = 50000;
    CHECK(pq_fn_rate(&w, &got));
    CHECK_EQ(flags, 0);
}

/* Anchored: from the last sample at or before the start, without extrapolation. */
TEST(an_anchored_window_starts_with_the_sample_before_it)
{
    const int64_t ts[] = { 0, 10000, 20000, 30000 };
    const double values[] = { 1, 4, 2, 7 };
    struct pq_window w = window(ts, values, 4, 15000, 35000);
    double got;

    CHECK(pq_fn_increase_anchored(&w, &got)); /* 4 -> (0) 2 -> 7 */
    check_near(got, 7);
    CHECK(pq_fn_rate_anchored(&w, &got));
    check_near(got, 0.35);
    CHECK(pq_fn_delta_anchored(&w, &got));
    check_near(got, 3);
    CHECK(pq_fn_resets_anchored(&w, &got));
    check_near(got, 1);
    CHECK(pq_fn_changes_anchored(&w, &got));
    check_near(got, 2);
    w.range_start = 30000; /* nothing inside */
    w.range_end = 40000;
    CHECK(!pq_fn_increase_anchored(&w, &got));
    CHECK(!pq_fn_resets_anchored(&w, &got));
}

/* Smoothed: values at both ends come from the lines between the samples around them. */
TEST(a_smoothed_window_interpolates_its_ends)
{
    const int64_t ts[] = { 0, 10000, 20000, 30000 };
    const double values[] = { 0, 10, 30, 40 };
    struct pq_window w = window(ts, values, 4, 5000, 25000);
    double got;

    CHECK(pq_fn_increase_smoothed(&w, &got)); /* 5 .. 35 */
    check_near(got, 30);
    CHECK(pq_fn_rate_smoothed(&w, &got));
    check_near(got, 1.5);
    w.range_end = 45000; /* nothing behind: the last value stands */
    CHECK(pq_fn_delta_smoothed(&w, &got));
    check_near(got, 35);
    w.range_start = -10000; /* nothing before: the first value stands */
    CHECK(pq_fn_delta_smoothed(&w, &got));
    check_near(got, 40);
    w.range_end = -5000;
    CHECK(!pq_fn_delta_smoothed(&w, &got));
}

/* Both ends on the line of one restart: it climbs from zero to 5. */
TEST(a_smoothed_restart_climbs_from_zero)
{
    const int64_t ts[] = { 0, 20000 };
    const double values[] = { 10, 5 };
    struct pq_window w = window(ts, values, 2, 5000, 15000);
    double got;

    CHECK(pq_fn_increase_smoothed(&w, &got));
    check_near(got, 2.5);
    w.range_start = 0; /* from the full 10 on: 3.75 were counted since */
    CHECK(pq_fn_increase_smoothed(&w, &got));
    check_near(got, 3.75);
    CHECK(pq_fn_delta_smoothed(&w, &got)); /* a gauge just falls */
    check_near(got, -3.75);
}

TEST(a_smoothed_instant_lies_between_its_neighbours)
{
    const int64_t ts[] = { 0, 10000 };
    const double values[] = { 1, 3 };
    double got;

    CHECK(pq_fn_smoothed_at(ts, values, 2, 5000, &got));
    check_near(got, 2);
    CHECK(pq_fn_smoothed_at(ts, values, 2, 10000, &got));
    check_near(got, 3);
    CHECK(pq_fn_smoothed_at(ts, values, 2, 12000, &got));
    check_near(got, 3);
    CHECK(!pq_fn_smoothed_at(ts, values, 2, -1, &got));
    CHECK(!pq_fn_smoothed_at(ts, values, 0, 0, &got));
}
