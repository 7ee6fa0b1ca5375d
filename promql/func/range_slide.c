/* range_slide.c - sliding windows.
 *
 * Two positions move over the samples: low, the first one inside the window, and high, the first
 * one behind it. A window is [low, high). */
#include "promql/func/range_slide.h"

#include <math.h>

#include "base/pure/macros.h"
#include "promql/func/rate.h"

/* Positions of samples that may still become the extreme of a window, oldest first: each is more
 * extreme than all behind it. They are kept as doubles, which hold them exactly, in the caller's
 * scratch array; NaNs are never kept, since any number goes before them. */
struct candidates {
    double *at;
    size_t head, tail;
};

static inline bool less_extreme(double a, double b, bool max)
{
    return max ? a < b : a > b;
}

static inline size_t slide_extreme(const struct pq_fn_range_call *call,
                                   const struct pq_fn_samples *series,
                                   const struct pq_fn_grid *grid, double *out, uint8_t *present,
                                   bool max)
{
    struct candidates c = { .at = call->scratch };
    const double *values = series->values;
    size_t low = 0, high = 0, seen = 0, points = 0;

    if (!call->scratch) /* nowhere to keep candidates */
        return pq_fn_range_steps_plain(call, series, grid, out, present, NULL);
    for (size_t k = 0; k < grid->count; k++) {
        int64_t end = pq_fn_grid_window_end(grid, k);

        pq_slide(series, end - call->range_ms, end, &low, &high);
        if (pq_poll_work(call->poll, 1))
            break;
        PQ_POLL_EACH (call->poll, i, seen, high) {
            if (isnan(values[i]))
                continue;
            while (c.tail > c.head &&
                   less_extreme(values[(size_t)c.at[c.tail - 1]], values[i], max))
                c.tail--;
            c.at[c.tail++] = (double)i;
        }
        seen = high;
        while (c.head < c.tail && (size_t)c.at[c.head] < low)
            c.head++;
        present[k] = high > low;
        points += present[k];
        if (high == low)
            out[k] = 0;
        else
            out[k] = c.head < c.tail ? values[(size_t)c.at[c.head]] : values[high - 1];
    }
    return points;
}

size_t pq_slide_min(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                    const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_extreme(call, series, grid, out, present, false);
}

size_t pq_slide_max(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                    const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_extreme(call, series, grid, out, present, true);
}

static inline bool is_event(const struct pq_window *all, size_t i, bool resets)
{
    double prev = all->values[i - 1], value = all->values[i];

    if (resets)
        return pq_fn_is_reset(all, i);
    return value != prev && !(isnan(value) && isnan(prev));
}

/* Resets or changes: pairs of neighbours come into the window and leave it. */
static inline size_t slide_events(const struct pq_fn_range_call *call,
                                  const struct pq_fn_samples *series, const struct pq_fn_grid *grid,
                                  double *out, uint8_t *present, bool resets)
{
    const struct pq_window all = { .ts = series->ts,
                                   .values = series->values,
                                   .start_ts = series->start_ts,
                                   .count = series->count };
    size_t low = 0, high = 0, points = 0;
    /* Pairs are known by their second sample: those in (first, next) are counted. */
    size_t first = 0, next = 1, events = 0;

    for (size_t k = 0; k < grid->count; k++) {
        int64_t end = pq_fn_grid_window_end(grid, k);
        size_t entered, left;

        pq_slide(series, end - call->range_ms, end, &low, &high);
        if (pq_poll_work(call->poll, 1))
            break;
        entered = QF_MAX(next, high);
        PQ_POLL_EACH (call->poll, i, next, entered)
            events += is_event(&all, i, resets);
        next = entered;
        left = QF_MIN(low, next - 1);
        left = QF_MAX(left, first);
        PQ_POLL_EACH (call->poll, i, first, left)
            events -= is_event(&all, i + 1, resets);
        first = left;
        present[k] = high > low;
        points += present[k];
        out[k] = present[k] ? (double)events : 0;
    }
    return points;
}

size_t pq_slide_resets(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                       const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_events(call, series, grid, out, present, true);
}

size_t pq_slide_changes(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                        const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_events(call, series, grid, out, present, false);
}
