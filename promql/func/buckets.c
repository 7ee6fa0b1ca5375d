/* buckets.c - classic histograms. */
#include "promql/func/buckets.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/number.h"

/* Counts that come out of rates differ by rounding although no observation was lost: this much,
 * relative to their sum, is no decrease. */
#define SMALL_DELTA 1e-12

bool pq_fn_bucket_le(struct qf_str text, double *ret_le)
{
    return qf_parse_double(text, ret_le);
}

static int by_bound(const void *left, const void *right)
{
    const struct pq_bucket *a = left, *b = right;

    return (a->le > b->le) - (a->le < b->le);
}

size_t pq_fn_buckets_sort(struct pq_bucket *buckets, size_t count)
{
    size_t last = 0;

    if (count == 0)
        return 0;
    qsort(buckets, count, sizeof(*buckets), by_bound);
    for (size_t i = 1; i < count; i++) {
        if (buckets[i].le == buckets[last].le)
            buckets[last].count += buckets[i].count;
        else
            buckets[++last] = buckets[i];
    }
    return last + 1;
}

static bool nearly_equal(double a, double b)
{
    double sum = fabs(a) + fabs(b), diff = fabs(a - b);

    if (isnan(a) && isnan(b))
        return true;
    if (a == b)
        return true;
    if (a == 0 || b == 0 || sum < DBL_MIN)
        return diff < SMALL_DELTA * DBL_MIN;
    return diff / fmin(sum, DBL_MAX) < SMALL_DELTA;
}

/* Make the counts monotonic: a bucket never has fewer observations than a lower one. */
static void repair(struct pq_bucket *buckets, size_t count, struct pq_bucket_repair *ret)
{
    double prev = buckets[0].count;

    for (size_t i = 1; i < count; i++) {
        double curr = buckets[i].count;

        if (curr == prev)
            continue;
        if (nearly_equal(prev, curr)) {
            buckets[i].count = prev;
        } else if (curr < prev) {
            buckets[i].count = prev;
            if (!ret->forced)
                ret->min_le = buckets[i].le;
            ret->forced = true;
            ret->max_le = buckets[i].le;
            ret->max_diff = fmax(ret->max_diff, prev - curr);
        } else {
            prev = curr;
        }
    }
}

double pq_fn_bucket_quantile(double q, struct pq_bucket *buckets, size_t count,
                             struct pq_bucket_repair *ret_repair)
{
    struct pq_bucket_repair repaired = { 0 };
    double rank, start = 0, inside;
    size_t b = 0, end;

    if (ret_repair)
        *ret_repair = repaired;
    if (isnan(q))
        return NAN;
    if (q < 0)
        return -INFINITY;
    if (q > 1)
        return INFINITY;
    count = pq_fn_buckets_sort(buckets, count);
    if (count == 0 || buckets[count - 1].le != INFINITY)
        return NAN;
    repair(buckets, count, &repaired);
    if (count < 2 || buckets[count - 1].count == 0)
        return NAN;
    if (ret_repair)
        *ret_repair = repaired;
    rank = q * buckets[count - 1].count;
    /* Binary, as in Prometheus: with NaNs among the counts it matters where one looks. */
    for (end = count - 1; b < end;) {
        size_t middle = b + (end - b) / 2;

        if (buckets[middle].count >= rank)
            end = middle;
        else
            b = middle + 1;
    }
    if (b == count - 1)
        return buckets[count - 2].le;
    if (b == 0 && buckets[0].le <= 0)
        return buckets[0].le;
    inside = buckets[b].count;
    if (b > 0) {
        start = buckets[b - 1].le;
        inside -= buckets[b - 1].count;
        rank -= buckets[b - 1].count;
    }
    return start + (buckets[b].le - start) * (rank / inside);
}

/* How many observations are not above @value, which lies inside the bucket (@low, @high] that ends
 * with @count and begins with @below of them. */
static double rank_inside(double value, double low, double high, double below, double count)
{
    if (low == -INFINITY)
        return count;
    /* With an infinite bound the share is zero: nothing of the last bucket counts. */
    return below + (count - below) * (value - low) / (high - low);
}

/* How many observations are not above @value. */
static double rank_of(double value, const struct pq_bucket *buckets, size_t count)
{
    double below = 0;

    for (size_t i = 0; i < count; i++) {
        double high = buckets[i].le;
        /* The first bucket starts at zero unless it ends there or below. */
        double low = i > 0 ? buckets[i - 1].le : high > 0 ? 0 : -INFINITY;

        if (low >= value)
            return below;
        if (high > value)
            return rank_inside(value, low, high, below, buckets[i].count);
        below = buckets[i].count;
    }
    return buckets[count - 1].count;
}

double pq_fn_bucket_fraction(double lower, double upper, struct pq_bucket *buckets, size_t count)
{
    double total, lower_rank, upper_rank;

    count = pq_fn_buckets_sort(buckets, count);
    if (count == 0 || buckets[count - 1].le != INFINITY)
        return NAN;
    total = buckets[count - 1].count;
    if (total == 0 || isnan(lower) || isnan(upper))
        return NAN;
    if (lower >= upper)
        return 0;
    lower_rank = rank_of(lower, buckets, count);
    upper_rank = rank_of(upper, buckets, count);
    /* Counts that are not monotonic must not make more of a part than of the whole. */
    if (lower_rank > total)
        lower_rank = total;
    if (upper_rank > total)
        upper_rank = total;
    return (upper_rank - lower_rank) / total;
}

size_t pq_fn_quantile_label(double q, char *out)
{
    size_t len = qf_double_g(q, out);

    if (isfinite(q) && !strpbrk(out, ".e")) {
        out[len++] = '.';
        out[len++] = '0';
        out[len] = '\0';
    }
    return len;
}
