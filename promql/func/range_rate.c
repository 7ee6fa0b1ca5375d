/* range_rate.c - rate, increase and delta over all steps.
 *
 * Two ways lead to the same bits. Where timestamps are evenly spaced and a step is a whole number
 * of intervals, all windows inside the series look alike: they hold as many samples, as far from
 * their ends, and the extrapolation is one factor for all of them. Elsewhere each window has its
 * own. */
#include "promql/func/range_slide.h"

#include "base/pure/duration.h"
#include "base/pure/macros.h"
#include "promql/func/rate.h"

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

/* Two numbers at a time. Compilers do not make vector code of the plain loop, because comparisons
 * and divisions that are not needed might trap; here they cannot matter. */
typedef double pair __attribute__((vector_size(16), may_alias));
typedef int64_t pair_mask __attribute__((vector_size(16), may_alias));
/* The same where memory is not aligned to pairs. */
typedef double loose_pair __attribute__((vector_size(16), may_alias, aligned(8)));
typedef int64_t loose_mask __attribute__((vector_size(16), may_alias, aligned(8)));

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

/* One series and what is asked of it. */
struct task {
    const struct pq_fn_range_call *call;
    const struct pq_fn_samples *series;
    enum pq_rate_kind kind;
    double seconds;
    /* Counters: the samples that are smaller than the one before, ascending, as doubles, which hold
     * positions exactly. Gauges have none. */
    const double *resets;
    size_t reset_count;
    bool resets_known; /* there was room to write them down */
};

/* Every window by itself, for the steps [from, until). */
static inline size_t each_window(const struct task *task, const struct pq_fn_grid *grid,
                                 size_t from, size_t until, double *out, uint8_t *present)
{
    int64_t end = pq_fn_grid_window_end(grid, from), step = grid->fixed ? 0 : grid->step;
    int64_t range = task->call->range_ms;
    struct resets ring = { .seen = 1 };
    bool any = !task->resets_known || task->reset_count > 0;
    struct resets *resets = task->kind != PQ_RATE_DELTA && any ? &ring : NULL;
    struct rate_block block = { 0 };
    size_t low = 0, high = 0, points = 0;

    for (size_t k = from; k < until; k += BLOCK) {
        size_t count = QF_MIN(until - k, (size_t)BLOCK), before = high;

        for (size_t i = 0; i < count; i++, end += step) {
            pq_slide(task->series, end - range, end, &low, &high);
            present[k + i] =
                rate_collect(task->series, resets, low, high, end - range, end, &block, i);
            points += present[k + i];
        }
        rate_block_work(&block, task->kind, task->seconds);
        for (size_t i = 0; i < count; i++)
            out[k + i] = present[k + i] ? block.result[i] : 0;
        if (pq_poll_work(task->call->poll, count + (high - before)))
            break;
    }
    return points;
}

/* The compiler makes one loop for each kind. */
static size_t windows(const struct task *task, const struct pq_fn_grid *grid, size_t from,
                      size_t until, double *out, uint8_t *present)
{
    struct task known = *task;

    if (from >= until)
        return 0;
    switch (task->kind) {
    case PQ_RATE_RATE:
        known.kind = PQ_RATE_RATE;
        return each_window(&known, grid, from, until, out, present);
    case PQ_RATE_INCREASE:
        known.kind = PQ_RATE_INCREASE;
        return each_window(&known, grid, from, until, out, present);
    case PQ_RATE_DELTA:
        break;
    }
    known.kind = PQ_RATE_DELTA;
    return each_window(&known, grid, from, until, out, present);
}

#define LOOK 32 /* samples that are looked at in one go */

/* All timestamps are equally far apart. */
static bool is_even(const int64_t *ts, size_t count, struct pq_poll *poll)
{
    const pair_mask gap = { ts[1] - ts[0], ts[1] - ts[0] };
    size_t i = 1;

    for (; i + LOOK <= count; i += LOOK) {
        pair_mask other = { 0 };

        for (size_t j = i; j < i + LOOK; j += 2)
            other |= (*(const loose_mask *)(ts + j) - *(const loose_mask *)(ts + j - 1)) ^ gap;
        if ((other[0] | other[1]) != 0 || pq_poll_work(poll, LOOK / 8))
            return false;
    }
    for (; i < count; i++)
        if (ts[i] - ts[i - 1] != gap[0])
            return false;
    return true;
}

/* Write the positions of resets to @at, if it is not NULL; returns how many there are. */
static size_t find_resets(const double *values, size_t count, double *at, struct pq_poll *poll)
{
    size_t found = 0, i = 1;

    while (i < count) {
        size_t until = QF_MIN(i + LOOK, count);
        pair_mask any = { 0 };

        if (until == i + LOOK) {
            for (size_t j = i; j < until; j += 2)
                any |= *(const loose_pair *)(values + j) < *(const loose_pair *)(values + j - 1);
            if ((any[0] | any[1]) == 0)
                i = until;
        }
        for (; i < until; i++)
            if (values[i] < values[i - 1]) {
                if (at)
                    at[found] = (double)i;
                found++;
            }
        if (pq_poll_work(poll, LOOK / 8))
            break;
    }
    return found;
}

/* Windows that look alike: step k, from <= k < until, sees the samples [low + stride * k, low +
 * stride * k + count). */
struct steady {
    size_t from, until;
    int64_t low; /* of step 0: may lie before the series */
    size_t stride, count;
    struct pq_rate_ends ends; /* but for the values */
    double factor;            /* unless the counter was zero just before the window */
};

/* False if there are no such windows, or too few to be worth it. */
static bool find_steady(const struct task *task, const struct pq_fn_grid *grid, struct steady *ret)
{
    const struct pq_fn_samples *series = task->series;
    int64_t end = pq_fn_grid_window_end(grid, 0), start = end - task->call->range_ms;
    int64_t gap, stride, low, high, from, until;

    if (series->count < 2 || grid->fixed || grid->count < LOOK)
        return false;
    gap = series->ts[1] - series->ts[0];
    if (gap <= 0 || grid->step % gap != 0 || !is_even(series->ts, series->count, task->call->poll))
        return false;
    stride = grid->step / gap;
    low = qf_floor_div(start - series->ts[0], gap) + 1;
    high = qf_floor_div(end - series->ts[0], gap) + 1;
    from = low < 0 ? qf_floor_div(-low + stride - 1, stride) : 0;
    until =
        (int64_t)series->count < high ? 0 : qf_floor_div((int64_t)series->count - high, stride) + 1;
    until = QF_MIN(until, (int64_t)grid->count);
    if (high - low < 2 || until - from < LOOK)
        return false;
    *ret = (struct steady){ .from = (size_t)from,
                            .until = (size_t)until,
                            .low = low,
                            .stride = (size_t)stride,
                            .count = (size_t)(high - low) };
    ret->ends = (struct pq_rate_ends){
        .to_start = (double)(series->ts[0] + low * gap - start),
        .to_end = (double)(end - (series->ts[0] + (high - 1) * gap)),
        .sampled = (double)((high - low - 1) * gap),
        .intervals = (double)(high - low - 1),
        .change = 1, /* 1 times the factor is the factor; a gauge is not held back by zero */
        .zero = -1,
    };
    ret->factor = pq_rate_extrapolate(&ret->ends, PQ_RATE_DELTA, 0);
    if (task->kind == PQ_RATE_RATE)
        ret->factor /= task->seconds;
    return true;
}

static double exactly(const struct task *task, const struct steady *steady, double first,
                      double change)
{
    struct pq_rate_ends ends = steady->ends;

    ends.first_value = first;
    ends.change = change;
    return pq_rate_extrapolate(&ends, task->kind, task->seconds);
}

/* The steps [k, k + LOOK) as if there were no resets. @first is the first sample of step k. False
 * if the counter was so near to zero at one of them that it has to be looked at more closely. */
static inline bool steady_block(const double *first, const struct steady *steady, size_t stride,
                                double *out)
{
    const double *last = first + steady->count - 1;
    pair_mask far = { -1, -1 };

    for (size_t i = 0; i < LOOK; i += 2) {
        pair a = { first[i * stride], first[(i + 1) * stride] };
        pair b = { last[i * stride], last[(i + 1) * stride] };
        pair change;

        if (stride == 1) {
            a = *(const loose_pair *)(first + i);
            b = *(const loose_pair *)(last + i);
        }
        change = b - a;
        far &= a > change * 1.25;
        *(loose_pair *)(out + i) = change * steady->factor;
    }
    return (far[0] & far[1]) != 0;
}

static void steady_steps(const struct task *task, const struct steady *steady, double *out)
{
    const double *values = task->series->values;
    size_t k = steady->from;

    while (k < steady->until) {
        const double *first = values + (size_t)(steady->low + (int64_t)k * (int64_t)steady->stride);
        size_t until = QF_MIN(k + LOOK, steady->until);
        bool done = false;

        if (until == k + LOOK) {
            done = steady->stride == 1 ? steady_block(first, steady, 1, out + k)
                                       : steady_block(first, steady, steady->stride, out + k);
            done |= task->kind == PQ_RATE_DELTA;
        }
        for (size_t i = k; !done && i < until; i++, first += steady->stride)
            out[i] = exactly(task, steady, first[0], first[steady->count - 1] - first[0]);
        if (pq_poll_work(task->call->poll, LOOK))
            return;
        k = until;
    }
}

/* Once more, the steps whose windows have resets inside: what was lost is added in order. */
static void steady_resets(const struct task *task, const struct steady *steady, double *out)
{
    const double *values = task->series->values;
    int64_t stride = (int64_t)steady->stride, count = (int64_t)steady->count;
    int64_t next = (int64_t)steady->from;
    size_t first = 0; /* reset that is inside the window, or may come to be */

    for (size_t r = 0; r < task->reset_count; r++) {
        int64_t at = (int64_t)task->resets[r];
        /* low < at < low + count, with low = steady->low + stride * k */
        int64_t from = qf_floor_div(at - steady->low - count, stride) + 1;
        int64_t until = qf_floor_div(at - steady->low - 1, stride) + 1;

        until = QF_MIN(until, (int64_t)steady->until);
        for (next = QF_MAX(next, from); next < until; next++) {
            int64_t low = steady->low + stride * next;
            double change = values[low + count - 1] - values[low];

            while (task->resets[first] <= (double)low)
                first++;
            for (size_t i = first; i < task->reset_count && task->resets[i] < (double)(low + count);
                 i++) {
                change += values[(size_t)task->resets[i] - 1];
                if (pq_poll_work(task->call->poll, 1))
                    return;
            }
            out[next] = exactly(task, steady, values[low], change);
        }
    }
}

static size_t slide(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                    const struct pq_fn_grid *grid, enum pq_rate_kind kind, double *out,
                    uint8_t *present)
{
    struct pq_window range = { .range_end = call->range_ms };
    struct task task = { .call = call,
                         .series = series,
                         .kind = kind,
                         .seconds = pq_window_seconds(&range),
                         .resets = call->scratch,
                         .resets_known = call->scratch != NULL };
    struct steady steady;
    size_t points;

    if (task.kind != PQ_RATE_DELTA && task.resets_known)
        task.reset_count = find_resets(series->values, series->count, call->scratch, call->poll);
    if (!task.resets_known || !find_steady(&task, grid, &steady))
        return windows(&task, grid, 0, grid->count, out, present);
    points = windows(&task, grid, 0, steady.from, out, present);
    for (size_t k = steady.from; k < steady.until; k++)
        present[k] = 1;
    steady_steps(&task, &steady, out);
    steady_resets(&task, &steady, out);
    points += steady.until - steady.from;
    return points + windows(&task, grid, steady.until, grid->count, out, present);
}

size_t pq_slide_rate(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                     const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide(call, series, grid, PQ_RATE_RATE, out, present);
}

size_t pq_slide_increase(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                         const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide(call, series, grid, PQ_RATE_INCREASE, out, present);
}

size_t pq_slide_delta(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                      const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide(call, series, grid, PQ_RATE_DELTA, out, present);
}
