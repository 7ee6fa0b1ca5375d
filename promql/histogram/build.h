/* build.h - writing the buckets of a new histogram, one side at a time.
 *
 * Buckets are put in ascending order of their index. Empty ones are passed over, neighbours share a
 * span: the form in which answers show histograms. */
#ifndef PROMQL_HISTOGRAM_BUILD_H
#define PROMQL_HISTOGRAM_BUILD_H

#include "promql/histogram/layout.h"

struct pq_side_writer {
    struct pq_span *spans;
    double *buckets;
    size_t span_count, bucket_count;
    int64_t next; /* the index behind the last bucket */
};

/* Room for @count buckets. False: budget spent. */
QF_MUST_CHECK bool pq_side_write(struct pq_side_writer *writer, struct qf_arena *arena,
                                 size_t count);
static inline void pq_side_put(struct pq_side_writer *writer, int64_t index, double count)
{
    if (count == 0)
        return;
    if (writer->span_count == 0 || index != writer->next)
        writer->spans[writer->span_count++] =
            (struct pq_span){ (int32_t)(index - writer->next), 0 };
    writer->spans[writer->span_count - 1].length++;
    writer->buckets[writer->bucket_count++] = count;
    writer->next = index + 1;
}
/* Make what was put that side of @h. A zeroed writer is an empty side. */
void pq_side_set(struct pq_histogram *h, enum pq_side side, const struct pq_side_writer *writer);

/* A histogram like @h in all but its buckets, which are none; bounds are copied. NULL: budget
 * spent. */
struct pq_histogram *pq_histogram_like(struct qf_arena *arena, const struct pq_histogram *h);

#endif
