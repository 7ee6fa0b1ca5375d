/* memory_series.h - series written down in a test, as a source of any number of shards.
 *
 *     struct memory_series *series = memory_series_new(60000);
 *     memory_series_add(series, "up{job=\"a\"} 1 2 3");
 *
 * Values are spaced by the gap and begin at time 0, as in test scripts. A series lives in the shard
 * its labels say. */
#ifndef TESTS_LIB_PROMQL_MEMORY_SERIES_H
#define TESTS_LIB_PROMQL_MEMORY_SERIES_H

#include "promql/testing/engine.h"

struct memory_series;

struct memory_series *memory_series_new(int64_t gap_ms);
void memory_series_freep(struct memory_series **series);
void memory_series_add(struct memory_series *series, const char *line);

/* An engine over @shards shards; borrows @series. */
struct pq_engine memory_series_engine(struct memory_series *series, size_t shards);

/* Parse and run; the answer as text, one line per series: `{a="b"} 1@0 2@60000`, sorted as the
 * result is, a native histogram as `{count 3 sum 4.5}`; `scalar 1`; `string x`; or `error: ...`.
 * Notes follow, one line each. @params may be NULL for an instant query at 0. Valid until the next
 * call. */
const char *memory_series_query(struct memory_series *series, size_t shards, const char *query,
                                const struct pq_query_params *params);

#endif
