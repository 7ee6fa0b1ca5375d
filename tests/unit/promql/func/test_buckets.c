/* test_buckets.c - classic histograms. */
#include <math.h>

#include "base/pure/number.h"
#include "promql/func/buckets.h"
#include "tests/lib/test.h"

static void check_near(double got, double want)
{
    CHECK_MSG(fabs(got - want) <= 1e-12 * (1 + fabs(want)), "got %.17g, want %.17g", got, want);
}

#define QUANTILE(q, repair, ...)                                                                   \
    pq_fn_bucket_quantile(q, (struct pq_bucket[]){ __VA_ARGS__ },                                  \
                          sizeof((struct pq_bucket[]){ __VA_ARGS__ }) / sizeof(struct pq_bucket),  \
                          repair)
#define FRACTION(lower, upper, ...)                                                                \
    pq_fn_bucket_fraction(lower, upper, (struct pq_bucket[]){ __VA_ARGS__ },                       \
                          sizeof((struct pq_bucket[]){ __VA_ARGS__ }) / sizeof(struct pq_bucket))

/* Given in any order. */
TEST(quantiles_are_interpolated_inside_their_bucket)
{
    check_near(QUANTILE(0.5, NULL, { INFINITY, 4 }, { 2, 2 }, { 1, 1 }, { 4, 4 }), 2);
    check_near(QUANTILE(0.25, NULL, { INFINITY, 4 }, { 2, 2 }, { 4, 4 }), 1);
    check_near(QUANTILE(1, NULL, { 2, 2 }, { 4, 3 }, { INFINITY, 4 }), 4);   /* highest finite */
    check_near(QUANTILE(0, NULL, { -2, 2 }, { 4, 3 }, { INFINITY, 4 }), -2); /* lowest <= 0 */
    check_near(QUANTILE(0.1, NULL, { -2, 2 }, { 4, 3 }, { INFINITY, 4 }), -2);
}

TEST(quantiles_without_an_answer_are_nan)
{
    CHECK(isnan(QUANTILE(0.5, NULL, { 1, 1 }, { 2, 2 })));        /* no +Inf */
    CHECK(isnan(QUANTILE(0.5, NULL, { INFINITY, 2 })));           /* nothing else */
    CHECK(isnan(QUANTILE(0.5, NULL, { 1, 0 }, { INFINITY, 0 }))); /* no observation */
    CHECK(isnan(QUANTILE(NAN, NULL, { 1, 1 }, { INFINITY, 2 })));
    CHECK_BITS(QUANTILE(-0.1, NULL, { 1, 1 }, { INFINITY, 2 }), -INFINITY);
    CHECK_BITS(QUANTILE(1.1, NULL, { 1, 1 }, { INFINITY, 2 }), INFINITY);
    CHECK(isnan(pq_fn_bucket_quantile(0.5, NULL, 0, NULL)));
}

/* Counts that fall are raised to the one before, and that is told. */
TEST(falling_counts_are_raised_and_reported)
{
    struct pq_bucket_repair repair;

    check_near(QUANTILE(0.5, &repair, { 0.1, 20 }, { 1, 10 }, { 10, 50 }, { 100, 40 }, { 1000, 90 },
                        { INFINITY, 80 }),
               8.5);
    CHECK(repair.forced);
    CHECK_BITS(repair.min_le, 1.0);
    CHECK_BITS(repair.max_le, INFINITY);
    CHECK_BITS(repair.max_diff, 10.0);
}

/* Rounding is not worth a word. */
TEST(tiny_decreases_are_mended_in_silence)
{
    struct pq_bucket_repair repair;

    (void)QUANTILE(0.5, &repair, { 1, 1 }, { 2, 1 - 1e-14 }, { INFINITY, 2 });
    CHECK(!repair.forced);
}

TEST(equal_bounds_are_added_up)
{
    check_near(QUANTILE(0.5, NULL, { 0.1, 1 }, { 0.2, 1 }, { 0.2, 1 }, { 0.2, 1 }, { INFINITY, 4 }),
               0.15);
}

TEST(fractions_are_interpolated_but_not_without_bounds)
{
    check_near(FRACTION(0, 1.5, { 1, 1 }, { 2, 3 }, { 3, 6 }, { INFINITY, 100 }), 0.02);
    check_near(FRACTION(-4, -2, { -3, 10 }, { -2, 12 }, { -1, 15 }, { INFINITY, 100 }), 0.02);
    check_near(FRACTION(-INFINITY, -1.5, { -3, 10 }, { -2, 12 }, { -1, 15 }, { INFINITY, 100 }),
               0.135);
    check_near(FRACTION(2, 5, { 1, 1 }, { 2, 3 }, { 3, 6 }, { INFINITY, 100 }), 0.03);
    check_near(FRACTION(400, INFINITY, { 3, 6 }, { INFINITY, 100 }), 0.94);
    check_near(FRACTION(-INFINITY, INFINITY, { 3, 6 }, { INFINITY, 100 }), 1);
    check_near(FRACTION(0, 1, { INFINITY, 100 }), 0);
    check_near(FRACTION(3, 2, { 3, 6 }, { INFINITY, 100 }), 0);
    CHECK(isnan(FRACTION(0, 5, { 3, 0 }, { INFINITY, 0 })));
    CHECK(isnan(FRACTION(NAN, 5, { 3, 1 }, { INFINITY, 1 })));
    CHECK(isnan(FRACTION(0, 5, { 3, 1 })));
}

TEST(quantile_labels_look_like_open_metrics)
{
    char text[QF_DOUBLE_TEXT_MAX];

    (void)pq_fn_quantile_label(0, text);
    CHECK_STR(text, "0.0");
    (void)pq_fn_quantile_label(1, text);
    CHECK_STR(text, "1.0");
    (void)pq_fn_quantile_label(0.25, text);
    CHECK_STR(text, "0.25");
    (void)pq_fn_quantile_label(NAN, text);
    CHECK_STR(text, "NaN");
    (void)pq_fn_quantile_label(1e-9, text);
    CHECK_STR(text, "1e-09");
}

TEST(bounds_are_read_as_floats)
{
    double le;

    CHECK(pq_fn_bucket_le(QF_STR("+Inf"), &le) && le == INFINITY);
    CHECK(pq_fn_bucket_le(QF_STR(".2"), &le) && le == 0.2);
    CHECK(pq_fn_bucket_le(QF_STR("1e0"), &le) && le == 1);
    CHECK(!pq_fn_bucket_le(QF_STR(""), &le));
    CHECK(!pq_fn_bucket_le(QF_STR("Hello World"), &le));
}
