/* trim.h - the part of a native histogram below or above a value: </ and >/.
 *
 * Buckets beyond the value go, the one around it is cut (stats.h says how observations are spread).
 * What is open to an infinity cannot be cut: the end of a bucket that is kept is kept whole. Count
 * and sum are those of what is left, every observation being in the middle of its part; a histogram
 * that loses nothing stays as it is. */
#ifndef PROMQL_HISTOGRAM_TRIM_H
#define PROMQL_HISTOGRAM_TRIM_H

#include "promql/histogram/layout.h"

/* NULL: budget spent. The result is @h itself if nothing goes. */
const struct pq_histogram *pq_histogram_trim_upper(struct qf_arena *arena,
                                                   const struct pq_histogram *h, double value);
const struct pq_histogram *pq_histogram_trim_lower(struct qf_arena *arena,
                                                   const struct pq_histogram *h, double value);

#endif
