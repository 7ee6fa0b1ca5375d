/* over_time.h - aggregations of the samples of one window, and the regressions.
 *
 * All answer only for windows with at least one sample; deriv, predict_linear and
 * double_exponential_smoothing need two. */
#ifndef PROMQL_FUNC_OVER_TIME_H
#define PROMQL_FUNC_OVER_TIME_H

#include "promql/func/window.h"

bool pq_fn_sum_over_time(const struct pq_window *w, double *ret_value);
/* The sum divided by the count; once the sum would overflow, the mean itself is carried on. */
bool pq_fn_avg_over_time(const struct pq_window *w, double *ret_value);
/* NaN only if all samples are. */
bool pq_fn_min_over_time(const struct pq_window *w, double *ret_value);
bool pq_fn_max_over_time(const struct pq_window *w, double *ret_value);
bool pq_fn_count_over_time(const struct pq_window *w, double *ret_value);
bool pq_fn_present_over_time(const struct pq_window *w, double *ret_value);
bool pq_fn_last_over_time(const struct pq_window *w, double *ret_value);
bool pq_fn_first_over_time(const struct pq_window *w, double *ret_value);
bool pq_fn_stddev_over_time(const struct pq_window *w, double *ret_value);
bool pq_fn_stdvar_over_time(const struct pq_window *w, double *ret_value);
/* params[0] is the quantile. */
bool pq_fn_quantile_over_time(const struct pq_window *w, double *ret_value);
/* The median of the distances to the median; NaN as soon as one sample is. */
bool pq_fn_mad_over_time(const struct pq_window *w, double *ret_value);

/* Seconds; of equal extremes the last one's. */
bool pq_fn_ts_of_min_over_time(const struct pq_window *w, double *ret_value);
bool pq_fn_ts_of_max_over_time(const struct pq_window *w, double *ret_value);
bool pq_fn_ts_of_first_over_time(const struct pq_window *w, double *ret_value);
bool pq_fn_ts_of_last_over_time(const struct pq_window *w, double *ret_value);

/* Least squares: the slope per second, and the line's value params[0] seconds after eval_ts. */
bool pq_fn_deriv(const struct pq_window *w, double *ret_value);
bool pq_fn_predict_linear(const struct pq_window *w, double *ret_value);
/* params: smoothing factor and trend factor, both checked with pq_fn_smoothing_check before. */
bool pq_fn_double_exponential_smoothing(const struct pq_window *w, double *ret_value);

#endif
