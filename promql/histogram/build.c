/* build.c - writing the buckets of a new histogram. */
#include "promql/histogram/build.h"

#include <string.h>

bool pq_side_write(struct pq_side_writer *writer, struct qf_arena *arena, size_t count)
{
    *writer = (struct pq_side_writer){
        .spans = qf_arena_alloc(arena, count * sizeof(*writer->spans)),
        .buckets = qf_arena_alloc(arena, count * sizeof(*writer->buckets)),
    };
    return writer->spans && writer->buckets;
}

void pq_side_set(struct pq_histogram *h, enum pq_side side, const struct pq_side_writer *writer)
{
    if (side == PQ_POSITIVE) {
        h->positive_spans = writer->spans;
        h->positive_span_count = writer->span_count;
        h->positive_buckets = writer->buckets;
        h->positive_bucket_count = writer->bucket_count;
    } else {
        h->negative_spans = writer->spans;
        h->negative_span_count = writer->span_count;
        h->negative_buckets = writer->buckets;
        h->negative_bucket_count = writer->bucket_count;
    }
}

struct pq_histogram *pq_histogram_like(struct qf_arena *arena, const struct pq_histogram *h)
{
    struct pq_histogram *like = QF_ARENA_NEW(arena, struct pq_histogram);
    double *bounds = qf_arena_alloc(arena, h->custom_value_count * sizeof(*bounds));
    static const struct pq_side_writer empty;

    if (!like || !bounds)
        return NULL;
    if (h->custom_value_count)
        memcpy(bounds, h->custom_values, h->custom_value_count * sizeof(*bounds));
    *like = *h;
    like->reset_hint_given = false;
    like->custom_values = bounds;
    pq_side_set(like, PQ_POSITIVE, &empty);
    pq_side_set(like, PQ_NEGATIVE, &empty);
    return like;
}
