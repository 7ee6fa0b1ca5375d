/* check.c - whether a native histogram that somebody else made is one. */
#include "promql/histogram/check.h"

#include <math.h>

#include "promql/histogram/layout.h"

enum { SCHEMA_MIN = -4, SCHEMA_MAX = 8 };
/* Counts that are fractions were added up in some order: their sum may be off by the last digits. */
#define COUNT_TOLERANCE 1e-12

struct side {
    const struct pq_span *spans;
    size_t span_count;
    const double *buckets;
    size_t bucket_count;
};

/* @ret_end is the index behind the last bucket. */
static const char *check_spans(const struct side *side, int64_t *ret_end)
{
    uint64_t length = 0;
    int64_t at = 0;

    for (size_t i = 0; i < side->span_count; i++) {
        if (i > 0 && side->spans[i].offset < 0)
            return "a span begins before the one before it ends";
        at += side->spans[i].offset;
        at += side->spans[i].length;
        length += side->spans[i].length;
        if (at > INT32_MAX || at < INT32_MIN)
            return "a span leaves the range of bucket indices";
    }
    if (length != side->bucket_count)
        return "spans and buckets differ in number";
    *ret_end = at;
    return NULL;
}

/* @total grows by what the buckets hold. */
static const char *check_buckets(const struct side *side, double *total)
{
    for (size_t i = 0; i < side->bucket_count; i++) {
        if (!(side->buckets[i] >= 0))
            return "a bucket's count is negative or not a number";
        *total += side->buckets[i];
    }
    return NULL;
}

static const char *check_custom(const struct pq_histogram *h, int64_t end)
{
    if (h->negative_span_count || h->negative_bucket_count)
        return "custom buckets have no negative side";
    if (h->zero_count != 0 || h->zero_threshold != 0)
        return "custom buckets have no zero bucket";
    if (h->positive_span_count && h->positive_spans[0].offset < 0)
        return "a custom bucket has a negative index";
    if ((uint64_t)end > (uint64_t)h->custom_value_count + 1)
        return "there are more custom buckets than bounds";
    for (size_t i = 0; i < h->custom_value_count; i++)
        if (!isfinite(h->custom_values[i]) ||
            (i > 0 && h->custom_values[i] <= h->custom_values[i - 1]))
            return "custom bounds do not ascend";
    return NULL;
}

static const char *check_exponential(const struct pq_histogram *h)
{
    if (h->schema < SCHEMA_MIN || h->schema > SCHEMA_MAX)
        return "there is no such schema";
    if (h->custom_value_count)
        return "an exponential schema has no custom bounds";
    if (!(h->zero_threshold >= 0) || isinf(h->zero_threshold))
        return "the zero bucket's width is negative or not a number";
    return NULL;
}

const char *pq_histogram_check(const struct pq_histogram *h)
{
    struct side positive = { h->positive_spans, h->positive_span_count, h->positive_buckets,
                             h->positive_bucket_count };
    struct side negative = { h->negative_spans, h->negative_span_count, h->negative_buckets,
                             h->negative_bucket_count };
    int64_t end = 0, negative_end = 0;
    double total = h->zero_count;
    const char *why = check_spans(&positive, &end);

    if (!why)
        why = check_spans(&negative, &negative_end);
    if (!why)
        why = pq_histogram_is_custom(h) ? check_custom(h, end) : check_exponential(h);
    if (!why && (!(h->zero_count >= 0) || !(h->count >= 0)))
        why = "a count is negative or not a number";
    if (!why)
        why = check_buckets(&positive, &total);
    if (!why)
        why = check_buckets(&negative, &total);
    if (!why && total > h->count && total - h->count > COUNT_TOLERANCE * total)
        why = "the buckets hold more than the count says";
    return why;
}
