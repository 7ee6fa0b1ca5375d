/* variants.h - the same question asked in other ways: what an instant eval must also survive. */
#ifndef TESTS_PROMQLTEST_VARIANTS_H
#define TESTS_PROMQLTEST_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "promql/ast.h"

#define VARIANT_TIMES_MAX 5

/* Fix every selector and subquery of @expr at @at_ms, in place, so that its answer no longer
 * depends on the time of evaluation. False, and nothing fixed, if it calls a function that looks at
 * that time. */
bool variant_fix_times(struct pq_expr *expr, int64_t at_ms);

/* The times at which the fixed query is run; returns how many. */
size_t variant_times(int64_t at_ms, int64_t ret_times[VARIANT_TIMES_MAX]);

/* The query may also be run as a range query: it names no start(), end(), range() or step(). */
bool variant_range_allowed(struct qf_str query);

#endif
