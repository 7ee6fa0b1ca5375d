/* buckets.h - quantiles and fractions of classic histograms: cumulative counts by upper bound. */
#ifndef PROMQL_FUNC_BUCKETS_H
#define PROMQL_FUNC_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/slice.h"
#include "promql/value.h"

struct pq_bucket {
    double le;
    double count;
};

/* What was done to counts that decreased towards higher bounds. Differences within rounding are
 * mended in silence; @forced says that larger ones were flattened, and where. Nothing is told of
 * histograms that have no quantile anyway. */
struct pq_bucket_repair {
    bool forced;
    double min_le, max_le; /* the lowest and the highest bucket that was raised */
    double max_diff;       /* the largest decrease */
};

/* The value of an `le` label: any text Go's ParseFloat reads. */
bool pq_fn_bucket_le(struct qf_str text, double *ret_le);

/* Sort by bound and add up buckets with equal bounds. Returns how many are left. */
size_t pq_fn_buckets_sort(struct pq_bucket *buckets, size_t count);

/* The @q quantile, by linear interpolation inside its bucket. @buckets are sorted in place, joined
 * and repaired. NaN without a bucket for +Inf, with fewer than two, or without observations; the
 * infinities for a @q outside 0..1. @ret_repair may be NULL. */
double pq_fn_bucket_quantile(double q, struct pq_bucket *buckets, size_t count,
                             struct pq_bucket_repair *ret_repair);

/* The share of observations between @lower and @upper. @buckets are sorted in place and joined.
 * Buckets without end or beginning are not interpolated. */
double pq_fn_bucket_fraction(double lower, double upper, struct pq_bucket *buckets, size_t count);

/* The value of the label that histogram_quantiles adds: "0.25", "1.0", "NaN". */
size_t pq_fn_quantile_label(double q, char *out /* QF_DOUBLE_TEXT_MAX */);

#endif
