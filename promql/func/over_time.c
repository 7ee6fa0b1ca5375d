/* over_time.c - aggregations over the samples of one window.
 *
 * All answer only for windows with at least one sample. */
#include <math.h>
#include <string.h>

#include "promql/func/aggregate.h"
#include "promql/func/kahan.h"
#include "promql/func/kernels.h"
#include "promql/func/quantile.h"

bool pq_fn_sum_over_time(const struct pq_window *w, double *ret_value)
{
    struct pq_kahan sum = { 0 };

    if (w->count == 0)
        return false;
    PQ_WINDOW_EACH (w, i, 0)
        pq_kahan_add(&sum, w->values[i]);
    *ret_value = pq_kahan_value(&sum);
    return true;
}

/* The sum divided by the count; once the sum would overflow, the mean itself is carried on. */
bool pq_fn_avg_over_time(const struct pq_window *w, double *ret_value)
{
    struct pq_avg avg = { 0 };
    struct pq_kahan sum;

    if (w->count == 0)
        return false;
    /* A sum that overflowed is never finite again, so a finite one needed no mean on the way. */
    sum = (struct pq_kahan){ .sum = w->values[0] };
    PQ_WINDOW_EACH (w, i, 1)
        pq_kahan_add(&sum, w->values[i]);
    if (isfinite(sum.sum)) {
        *ret_value = sum.sum / (double)w->count + sum.compensation / (double)w->count;
        return true;
    }
    PQ_WINDOW_EACH (w, i, 0)
        pq_avg_add(&avg, w->values[i]);
    *ret_value = pq_avg_value(&avg);
    return true;
}

/* NaN only if all samples are. */
bool pq_fn_min_over_time(const struct pq_window *w, double *ret_value)
{
    double min;

    if (w->count == 0)
        return false;
    min = w->values[0];
    PQ_WINDOW_EACH (w, i, 1)
        if (w->values[i] < min || isnan(min))
            min = w->values[i];
    *ret_value = min;
    return true;
}

/* NaN only if all samples are. */
bool pq_fn_max_over_time(const struct pq_window *w, double *ret_value)
{
    double max;

    if (w->count == 0)
        return false;
    max = w->values[0];
    PQ_WINDOW_EACH (w, i, 1)
        if (w->values[i] > max || isnan(max))
            max = w->values[i];
    *ret_value = max;
    return true;
}

bool pq_fn_count_over_time(const struct pq_window *w, double *ret_value)
{
    *ret_value = (double)w->count;
    return w->count > 0;
}

bool pq_fn_present_over_time(const struct pq_window *w, double *ret_value)
{
    *ret_value = 1;
    return w->count > 0;
}

bool pq_fn_last_over_time(const struct pq_window *w, double *ret_value)
{
    if (w->count == 0)
        return false;
    *ret_value = w->values[w->count - 1];
    return true;
}

bool pq_fn_first_over_time(const struct pq_window *w, double *ret_value)
{
    if (w->count == 0)
        return false;
    *ret_value = w->values[0];
    return true;
}

/* Welford's method with compensated sums. */
static double variance(const struct pq_window *w)
{
    struct pq_kahan mean = { 0 }, squares = { 0 };

    PQ_WINDOW_EACH (w, i, 0) {
        double delta = w->values[i] - (mean.sum + mean.compensation);

        pq_kahan_add(&mean, delta / (double)(i + 1));
        pq_kahan_add(&squares, delta * (w->values[i] - (mean.sum + mean.compensation)));
    }
    return (squares.sum + squares.compensation) / (double)w->count;
}

bool pq_fn_stdvar_over_time(const struct pq_window *w, double *ret_value)
{
    if (w->count == 0)
        return false;
    *ret_value = variance(w);
    return true;
}

bool pq_fn_stddev_over_time(const struct pq_window *w, double *ret_value)
{
    if (w->count == 0)
        return false;
    *ret_value = sqrt(variance(w));
    return true;
}

/* params[0] is the quantile. */
bool pq_fn_quantile_over_time(const struct pq_window *w, double *ret_value)
{
    if (w->count == 0)
        return false;
    memcpy(w->scratch, w->values, w->count * sizeof(*w->scratch));
    *ret_value = pq_fn_quantile(w->params[0], w->scratch, w->count, w->poll);
    return true;
}

/* The median of the distances to the median; NaN as soon as one sample is. */
bool pq_fn_mad_over_time(const struct pq_window *w, double *ret_value)
{
    double median;

    if (w->count == 0)
        return false;
    PQ_WINDOW_EACH (w, i, 0) {
        if (isnan(w->values[i])) {
            *ret_value = NAN;
            return true;
        }
    }
    memcpy(w->scratch, w->values, w->count * sizeof(*w->scratch));
    median = pq_fn_quantile(0.5, w->scratch, w->count, w->poll);
    PQ_WINDOW_EACH (w, i, 0)
        w->scratch[i] = fabs(w->values[i] - median);
    *ret_value = pq_fn_quantile(0.5, w->scratch, w->count, w->poll);
    return true;
}

static double seconds(const struct pq_window *w, size_t i)
{
    return (double)w->ts[i] / 1000;
}

/* Of equal extremes the time of the last one. */
bool pq_fn_ts_of_min_over_time(const struct pq_window *w, double *ret_value)
{
    size_t at = 0;

    if (w->count == 0)
        return false;
    PQ_WINDOW_EACH (w, i, 1)
        if (w->values[i] <= w->values[at] || isnan(w->values[at]))
            at = i;
    *ret_value = seconds(w, at);
    return true;
}

bool pq_fn_ts_of_max_over_time(const struct pq_window *w, double *ret_value)
{
    size_t at = 0;

    if (w->count == 0)
        return false;
    PQ_WINDOW_EACH (w, i, 1)
        if (w->values[i] >= w->values[at] || isnan(w->values[at]))
            at = i;
    *ret_value = seconds(w, at);
    return true;
}

bool pq_fn_ts_of_first_over_time(const struct pq_window *w, double *ret_value)
{
    if (w->count == 0)
        return false;
    *ret_value = seconds(w, 0);
    return true;
}

bool pq_fn_ts_of_last_over_time(const struct pq_window *w, double *ret_value)
{
    if (w->count == 0)
        return false;
    *ret_value = seconds(w, w->count - 1);
    return true;
}
