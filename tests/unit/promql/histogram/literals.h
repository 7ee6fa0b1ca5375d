/* literals.h - native histograms for tests: written as in test scripts, compared, or made up. */
#ifndef TESTS_UNIT_PROMQL_HISTOGRAM_LITERALS_H
#define TESTS_UNIT_PROMQL_HISTOGRAM_LITERALS_H

#include "base/pure/prng.h"
#include "promql/value.h"

/* "{{schema:0 sum:5 count:4 buckets:[1 2 1]}}" in @arena; a text that does not parse fails the
 * test. */
const struct pq_histogram *literal(struct qf_arena *arena, const char *text);

/* Same schema, bounds and counts to the last bit; empty buckets, spans and hints do not matter. A
 * difference fails the test. */
void check_same(const char *file, int line, const struct pq_histogram *got,
                const struct pq_histogram *want);
#define CHECK_SAME(got, want) check_same(__FILE__, __LINE__, (got), (want))

/* Some histogram with whole counts below 2^20, so that sums and differences are exact. */
const struct pq_histogram *any_exponential(struct qf_arena *arena, struct qf_prng *prng);
const struct pq_histogram *any_custom(struct qf_arena *arena, struct qf_prng *prng);

#endif
