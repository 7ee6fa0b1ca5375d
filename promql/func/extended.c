/* extended.c - anchored and smoothed windows. */
#include "promql/func/extended.h"

#include "promql/func/range.h"
#include "promql/func/rate.h"

/* On the line from sample @i to the next. A counter that restarts in between climbs from zero. */
static double interpolate(const struct pq_window *w, size_t i, int64_t at, bool counter)
{
    double from = w->values[i], to = w->values[i + 1];

    if (counter && to < from)
        from = 0;
    return from + (to - from) * (double)(at - w->ts[i]) / (double)(w->ts[i + 1] - w->ts[i]);
}

struct bounds {
    size_t first, last; /* the samples that stand for both ends, or lie just outside them */
};

/* False if no sample lies where one is needed. */
static bool find_bounds(const struct pq_window *w, bool smoothed, struct bounds *ret)
{
    size_t after;

    if (w->count == 0)
        return false;
    after = pq_fn_advance(w->ts, w->count, 0, w->range_start);
    ret->first = after > 0 ? after - 1 : 0;
    ret->last = w->count - 1;
    if (smoothed) {
        size_t last = pq_fn_advance(w->ts, w->count, 0, w->range_end - 1);

        if (last < w->count)
            ret->last = last;
    }
    if (w->ts[ret->last] <= w->range_start || w->ts[ret->first] > w->range_end)
        return false;
    return true;
}

/* The values lost in resets between the left end, the samples strictly inside and the right end. */
static double lost_in_resets(const struct pq_window *w, struct bounds b, double left, double right)
{
    double lost = 0, prev = left;

    PQ_POLL_EACH (w->poll, i, b.first, b.last + 1) {
        if (w->ts[i] <= w->range_start || w->ts[i] >= w->range_end)
            continue;
        if (w->values[i] < prev)
            lost += prev;
        prev = w->values[i];
    }
    if (right < prev)
        lost += prev;
    return lost;
}

static bool extended(const struct pq_window *w, enum pq_rate_kind kind, bool smoothed,
                     double *ret_value)
{
    bool counter = kind != PQ_RATE_DELTA;
    struct bounds b;
    double left, right, change;

    if (!find_bounds(w, smoothed, &b))
        return false;
    left = w->values[b.first];
    if (smoothed && w->ts[b.first] < w->range_start)
        left = interpolate(w, b.first, w->range_start, counter);
    right = w->values[b.last];
    if (smoothed && w->ts[b.last] > w->range_end)
        right = interpolate(w, b.last - 1, w->range_end, counter);
    change = right - left;
    if (counter)
        change += lost_in_resets(w, b, left, right);
    *ret_value = kind == PQ_RATE_RATE ? change / pq_window_seconds(w) : change;
    return true;
}

bool pq_fn_rate_anchored(const struct pq_window *w, double *ret_value)
{
    return extended(w, PQ_RATE_RATE, false, ret_value);
}

bool pq_fn_increase_anchored(const struct pq_window *w, double *ret_value)
{
    return extended(w, PQ_RATE_INCREASE, false, ret_value);
}

bool pq_fn_delta_anchored(const struct pq_window *w, double *ret_value)
{
    return extended(w, PQ_RATE_DELTA, false, ret_value);
}

bool pq_fn_rate_smoothed(const struct pq_window *w, double *ret_value)
{
    return extended(w, PQ_RATE_RATE, true, ret_value);
}

bool pq_fn_increase_smoothed(const struct pq_window *w, double *ret_value)
{
    return extended(w, PQ_RATE_INCREASE, true, ret_value);
}

bool pq_fn_delta_smoothed(const struct pq_window *w, double *ret_value)
{
    return extended(w, PQ_RATE_DELTA, true, ret_value);
}

/* The window from its anchor on: what resets and changes count in. */
static bool anchored_part(const struct pq_window *w, struct pq_window *ret)
{
    struct bounds b;

    if (!find_bounds(w, false, &b))
        return false;
    *ret = *w;
    ret->ts += b.first;
    ret->values += b.first;
    if (ret->start_ts)
        ret->start_ts += b.first;
    ret->count -= b.first;
    return true;
}

bool pq_fn_resets_anchored(const struct pq_window *w, double *ret_value)
{
    struct pq_window part;

    return anchored_part(w, &part) && pq_fn_resets(&part, ret_value);
}

bool pq_fn_changes_anchored(const struct pq_window *w, double *ret_value)
{
    struct pq_window part;

    return anchored_part(w, &part) && pq_fn_changes(&part, ret_value);
}

bool pq_fn_smoothed_at(const int64_t *ts, const double *values, size_t count, int64_t at,
                       double *ret_value)
{
    struct pq_window w = { .ts = ts, .values = values, .count = count };
    size_t after = pq_fn_advance(ts, count, 0, at);

    if (after == 0)
        return false;
    if (ts[after - 1] == at || after == count)
        *ret_value = values[after - 1];
    else
        *ret_value = interpolate(&w, after - 1, at, false);
    return true;
}
