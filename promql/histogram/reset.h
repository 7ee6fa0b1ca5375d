/* reset.h - whether a histogram that counts was reset, and whether two are the same. */
#ifndef PROMQL_HISTOGRAM_RESET_H
#define PROMQL_HISTOGRAM_RESET_H

#include "promql/histogram/layout.h"

/* @h follows @prev in a series: did its counters begin anew in between? A hint that says so, or
 * says not, decides. Otherwise a reset shows in anything that went down: the count, the zero
 * bucket, any bucket (after both are seen with equal buckets), or in a resolution that went up,
 * which counters cannot do without losing what they had. */
bool pq_histogram_is_reset(const struct pq_histogram *h, const struct pq_histogram *prev);

#endif
