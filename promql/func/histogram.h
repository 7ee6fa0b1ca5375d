/* histogram.h - native histograms as values: copied and compared. */
#ifndef PROMQL_FUNC_HISTOGRAM_H
#define PROMQL_FUNC_HISTOGRAM_H

#include "promql/value.h"

/* A deep copy in @arena; NULL: budget spent. */
const struct pq_histogram *pq_histogram_copy(struct qf_arena *arena,
                                             const struct pq_histogram *histogram);

/* What == asks of two histograms: the same buckets with the same counts, bit for bit. Where spans
 * are cut and what is known of resets does not matter. */
bool pq_histogram_equal(const struct pq_histogram *a, const struct pq_histogram *b);

#endif
