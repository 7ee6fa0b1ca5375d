/* rate.h - how counters and gauges change over a window.
 *
 * Counters count a decrease as a reset to zero. Where start timestamps are known, a sample whose
 * own start lies after the previous sample is a reset too, whatever the values say. */
#ifndef PROMQL_FUNC_RATE_H
#define PROMQL_FUNC_RATE_H

#include "promql/func/window.h"

/* The difference between first and last sample, extrapolated to the whole window: by at most half
 * an average interval where the next sample seems to be missing, and for counters never below zero.
 * At least two samples; one is enough for a counter whose start timestamp lies in the window, which
 * is then where the counter was zero. */
bool pq_fn_rate(const struct pq_window *w, double *ret_value);
bool pq_fn_increase(const struct pq_window *w, double *ret_value);
bool pq_fn_delta(const struct pq_window *w, double *ret_value);

/* The last two samples alone. */
bool pq_fn_irate(const struct pq_window *w, double *ret_value);
bool pq_fn_idelta(const struct pq_window *w, double *ret_value);

bool pq_fn_resets(const struct pq_window *w, double *ret_value);
bool pq_fn_changes(const struct pq_window *w, double *ret_value);

/* True if sample @i (> 0) of the window starts a new count: it is smaller than the one before, or
 * its start timestamp says so. */
bool pq_fn_is_reset(const struct pq_window *w, size_t i);
/* The same by values: did the counter restart between two samples with known start timestamps? A
 * start at the previous sample's time tells a delta sample only if that one had a valid start; it
 * is a cumulative counter of unknown start otherwise. */
bool pq_fn_start_says_reset(int64_t prev_ts, int64_t prev_start, int64_t ts, int64_t start);

/* What the extrapolation needs to know of a window: the rest is arithmetic. */
struct pq_rate_ends {
    int64_t first_ts, last_ts;
    double first_value;
    double change;      /* last - first, plus the values lost in resets, added in order */
    size_t samples;     /* in the window */
    bool zero_at_start; /* the counter was zero at zero_ts, inside the window */
    int64_t zero_ts;
};

enum pq_rate_kind { PQ_RATE_RATE, PQ_RATE_INCREASE, PQ_RATE_DELTA };

double pq_rate_extrapolate(const struct pq_rate_ends *ends, enum pq_rate_kind kind,
                           int64_t range_start, int64_t range_end);

#endif
