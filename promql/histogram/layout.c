/* layout.c - where the buckets of a native histogram lie. */
#include "promql/histogram/layout.h"

#include <float.h>
#include <math.h>

/* 2^(@part / 2^@schema) for 0 <= @part < 2^@schema. Prometheus's bounds are not all rounded to the
 * nearest double, and labels of count_values show every digit: they are the products of these roots
 * of two, the greatest first, the first of which is rounded down. */
static double root_of_two(int schema, int64_t part)
{
    static const double roots[] = { 1.414213562373095,  1.189207115002721,  1.0905077326652577,
                                    1.0442737824274138, 1.0218971486541166, 1.0108892860517005,
                                    1.0054299011128027, 1.0027112750502025 };
    double product = 1;

    if (schema > (int)QF_COUNT_OF(roots))
        return exp2((double)part / ldexp(1, schema));
    for (int i = 0; i < schema; i++)
        if (part >> (schema - 1 - i) & 1)
            product *= roots[i];
    return product;
}

double pq_exponential_bound(int32_t schema, int64_t index)
{
    int64_t exponent = index;
    double fraction = 1;

    if (schema < 0) {
        int shift = QF_MIN(-schema, 16);

        exponent = index > INT16_MAX ? INT16_MAX : index < INT16_MIN ? INT16_MIN : index;
        exponent *= (int64_t)1 << shift;
    } else {
        int shift = QF_MIN(schema, 32);
        int64_t size = (int64_t)1 << shift;

        exponent = index >> shift;
        fraction = root_of_two(shift, index & (size - 1));
    }
    if (exponent == 1024 && fraction == 1)
        return DBL_MAX;
    exponent = exponent > 4096 ? 4096 : exponent < -4096 ? -4096 : exponent;
    return ldexp(fraction, (int)exponent);
}

double pq_custom_bound(const double *bounds, size_t count, int64_t index)
{
    if (index < 0)
        return -(double)INFINITY;
    return (uint64_t)index < count ? bounds[index] : (double)INFINITY;
}

size_t pq_bound_index(const double *bounds, size_t count, double upper)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (bounds[middle] < upper)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct pq_side_walk pq_side_begin(const struct pq_histogram *h, enum pq_side side)
{
    bool positive = side == PQ_POSITIVE;

    return (struct pq_side_walk){
        .spans = positive ? h->positive_spans : h->negative_spans,
        .span_count = positive ? h->positive_span_count : h->negative_span_count,
        .buckets = positive ? h->positive_buckets : h->negative_buckets,
        .bucket_count = positive ? h->positive_bucket_count : h->negative_bucket_count,
    };
}

struct pq_side_walk pq_side_begin_back(const struct pq_histogram *h, enum pq_side side)
{
    struct pq_side_walk walk = pq_side_begin(h, side);

    for (size_t i = 0; i < walk.span_count; i++)
        walk.index += (int64_t)walk.spans[i].offset + walk.spans[i].length;
    walk.back = true;
    walk.span = walk.span_count;
    walk.bucket = walk.bucket_count;
    if (walk.span > 0)
        walk.left = walk.spans[walk.span - 1].length;
    return walk;
}

static bool step(struct pq_side_walk *walk, int64_t *ret_index, double *ret_count)
{
    while (walk->left == 0) {
        if (walk->span == walk->span_count)
            return false;
        walk->index += walk->spans[walk->span].offset;
        walk->left = walk->spans[walk->span++].length;
    }
    if (walk->bucket == walk->bucket_count)
        return false;
    walk->left--;
    *ret_index = walk->index++;
    *ret_count = walk->buckets[walk->bucket++];
    return true;
}

static bool step_back(struct pq_side_walk *walk, int64_t *ret_index, double *ret_count)
{
    while (walk->left == 0) {
        if (walk->span <= 1)
            return false;
        walk->index -= walk->spans[--walk->span].offset;
        walk->left = walk->spans[walk->span - 1].length;
    }
    if (walk->bucket == 0)
        return false;
    walk->left--;
    *ret_index = --walk->index;
    *ret_count = walk->buckets[--walk->bucket];
    return true;
}

bool pq_side_step(struct pq_side_walk *walk, int64_t *ret_index, double *ret_count)
{
    return walk->back ? step_back(walk, ret_index, ret_count) : step(walk, ret_index, ret_count);
}

bool pq_side_next(struct pq_side_walk *walk, int64_t *ret_index, double *ret_count)
{
    while (pq_side_step(walk, ret_index, ret_count))
        if (*ret_count != 0)
            return true;
    return false;
}

struct pq_interval pq_zero_interval(const struct pq_histogram *h)
{
    struct pq_interval zero = { -h->zero_threshold, h->zero_threshold, h->zero_count, true };

    if (h->negative_bucket_count == 0 && h->positive_bucket_count > 0)
        zero.low = 0;
    else if (h->positive_bucket_count == 0 && h->negative_bucket_count > 0)
        zero.high = 0;
    return zero;
}

struct pq_interval_walk pq_intervals_begin(const struct pq_histogram *h)
{
    return (struct pq_interval_walk){ .histogram = h, .side = pq_side_begin_back(h, PQ_NEGATIVE) };
}

struct pq_interval_walk pq_intervals_begin_back(const struct pq_histogram *h)
{
    return (struct pq_interval_walk){ .histogram = h,
                                      .side = pq_side_begin_back(h, PQ_POSITIVE),
                                      .back = true };
}

struct pq_interval pq_interval_at(const struct pq_histogram *h, enum pq_side side, int64_t index,
                                  double count)
{
    double low, high;

    if (pq_histogram_is_custom(h)) {
        low = pq_custom_bound(h->custom_values, h->custom_value_count, index - 1);
        high = pq_custom_bound(h->custom_values, h->custom_value_count, index);
    } else {
        low = pq_exponential_bound(h->schema, index - 1);
        high = pq_exponential_bound(h->schema, index);
    }
    return side == PQ_NEGATIVE ? (struct pq_interval){ -high, -low, count, false }
                               : (struct pq_interval){ low, high, count, false };
}

bool pq_interval_has_low(const struct pq_histogram *h, const struct pq_interval *b)
{
    if (pq_histogram_is_custom(h))
        return b->low == -(double)INFINITY;
    return b->zero || b->low < 0;
}

bool pq_interval_has_high(const struct pq_histogram *h, const struct pq_interval *b)
{
    return pq_histogram_is_custom(h) || b->zero || b->high > 0;
}

/* What a bucket has outside of the zero bucket. */
static struct pq_interval beyond_zero(const struct pq_histogram *h, struct pq_interval b)
{
    if (b.low > 0 && b.low < h->zero_threshold)
        b.low = h->zero_threshold;
    else if (b.high < 0 && b.high > -h->zero_threshold)
        b.high = -h->zero_threshold;
    return b;
}

bool pq_intervals_next(struct pq_interval_walk *walk, struct pq_interval *ret_interval)
{
    const struct pq_histogram *h = walk->histogram;
    int64_t index;
    double count;

    for (; walk->part < 3; walk->part++) {
        bool negative = walk->part == (walk->back ? 2 : 0);

        if (walk->part != 1) {
            if (pq_side_next(&walk->side, &index, &count)) {
                *ret_interval = beyond_zero(
                    h, pq_interval_at(h, negative ? PQ_NEGATIVE : PQ_POSITIVE, index, count));
                return true;
            }
            continue;
        }
        walk->side = pq_side_begin(h, walk->back ? PQ_NEGATIVE : PQ_POSITIVE);
        if (h->zero_count > 0 && !pq_histogram_is_custom(h)) {
            walk->part++;
            *ret_interval = pq_zero_interval(h);
            return true;
        }
    }
    return false;
}
