/* histogram.c - native histograms as values. */
#include "promql/func/histogram.h"

#include <math.h>
#include <string.h>

#include "base/pure/number.h"
#include "promql/func/kernels.h"
#include "promql/histogram/stats.h"

static void *copy(struct qf_arena *arena, const void *from, size_t count, size_t size)
{
    void *to = qf_arena_alloc(arena, count * size);

    if (to && count)
        memcpy(to, from, count * size);
    return to;
}

const struct pq_histogram *pq_histogram_copy(struct qf_arena *arena,
                                             const struct pq_histogram *histogram)
{
    struct pq_histogram *h = copy(arena, histogram, 1, sizeof(*h));

    if (!h)
        return NULL;
    h->positive_spans =
        copy(arena, h->positive_spans, h->positive_span_count, sizeof(*h->positive_spans));
    h->negative_spans =
        copy(arena, h->negative_spans, h->negative_span_count, sizeof(*h->negative_spans));
    h->positive_buckets =
        copy(arena, h->positive_buckets, h->positive_bucket_count, sizeof(double));
    h->negative_buckets =
        copy(arena, h->negative_buckets, h->negative_bucket_count, sizeof(double));
    h->custom_values = copy(arena, h->custom_values, h->custom_value_count, sizeof(double));
    return qf_arena_failed(arena) ? NULL : h;
}

static bool same_bits(double a, double b)
{
    return qf_double_bits(a) == qf_double_bits(b);
}

static bool same_values(const double *a, size_t a_count, const double *b, size_t b_count)
{
    bool same = a_count == b_count;

    for (size_t i = 0; same && i < a_count; i++)
        same = same_bits(a[i], b[i]);
    return same;
}

/* Walks the indices of the buckets. */
struct walk {
    const struct pq_span *spans;
    size_t count, span;
    uint32_t done; /* of the span */
    int64_t index;
};

/* The index of the next bucket; false at the end. */
static bool walk_next(struct walk *walk, int64_t *ret_index)
{
    while (walk->span < walk->count) {
        const struct pq_span *span = &walk->spans[walk->span];

        if (walk->done == 0)
            walk->index += span->offset;
        if (walk->done < span->length) {
            walk->done++;
            *ret_index = walk->index++;
            return true;
        }
        walk->span++;
        walk->done = 0;
    }
    return false;
}

static bool same_layout(const struct pq_span *a, size_t a_count, const struct pq_span *b,
                        size_t b_count)
{
    struct walk x = { .spans = a, .count = a_count }, y = { .spans = b, .count = b_count };
    int64_t at_x = 0, at_y = 0;

    for (;;) {
        bool more_x = walk_next(&x, &at_x), more_y = walk_next(&y, &at_y);

        if (!more_x || !more_y)
            return more_x == more_y;
        if (at_x != at_y)
            return false;
    }
}

bool pq_histogram_equal(const struct pq_histogram *a, const struct pq_histogram *b)
{
    return a->schema == b->schema && same_bits(a->count, b->count) && same_bits(a->sum, b->sum) &&
           (a->schema != PQ_SCHEMA_CUSTOM ||
            same_values(a->custom_values, a->custom_value_count, b->custom_values,
                        b->custom_value_count)) &&
           same_bits(a->zero_threshold, b->zero_threshold) &&
           same_bits(a->zero_count, b->zero_count) &&
           same_layout(a->positive_spans, a->positive_span_count, b->positive_spans,
                       b->positive_span_count) &&
           same_layout(a->negative_spans, a->negative_span_count, b->negative_spans,
                       b->negative_span_count) &&
           same_values(a->positive_buckets, a->positive_bucket_count, b->positive_buckets,
                       b->positive_bucket_count) &&
           same_values(a->negative_buckets, a->negative_bucket_count, b->negative_buckets,
                       b->negative_bucket_count);
}

double pq_fn_histogram_count(const struct pq_histogram *histogram)
{
    return histogram->count;
}

double pq_fn_histogram_sum(const struct pq_histogram *histogram)
{
    return histogram->sum;
}

double pq_fn_histogram_avg(const struct pq_histogram *histogram)
{
    return pq_histogram_avg(histogram);
}

double pq_fn_histogram_stdvar(const struct pq_histogram *histogram)
{
    return pq_histogram_variance(histogram);
}

double pq_fn_histogram_stddev(const struct pq_histogram *histogram)
{
    return sqrt(pq_histogram_variance(histogram));
}
