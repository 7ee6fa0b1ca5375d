/* combine.c - a histogram plus or minus another, for series such as {{sum:1}}+{{sum:2}}x5.
 *
 * Only what literals need: one side of buckets is a list of (index, count) in ascending order. */
#include <math.h>

#include "base/pure/macros.h"
#include "promql/parse/parser.h"
#include "promql/value.h"

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

static bool compatible(struct pq_parser *p, const struct pq_histogram *base,
                       const struct pq_histogram *inc)
{
    if (base->schema > inc->schema) {
        pq_parser_fail(p, p->last, "error combining histograms: cannot merge from schema %d to %d",
                       inc->schema, base->schema);
        return false;
    }
    if ((base->schema == PQ_SCHEMA_CUSTOM) != (inc->schema == PQ_SCHEMA_CUSTOM)) {
        pq_parser_fail(p, p->last,
                       "cannot apply this operation on histograms with a mix of exponential and "
                       "custom bucket schemas");
        return false;
    }
    if (base->custom_value_count != inc->custom_value_count ||
        (base->custom_value_count && memcmp(base->custom_values, inc->custom_values,
                                            base->custom_value_count * sizeof(double)) != 0)) {
        pq_parser_fail(p, p->last, "error combining histograms: custom bucket boundaries differ");
        return false;
    }
    if (base->zero_threshold != inc->zero_threshold && inc->zero_threshold != 0) {
        pq_parser_fail(p, p->last, "error combining histograms: zero thresholds %g and %g differ",
                       base->zero_threshold, inc->zero_threshold);
        return false;
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

static bool combine_sides(struct pq_parser *p, struct pq_histogram *sum,
                          const struct pq_histogram *inc, double factor)
{
    struct side positive, negative, more_positive, more_negative;

    if (!read_side(p, sum->positive_spans, sum->positive_span_count, sum->positive_buckets,
                   &positive) ||
        !read_side(p, sum->negative_spans, sum->negative_span_count, sum->negative_buckets,
                   &negative) ||
        !read_side(p, inc->positive_spans, inc->positive_span_count, inc->positive_buckets,
                   &more_positive) ||
        !read_side(p, inc->negative_spans, inc->negative_span_count, inc->negative_buckets,
                   &more_negative))
        return false;
    if (inc->schema > sum->schema) {
        widen(&more_positive, (int64_t)inc->schema - sum->schema);
        widen(&more_negative, (int64_t)inc->schema - sum->schema);
    }
    return add_side(p, &positive, &more_positive, factor) &&
           add_side(p, &negative, &more_negative, factor) &&
           write_side(p, &positive, &sum->positive_spans, &sum->positive_span_count,
                      &sum->positive_buckets, &sum->positive_bucket_count) &&
           write_side(p, &negative, &sum->negative_spans, &sum->negative_span_count,
                      &sum->negative_buckets, &sum->negative_bucket_count);
}

struct pq_histogram *pq_histogram_combine(struct pq_parser *p, const struct pq_histogram *base,
                                          const struct pq_histogram *inc, double factor)
{
    struct pq_histogram *sum;

    if (!compatible(p, base, inc))
        return NULL;
    sum = QF_ARENA_NEW(p->arena, struct pq_histogram);
    if (!sum) {
        pq_parser_out_of_memory(p);
        return NULL;
    }
    *sum = *base;
    sum->reset_hint = combine_hints(base->reset_hint, inc->reset_hint);
    sum->zero_count += factor * inc->zero_count;
    sum->count += factor * inc->count;
    sum->sum += factor * inc->sum;
    return combine_sides(p, sum, inc, factor) ? sum : NULL;
}
