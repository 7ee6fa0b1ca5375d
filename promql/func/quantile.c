/* quantile.c - quantiles of plain floats. */
#include "promql/func/quantile.h"

#include <math.h>
#include <string.h>

#include "promql/func/pair.h"
#include "promql/func/sort.h"

/* Windows and groups are mostly small. */
#define FEW ((size_t)512)
/* Values that are all compared with each other. */
#define RUN ((size_t)48)

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    if (isnan(a) || isnan(b))
        return (isnan(b) != 0) - (isnan(a) != 0);
    return (a > b) - (a < b);
}

/* NaNs to the front; equal ones of both kinds stay in their order. Returns how many there are. */
static size_t nan_first(double *values, size_t count)
{
    size_t nans = 0;

    for (size_t i = 0; i < count; i++) {
        double value = values[i];

        if (!isnan(value))
            continue;
        memmove(values + nans + 1, values + nans, (i - nans) * sizeof(*values));
        values[nans++] = value;
    }
    return nans;
}

/* How many of @values, whose count is even, go before the one at @at: smaller ones, and equal ones that
 * stand before it. */
static size_t place_of(const double *values, size_t count, size_t at)
{
    const pq_pair value = { values[at], values[at] };
    pq_pair_mask before = { 0 };
    size_t i = 0;

    for (; i + 2 <= at; i += 2)
        before += (pq_pair_mask)(pq_pair_load(values + i) <= value);
    if (at % 2)
        before += (pq_pair_mask)(pq_pair_load(values + i) <= value) & (pq_pair_mask){ -1, 0 };
    else
        before += (pq_pair_mask)(pq_pair_load(values + i) < value);
    for (i += 2; i < count; i += 2)
        before += (pq_pair_mask)(pq_pair_load(values + i) < value);
    return (size_t) - (before[0] + before[1]);
}

/* Every value is compared with every other: without a branch that could be foretold wrongly. */
static void sort_run(double *values, size_t count)
{
    double all[RUN + 1];

    memcpy(all, values, count * sizeof(*values));
    all[count] = INFINITY;
    for (size_t i = 0; i < count; i++)
        values[place_of(all, count + count % 2, i)] = all[i];
}

/* Sorted neighbours [0, middle) and [middle, count) of @from as one in @to. */
static void merge(const double *from, size_t middle, size_t count, double *to)
{
    size_t left = 0, right = middle, at = 0;

    while (left < middle && right < count) {
        bool later = from[left] > from[right];

        to[at++] = from[later ? right : left];
        left += !later;
        right += later;
    }
    memcpy(to + at, from + left, (middle - left) * sizeof(*to));
    at += middle - left;
    memcpy(to + at, from + right, (count - right) * sizeof(*to));
}

/* Numbers, at most FEW, without a call for each comparison. */
static void sort_few(double *values, size_t count)
{
    double other[FEW], *from = values, *to = other;

    for (size_t i = 0; i < count; i += RUN)
        sort_run(values + i, QF_MIN(RUN, count - i));
    for (size_t width = RUN; width < count; width *= 2) {
        double *merged = to;

        for (size_t i = 0; i < count; i += 2 * width)
            merge(from + i, QF_MIN(width, count - i), QF_MIN(2 * width, count - i), to + i);
        to = from;
        from = merged;
    }
    if (from != values)
        memcpy(values, from, count * sizeof(*values));
}

void pq_fn_sort_values(double *values, size_t count, struct pq_poll *poll)
{
    size_t nans;

    if (count > FEW) {
        pq_sort(values, count, sizeof(*values), by_value, poll);
        return;
    }
    if (pq_poll_work(poll, count))
        return;
    nans = nan_first(values, count);
    sort_few(values + nans, count - nans);
}

struct pq_fn_rank pq_fn_quantile_rank(double q, size_t count)
{
    double rank = q * (double)(count - 1), low = floor(rank);
    size_t lower = (size_t)fmax(0, low);

    return (struct pq_fn_rank){ .lower = lower,
                                .upper = lower + 1 < count ? lower + 1 : count - 1,
                                .weight = rank - low };
}

double pq_fn_quantile_sorted(double q, const double *values, size_t count)
{
    struct pq_fn_rank rank = pq_fn_quantile_rank(q, count);

    return pq_fn_rank_value(&rank, values[rank.lower], values[rank.upper]);
}

double pq_fn_quantile(double q, double *values, size_t count, struct pq_poll *poll)
{
    if (count == 0 || isnan(q))
        return NAN;
    if (q < 0)
        return -INFINITY;
    if (q > 1)
        return INFINITY;
    pq_fn_sort_values(values, count, poll);
    return pq_fn_quantile_sorted(q, values, count);
}
