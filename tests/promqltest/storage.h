/* storage.h - series in memory, spread over shards as the real store spreads them. */
#ifndef TESTS_PROMQLTEST_STORAGE_H
#define TESTS_PROMQLTEST_STORAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "promql/source.h"
#include "tests/promqltest/script.h"

struct storage;

/* @shard_count is also what the engine is told. Never NULL. */
struct storage *storage_new(size_t shard_count);
struct storage *storage_free(struct storage *storage);
void storage_clear(struct storage *storage);

/* Add the series of a load block. QF_EINVAL: a sample that is older than one already there, or
 * classic buckets that make no histogram. */
QF_MUST_CHECK qf_rc storage_load(struct storage *storage, const struct script_load *load,
                                 struct qf_err *err);

/* One sample behind those of its series; a sample equal to the last one is dropped. */
struct storage_sample {
    int64_t ts;
    double value;
    const struct pq_histogram *histogram; /* NULL for a float; kept, not copied */
    int64_t start_ts;                     /* 0: unknown */
};
QF_MUST_CHECK qf_rc storage_append(struct storage *storage, struct qf_labels labels,
                                   struct storage_sample sample, struct qf_err *err);
/* Memory that lives until the storage is cleared. */
struct qf_arena *storage_arena(struct storage *storage);

/* struct pq_engine's open; @ctx is the storage. */
qf_rc storage_open(void *ctx, size_t shard, const struct pq_select *select,
                   struct pq_source **ret_source, struct qf_err *err);

#endif
