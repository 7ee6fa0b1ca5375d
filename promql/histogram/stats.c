/* stats.c - what a native histogram tells of its observations. */
#include "promql/histogram/stats.h"

#include <math.h>

#include "promql/func/kahan.h"

static bool is_linear(const struct pq_histogram *h, const struct pq_interval *b)
{
    return b->zero || pq_histogram_is_custom(h);
}

/* The value below which the share @share of the bucket lies. */
static double value_at(const struct pq_histogram *h, const struct pq_interval *b, double share)
{
    double low, high;

    if (is_linear(h, b))
        return b->low + (b->high - b->low) * share;
    low = log2(fabs(b->low));
    high = log2(fabs(b->high));
    return b->low > 0 ? exp2(low + (high - low) * share) : -exp2(high + (low - high) * (1 - share));
}

double pq_interval_share(const struct pq_histogram *h, const struct pq_interval *b, double value)
{
    double low, high, at;

    if (is_linear(h, b))
        return (value - b->low) / (b->high - b->low);
    low = log2(fabs(b->low));
    high = log2(fabs(b->high));
    at = log2(fabs(value));
    return value > 0 ? (at - low) / (high - low) : 1 - (at - high) / (low - high);
}

double pq_histogram_quantile(const struct pq_histogram *h, double q, enum pq_nan_effect *ret_nan)
{
    /* NaN observations are behind all buckets; with them only the way from below finds the rank. */
    bool forward = isnan(h->sum) || q < 0.5, found = false;
    struct pq_interval_walk walk = forward ? pq_intervals_begin(h) : pq_intervals_begin_back(h);
    struct pq_interval b = { 0, 0, 0, true };
    double rank, count = 0;

    *ret_nan = PQ_NAN_NONE;
    if (q < 0)
        return -(double)INFINITY;
    if (q > 1)
        return (double)INFINITY;
    if (h->count == 0 || isnan(q))
        return (double)NAN;
    rank = (forward ? q : 1 - q) * h->count;
    while (!found && pq_intervals_next(&walk, &b)) {
        count += b.count;
        found = count >= rank;
    }
    if (pq_histogram_is_custom(h) && isinf(b.low) && b.low < 0) {
        if (b.high <= 0)
            return b.high;
        b.low = 0;
    } else if (pq_histogram_is_custom(h) && isinf(b.high)) {
        return b.low;
    }
    if (count > h->count) /* rounding */
        count = h->count;
    if (count < rank) {
        if (!isnan(h->sum))
            return b.high;
        *ret_nan = PQ_NAN_RESULT;
        return (double)NAN;
    }
    if (isnan(h->sum))
        *ret_nan = PQ_NAN_SKEWED;
    rank = forward ? rank - (count - b.count) : count - rank;
    return value_at(h, &b, rank / b.count);
}

/* How many observations are not above @value; @ret_total how many there are in buckets. */
static double rank_of(const struct pq_histogram *h, double value, double *ret_total)
{
    struct pq_interval_walk walk = pq_intervals_begin(h);
    struct pq_interval b;
    double below = 0, rank = 0;
    bool found = false;

    while (pq_intervals_next(&walk, &b)) {
        bool open = isinf(b.low) && b.low < 0;

        if (pq_histogram_is_custom(h) && open && b.high > 0) {
            b.low = 0;
            open = false;
        }
        if (!found && b.low >= value) {
            rank = below;
            found = true;
        } else if (!found && b.high > value) {
            rank = open ? below + b.count : below + b.count * pq_interval_share(h, &b, value);
            found = true;
        }
        below += b.count;
    }
    *ret_total = below;
    return found ? rank : (double)INFINITY;
}

bool pq_histogram_has_nan(const struct pq_histogram *h)
{
    struct pq_interval_walk walk = pq_intervals_begin(h);
    struct pq_interval b;
    double total = 0;

    if (!isnan(h->sum))
        return false;
    while (pq_intervals_next(&walk, &b))
        total += b.count;
    return total < h->count;
}

double pq_histogram_fraction(const struct pq_histogram *h, double lower, double upper)
{
    double low, high, total;

    if (h->count == 0 || isnan(lower) || isnan(upper))
        return (double)NAN;
    if (lower >= upper)
        return 0;
    low = rank_of(h, lower, &total);
    high = rank_of(h, upper, &total);
    if (!isnan(h->sum))
        total = h->count;
    return (fmin(high, total) - fmin(low, total)) / h->count;
}

double pq_histogram_avg(const struct pq_histogram *h)
{
    return h->sum / h->count;
}

double pq_histogram_variance(const struct pq_histogram *h)
{
    struct pq_interval_walk walk = pq_intervals_begin(h);
    double mean = pq_histogram_avg(h);
    struct pq_kahan variance = { 0, 0 };
    struct pq_interval b;

    while (pq_intervals_next(&walk, &b)) {
        double middle = 0;

        if (pq_histogram_is_custom(h))
            middle = (b.high + b.low) / 2;
        else if (!b.zero)
            middle = copysign(sqrt(b.high * b.low), b.high > 0 ? 1 : -1);
        pq_kahan_add(&variance, b.count * (middle - mean) * (middle - mean));
    }
    return pq_kahan_value(&variance) / h->count;
}
