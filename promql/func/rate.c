/* rate.c - rate, increase, delta, irate, idelta, resets, changes. */
#include "promql/func/rate.h"

#include <math.h>

bool pq_fn_start_says_reset(int64_t prev_ts, int64_t prev_start, int64_t ts, int64_t start)
{
    if (start == 0 || start >= ts)
        return false;
    if (start == prev_ts)
        return prev_start != 0 && prev_start < prev_ts;
    return start > prev_ts;
}

bool pq_fn_is_reset(const struct pq_window *w, size_t i)
{
    if (w->values[i] < w->values[i - 1])
        return true;
    return w->start_ts &&
           pq_fn_start_says_reset(w->ts[i - 1], w->start_ts[i - 1], w->ts[i], w->start_ts[i]);
}

static void flag_overlaps(const struct pq_window *w)
{
    if (!w->start_ts || !w->flags)
        return;
    PQ_WINDOW_EACH (w, i, 1) {
        int64_t start = w->start_ts[i];

        if (start != 0 && start < w->ts[i - 1] && start != w->start_ts[i - 1])
            *w->flags |= PQ_WINDOW_START_OVERLAP;
    }
}

/* The counter's own start lies inside the window, before the first sample: it was zero there. */
static bool starts_inside(const struct pq_window *w)
{
    return w->start_ts && w->start_ts[0] != 0 && w->start_ts[0] > w->range_start &&
           w->start_ts[0] < w->ts[0];
}

static bool extrapolated(const struct pq_window *w, enum pq_rate_kind kind, double *ret_value)
{
    bool counter = kind != PQ_RATE_DELTA;
    size_t last = w->count - 1;
    struct pq_rate_ends ends;
    bool from_zero;

    if (w->count == 0)
        return false;
    from_zero = counter && starts_inside(w);
    if (w->count < 2 && !from_zero)
        return false;
    ends = (struct pq_rate_ends){
        .to_start = (double)(w->ts[0] - w->range_start),
        .to_end = (double)(w->range_end - w->ts[last]),
        .sampled = (double)(w->ts[last] - w->ts[0]),
        .intervals = (double)last,
        .first_value = w->values[0],
        .change = w->values[last] - (from_zero ? 0 : w->values[0]),
        .zero = from_zero ? (double)(w->ts[0] - w->start_ts[0]) : -1,
    };
    if (counter) {
        PQ_WINDOW_EACH (w, i, 1)
            if (pq_fn_is_reset(w, i))
                ends.change += w->values[i - 1];
        flag_overlaps(w);
    }
    *ret_value = pq_rate_extrapolate(&ends, kind, pq_window_seconds(w));
    return true;
}

bool pq_fn_rate(const struct pq_window *w, double *ret_value)
{
    return extrapolated(w, PQ_RATE_RATE, ret_value);
}

bool pq_fn_increase(const struct pq_window *w, double *ret_value)
{
    return extrapolated(w, PQ_RATE_INCREASE, ret_value);
}

bool pq_fn_delta(const struct pq_window *w, double *ret_value)
{
    return extrapolated(w, PQ_RATE_DELTA, ret_value);
}

bool pq_fn_irate(const struct pq_window *w, double *ret_value)
{
    size_t last = w->count - 1;
    double change;

    if (w->count < 2)
        return false;
    change = w->values[last];
    if (!pq_fn_is_reset(w, last))
        change -= w->values[last - 1];
    *ret_value = change / ((double)(w->ts[last] - w->ts[last - 1]) / 1000);
    return true;
}

bool pq_fn_idelta(const struct pq_window *w, double *ret_value)
{
    if (w->count < 2)
        return false;
    *ret_value = w->values[w->count - 1] - w->values[w->count - 2];
    return true;
}

bool pq_fn_resets(const struct pq_window *w, double *ret_value)
{
    size_t resets = 0;

    if (w->count == 0)
        return false;
    PQ_WINDOW_EACH (w, i, 1)
        resets += pq_fn_is_reset(w, i);
    *ret_value = (double)resets;
    return true;
}

bool pq_fn_changes(const struct pq_window *w, double *ret_value)
{
    size_t changes = 0;

    if (w->count == 0)
        return false;
    PQ_WINDOW_EACH (w, i, 1) {
        double prev = w->values[i - 1], value = w->values[i];

        changes += value != prev && !(isnan(value) && isnan(prev));
    }
    *ret_value = (double)changes;
    return true;
}
