#include "promql/histogram/check.h"

#include <math.h>

#include "tests/lib/test.h"

static const struct pq_span spans[] = { { -2, 2 }, { 3, 1 } };
static const double buckets[] = { 1, 0, 2.5 };
static const double bounds[] = { -1, 0.5 };
static const struct pq_span custom_spans[] = { { 0, 3 } };

static struct pq_histogram exponential(void)
{
    return (struct pq_histogram){ .schema = 3,
                                  .zero_threshold = 0.1,
                                  .zero_count = 1,
                                  .count = 8,
                                  .sum = NAN,
                                  .positive_spans = spans,
                                  .positive_span_count = 2,
                                  .positive_buckets = buckets,
                                  .positive_bucket_count = 3,
                                  .negative_spans = spans,
                                  .negative_span_count = 2,
                                  .negative_buckets = buckets,
                                  .negative_bucket_count = 3 };
}

static struct pq_histogram custom(void)
{
    return (struct pq_histogram){ .schema = PQ_SCHEMA_CUSTOM,
                                  .count = 3.5,
                                  .positive_spans = custom_spans,
                                  .positive_span_count = 1,
                                  .positive_buckets = buckets,
                                  .positive_bucket_count = 3,
                                  .custom_values = bounds,
                                  .custom_value_count = 2 };
}

#define BAD(change)                                                                                \
    do {                                                                                           \
        struct pq_histogram h = good;                                                              \
        change;                                                                                    \
        CHECK_MSG(pq_histogram_check(&h), "%s was taken", #change);                                \
    } while (0)

TEST(exponential_histograms_must_be_consistent)
{
    static const struct pq_span backwards[] = { { 0, 2 }, { -1, 1 } };
    static const struct pq_span far[] = { { INT32_MAX, 3 } };
    static const double negative[] = { 1, -1, 1 }, not_numbers[] = { 1, NAN, 1 };
    struct pq_histogram good = exponential();

    CHECK(!pq_histogram_check(&good));
    BAD(h.schema = 9);
    BAD(h.schema = -5);
    BAD(h.count = 7.5);
    BAD(h.count = NAN);
    BAD(h.count = -1);
    BAD(h.zero_count = -1);
    BAD(h.zero_count = NAN);
    BAD(h.zero_threshold = -0.1);
    BAD(h.zero_threshold = INFINITY);
    BAD(h.positive_bucket_count = 2);
    BAD(h.negative_span_count = 1);
    BAD(h.positive_spans = backwards);
    BAD((h.positive_spans = far, h.positive_span_count = 1));
    BAD(h.positive_buckets = negative);
    BAD(h.negative_buckets = not_numbers);
    BAD((h.custom_values = bounds, h.custom_value_count = 1));
}

TEST(counts_may_be_off_by_rounding)
{
    struct pq_histogram h = exponential();

    h.count = 8 * (1 - 1e-14);
    CHECK(!pq_histogram_check(&h));
    h.count = 9; /* an observation that is not a number is in no bucket */
    CHECK(!pq_histogram_check(&h));
}

TEST(custom_histograms_have_ascending_bounds_and_one_side)
{
    static const double same[] = { 1, 1 }, infinite[] = { 1, INFINITY }, none[] = { NAN, 1 };
    static const struct pq_span before[] = { { -1, 3 } }, behind[] = { { 1, 3 } };
    struct pq_histogram good = custom();

    CHECK(!pq_histogram_check(&good));
    BAD(h.custom_values = same);
    BAD(h.custom_values = infinite);
    BAD(h.custom_values = none);
    BAD(h.custom_value_count = 1);
    BAD(h.positive_spans = before);
    BAD(h.positive_spans = behind);
    BAD(h.zero_count = 1);
    BAD(h.zero_threshold = 1);
    BAD((h.negative_spans = spans, h.negative_span_count = 2, h.negative_buckets = buckets,
         h.negative_bucket_count = 3));
}
