/* reset.c - whether a histogram that counts was reset. */
#include "promql/histogram/reset.h"

#include <math.h>

/* Buckets of a side as they are under a coarser layout: neighbours that fall into one index come as
 * one. */
struct rolled {
    struct pq_side_walk walk;
    const struct pq_histogram *histogram;
    int32_t steps;       /* exponential: coarser by that */
    double threshold;    /* exponential: buckets inside the zero bucket are left out */
    const double *other; /* custom: bounds of the other histogram */
    size_t other_count;
    int64_t index, ahead_index;
    double count, ahead_count;
    bool ahead; /* a bucket was read that belongs to the next index */
};

/* A bound that both histograms have, at or above @upper; the last bucket's is +Inf. */
static double common_bound(const struct rolled *r, double upper)
{
    const struct pq_histogram *h = r->histogram;
    size_t at = pq_bound_index(h->custom_values, h->custom_value_count, upper);

    for (; at < h->custom_value_count; at++) {
        size_t there = pq_bound_index(r->other, r->other_count, h->custom_values[at]);

        if (there < r->other_count && r->other[there] == h->custom_values[at])
            return h->custom_values[at];
    }
    return (double)INFINITY;
}

/* The index of a bucket in the common layout. For custom bounds: that of the common bound among the
 * bounds of the first of the two histograms, which numbers both sides alike. */
static bool rolled_index(const struct rolled *r, const double *numbering, size_t numbers,
                         int64_t index, int64_t *ret_index)
{
    const struct pq_histogram *h = r->histogram;

    if (!pq_histogram_is_custom(h)) {
        *ret_index = pq_coarser_index(index, r->steps);
        return pq_exponential_bound(h->schema, index) > r->threshold;
    }
    *ret_index = (int64_t)pq_bound_index(
        numbering, numbers,
        common_bound(r, pq_custom_bound(h->custom_values, h->custom_value_count, index)));
    return true;
}

static bool rolled_next(struct rolled *r, const double *numbering, size_t numbers)
{
    int64_t index;
    double count;
    bool any = r->ahead;

    if (any) {
        r->index = r->ahead_index;
        r->count = r->ahead_count;
        r->ahead = false;
    }
    while (pq_side_next(&r->walk, &index, &count)) {
        int64_t at;

        if (!rolled_index(r, numbering, numbers, index, &at))
            continue;
        if (any && at != r->index) {
            r->ahead = true;
            r->ahead_index = at;
            r->ahead_count = count;
            return true;
        }
        r->count = any ? r->count + count : count;
        r->index = at;
        any = true;
    }
    return any;
}

/* Any bucket of @prev that has more than the same bucket of @h. */
static bool side_went_down(const struct pq_histogram *h, const struct pq_histogram *prev,
                           enum pq_side side)
{
    struct rolled now = { .walk = pq_side_begin(h, side),
                          .histogram = h,
                          .threshold = h->zero_threshold,
                          .other = prev->custom_values,
                          .other_count = prev->custom_value_count };
    struct rolled before = { .walk = pq_side_begin(prev, side),
                             .histogram = prev,
                             .steps = prev->schema - h->schema,
                             .threshold = h->zero_threshold,
                             .other = h->custom_values,
                             .other_count = h->custom_value_count };
    const double *numbering = h->custom_values;
    size_t numbers = h->custom_value_count;
    bool there = rolled_next(&now, numbering, numbers);

    while (rolled_next(&before, numbering, numbers)) {
        if (before.count == 0)
            continue;
        while (there && now.index < before.index)
            there = rolled_next(&now, numbering, numbers);
        if (!there || now.index != before.index || now.count < before.count)
            return true;
    }
    return false;
}

/* What the zero bucket of @h would hold with a wider threshold. False: a populated bucket is cut by
 * it. */
static bool zero_count_at(const struct pq_histogram *h, double threshold, double *ret_count)
{
    *ret_count = h->zero_count;
    for (int side = 0; side < PQ_SIDE__COUNT && threshold != h->zero_threshold; side++) {
        struct pq_side_walk walk = pq_side_begin(h, (enum pq_side)side);
        int64_t index;
        double count;

        while (pq_side_next(&walk, &index, &count)) {
            if (pq_exponential_bound(h->schema, index - 1) >= threshold)
                break;
            if (pq_exponential_bound(h->schema, index) > threshold)
                return false;
            *ret_count += count;
        }
    }
    return true;
}

bool pq_histogram_is_reset(const struct pq_histogram *h, const struct pq_histogram *prev)
{
    double zero_count;

    if (h->reset_hint == PQ_RESET_YES || h->reset_hint == PQ_RESET_NO)
        return h->reset_hint == PQ_RESET_YES;
    if (h->count < prev->count || pq_histogram_is_custom(h) != pq_histogram_is_custom(prev))
        return true;
    if (pq_histogram_is_custom(h))
        return side_went_down(h, prev, PQ_POSITIVE);
    if (h->schema > prev->schema || h->zero_threshold < prev->zero_threshold)
        return true;
    if (!zero_count_at(prev, h->zero_threshold, &zero_count) || h->zero_count < zero_count)
        return true;
    return side_went_down(h, prev, PQ_POSITIVE) || side_went_down(h, prev, PQ_NEGATIVE);
}
