/* stats.h - what a native histogram tells of its observations.
 *
 * Inside a bucket observations are taken to be spread evenly: by value in the zero bucket and in
 * custom buckets, by logarithm in exponential ones. A first custom bucket with a positive end
 * starts at zero; other custom buckets that are open to one side are not interpolated. Observations
 * that are NaN are in the count and in no bucket, and make the sum NaN. */
#ifndef PROMQL_HISTOGRAM_STATS_H
#define PROMQL_HISTOGRAM_STATS_H

#include "promql/histogram/layout.h"

/* What NaN observations did to a quantile. */
enum pq_nan_effect {
    PQ_NAN_NONE,
    PQ_NAN_RESULT, /* it is among them: NaN */
    PQ_NAN_SKEWED, /* it is higher than without them */
};

/* The @q quantile: -Inf for q < 0, +Inf for q > 1, NaN without observations or for a NaN q. */
double pq_histogram_quantile(const struct pq_histogram *h, double q, enum pq_nan_effect *ret_nan);

/* The share of observations in (lower, upper]; NaN without observations or if a bound is NaN, 0 if
 * the bounds are not in order. Observations that are NaN are in no range. */
double pq_histogram_fraction(const struct pq_histogram *h, double lower, double upper);
/* The histogram has observations that are NaN. */
bool pq_histogram_has_nan(const struct pq_histogram *h);

/* sum / count. */
double pq_histogram_avg(const struct pq_histogram *h);
/* The spread around the average, every observation being in the middle of its bucket: the geometric
 * one of exponential buckets, zero in the zero bucket. */
double pq_histogram_variance(const struct pq_histogram *h);

/* @value lies inside @b: the share of the bucket that is not above it. @b is finite on both sides,
 * or open to +Inf, of which nothing is below any value. */
double pq_interval_share(const struct pq_histogram *h, const struct pq_interval *b, double value);

#endif
