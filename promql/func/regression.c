/* regression.c - deriv, predict_linear, double_exponential_smoothing: of two samples or more. */
#include <math.h>

#include "promql/func/kahan.h"
#include "promql/func/kernels.h"

struct line {
    double slope, intercept;
};

/* The least-squares line through the samples; x is in seconds from @origin. Equal values make a
 * flat line exactly, whatever rounding would say. */
static struct line fit(const struct pq_window *w, int64_t origin)
{
    struct pq_kahan x_sum = { 0 }, y_sum = { 0 }, xy_sum = { 0 }, xx_sum = { 0 };
    double n = (double)w->count;
    double first = w->values[0];
    double sx, sy, covariance, variance;
    bool flat = true;
    struct line line;

    PQ_WINDOW_EACH (w, i, 0) {
        double x = (double)(w->ts[i] - origin) / 1e3, y = w->values[i];

        flat = flat && (i == 0 || y == first);
        pq_kahan_add(&x_sum, x);
        pq_kahan_add(&y_sum, y);
        pq_kahan_add(&xy_sum, x * y);
        pq_kahan_add(&xx_sum, x * x);
    }
    if (flat)
        return isinf(first) ? (struct line){ NAN, NAN } : (struct line){ 0, first };
    sx = x_sum.sum + x_sum.compensation;
    sy = y_sum.sum + y_sum.compensation;
    covariance = xy_sum.sum + xy_sum.compensation - sx * sy / n;
    variance = xx_sum.sum + xx_sum.compensation - sx * sx / n;
    line.slope = covariance / variance;
    line.intercept = sy / n - line.slope * sx / n;
    return line;
}

/* The slope per second. */
bool pq_fn_deriv(const struct pq_window *w, double *ret_value)
{
    if (w->count < 2)
        return false;
    *ret_value = fit(w, w->ts[0]).slope;
    return true;
}

/* The line's value params[0] seconds after the time of evaluation. */
bool pq_fn_predict_linear(const struct pq_window *w, double *ret_value)
{
    struct line line;

    if (w->count < 2)
        return false;
    line = fit(w, w->eval_ts);
    *ret_value = line.slope * w->params[0] + line.intercept;
    return true;
}

/* Both factors must lie strictly between 0 and 1. Written so that a NaN is as good as Prometheus
 * takes it: it is neither too small nor too large. */
qf_rc pq_fn_smoothing_check(double smoothing, double trend, struct qf_err *err)
{
    if (smoothing <= 0 || smoothing >= 1)
        return qf_err_set(err, QF_EEXEC, "invalid smoothing factor. Expected: 0 < sf < 1, got: %f",
                          smoothing);
    if (trend <= 0 || trend >= 1)
        return qf_err_set(err, QF_EEXEC, "invalid trend factor. Expected: 0 < tf < 1, got: %f",
                          trend);
    return QF_OK;
}

/* params: the smoothing factor and the trend factor, checked. */
bool pq_fn_double_exponential_smoothing(const struct pq_window *w, double *ret_value)
{
    double smoothing = w->params[0], trend_factor = w->params[1];
    double before = 0, level, trend;

    if (w->count < 2)
        return false;
    level = w->values[0];
    trend = w->values[1] - w->values[0];
    PQ_WINDOW_EACH (w, i, 1) {
        double next;

        if (i > 1)
            trend = trend_factor * (level - before) + (1 - trend_factor) * trend;
        next = smoothing * w->values[i] + (1 - smoothing) * (level + trend);
        before = level;
        level = next;
    }
    *ret_value = level;
    return true;
}
