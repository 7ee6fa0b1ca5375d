/* histogram.h - native histograms as scripts see them: loaded, read back, compared. */
#ifndef TESTS_PROMQLTEST_HISTOGRAM_H
#define TESTS_PROMQLTEST_HISTOGRAM_H

#include "base/pure/strbuf.h"
#include "promql/value.h"

/* As the format says: empty buckets do not count, numbers are as equal as judge_float says, the
 * hint is compared only if the expectation spells it out. */
bool histogram_matches(const struct pq_histogram *got, const struct pq_histogram *want);

/* Whether @next would go into the same chunk of a real storage as @prev did: same shape, and for a
 * counter nothing that went down. What follows in a chunk is known not to be a reset. */
bool histogram_extends(const struct pq_histogram *prev, const struct pq_histogram *next);

/* A histogram that came as JSON knows the bounds of its buckets and not its schema: this one, with
 * lower bound, upper bound and count of each bucket as custom values. histogram_matches takes it as
 * @got. */
#define HISTOGRAM_BOUNDS 127

void histogram_print(struct qf_strbuf *buf, const struct pq_histogram *histogram);

#endif
