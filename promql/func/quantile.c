/* quantile.c - quantiles of plain floats. */
#include "promql/func/quantile.h"

#include <math.h>

#include "promql/func/sort.h"

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    if (isnan(a) || isnan(b))
        return (isnan(b) != 0) - (isnan(a) != 0);
    return (a > b) - (a < b);
}

void pq_fn_sort_values(double *values, size_t count, struct pq_poll *poll)
{
    /* Windows and groups are mostly small: insertion sort needs no calls. */
    if (count > 24) {
        pq_sort(values, count, sizeof(*values), by_value, poll);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        double value = values[i];
        size_t at = i;

        while (at > 0 && by_value(&values[at - 1], &value) > 0) {
            values[at] = values[at - 1];
            at--;
        }
        values[at] = value;
    }
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
