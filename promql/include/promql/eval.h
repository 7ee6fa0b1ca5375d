/* eval.h - the upper half of a query: MergeSorted, EvalFlow and the tree of ExecNodes.
 *
 *     pq_eval_new(plan, readers, shards) ; while (pq_eval_next(eval, &batch), batch.steps) ... ;
 *     pq_eval_free
 *
 * or pq_eval_collect() for the whole answer at once. Results come in timestamp order, as soon as
 * every leaf has passed the timestamps in question; no more than a batch of steps is held. Not
 * thread-safe; the one thread that calls it also calls the readers. */
#ifndef PROMQL_EVAL_H
#define PROMQL_EVAL_H

#include <stdatomic.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/purse.h"
#include "promql/leaf_result.h"
#include "promql/plan.h"
#include "promql/value.h"

struct pq_eval;

/* Some steps of the answer. Series ids are dense and stay the same for the whole query; later
 * batches may bring further series. Series are not sorted: that can be known only at the end. */
struct pq_eval_batch {
    size_t steps; /* at most 64; 0: the end */
    int64_t start_ms, step_ms;
    const struct qf_labels *series; /* final labels, series_count of them */
    size_t series_count;
    size_t stride; /* the value of series s at step k is values[s * stride + k] ... */
    const double *values;
    const uint64_t *present; /* ... if bit k of present[s] is set */
    /* NULL, or like values: NULL for a float. */
    const struct pq_histogram *const *histograms;
};

struct pq_eval_stats {
    uint64_t samples_read; /* by all leaves */
    uint64_t rows;         /* of leaf results */
    uint64_t points;       /* of the answer, so far */
    size_t memory_bytes;   /* of the evaluation's arena */
};

struct pq_eval_options {
    size_t memory_bytes_max;     /* 0: no limit; beyond it QF_ELIMIT */
    struct qf_purse *purse;      /* pays for it instead, if not NULL; outlives the evaluation */
    const atomic_bool *canceled; /* may be NULL; looked at once per batch */
    /* Reads a clock that never goes back, in nanoseconds: then each node's time is measured, with two
     * readings per block of steps. NULL: it is not. */
    int64_t (*clock_ns)(void);
};

/* What a node of the plan took so far. */
struct pq_node_figures {
    uint64_t self_ns; /* without its children; reading and merging results of workers, for a leaf */
    uint64_t series;  /* that it answered */
    uint64_t blocks;  /* of up to 64 steps */
};

/* Start evaluating @plan. readers[leaf * shard_count + shard] answers leaves[leaf] for that shard
 * and is taken over, also on failure: pq_eval_free closes each. A reader may be NULL for a shard
 * without any data. With 0 leaves @readers may be NULL.
 *
 * QF_ELIMIT: memory. QF_ECORRUPT: a reader of another kind than its leaf. */
QF_MUST_CHECK qf_rc pq_eval_new(const struct pq_plan *plan, struct pq_leaf_reader **readers,
                                size_t shard_count, const struct pq_eval_options *options,
                                struct pq_eval **ret_eval, struct qf_err *err);
struct pq_eval *pq_eval_free(struct pq_eval *eval); /* Accepts NULL, returns NULL. */
void pq_eval_freep(struct pq_eval **eval);

/* The next steps; borrowed until the next call. For vectors and scalars only: strings and bare
 * range vectors have no steps, use pq_eval_collect. QF_EEXEC: a PromQL run-time error.
 * QF_ECANCELED, QF_ELIMIT, QF_EUNSUPPORTED, or what a reader returned. After an error only free may
 * be called. */
QF_MUST_CHECK qf_rc pq_eval_next(struct pq_eval *eval, struct pq_eval_batch *ret_batch,
                                 struct qf_err *err);

/* Complete once the last batch was read. */
const struct pq_notes *pq_eval_notes(const struct pq_eval *eval);
struct pq_eval_stats pq_eval_stats(const struct pq_eval *eval);

/* The figures of the plan's nodes, in the order in which pq_plan_json() opens them. At most @max are
 * written; how many nodes there are. A node that its parent reads without asking it has zeros. */
size_t pq_eval_figures(const struct pq_eval *eval, struct pq_node_figures *figures, size_t max);

struct pq_result_series {
    struct qf_labels labels;
    size_t count; /* points; 1 in a vector */
    const int64_t *ts;
    const double *values;
    const struct pq_histogram *const *histograms; /* NULL, or per point NULL for a float */
};

/* A whole answer, as the JSON encoders want it. */
struct pq_result {
    enum pq_type type;
    int64_t ts; /* of a scalar or string: the time of the instant query */
    double scalar;
    struct qf_str string;
    /* VECTOR: in the order sort() and the like asked for, else by labels; MATRIX: by labels. */
    struct pq_result_series *series;
    size_t series_count;
    struct pq_notes notes;
    struct pq_eval_stats stats;
};

/* Run @eval to its end and keep everything in @arena. Errors as pq_eval_next. */
QF_MUST_CHECK qf_rc pq_eval_collect(struct pq_eval *eval, struct qf_arena *arena,
                                    struct pq_result *ret_result, struct qf_err *err);

#endif
