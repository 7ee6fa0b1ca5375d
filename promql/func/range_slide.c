/* range_slide.c - sliding windows.
 *
 * Two positions move over the samples: low, the first one inside the window, and high, the first
 * one behind it. A window is [low, high). */
#include "promql/func/range_slide.h"

#include <math.h>
#include <stdlib.h>

#include "base/pure/macros.h"
#include "promql/func/rate.h"

/* The slide of the two positions to the window of step @k. */
static inline void slide(const struct pq_fn_samples *series, int64_t start, int64_t end,
                         size_t *low, size_t *high)
{
    const int64_t *ts = series->ts;
    size_t count = series->count, l = *low, h = *high;

    while (h < count && ts[h] <= end)
        h++;
    while (l < h && ts[l] <= start)
        l++;
    *low = l;
    *high = h;
}

/* What was lost in resets inside a window has to be added up in order, but resets are rare: their
 * positions (of the sample after the drop) are kept in a ring as they come in, and those that the
 * window has passed are dropped from the front. */
#define RING_SIZE 64 /* a power of two; with more resets in a window all samples are looked at */

struct resets {
    size_t at[RING_SIZE];
    size_t head, tail; /* [head, tail) modulo the size */
    size_t seen;       /* samples before this one were looked at */
    size_t full_until; /* resets up to here were too many to keep */
};

static void resets_look(struct resets *resets, const double *values, size_t high)
{
    for (size_t i = resets->seen; i < high; i++) {
        if (QF_LIKELY(!(values[i] < values[i - 1])))
            continue;
        if (resets->tail - resets->head == RING_SIZE)
            resets->full_until = resets->at[resets->head++ % RING_SIZE];
        resets->at[resets->tail++ % RING_SIZE] = i;
    }
    resets->seen = high > resets->seen ? high : resets->seen;
}

/* change + the values before each reset in the window, in order. */
static double resets_add(struct resets *resets, const double *values, size_t low, size_t high,
                         double change)
{
    if (QF_UNLIKELY(resets->full_until > low)) {
        for (size_t i = low + 1; i < high; i++)
            if (values[i] < values[i - 1])
                change += values[i - 1];
        return change;
    }
    while (resets->head != resets->tail && resets->at[resets->head % RING_SIZE] <= low)
        resets->head++;
    for (size_t r = resets->head; r != resets->tail; r++)
        change += values[resets->at[r % RING_SIZE] - 1];
    return change;
}

static inline size_t slide_rate(const struct pq_fn_range_call *call,
                                const struct pq_fn_samples *series, const struct pq_fn_grid *grid,
                                double *out, uint8_t *present, enum pq_rate_kind kind)
{
    struct resets resets = { .seen = 1 };
    size_t low = 0, high = 0, points = 0;

    for (size_t k = 0; k < grid->count; k++) {
        int64_t end = pq_fn_grid_window_end(grid, k);
        int64_t start = end - call->range_ms;
        struct pq_rate_ends ends;

        slide(series, start, end, &low, &high);
        out[k] = 0;
        present[k] = 0;
        if (kind != PQ_RATE_DELTA)
            resets_look(&resets, series->values, high);
        if (high - low < 2)
            continue;
        ends = (struct pq_rate_ends){
            .first_ts = series->ts[low],
            .last_ts = series->ts[high - 1],
            .first_value = series->values[low],
            .samples = high - low,
        };
        ends.change = series->values[high - 1] - series->values[low];
        if (kind != PQ_RATE_DELTA && (resets.head != resets.tail || resets.full_until > low))
            ends.change = resets_add(&resets, series->values, low, high, ends.change);
        out[k] = pq_rate_extrapolate(&ends, kind, start, end);
        present[k] = 1;
        points++;
    }
    return points;
}

static size_t slide_rate_rate(const struct pq_fn_range_call *call,
                              const struct pq_fn_samples *series, const struct pq_fn_grid *grid,
                              double *out, uint8_t *present)
{
    return slide_rate(call, series, grid, out, present, PQ_RATE_RATE);
}

static size_t slide_rate_increase(const struct pq_fn_range_call *call,
                                  const struct pq_fn_samples *series, const struct pq_fn_grid *grid,
                                  double *out, uint8_t *present)
{
    return slide_rate(call, series, grid, out, present, PQ_RATE_INCREASE);
}

static size_t slide_rate_delta(const struct pq_fn_range_call *call,
                               const struct pq_fn_samples *series, const struct pq_fn_grid *grid,
                               double *out, uint8_t *present)
{
    return slide_rate(call, series, grid, out, present, PQ_RATE_DELTA);
}

pq_slide_fn *pq_slide_find(const struct pq_fn_range_call *call, const struct pq_fn_samples *series)
{
    if (call->mode != PQ_WINDOW_PLAIN)
        return NULL;
    if (call->fn == PQ_FN_DELTA)
        return slide_rate_delta;
    /* Start timestamps make resets of their own. */
    if (series->start_ts)
        return NULL;
    if (call->fn == PQ_FN_RATE)
        return slide_rate_rate;
    if (call->fn == PQ_FN_INCREASE)
        return slide_rate_increase;
    return NULL;
}
