/* merge_sorted.h - MergeSorted: the answers of all shards to one leaf, as one.
 *
 * The series tables of the shards become one sorted table; rows are put where they belong, block of
 * steps by block of steps. Partials of the same group are merged in the order of the shards, so the
 * result does not depend on the order in which shards answered. A leaf that several nodes read is
 * read once: blocks are kept until the slowest reader has them. */
#ifndef PROMQL_MERGE_MERGE_SORTED_H
#define PROMQL_MERGE_MERGE_SORTED_H

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "promql/leaf.h"

struct pq_merge;

/* @readers, one per shard, are borrowed; NULL ones are empty. QF_ELIMIT: budget
 * spent. QF_ECORRUPT: a reader is of another kind or its series are not sorted. */
QF_MUST_CHECK qf_rc pq_merge_new(struct qf_arena *arena, const struct pq_leaf *leaf,
                                 struct pq_leaf_reader **readers, size_t shard_count,
                                 struct pq_merge **ret_merge, struct qf_err *err);
/* Say that one more node will read, before the first block is read. */
void pq_merge_share(struct pq_merge *merge);

/* All series of all shards, sorted; groups of leaves with ranks in the order of those. */
const struct qf_labels *pq_merge_series(const struct pq_merge *merge, size_t *ret_count);

/* Values of one block of up to 64 steps. values[s * stride + k] is there if bit k of present[s]. */
struct pq_merge_block {
    size_t steps, stride;
    double *values;
    uint64_t *present;
    /* NULL, or like values: NULL for a float. Set by pq_merge_next, made in `scope`, which is the
     * reader's: the array is its own, the histograms in it are there until it reads its next block.
     */
    const struct pq_histogram **histograms;
    struct qf_arena *scope;
};

/* The block that begins with step @first, into @block, whose arrays have room for all series. Every
 * node reads all blocks in order. Asking for one says that the one before is done with. */
QF_MUST_CHECK qf_rc pq_merge_next(struct pq_merge *merge, uint64_t first,
                                  struct pq_merge_block *block, struct qf_err *err);

/* For leaves of raw samples: calls take(ctx, series, ts, value) for every sample up to @until that
 * was not taken yet, by time within a series. One consumer only. */
QF_MUST_CHECK qf_rc pq_merge_samples(struct pq_merge *merge, int64_t until,
                                     void (*take)(void *ctx, uint32_t series, int64_t ts,
                                                  struct pq_value value),
                                     void *ctx, struct qf_err *err);

uint64_t pq_merge_rows(const struct pq_merge *merge);
/* What is to be said of native histograms that were aggregated so far: enum pq_window_flag. */
unsigned pq_merge_flags(const struct pq_merge *merge); /* read so far */

#endif
