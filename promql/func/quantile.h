/* quantile.h - quantiles of plain floats, as the quantile aggregator and quantile_over_time see
 * them. */
#ifndef PROMQL_FUNC_QUANTILE_H
#define PROMQL_FUNC_QUANTILE_H

#include <stddef.h>

#include "promql/func/poll.h"

/* Where a quantile lies among sorted values: between two neighbours, or on the first of them. */
struct pq_fn_rank {
    size_t lower, upper;
    double weight; /* of the upper one */
};

/* Of @count > 0 values, for 0 <= @q <= 1. */
struct pq_fn_rank pq_fn_quantile_rank(double q, size_t count);
/* The quantile, given the values at its two places. */
static inline double pq_fn_rank_value(const struct pq_fn_rank *rank, double lower, double upper)
{
    return lower * (1 - rank->weight) + upper * rank->weight;
}

/* Sort ascending, NaNs first. @poll may be NULL. */
void pq_fn_sort_values(double *values, size_t count, struct pq_poll *poll);

/* The @q quantile of @values, which it sorts. Between two values it is their weighted average. NaN
 * for no values or a NaN @q; the infinities for a @q outside 0..1. */
double pq_fn_quantile(double q, double *values, size_t count, struct pq_poll *poll);

/* The same of @count > 0 values that are sorted, for 0 <= @q <= 1. */
double pq_fn_quantile_sorted(double q, const double *values, size_t count);

#endif
