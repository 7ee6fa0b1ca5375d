/* layout.h - where the buckets of a native histogram lie: indices, bounds, and walks over them.
 *
 * A histogram has two sides of buckets and, unless its bounds are custom, a zero bucket in between.
 * A side is a list of spans: each says how many indices lie between it and the one before, and how
 * many buckets follow. Bucket i of exponential schema s covers (2^((i-1) * 2^-s), 2^(i * 2^-s)];
 * the negative side is its mirror image. Bucket i of custom bounds covers (bounds[i-1], bounds[i]],
 * and the first and the last one are open to the infinities; there is no negative side.
 *
 * Buckets that a span lists may be empty. Most walks pass over those. */
#ifndef PROMQL_HISTOGRAM_LAYOUT_H
#define PROMQL_HISTOGRAM_LAYOUT_H

#include "promql/value.h"

enum pq_side { PQ_POSITIVE, PQ_NEGATIVE, PQ_SIDE__COUNT };

static inline bool pq_histogram_is_custom(const struct pq_histogram *h)
{
    return h->schema == PQ_SCHEMA_CUSTOM;
}

/* The upper bound of bucket @index: the largest double of its exponent where 2^1024 would be, as
 * that bucket ends with the finite numbers; +Inf beyond. */
double pq_exponential_bound(int32_t schema, int64_t index);
/* The same under custom bounds: -Inf below the first bucket, +Inf for the last. */
double pq_custom_bound(const double *bounds, size_t count, int64_t index);

/* The index that bucket @index of a schema has in one that is coarser by @steps: neighbours join.
 */
static inline int64_t pq_coarser_index(int64_t index, int32_t steps)
{
    return ((index - 1) >> (steps < 62 ? steps : 62)) + 1;
}

/* The index under @bounds of a bucket that ends at @upper, one of the bounds or between them. */
size_t pq_bound_index(const double *bounds, size_t count, double upper);

/* One side, from the bucket nearest to zero outwards, or back. */
struct pq_side_walk {
    const struct pq_span *spans;
    size_t span_count, span; /* the next span is spans[span], backwards spans[span - 1] */
    const double *buckets;
    size_t bucket_count, bucket;
    uint32_t left; /* of the current span */
    int64_t index; /* of the next bucket; backwards of the one before */
    bool back;
};

struct pq_side_walk pq_side_begin(const struct pq_histogram *h, enum pq_side side);
struct pq_side_walk pq_side_begin_back(const struct pq_histogram *h, enum pq_side side);
/* The next bucket that a span lists, empty or not; false at the end. */
bool pq_side_step(struct pq_side_walk *walk, int64_t *ret_index, double *ret_count);
/* The next bucket that is not empty; false at the end. */
bool pq_side_next(struct pq_side_walk *walk, int64_t *ret_index, double *ret_count);

/* pq_side_next() of a walk outwards, for the loops that see every bucket of every sample: inlined,
 * the walk stays in registers. */
static inline bool pq_side_ahead(struct pq_side_walk *walk, int64_t *ret_index, double *ret_count)
{
    for (;;) {
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
        if (*ret_count != 0)
            return true;
    }
}

/* A bucket on the number line. */
struct pq_interval {
    double low, high, count;
    bool zero; /* the zero bucket */
};

struct pq_interval pq_interval_at(const struct pq_histogram *h, enum pq_side side, int64_t index,
                                  double count);

/* Which of its ends belong to a bucket: those farther from zero, both ends of the zero bucket, the
 * upper ones of custom buckets and, of the first of those, the lower one too. */
bool pq_interval_has_low(const struct pq_histogram *h, const struct pq_interval *b);
bool pq_interval_has_high(const struct pq_histogram *h, const struct pq_interval *b);

/* All buckets by value: the negative side from its far end, the zero bucket, the positive side. The
 * zero bucket takes from buckets that reach into it, so that low may even be above high; it is there
 * if it counts anything, which a negative number or NaN does not. */
struct pq_interval_walk {
    const struct pq_histogram *histogram;
    struct pq_side_walk side;
    int part; /* 0, 1, 2 of the parts above, counted from where the walk began */
    bool back;
};

struct pq_interval_walk pq_intervals_begin(const struct pq_histogram *h);
struct pq_interval_walk pq_intervals_begin_back(const struct pq_histogram *h);
/* The next bucket with anything in it; false at the end. */
bool pq_intervals_next(struct pq_interval_walk *walk, struct pq_interval *ret_interval);

/* Where the zero bucket lies, as far as is known: a histogram whose other buckets are all on one
 * side of zero has no observations on the other. */
struct pq_interval pq_zero_interval(const struct pq_histogram *h);

#endif
