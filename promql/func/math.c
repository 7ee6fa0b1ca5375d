/* math.c - functions of one value, and the few with scalar arguments.
 *
 * Where Go's mathematics library and C's differ (minimum and maximum of NaNs, log2, log10), the
 * results are Go's. */
#include <math.h>

#include "promql/func/kernels.h"

#define PI 3.14159265358979323846264338327950288

double pq_fn_sgn(double value)
{
    if (value < 0)
        return -1;
    return value > 0 ? 1 : value;
}

double pq_fn_deg(double value)
{
    return value * 180 / PI;
}

double pq_fn_rad(double value)
{
    return value * PI / 180;
}

/* Exact for powers of two, like Go's. */
double pq_fn_log2(double value)
{
    int exponent;
    double fraction;

    if (!isfinite(value) || value <= 0)
        return log(value);
    fraction = frexp(value, &exponent);
    if (fraction == 0.5)
        return (double)(exponent - 1);
    return log(fraction) * (1 / M_LN2) + (double)exponent;
}

double pq_fn_log10(double value)
{
    return pq_fn_log2(value) * (M_LN2 / M_LN10);
}

/* To the nearest multiple, halves up. */
double pq_fn_round(double value, double to_nearest)
{
    /* Multiplying by the inverse keeps the error of a step like 0.1 out of the result. */
    double inverse = 1 / to_nearest;

    return floor(value * inverse + 0.5) / inverse;
}

/* Go's math.Min and math.Max: NaN if one is, but an infinity on the right side wins. */
double pq_fn_min_of(double a, double b)
{
    if (a == -INFINITY || b == -INFINITY)
        return -INFINITY;
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == 0 && b == 0)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

double pq_fn_max_of(double a, double b)
{
    if (a == INFINITY || b == INFINITY)
        return INFINITY;
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == 0 && b == 0)
        return signbit(a) ? b : a;
    return a > b ? a : b;
}

double pq_fn_clamp(double value, double min, double max)
{
    return pq_fn_max_of(min, pq_fn_min_of(max, value));
}

double pq_fn_clamp_min(double value, double min)
{
    return pq_fn_max_of(min, value);
}

double pq_fn_clamp_max(double value, double max)
{
    return pq_fn_min_of(max, value);
}

/* Nothing lies between them. */
bool pq_fn_clamp_empty(double min, double max)
{
    return max < min;
}
