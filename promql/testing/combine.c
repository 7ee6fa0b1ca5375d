/* combine.c - a histogram plus or minus another, for series such as {{sum:1}}+{{sum:2}}x5.
 *
 * One side of buckets is a list of (index, count) in ascending order. Before two histograms are
 * added they are brought to the same buckets: the coarser schema, the wider zero bucket, the common
 * custom bounds. */
#include <math.h>

#include "base/pure/macros.h"
#include "promql/testing/series_int.h"

struct bucket {
    int64_t index;
    double count;
};

struct side {
    struct bucket *items;
    size_t count;
};

static bool read_side(struct pq_parser *p, const struct pq_span *spans, size_t span_count,
                      const double *counts, struct side *ret_side)
{
    size_t total = 0, next = 0;
    int64_t index = 0;

    for (size_t i = 0; i < span_count; i++)
        total += spans[i].length;
    ret_side->items = QF_ARENA_ARRAY(p->arena, struct bucket, total + 1);
    if (!ret_side->items) {
        pq_parser_out_of_memory(p);
        return false;
    }
    for (size_t i = 0; i < span_count; i++) {
        index += spans[i].offset;
        for (uint32_t j = 0; j < spans[i].length; j++)
            ret_side->items[next] = (struct bucket){ index++, counts[next] }, next++;
    }
    ret_side->count = total;
    return true;
}

/* Merge neighbours until the buckets are as wide as those of a schema lower by @steps: bucket i
 * goes into ceil(i / 2^steps). */
static void widen(struct side *side, int64_t steps)
{
    size_t kept = 0;

    for (size_t i = 0; i < side->count; i++) {
        int64_t index = ((side->items[i].index - 1) >> QF_MIN(steps, (int64_t)40)) + 1;

        if (kept && side->items[kept - 1].index == index)
            side->items[kept - 1].count += side->items[i].count;
        else
            side->items[kept++] = (struct bucket){ index, side->items[i].count };
    }
    side->count = kept;
}

static bool add_side(struct pq_parser *p, struct side *into, const struct side *from, double factor)
{
    struct bucket *merged = QF_ARENA_ARRAY(p->arena, struct bucket, into->count + from->count + 1);
    size_t a = 0, b = 0, count = 0;

    if (!merged) {
        pq_parser_out_of_memory(p);
        return false;
    }
    while (a < into->count || b < from->count) {
        if (b == from->count || (a < into->count && into->items[a].index < from->items[b].index)) {
            merged[count++] = into->items[a++];
        } else if (a == into->count || from->items[b].index < into->items[a].index) {
            merged[count++] =
                (struct bucket){ from->items[b].index, factor * from->items[b].count };
            b++;
        } else {
            merged[count++] =
                (struct bucket){ into->items[a].index,
                                 into->items[a].count + factor * from->items[b].count };
            a++, b++;
        }
    }
    *into = (struct side){ merged, count };
    return true;
}

/* The spans and counts of a side; runs of neighbours are one span. */
static bool write_side(struct pq_parser *p, const struct side *side,
                       const struct pq_span **ret_spans, size_t *ret_span_count,
                       const double **ret_counts, size_t *ret_count)
{
    struct pq_span *spans = QF_ARENA_ARRAY(p->arena, struct pq_span, side->count + 1);
    double *counts = QF_ARENA_ARRAY(p->arena, double, side->count + 1);
    size_t span_count = 0;
    int64_t end = 0;

    if (!spans || !counts) {
        pq_parser_out_of_memory(p);
        return false;
    }
    for (size_t i = 0; i < side->count; i++) {
        counts[i] = side->items[i].count;
        if (span_count == 0 || side->items[i].index != end)
            spans[span_count++] = (struct pq_span){ (int32_t)(side->items[i].index - end), 0 };
        spans[span_count - 1].length++;
        end = side->items[i].index + 1;
    }
    *ret_spans = spans;
    *ret_span_count = span_count;
    *ret_counts = counts;
    *ret_count = side->count;
    return true;
}

/* A histogram taken apart. */
struct parts {
    struct side positive, negative;
    int32_t schema;
    double zero_threshold, zero_count;
    const double *bounds;
    size_t bound_count;
};

static bool take_apart(struct pq_parser *p, const struct pq_histogram *histogram,
                       struct parts *ret_parts)
{
    *ret_parts = (struct parts){ .schema = histogram->schema,
                                 .zero_threshold = histogram->zero_threshold,
                                 .zero_count = histogram->zero_count,
                                 .bounds = histogram->custom_values,
                                 .bound_count = histogram->custom_value_count };
    return read_side(p, histogram->positive_spans, histogram->positive_span_count,
                     histogram->positive_buckets, &ret_parts->positive) &&
           read_side(p, histogram->negative_spans, histogram->negative_span_count,
                     histogram->negative_buckets, &ret_parts->negative);
}

static double upper_bound(int64_t index, int32_t schema)
{
    return exp2((double)index * exp2(-(double)schema));
}

/* Move the buckets inside @threshold into @zero_count. A populated bucket that reaches beyond
 * widens the threshold to its own upper bound. */
static void absorb(struct side *side, int32_t schema, double *threshold, double *zero_count)
{
    size_t gone = 0;

    for (; gone < side->count; gone++) {
        int64_t index = side->items[gone].index;

        if (upper_bound(index - 1, schema) >= *threshold)
            break;
        if (upper_bound(index, schema) > *threshold) {
            if (side->items[gone].count == 0)
                break;
            *threshold = upper_bound(index, schema);
        }
        *zero_count += side->items[gone].count;
    }
    side->items += gone;
    side->count -= gone;
}

static void widen_zero(struct parts *parts, double threshold)
{
    double before;

    do { /* what one side needs may widen the other; both only shrink, so this ends */
        before = threshold;
        absorb(&parts->positive, parts->schema, &threshold, &parts->zero_count);
        absorb(&parts->negative, parts->schema, &threshold, &parts->zero_count);
    } while (threshold != before);
    parts->zero_threshold = threshold;
}

/* Each round lifts one threshold to the other or beyond, over one more bucket. */
static void reconcile_zero(struct parts *a, struct parts *b)
{
    while (a->zero_threshold != b->zero_threshold) {
        if (a->zero_threshold < b->zero_threshold)
            widen_zero(a, b->zero_threshold);
        else if (b->zero_threshold < a->zero_threshold)
            widen_zero(b, a->zero_threshold);
        else
            return; /* a threshold that is not a number fits nothing */
    }
}

/* Put the buckets of @parts under @bounds, a part of its own bounds. */
static void rebound(struct parts *parts, const double *bounds, size_t count)
{
    size_t kept = 0;
    struct side *side = &parts->positive;

    for (size_t i = 0; i < side->count; i++) {
        int64_t index = side->items[i].index;
        double upper =
            index >= 0 && (size_t)index < parts->bound_count ? parts->bounds[index] : INFINITY;
        size_t target = 0;

        while (target < count && bounds[target] < upper)
            target++;
        if (kept && side->items[kept - 1].index == (int64_t)target)
            side->items[kept - 1].count += side->items[i].count;
        else
            side->items[kept++] = (struct bucket){ (int64_t)target, side->items[i].count };
    }
    side->count = kept;
    parts->bounds = bounds;
    parts->bound_count = count;
}

/* Bring both to the bounds they have in common. */
static bool reconcile_bounds(struct pq_parser *p, struct parts *a, struct parts *b)
{
    double *common;
    size_t count = 0, i = 0, j = 0;

    if (a->bound_count == b->bound_count &&
        (a->bound_count == 0 ||
         memcmp(a->bounds, b->bounds, a->bound_count * sizeof(*a->bounds)) == 0))
        return true;
    common = QF_ARENA_ARRAY(p->arena, double, a->bound_count + 1);
    if (!common) {
        pq_parser_out_of_memory(p);
        return false;
    }
    while (i < a->bound_count && j < b->bound_count) {
        if (a->bounds[i] == b->bounds[j])
            common[count++] = a->bounds[i++], j++;
        else if (a->bounds[i] < b->bounds[j])
            i++;
        else
            j++;
    }
    rebound(a, common, count);
    rebound(b, common, count);
    return true;
}

static bool reconcile(struct pq_parser *p, struct parts *base, struct parts *inc)
{
    bool custom = base->schema == PQ_SCHEMA_CUSTOM;

    if (base->schema > inc->schema) {
        pq_parser_fail(p, p->last, "error combining histograms: cannot merge from schema %d to %d",
                       inc->schema, base->schema);
        return false;
    }
    if (custom != (inc->schema == PQ_SCHEMA_CUSTOM)) {
        pq_parser_fail(p, p->last,
                       "cannot apply this operation on histograms with a mix of exponential and "
                       "custom bucket schemas");
        return false;
    }
    if (custom)
        return reconcile_bounds(p, base, inc);
    reconcile_zero(base, inc);
    if (inc->schema > base->schema) {
        widen(&inc->positive, (int64_t)inc->schema - base->schema);
        widen(&inc->negative, (int64_t)inc->schema - base->schema);
    }
    return true;
}

/* Equal hints stay, gauge wins, and two that contradict each other say nothing. */
static enum pq_reset_hint combine_hints(enum pq_reset_hint a, enum pq_reset_hint b)
{
    if (a == b)
        return a;
    return a == PQ_RESET_GAUGE || b == PQ_RESET_GAUGE ? PQ_RESET_GAUGE : PQ_RESET_UNKNOWN;
}

struct pq_histogram *pq_histogram_combine(struct pq_parser *p, const struct pq_histogram *base,
                                          const struct pq_histogram *inc, double factor)
{
    struct pq_histogram *sum = QF_ARENA_NEW(p->arena, struct pq_histogram);
    struct parts parts, more;

    if (!sum) {
        pq_parser_out_of_memory(p);
        return NULL;
    }
    if (!take_apart(p, base, &parts) || !take_apart(p, inc, &more) || !reconcile(p, &parts, &more))
        return NULL;
    *sum = *base;
    sum->reset_hint = combine_hints(base->reset_hint, inc->reset_hint);
    sum->zero_threshold = parts.zero_threshold;
    sum->zero_count = parts.zero_count + factor * more.zero_count;
    sum->count += factor * inc->count;
    sum->sum += factor * inc->sum;
    sum->custom_values = parts.bounds;
    sum->custom_value_count = parts.bound_count;
    if (!add_side(p, &parts.positive, &more.positive, factor) ||
        !add_side(p, &parts.negative, &more.negative, factor) ||
        !write_side(p, &parts.positive, &sum->positive_spans, &sum->positive_span_count,
                    &sum->positive_buckets, &sum->positive_bucket_count) ||
        !write_side(p, &parts.negative, &sum->negative_spans, &sum->negative_span_count,
                    &sum->negative_buckets, &sum->negative_bucket_count))
        return NULL;
    return sum;
}
