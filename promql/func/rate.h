/* rate.h - how counters and gauges change over a window.
 *
 * Counters count a decrease as a reset to zero. Where start timestamps are known, a sample whose
 * own start lies after the previous sample is a reset too, whatever the values say. */
#ifndef PROMQL_FUNC_RATE_H
#define PROMQL_FUNC_RATE_H

#include "promql/func/kernels.h"

/* The kernels themselves are declared in kernels.h. rate, increase and delta take the difference
 * between first and last sample, extrapolated to the whole window: by at most half an average
 * interval where the next sample seems to be missing, and for counters never below zero. At least
 * two samples; one is enough for a counter whose start timestamp lies in the window, which is then
 * where the counter was zero. irate and idelta take the last two samples alone. */

/* True if sample @i (> 0) of the window starts a new count: it is smaller than the one before, or
 * its start timestamp says so. */
bool pq_fn_is_reset(const struct pq_window *w, size_t i);
/* The same by values: did the counter restart between two samples with known start timestamps? A
 * start at the previous sample's time tells a delta sample only if that one had a valid start; it
 * is a cumulative counter of unknown start otherwise. */
bool pq_fn_start_says_reset(int64_t prev_ts, int64_t prev_start, int64_t ts, int64_t start);

/* What the extrapolation needs to know of a window; the rest is arithmetic. Times are in
 * milliseconds, as doubles: they are exact. */
struct pq_rate_ends {
    double to_start, to_end; /* from the start to the first sample, from the last one to the end */
    double sampled;          /* between first and last sample */
    double intervals;        /* samples less one; 0 for a lone sample, which shows no interval */
    double first_value;
    double change; /* last - first, plus the values lost in resets, added in order */
    double zero;   /* before the first sample the counter was zero that long ago; < 0: unknown */
};

enum pq_rate_kind { PQ_RATE_RATE, PQ_RATE_INCREASE, PQ_RATE_DELTA };

/* What to multiply the change with to have it for the whole window, divided by @seconds, the
 * window's length, for PQ_RATE_RATE. */
static inline double pq_rate_factor(const struct pq_rate_ends *ends, enum pq_rate_kind kind,
                                    double seconds)
{
    double to_start = ends->to_start / 1000, to_end = ends->to_end / 1000;
    double sampled = ends->sampled / 1000;
    double interval = ends->intervals > 0 ? sampled / ends->intervals : 0;
    double threshold = interval * 1.1, half = interval / 2;
    double factor;

    to_start = to_start >= threshold ? half : to_start;
    to_end = to_end >= threshold ? half : to_end;
    if (kind != PQ_RATE_DELTA) {
        /* Going back at this pace the counter was zero that long ago: no further. */
        double to_zero = sampled * (ends->first_value / ends->change);
        bool known = ends->zero >= 0;
        bool limited = (ends->change > 0) & (ends->first_value >= 0) & (to_zero < to_start);

        to_start = limited ? to_zero : to_start;
        to_start = known ? 0 : to_start;
        sampled = known ? (ends->sampled + ends->zero) / 1000 : sampled;
    }
    factor = (sampled + to_start + to_end) / sampled;
    if (kind == PQ_RATE_RATE)
        factor /= seconds;
    return factor;
}

/* The change over the whole window, or per second. */
static inline double pq_rate_extrapolate(const struct pq_rate_ends *ends, enum pq_rate_kind kind,
                                         double seconds)
{
    return ends->change * pq_rate_factor(ends, kind, seconds);
}

#endif
