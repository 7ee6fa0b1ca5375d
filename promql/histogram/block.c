/* block.c - a native histogram in one block of memory. */
#include "promql/histogram/block.h"

#include <string.h>

#include "base/pure/alloc.h"

size_t pq_histogram_block_bytes(const struct pq_histogram *h)
{
    return sizeof(*h) +
           (h->positive_bucket_count + h->negative_bucket_count + h->custom_value_count) *
               sizeof(double) +
           (h->positive_span_count + h->negative_span_count) * sizeof(struct pq_span);
}

/* Copy @bytes to *@at and move it on. All parts are multiples of eight bytes long. */
static void *append(char **at, const void *from, size_t bytes)
{
    void *to = *at;

    if (bytes)
        memcpy(to, from, bytes);
    *at += bytes;
    return to;
}

struct pq_histogram *pq_histogram_block(const struct pq_histogram *h)
{
    struct pq_histogram *copy = qf_xmalloc(pq_histogram_block_bytes(h));
    char *at = (char *)(copy + 1);

    *copy = *h;
    copy->positive_buckets =
        append(&at, h->positive_buckets, h->positive_bucket_count * sizeof(double));
    copy->negative_buckets =
        append(&at, h->negative_buckets, h->negative_bucket_count * sizeof(double));
    copy->custom_values = append(&at, h->custom_values, h->custom_value_count * sizeof(double));
    copy->positive_spans =
        append(&at, h->positive_spans, h->positive_span_count * sizeof(struct pq_span));
    copy->negative_spans =
        append(&at, h->negative_spans, h->negative_span_count * sizeof(struct pq_span));
    return copy;
}
