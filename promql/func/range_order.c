/* range_order.c - order statistics of sliding windows.
 *
 * The values of the window are kept sorted: what enters is put in its place and what leaves is taken
 * out, which moves a part of the array, where sorting each window compares all its values a dozen
 * times. Of equal values the older comes first, as a stable sort of the window would have them, so
 * that the same bits come out even for zeros of both signs and different NaNs. */
#include <math.h>
#include <string.h>

#include "base/pure/macros.h"
#include "promql/func/quantile.h"
#include "promql/func/range_slide.h"

/* Values that come and go at one step are worth sorting from here on. */
#define MOVES_MAX 512

/* Does @a go before @b? NaNs go first. */
static inline bool before(double a, double b)
{
    return isnan(a) ? !isnan(b) : a < b;
}

/* The first place whose value does not go before @value. */
static size_t first_place(const double *sorted, size_t count, double value)
{
    size_t low = 0;

    while (count > 0) {
        size_t half = count / 2;

        if (before(sorted[low + half], value)) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

/* The place behind all values that @value does not go before. */
static size_t last_place(const double *sorted, size_t count, double value)
{
    size_t low = 0;

    while (count > 0) {
        size_t half = count / 2;

        if (!before(value, sorted[low + half])) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

static void take_out(double *sorted, size_t count, double value)
{
    size_t at = first_place(sorted, count, value);

    memmove(sorted + at, sorted + at + 1, (count - at - 1) * sizeof(*sorted));
}

static void put_in(double *sorted, size_t count, double value)
{
    size_t at = last_place(sorted, count, value);

    memmove(sorted + at + 1, sorted + at, (count - at) * sizeof(*sorted));
    sorted[at] = value;
}

/* The window [from, to) is sorted; make it [low, high), which is not before it. False: stopped. */
static bool move_window(double *sorted, const double *values, size_t from, size_t to, size_t low,
                        size_t high, struct pq_poll *poll)
{
    size_t moves = (low - from) + (high - to), count = to - from;

    if (low >= to || moves > MOVES_MAX || moves > count / 2) {
        memcpy(sorted, values + low, (high - low) * sizeof(*sorted));
        pq_fn_sort_values(sorted, high - low, poll);
        return true;
    }
    /* What moves is copied, many values at once. */
    if (pq_poll_work(poll, 1 + moves * (1 + count / 64)))
        return false;
    for (size_t i = from; i < low; i++)
        take_out(sorted, count--, values[i]);
    for (size_t i = to; i < high; i++)
        put_in(sorted, count++, values[i]);
    return true;
}

/* The distances of sorted numbers to one of them, or to one between two, are two ascending lists: those
 * below it, backwards, and the others. Subtraction and rounding keep their order. */
struct distances {
    const double *sorted;
    size_t below, others; /* how many values are less than `from`, and how many are not */
    double from;
};

static double below_at(const struct distances *d, size_t i)
{
    return i < d->below ? fabs(d->sorted[d->below - 1 - i] - d->from) : INFINITY;
}

static double other_at(const struct distances *d, size_t i)
{
    return i < d->others ? fabs(d->sorted[d->below + i] - d->from) : INFINITY;
}

/* How many of the @rank smallest distances are of values below. */
static size_t taken_below(const struct distances *d, size_t rank)
{
    size_t least = rank > d->others ? rank - d->others : 0, most = QF_MIN(rank, d->below);

    while (least < most) {
        size_t middle = least + (most - least) / 2;

        /* With @middle of these, the last of the others is taken too early if this one is nearer. */
        if (below_at(d, middle) < other_at(d, rank - middle - 1))
            least = middle + 1;
        else
            most = middle;
    }
    return least;
}

/* The median of the distances of sorted finite numbers to their median. */
static double mad_sorted(const double *sorted, size_t count)
{
    struct pq_fn_rank rank = pq_fn_quantile_rank(0.5, count);
    struct distances d = { .sorted = sorted };
    double lower, upper;
    size_t i, j;

    d.from = pq_fn_rank_value(&rank, sorted[rank.lower], sorted[rank.upper]);
    d.below = first_place(sorted, count, d.from);
    d.others = count - d.below;
    i = taken_below(&d, rank.lower);
    j = rank.lower - i;
    if (below_at(&d, i) < other_at(&d, j))
        lower = below_at(&d, i++);
    else
        lower = other_at(&d, j++);
    upper = rank.upper > rank.lower ? fmin(below_at(&d, i), other_at(&d, j)) : lower;
    return pq_fn_rank_value(&rank, lower, upper);
}

size_t pq_slide_mad(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                    const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    double *sorted = call->scratch;
    size_t low = 0, high = 0, points = 0;
    bool kept = true; /* the window before is in @sorted */

    if (!sorted)
        return pq_fn_range_steps_plain(call, series, grid, out, present, NULL);
    for (size_t k = 0; k < grid->count; k++) {
        int64_t end = pq_fn_grid_window_end(grid, k);
        size_t from = low, to = high, count;

        pq_slide(series, end - call->range_ms, end, &low, &high);
        if (pq_poll_work(call->poll, 1) ||
            !move_window(sorted, series->values, from, kept ? to : from, low, high, call->poll))
            break;
        kept = true;
        count = high - low;
        present[k] = count > 0;
        points += present[k];
        out[k] = 0;
        if (count > 0 && isfinite(sorted[0]) && isfinite(sorted[count - 1])) {
            out[k] = mad_sorted(sorted, count);
        } else if (count > 0) { /* NaNs go first; differences of infinities may be some */
            struct pq_window w = { .values = series->values + low,
                                   .count = count,
                                   .scratch = sorted,
                                   .poll = call->poll };

            (void)pq_fn_mad_over_time(&w, &out[k]);
            kept = false;
        }
    }
    return points;
}

size_t pq_slide_quantile(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                         const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    double q = call->params[0], *sorted = call->scratch;
    size_t low = 0, high = 0, points = 0;

    if (!sorted || isnan(q) || q < 0 || q > 1) /* nothing to keep sorted */
        return pq_fn_range_steps_plain(call, series, grid, out, present, NULL);
    for (size_t k = 0; k < grid->count; k++) {
        int64_t end = pq_fn_grid_window_end(grid, k);
        size_t from = low, to = high;

        pq_slide(series, end - call->range_ms, end, &low, &high);
        if (pq_poll_work(call->poll, 1) ||
            !move_window(sorted, series->values, from, to, low, high, call->poll))
            break;
        present[k] = high > low;
        points += present[k];
        out[k] = present[k] ? pq_fn_quantile_sorted(q, sorted, high - low) : 0;
    }
    return points;
}
