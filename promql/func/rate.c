/* rate.c - rate, increase, delta, irate, idelta, resets, changes. */
#include "promql/func/rate.h"

#include <math.h>

#include "base/pure/macros.h"

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
    for (size_t i = 1; i < w->count; i++) {
        int64_t start = w->start_ts[i];

        if (start != 0 && start < w->ts[i - 1] && start != w->start_ts[i - 1])
            *w->flags |= PQ_WINDOW_START_OVERLAP;
    }
}

double pq_rate_extrapolate(const struct pq_rate_ends *ends, enum pq_rate_kind kind,
                           int64_t range_start, int64_t range_end)
{
    struct pq_window range = { .range_start = range_start, .range_end = range_end };
    double to_start = (double)(ends->first_ts - range_start) / 1000;
    double to_end = (double)(range_end - ends->last_ts) / 1000;
    double sampled = (double)(ends->last_ts - ends->first_ts) / 1000;
    /* A lone sample has no interval to extrapolate by. */
    double interval = ends->samples > 1 ? sampled / (double)(ends->samples - 1) : 0;
    double threshold = interval * 1.1;
    double change = ends->change;
    double factor;

    if (to_start >= threshold)
        to_start = interval / 2;
    if (ends->zero_at_start) {
        sampled = (double)(ends->last_ts - ends->zero_ts) / 1000;
        to_start = 0;
    } else if (kind != PQ_RATE_DELTA && change > 0 && ends->first_value >= 0) {
        /* Going back at this pace the counter was zero that long ago: no further. */
        double to_zero = sampled * (ends->first_value / change);

        if (to_zero < to_start)
            to_start = to_zero;
    }
    if (to_end >= threshold)
        to_end = interval / 2;
    factor = (sampled + to_start + to_end) / sampled;
    if (kind == PQ_RATE_RATE)
        factor /= pq_window_seconds(&range);
    return change * factor;
}

static bool extrapolated(const struct pq_window *w, enum pq_rate_kind kind, double *ret_value)
{
    struct pq_rate_ends ends;
    bool counter = kind != PQ_RATE_DELTA;

    if (w->count == 0)
        return false;
    ends = (struct pq_rate_ends){
        .first_ts = w->ts[0],
        .last_ts = w->ts[w->count - 1],
        .first_value = w->values[0],
        .samples = w->count,
    };
    if (counter && w->start_ts && w->start_ts[0] != 0 && w->start_ts[0] > w->range_start &&
        w->start_ts[0] < ends.first_ts) {
        ends.zero_at_start = true;
        ends.zero_ts = w->start_ts[0];
    }
    if (w->count < 2 && !ends.zero_at_start)
        return false;
    ends.change = w->values[w->count - 1] - (ends.zero_at_start ? 0 : w->values[0]);
    if (counter) {
        for (size_t i = 1; i < w->count; i++)
            if (pq_fn_is_reset(w, i))
                ends.change += w->values[i - 1];
        flag_overlaps(w);
    }
    *ret_value = pq_rate_extrapolate(&ends, kind, w->range_start, w->range_end);
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
    for (size_t i = 1; i < w->count; i++)
        resets += pq_fn_is_reset(w, i);
    *ret_value = (double)resets;
    return true;
}

bool pq_fn_changes(const struct pq_window *w, double *ret_value)
{
    size_t changes = 0;

    if (w->count == 0)
        return false;
    for (size_t i = 1; i < w->count; i++) {
        double prev = w->values[i - 1], value = w->values[i];

        changes += value != prev && !(isnan(value) && isnan(prev));
    }
    *ret_value = (double)changes;
    return true;
}
