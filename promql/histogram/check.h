/* check.h - whether a native histogram that somebody else made is one. */
#ifndef PROMQL_HISTOGRAM_CHECK_H
#define PROMQL_HISTOGRAM_CHECK_H

#include "promql/value.h"

/* NULL if @h can be computed with, else why not, as a constant text: a schema that does not exist,
 * spans that do not go with their buckets or leave the range of indices, a count that is negative,
 * not a number or less than its buckets hold, bounds that do not ascend, and what does not belong to
 * the kind of histogram that its schema says. Every array must have as many items as its count says. */
const char *pq_histogram_check(const struct pq_histogram *h);

#endif
