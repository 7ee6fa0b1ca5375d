/* extended.c - native histograms in anchored and smoothed windows; see func/extended.h. */
#include "promql/func/range.h"
#include "promql/histogram/rates.h"
#include "promql/histogram/reset.h"

/* One end of a window. */
struct end {
    const struct pq_histogram *histogram;
    bool restarted; /* it lies between two samples with a reset in between */
};

/* On the line from sample @i to the next. A counter that restarts in between climbs from zero, and
 * is a reset to whatever was before. */
static bool interpolate(const struct pq_native_window *w, size_t i, int64_t at, bool counter,
                        struct end *ret)
{
    const struct pq_histogram *from = w->histograms[i], *to = w->histograms[i + 1], *change;
    double share = (double)(at - w->ts[i]) / (double)(w->ts[i + 1] - w->ts[i]);
    struct pq_histogram_joined joined;

    ret->restarted = counter && pq_histogram_is_reset(to, from);
    if (ret->restarted) {
        ret->histogram = pq_histogram_mul(w->scratch, to, share);
        if (ret->histogram)
            ret->histogram = pq_histogram_hinted(w->scratch, ret->histogram, PQ_RESET_YES);
        return ret->histogram != NULL;
    }
    if (!pq_histogram_combine(w->scratch, to, from, -1, share, &joined))
        return false;
    change = joined.histogram;
    if (!pq_histogram_combine(w->scratch, from, change, 1, 1, &joined))
        return false;
    ret->histogram = pq_histogram_hinted(w->scratch, joined.histogram, to->reset_hint);
    return ret->histogram != NULL;
}

struct bounds {
    size_t first, last; /* the samples that stand for both ends, or lie just outside them */
};

/* As for floats: false if no sample lies where one is needed. */
static bool find_bounds(const struct pq_native_window *w, struct bounds *ret)
{
    size_t after = pq_fn_advance(w->ts, w->count, 0, w->range_start);

    ret->first = after > 0 ? after - 1 : 0;
    ret->last = w->count - 1;
    if (w->mode == PQ_WINDOW_SMOOTHED) {
        size_t last = pq_fn_advance(w->ts, w->count, 0, w->range_end - 1);

        if (last < w->count)
            ret->last = last;
    }
    return w->ts[ret->last] > w->range_start && w->ts[ret->first] <= w->range_end;
}

/* What was lost in resets between the left end, the samples inside and the right end. */
static bool add_lost(const struct pq_native_window *w, struct bounds b, const struct end *left,
                     const struct end *right, struct pq_histogram_sum *sum)
{
    const struct pq_histogram *prev = left->histogram;
    size_t i = b.first + 1;

    if (b.first == b.last)
        return true;
    if (left->restarted) { /* the line to the next sample knows of the reset before it */
        if (i == b.last)
            return true;
        prev = w->histograms[i++];
    }
    for (; i < b.last; i++) {
        if (pq_histogram_is_reset(w->histograms[i], prev) && !pq_native_add(w, sum, prev, 1))
            return false;
        prev = w->histograms[i];
    }
    return !pq_histogram_is_reset(right->histogram, prev) || pq_native_add(w, sum, prev, 1);
}

static bool check_schemas(const struct pq_native_window *w, struct bounds b)
{
    for (size_t i = b.first + 1; i <= b.last; i++)
        if (!pq_native_same_schemas(w, b.first, i))
            return false;
    return true;
}

enum pq_native_result pq_native_extended(const struct pq_native_window *w, enum pq_rate_kind kind,
                                         struct pq_value *ret_value)
{
    bool counter = kind != PQ_RATE_DELTA, smoothed = w->mode == PQ_WINDOW_SMOOTHED, ok = true;
    struct pq_histogram_sum sum;
    struct end left, right;
    struct bounds b;

    if (w->count == 0 || !find_bounds(w, &b))
        return PQ_NATIVE_NONE;
    pq_native_check_hints(w, b.first, b.last, counter);
    if (!check_schemas(w, b))
        return PQ_NATIVE_NONE;
    left = (struct end){ w->histograms[b.first], false };
    right = (struct end){ w->histograms[b.last], false };
    if (smoothed && w->ts[b.first] < w->range_start)
        ok = interpolate(w, b.first, w->range_start, counter, &left);
    if (ok && smoothed && w->ts[b.last] > w->range_end)
        ok = interpolate(w, b.last - 1, w->range_end, counter, &right);
    pq_hsum_init(&sum, w->scratch, PQ_HSUM_PLAIN);
    ok = ok && pq_native_add(w, &sum, right.histogram, 1) &&
         pq_native_add(w, &sum, left.histogram, -1) &&
         (!counter || add_lost(w, b, &left, &right, &sum));
    if (!ok)
        return PQ_NATIVE_NO_MEMORY;
    return pq_native_scaled(w, &sum, kind == PQ_RATE_RATE ? 1 / pq_native_seconds(w) : 1,
                            ret_value);
}

enum pq_native_result pq_native_interpolated(const struct pq_native_window *w, int64_t at,
                                             struct pq_value *ret_value)
{
    size_t after = pq_fn_advance(w->ts, w->count, 0, at), before = after - 1;
    struct end end;

    if (after == 0)
        return PQ_NATIVE_NONE;
    end.histogram = w->histograms[before];
    if (w->ts[before] != at && after < w->count) {
        bool counter = w->histograms[before]->reset_hint != PQ_RESET_GAUGE;

        if (!pq_native_same_schemas(w, before, after))
            return PQ_NATIVE_NONE;
        if (!interpolate(w, before, at, counter, &end))
            return PQ_NATIVE_NO_MEMORY;
        end.histogram = pq_histogram_mul(w->scope, end.histogram, 1); /* out of the scratch */
        if (!end.histogram)
            return PQ_NATIVE_NO_MEMORY;
    }
    *ret_value = (struct pq_value){ .histogram = end.histogram };
    return PQ_NATIVE_VALUE;
}
