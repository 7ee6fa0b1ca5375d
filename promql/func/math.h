/* math.h - functions of one value, and the few with scalar arguments.
 *
 * Where Go's mathematics library and C's differ (minimum and maximum of NaNs, log2, log10), the
 * results are Go's. Dates are UTC; their argument is in seconds since the epoch. */
#ifndef PROMQL_FUNC_MATH_H
#define PROMQL_FUNC_MATH_H

#include <stdbool.h>

#include "promql/functions.h"

typedef double pq_unary_fn(double value);

/* abs ceil floor exp sqrt ln log2 log10 sgn deg rad, the trigonometric and hyperbolic functions and
 * the date functions; NULL for others. */
pq_unary_fn *pq_fn_unary(enum pq_function_id fn);

/* To the nearest multiple, halves up. */
double pq_fn_round(double value, double to_nearest);
/* clamp answers nothing at all if min > max: check with pq_fn_clamp_empty first. */
double pq_fn_clamp(double value, double min, double max);
double pq_fn_clamp_min(double value, double min);
double pq_fn_clamp_max(double value, double max);
static inline bool pq_fn_clamp_empty(double min, double max)
{
    return max < min;
}

/* Go's math.Min and math.Max: NaN if one is, but an infinity on the right side wins. */
double pq_fn_min_of(double a, double b);
double pq_fn_max_of(double a, double b);

#endif
