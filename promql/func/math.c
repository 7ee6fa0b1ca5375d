/* math.c - functions of one value. */
#include "promql/func/math.h"

#include <math.h>
#include <stddef.h>

#include "promql/func/date.h"

#define PI 3.14159265358979323846264338327950288

static double sgn(double value)
{
    if (value < 0)
        return -1;
    return value > 0 ? 1 : value;
}

static double deg(double value)
{
    return value * 180 / PI;
}

static double rad(double value)
{
    return value * PI / 180;
}

/* Exact for powers of two, like Go's. */
static double go_log2(double value)
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

static double go_log10(double value)
{
    return go_log2(value) * (M_LN2 / M_LN10);
}

pq_unary_fn *pq_fn_unary(enum pq_function_id fn)
{
    static pq_unary_fn *const kernels[PQ_FN__COUNT] = {
        [PQ_FN_ABS] = fabs,
        [PQ_FN_CEIL] = ceil,
        [PQ_FN_FLOOR] = floor,
        [PQ_FN_EXP] = exp,
        [PQ_FN_SQRT] = sqrt,
        [PQ_FN_LN] = log,
        [PQ_FN_LOG2] = go_log2,
        [PQ_FN_LOG10] = go_log10,
        [PQ_FN_SGN] = sgn,
        [PQ_FN_DEG] = deg,
        [PQ_FN_RAD] = rad,
        [PQ_FN_SIN] = sin,
        [PQ_FN_COS] = cos,
        [PQ_FN_TAN] = tan,
        [PQ_FN_ASIN] = asin,
        [PQ_FN_ACOS] = acos,
        [PQ_FN_ATAN] = atan,
        [PQ_FN_SINH] = sinh,
        [PQ_FN_COSH] = cosh,
        [PQ_FN_TANH] = tanh,
        [PQ_FN_ASINH] = asinh,
        [PQ_FN_ACOSH] = acosh,
        [PQ_FN_ATANH] = atanh,
        [PQ_FN_MINUTE] = pq_fn_minute,
        [PQ_FN_HOUR] = pq_fn_hour,
        [PQ_FN_DAY_OF_WEEK] = pq_fn_day_of_week,
        [PQ_FN_DAY_OF_MONTH] = pq_fn_day_of_month,
        [PQ_FN_DAY_OF_YEAR] = pq_fn_day_of_year,
        [PQ_FN_DAYS_IN_MONTH] = pq_fn_days_in_month,
        [PQ_FN_MONTH] = pq_fn_month,
        [PQ_FN_YEAR] = pq_fn_year,
    };

    return (size_t)fn < PQ_FN__COUNT ? kernels[fn] : NULL;
}

double pq_fn_round(double value, double to_nearest)
{
    /* Multiplying by the inverse keeps the error of a step like 0.1 out of the result. */
    double inverse = 1 / to_nearest;

    return floor(value * inverse + 0.5) / inverse;
}

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
