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

/* Steps are worked on in blocks: first the ends of their windows are collected, one after the
 * other, then the arithmetic runs over plain arrays. */
#define BLOCK 64

/* Two doubles at a time. Compilers do not make vector code of the plain loop, because comparisons
 * and divisions that are not needed might trap; here they cannot matter. */
typedef double pair __attribute__((vector_size(16), may_alias));
typedef int64_t pair_mask __attribute__((vector_size(16), may_alias));

/* a where the mask is set, else b. */
static inline pair choose(pair_mask mask, pair a, pair b)
{
    return (pair)((mask & (pair_mask)a) | (~mask & (pair_mask)b));
}

#define ALIGNED __attribute__((aligned(16)))
struct rate_block {
    double to_start[BLOCK] ALIGNED, to_end[BLOCK] ALIGNED, sampled[BLOCK] ALIGNED;
    double intervals[BLOCK] ALIGNED, first_value[BLOCK] ALIGNED, change[BLOCK] ALIGNED;
    double result[BLOCK] ALIGNED;
};

static inline pair load(const double *from)
{
    return *(const pair *)from;
}

/* pq_rate_extrapolate, operation by operation, for windows of at least two samples and counters of
 * unknown start. Windows without an answer are worked on as well. */
static inline void rate_block_work(struct rate_block *block, enum pq_rate_kind kind, double seconds)
{
    for (size_t i = 0; i < BLOCK; i += 2) {
        pair to_start = load(&block->to_start[i]) / 1000, to_end = load(&block->to_end[i]) / 1000;
        pair sampled = load(&block->sampled[i]) / 1000;
        pair interval = sampled / load(&block->intervals[i]);
        pair threshold = interval * 1.1, half = interval / 2;
        pair change = load(&block->change[i]), first = load(&block->first_value[i]), factor;

        to_start = choose(to_start >= threshold, half, to_start);
        to_end = choose(to_end >= threshold, half, to_end);
        if (kind != PQ_RATE_DELTA) {
            /* A counter that is far from zero reaches it beyond any extrapolation, which is at most
             * 1.1 intervals: no need to divide. */
            pair_mask near_zero = ~(first > change * 1.25);

            if (near_zero[0] | near_zero[1]) {
                pair to_zero = sampled * (first / change);

                to_start =
                    choose((change > 0) & (first >= 0) & (to_zero < to_start), to_zero, to_start);
            }
        }
        factor = (sampled + to_start + to_end) / sampled;
        if (kind == PQ_RATE_RATE)
            factor /= seconds;
        *(pair *)&block->result[i] = change * factor;
    }
}

static bool has_resets(const struct pq_fn_samples *series)
{
    const double *values = series->values;
    unsigned found = 0;

    for (size_t i = 1; i < series->count; i++)
        found |= values[i] < values[i - 1];
    return found != 0;
}

/* The ends of the window [low, high), which is the time (start, end], into place @i of the block.
 * @resets is NULL for gauges, and for counters without any. False if the window has no rate. */
static inline bool rate_collect(const struct pq_fn_samples *series, struct resets *resets,
                                size_t low, size_t high, int64_t start, int64_t end,
                                struct rate_block *block, size_t i)
{
    int64_t first_ts, last_ts;
    double change;

    if (resets)
        resets_look(resets, series->values, high);
    if (high - low < 2)
        return false;
    first_ts = series->ts[low];
    last_ts = series->ts[high - 1];
    change = series->values[high - 1] - series->values[low];
    if (resets && (resets->head != resets->tail || resets->full_until > low))
        change = resets_add(resets, series->values, low, high, change);
    block->to_start[i] = (double)(first_ts - start);
    block->to_end[i] = (double)(end - last_ts);
    block->sampled[i] = (double)(last_ts - first_ts);
    block->intervals[i] = (double)(int64_t)(high - low - 1);
    block->first_value[i] = series->values[low];
    block->change[i] = change;
    return true;
}

static inline size_t slide_rate(const struct pq_fn_range_call *call,
                                const struct pq_fn_samples *series, const struct pq_fn_grid *grid,
                                double *out, uint8_t *present, enum pq_rate_kind kind)
{
    struct pq_window range = { .range_end = call->range_ms };
    double seconds = pq_window_seconds(&range);
    struct resets ring = { .seen = 1 };
    struct resets *resets = kind != PQ_RATE_DELTA && has_resets(series) ? &ring : NULL;
    struct rate_block block = { 0 };
    int64_t end = pq_fn_grid_window_end(grid, 0), step = grid->fixed ? 0 : grid->step;
    size_t low = 0, high = 0, points = 0;

    for (size_t k = 0; k < grid->count; k += BLOCK) {
        size_t count = QF_MIN(grid->count - k, (size_t)BLOCK);

        for (size_t i = 0; i < count; i++, end += step) {
            slide(series, end - call->range_ms, end, &low, &high);
            present[k + i] =
                rate_collect(series, resets, low, high, end - call->range_ms, end, &block, i);
            points += present[k + i];
        }
        rate_block_work(&block, kind, seconds);
        for (size_t i = 0; i < count; i++)
            out[k + i] = present[k + i] ? block.result[i] : 0;
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

    for (size_t k = 0; k < grid->count; k++) {
        int64_t end = pq_fn_grid_window_end(grid, k);

        slide(series, end - call->range_ms, end, &low, &high);
        for (; seen < high; seen++) {
            if (isnan(values[seen]))
                continue;
            while (c.tail > c.head &&
                   less_extreme(values[(size_t)c.at[c.tail - 1]], values[seen], max))
                c.tail--;
            c.at[c.tail++] = (double)seen;
        }
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

static size_t slide_min(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                        const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_extreme(call, series, grid, out, present, false);
}

static size_t slide_max(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
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

        slide(series, end - call->range_ms, end, &low, &high);
        for (; next < high; next++)
            events += is_event(&all, next, resets);
        for (; first < low && first + 1 < next; first++)
            events -= is_event(&all, first + 1, resets);
        present[k] = high > low;
        points += present[k];
        out[k] = present[k] ? (double)events : 0;
    }
    return points;
}

static size_t slide_resets(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                           const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_events(call, series, grid, out, present, true);
}

static size_t slide_changes(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                            const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_events(call, series, grid, out, present, false);
}

pq_slide_fn *pq_slide_find(const struct pq_fn_range_call *call, const struct pq_fn_samples *series)
{
    static pq_slide_fn *const slides[PQ_FN__COUNT] = {
        [PQ_FN_RATE] = slide_rate_rate,    [PQ_FN_INCREASE] = slide_rate_increase,
        [PQ_FN_DELTA] = slide_rate_delta,  [PQ_FN_MIN_OVER_TIME] = slide_min,
        [PQ_FN_MAX_OVER_TIME] = slide_max, [PQ_FN_RESETS] = slide_resets,
        [PQ_FN_CHANGES] = slide_changes,
    };

    if (call->mode != PQ_WINDOW_PLAIN)
        return NULL;
    /* Start timestamps make resets of their own, and notes. */
    if (series->start_ts && (call->fn == PQ_FN_RATE || call->fn == PQ_FN_INCREASE))
        return NULL;
    if (!call->scratch && (call->fn == PQ_FN_MIN_OVER_TIME || call->fn == PQ_FN_MAX_OVER_TIME))
        return NULL;
    return slides[call->fn];
}
