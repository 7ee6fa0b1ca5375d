/* test_stats.c - quantiles, fractions, variances and parts of native histograms. */
#include <math.h>

#include "promql/histogram/stats.h"
#include "promql/histogram/trim.h"
#include "tests/lib/test.h"
#include "tests/unit/promql/histogram/literals.h"

#define ARENA(name) QF_CLEANUP(qf_arena_freep) struct qf_arena *name = qf_arena_new(SIZE_MAX)

static void check_near(int line, double got, double want)
{
    CHECK_MSG(fabs(got - want) <= 1e-14 * fabs(want), "line %d: %.17g, wanted %.17g", line, got,
              want);
}
#define CHECK_NEAR(got, want) check_near(__LINE__, (got), (want))

static double quantile(const struct pq_histogram *h, double q)
{
    enum pq_nan_effect nan;

    return pq_histogram_quantile(h, q, &nan);
}

/* The bounds of schema 2 are powers of the fourth root of two. */
TEST(bounds_are_powers_of_the_base)
{
    CHECK_BITS(pq_exponential_bound(0, 0), 1.0);
    CHECK_BITS(pq_exponential_bound(0, -3), 0.125);
    CHECK_BITS(pq_exponential_bound(2, 8), 4.0);
    CHECK_BITS(pq_exponential_bound(2, 2), 1.414213562373095); /* Prometheus rounds it down */
    CHECK_BITS(pq_exponential_bound(2, -2), 0.7071067811865475);
    CHECK_BITS(pq_exponential_bound(8, 255), 1.9945921121709396);
    CHECK_BITS(pq_exponential_bound(-2, 2), 256.0);
    CHECK_BITS(pq_exponential_bound(0, 1024), 0x1.fffffffffffffp1023);
    CHECK_BITS(pq_exponential_bound(0, 1025), (double)INFINITY);
    CHECK_BITS(pq_exponential_bound(-4, INT32_MAX), (double)INFINITY);
    CHECK_BITS(pq_exponential_bound(8, -1100 * 256), 0.0);
}

/* What others would have of the zero bucket is the zero bucket's. */
TEST(the_zero_bucket_takes_from_its_neighbours)
{
    ARENA(arena);
    const struct pq_histogram *h = literal(
        arena, "{{schema:0 count:9 z_bucket:3 z_bucket_w:1.5 offset:1 buckets:[2] n_offset:0 "
               "n_buckets:[1 3]}}");
    struct pq_interval_walk walk = pq_intervals_begin(h);
    struct pq_interval b;

    CHECK(pq_intervals_next(&walk, &b)); /* [-2, -1) */
    CHECK_BITS(b.low, -2.0);
    CHECK_BITS(b.high, -1.5);
    CHECK(pq_intervals_next(&walk, &b)); /* [-1, -0.5) lies inside: its ends change places */
    CHECK_BITS(b.low, -1.0);
    CHECK_BITS(b.high, -1.5);
    CHECK(pq_intervals_next(&walk, &b));
    CHECK(b.zero);
    CHECK(pq_intervals_next(&walk, &b)); /* (1, 2] */
    CHECK_BITS(b.low, 1.5);
    CHECK_BITS(b.high, 2.0);
    CHECK(!pq_intervals_next(&walk, &b));
}

/* A negative count or NaN in the zero bucket is no bucket to look into. */
TEST(a_zero_bucket_that_counts_nothing_is_passed_over)
{
    ARENA(arena);
    const struct pq_histogram *h =
        literal(arena, "{{schema:0 count:1 z_bucket:-3 z_bucket_w:0.1 buckets:[2]}}");
    struct pq_interval_walk walk = pq_intervals_begin(h);
    struct pq_interval b;

    CHECK(pq_intervals_next(&walk, &b));
    CHECK(!b.zero);
    CHECK(!pq_intervals_next(&walk, &b));
}

TEST(both_ends_belong_to_zero_and_the_first_custom_bucket)
{
    ARENA(arena);
    const struct pq_histogram *zero = literal(arena, "{{schema:0 count:1 z_bucket:1}}");
    const struct pq_histogram *custom =
        literal(arena, "{{schema:-53 count:3 custom_values:[-1 0] buckets:[1 1 1]}}");
    struct pq_interval_walk walk = pq_intervals_begin(zero);
    struct pq_interval b;

    CHECK(pq_intervals_next(&walk, &b)); /* [-0, 0] */
    CHECK(pq_interval_has_low(zero, &b));
    CHECK(pq_interval_has_high(zero, &b));
    walk = pq_intervals_begin(custom);
    for (int i = 0; i < 3; i++) { /* [-Inf, -1], (-1, 0], (0, +Inf] */
        CHECK(pq_intervals_next(&walk, &b));
        CHECK_EQ(pq_interval_has_low(custom, &b), i == 0);
        CHECK(pq_interval_has_high(custom, &b));
    }
}

TEST(walks_go_both_ways)
{
    ARENA(arena);
    const struct pq_histogram *h = literal(
        arena, "{{count:20 z_bucket:1 z_bucket_w:0.1 offset:-1 buckets:[2 0 3] n_buckets:[4 5]}}");
    const double lows[] = { -2, -1, -0.1, 0.25, 1 }, counts[] = { 5, 4, 1, 2, 3 };
    struct pq_interval_walk up = pq_intervals_begin(h), down = pq_intervals_begin_back(h);
    struct pq_interval b;

    for (size_t i = 0; i < 5; i++) {
        CHECK(pq_intervals_next(&up, &b));
        CHECK_BITS(b.low, lows[i]);
        CHECK_BITS(b.count, counts[i]);
        CHECK(pq_intervals_next(&down, &b));
        CHECK_BITS(b.low, lows[4 - i]);
        CHECK_BITS(b.count, counts[4 - i]);
    }
    CHECK(!pq_intervals_next(&up, &b));
    CHECK(!pq_intervals_next(&down, &b));
}

/* Half of (1,2] by logarithm is its geometric middle. */
TEST(quantiles_are_interpolated_by_logarithm)
{
    ARENA(arena);
    const struct pq_histogram *h = literal(arena, "{{count:4 sum:5 buckets:[1 2 1]}}");
    const struct pq_histogram *mirrored = literal(arena, "{{count:4 sum:5 n_buckets:[1 2 1]}}");

    CHECK_NEAR(quantile(h, 0.5), sqrt(2));
    CHECK_NEAR(quantile(mirrored, 0.5), -sqrt(2));
    CHECK_NEAR(quantile(h, 0.25), 1);
    CHECK_NEAR(quantile(h, 1), 4);
    CHECK_NEAR(quantile(h, 0), 0.5);
    CHECK_BITS(quantile(h, -0.1), -(double)INFINITY);
    CHECK_BITS(quantile(h, 1.1), (double)INFINITY);
    CHECK(isnan(quantile(h, (double)NAN)));
    CHECK(isnan(quantile(literal(arena, "{{}}"), 0.5)));
}

/* Two of twelve in [0, 0.001], as there is nothing below zero. */
TEST(the_zero_bucket_is_interpolated_by_value_on_the_side_that_is_there)
{
    ARENA(arena);

    CHECK_NEAR(
        quantile(literal(arena, "{{count:12 z_bucket:2 z_bucket_w:0.001 buckets:[10]}}"), 0.1),
        0.0006);
    CHECK_NEAR(
        quantile(literal(arena, "{{count:12 z_bucket:2 z_bucket_w:0.001 n_buckets:[10]}}"), 0.9),
        -0.0006);
    CHECK_BITS(quantile(literal(arena, "{{count:3 z_bucket:1 z_bucket_w:0.001 buckets:[1] "
                                       "n_buckets:[1]}}"),
                        0.5),
               0.0);
}

TEST(open_custom_buckets_are_not_interpolated)
{
    ARENA(arena);
    const struct pq_histogram *h =
        literal(arena, "{{schema:-53 count:4 custom_values:[5 10] buckets:[1 2 1]}}");
    const struct pq_histogram *below =
        literal(arena, "{{schema:-53 count:4 custom_values:[-5 10] buckets:[4 0 0]}}");

    CHECK_NEAR(quantile(h, 0.5), 7.5);
    CHECK_NEAR(quantile(h, 0.125), 2.5); /* the first bucket starts at zero */
    CHECK_BITS(quantile(h, 0.99), 10.0);
    CHECK_BITS(quantile(below, 0.5), -5.0);
}

TEST(nan_observations_come_last)
{
    ARENA(arena);
    const struct pq_histogram *h = literal(arena, "{{count:15 sum:NaN buckets:[12]}}");
    enum pq_nan_effect nan;

    CHECK_NEAR(pq_histogram_quantile(h, 0.8, &nan), 1);
    CHECK_EQ(nan, PQ_NAN_SKEWED);
    CHECK(isnan(pq_histogram_quantile(h, 0.81, &nan)));
    CHECK_EQ(nan, PQ_NAN_RESULT);
    CHECK(pq_histogram_has_nan(h));
    CHECK_NEAR(pq_histogram_fraction(h, -(double)INFINITY, (double)INFINITY), 0.8);
    CHECK(!pq_histogram_has_nan(literal(arena, "{{count:12 sum:NaN buckets:[12]}}")));
}

/* A bucket that reaches into the zero bucket, as any_exponential's first ones may. */
static bool overlaps_zero(const struct pq_histogram *h)
{
    return !pq_histogram_is_custom(h) && pq_exponential_bound(h->schema, 19) < h->zero_threshold;
}

TEST(quantiles_never_decrease)
{
    struct qf_prng prng = { 7 };

    for (int i = 0; i < 400; i++) {
        ARENA(arena);
        const struct pq_histogram *h =
            i % 2 ? any_exponential(arena, &prng) : any_custom(arena, &prng);
        double last = -(double)INFINITY;

        for (double q = 0; h->count > 0 && q <= 1 && !overlaps_zero(h); q += 1.0 / 64) {
            double value = quantile(h, q);

            CHECK_MSG(value >= last - 1e-9 * fabs(last), "%.17g after %.17g", value, last);
            last = value;
        }
    }
}

/* Where a quantile is inside a bucket, the share below it is the quantile. */
TEST(fractions_are_the_inverse_of_quantiles)
{
    struct qf_prng prng = { 8 };

    for (int i = 0; i < 400; i++) {
        ARENA(arena);
        const struct pq_histogram *h = any_exponential(arena, &prng);
        double q = qf_prng_unit(&prng), value = quantile(h, q);

        if (h->count > 0 && h->zero_count == 0)
            CHECK_MSG(fabs(pq_histogram_fraction(h, -(double)INFINITY, value) - q) < 1e-9,
                      "%.17g of %.17g", q, value);
    }
}

TEST(fractions_are_shares_of_all_observations)
{
    ARENA(arena);
    const struct pq_histogram *h = literal(arena, "{{count:4 sum:5 buckets:[1 2 1]}}");
    const struct pq_histogram *custom =
        literal(arena, "{{schema:-53 count:4 custom_values:[5 10] buckets:[1 2 1]}}");

    CHECK_NEAR(pq_histogram_fraction(h, 1, 2), 0.5);
    CHECK_NEAR(pq_histogram_fraction(h, 0, 8), 1);
    CHECK_NEAR(pq_histogram_fraction(h, 1, sqrt(2)), 0.25);
    CHECK_BITS(pq_histogram_fraction(h, 2, 1), 0.0);
    CHECK(isnan(pq_histogram_fraction(h, (double)NAN, 1)));
    CHECK_NEAR(pq_histogram_fraction(custom, 2.5, 10), 0.625);
    CHECK_NEAR(pq_histogram_fraction(custom, -(double)INFINITY, 20), 0.75);
}

/* Middles of (1/2,1] and (2,4] are sqrt(1/2) and sqrt(8); the average is said to be 1. */
TEST(the_variance_takes_the_geometric_middle_of_buckets)
{
    ARENA(arena);
    double low = sqrt(0.5) - 1, high = sqrt(8) - 1;

    CHECK_NEAR(pq_histogram_variance(literal(arena, "{{count:2 sum:2 buckets:[1 0 1]}}")),
               (low * low + high * high) / 2);
    CHECK_NEAR(pq_histogram_variance(literal(
                   arena, "{{schema:-53 count:2 sum:6 custom_values:[2 4] buckets:[0 2 0]}}")),
               0.0);
    CHECK(isnan(pq_histogram_variance(literal(arena, "{{}}"))));
}

TEST(what_is_cut_off_and_what_is_left_add_up)
{
    struct qf_prng prng = { 9 };

    for (int i = 0; i < 600; i++) {
        ARENA(arena);
        const struct pq_histogram *h = any_exponential(arena, &prng);
        double value = (qf_prng_unit(&prng) - 0.5) * 2000;
        const struct pq_histogram *below = pq_histogram_trim_upper(arena, h, value);
        const struct pq_histogram *above = pq_histogram_trim_lower(arena, h, value);

        CHECK_MSG(fabs(below->count + above->count - h->count) <= 1e-9 * h->count, "%.17g",
                  below->count + above->count);
    }
}

TEST(a_histogram_that_loses_nothing_stays_as_it_is)
{
    ARENA(arena);
    const struct pq_histogram *h =
        literal(arena, "{{count:12 sum:8 z_bucket:2 z_bucket_w:0.5 buckets:[10]}}");

    CHECK(pq_histogram_trim_upper(arena, h, (double)INFINITY) == h);
    CHECK(pq_histogram_trim_lower(arena, h, -(double)INFINITY) == h);
    CHECK(pq_histogram_trim_upper(arena, h, 1) == h);
    CHECK(pq_histogram_trim_lower(arena, h, 0) == h); /* nothing of the zero bucket is below */
}

/* (5,10] at 7.5: half of it is left, around 6.25; what ends at infinity goes. */
TEST(a_cut_bucket_keeps_its_part_and_open_ones_are_all_or_nothing)
{
    ARENA(arena);
    const struct pq_histogram *h = literal(
        arena, "{{schema:-53 sum:172.5 count:15 custom_values:[5 10 15 20] buckets:[1 6 4 3 1]}}");

    CHECK_SAME(pq_histogram_trim_upper(arena, h, 7.5),
               literal(arena, "{{schema:-53 count:4 sum:21.25 custom_values:[5 10 15 20] "
                              "buckets:[1 3]}}"));
    CHECK_SAME(pq_histogram_trim_upper(arena, h, 50),
               literal(arena, "{{schema:-53 count:14 sum:150 custom_values:[5 10 15 20] "
                              "buckets:[1 6 4 3]}}"));
    CHECK_SAME(pq_histogram_trim_lower(arena, h, 50),
               literal(arena, "{{schema:-53 count:1 sum:50 custom_values:[5 10 15 20] offset:4 "
                              "buckets:[1]}}"));
}
