/* eval_int.h - the state of one evaluation. */
#ifndef PROMQL_EVAL_EVAL_INT_H
#define PROMQL_EVAL_EVAL_INT_H

#include "base/pure/map.h"
#include "promql/eval.h"
#include "promql/func/poll.h"
#include "promql/leaf/grouping.h"
#include "promql/merge/merge_sorted.h"
#include "promql/plan/node.h"

struct pq_exec;

struct pq_eval {
    const struct pq_plan *plan;
    struct qf_arena *arena;
    struct pq_eval_options options;
    struct pq_notes notes;
    struct pq_eval_stats stats;
    struct pq_leaf_reader **readers; /* leaf * shard_count + shard */
    size_t shard_count;
    struct pq_merge **merges; /* per leaf */
    struct pq_exec *root;     /* NULL for strings and bare range vectors */
    bool notes_merged;
    struct pq_poll poll; /* of the cancel flag, inside a block */
};

/* Take over what the leaves noted and counted, once. */
void pq_eval_merge_notes(struct pq_eval *eval);

#endif
