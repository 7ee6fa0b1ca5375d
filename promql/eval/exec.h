/* exec.h - ExecNodes: operators that turn batches of steps into batches of steps.
 *
 * Steps come in blocks of 64, counted from the start of a node's grid, so that who has a value
 * where fits one word per series. A node's `next` computes the following block of its own grid from
 * the same block of its children (nodes over windows read their children's finer grids ahead).
 *
 * Series are dense ids into a node's series set. The set only grows: after each `next` of a child a
 * node looks at the series that are new and decides, once, what becomes of them. Values of a step
 * at which a series is not present may be anything but are initialised. */
#ifndef PROMQL_EVAL_EXEC_H
#define PROMQL_EVAL_EXEC_H

#include "promql/eval/eval_int.h"

#define PQ_BLOCK 64

struct pq_series_set {
    struct qf_labels *labels;
    uint8_t *drop; /* the metric name is to be dropped in the end */
    size_t count, capacity;
};

struct pq_batch {
    size_t steps;        /* 0: past the end */
    size_t stride;       /* between the values of two series */
    size_t series_count; /* rows that are filled */
    double *values;
    uint64_t *present;
    const struct pq_histogram **histograms; /* NULL, or like values: NULL for a float */
    const uint32_t *order; /* of one step: ids, first ones first (sequence.h); NULL: by id */
    size_t order_count;
};

struct pq_exec;

struct pq_exec_ops {
    /* Fill exec->batch for the block at exec->position. */
    qf_rc (*next)(struct pq_exec *exec, struct qf_err *err);
    void (*close)(struct pq_exec *exec); /* may be NULL */
};

struct pq_exec {
    const struct pq_exec_ops *ops;
    struct pq_eval *eval;
    const struct pq_plan_node *plan;
    struct pq_exec **children;
    size_t child_count;
    uint64_t position; /* first step of the block being computed */
    struct pq_series_set set;
    struct pq_batch batch;
    struct qf_arena *scope; /* what lives as long as the batch: reset before every `next` */
    size_t capacity;        /* series the batch has room for, if the buffers are its own */
    uint64_t spent_ns;      /* in `next`, children included; if there is a clock */
    uint64_t blocks;
};

/* Constructors, one per kind of node; @size bytes zeroed behind the node. NULL: budget spent. */
struct pq_exec *pq_exec_new(struct pq_eval *eval, const struct pq_plan_node *plan,
                            const struct pq_exec_ops *ops, size_t size);

typedef struct pq_exec *pq_exec_make(struct pq_eval *eval, const struct pq_plan_node *plan);
pq_exec_make pq_node_number, pq_node_time, pq_node_empty, pq_node_leaf, pq_node_repeat,
    pq_node_function, pq_node_scalar_op, pq_node_binary, pq_node_set, pq_node_aggregate,
    pq_node_select, pq_node_count_values, pq_node_window, pq_node_absent, pq_node_label,
    pq_node_sort, pq_node_to_scalar, pq_node_to_vector, pq_node_timestamp, pq_node_buckets,
    pq_node_info;
/* Drops the names that are marked and joins series that thereby become one. */
struct pq_exec *pq_node_unname(struct pq_eval *eval, struct pq_exec *child);

/* The tree for a plan. NULL: budget spent. */
struct pq_exec *pq_exec_build(struct pq_eval *eval, const struct pq_plan_node *plan);
void pq_exec_close(struct pq_exec *exec);

/* Compute the next block; exec->batch.steps is 0 past the end. */
QF_MUST_CHECK qf_rc pq_exec_next(struct pq_exec *exec, struct qf_err *err);

/* Steps in the block at exec->position. */
size_t pq_exec_steps(const struct pq_exec *exec);
static inline int64_t pq_exec_time(const struct pq_exec *exec, size_t step)
{
    return pq_grid_time(&exec->plan->grid, exec->position + step);
}
/* The first @steps bits. */
static inline uint64_t pq_all_steps(size_t steps)
{
    return steps >= 64 ? UINT64_MAX : ((uint64_t)1 << steps) - 1;
}

/* Set up a batch of the node's own: room for all series of its set, nobody present. */
QF_MUST_CHECK qf_rc pq_exec_begin(struct pq_exec *exec, struct qf_err *err);
/* Use the child's batch as one's own, to change in place. */
void pq_exec_alias(struct pq_exec *exec, const struct pq_exec *child);

/* The value of series @s at step @k, and putting one there: it is present then. A histogram is
 * borrowed from a child or made in the node's scope (value.h). */
static inline struct pq_value pq_batch_value(const struct pq_batch *batch, size_t s, size_t k)
{
    return pq_value_at(batch->values, batch->histograms, s * batch->stride + k);
}
qf_rc pq_eval_no_memory(struct qf_err *err);
QF_MUST_CHECK static inline qf_rc pq_exec_put(struct pq_exec *exec, size_t s, size_t k,
                                              struct pq_value value, struct qf_err *err)
{
    struct pq_batch *batch = &exec->batch;

    if (!pq_value_put(exec->scope, batch->values, &batch->histograms,
                      batch->series_count * batch->stride, s * batch->stride + k, value))
        return pq_eval_no_memory(err);
    batch->present[s] |= (uint64_t)1 << k;
    return QF_OK;
}
/* Take all histograms out of a batch; true if there was any. @dropped is NULL or gets the steps that
 * each series had one at. */
bool pq_batch_drop_histograms(struct pq_batch *batch, uint64_t *dropped);
static inline const struct pq_histogram *pq_batch_histogram(const struct pq_batch *batch, size_t s,
                                                            size_t k)
{
    return pq_histogram_at(batch->histograms, s * batch->stride + k);
}

/* Add a series, labels borrowed. */
QF_MUST_CHECK qf_rc pq_exec_add(struct pq_exec *exec, struct qf_labels labels, bool drop,
                                struct qf_err *err);
/* Take over the series of @child that are new, same ids; marks them if the node drops names. */
QF_MUST_CHECK qf_rc pq_exec_mirror(struct pq_exec *exec, const struct pq_exec *child,
                                   struct qf_err *err);
static inline double *pq_row(const struct pq_batch *batch, size_t series)
{
    return batch->values + series * batch->stride;
}

/* What an aggregation's parameter was over all steps: Prometheus speaks of the extremes alone. */
struct pq_param_range {
    double min, max; /* without NaNs; 0 if there was no number */
    bool any, any_nan;
};
/* Add the values of the node's block; true after the last one. */
bool pq_param_range_add(struct pq_param_range *range, const struct pq_exec *exec,
                        const double *values);

/* A table from label sets to ids. */
struct pq_label_index {
    struct qf_map map;
    struct qf_strbuf key;
};
void pq_label_index_done(struct pq_label_index *index);
/* The id of @labels; a new one gets @next and *ret_new true. */
QF_MUST_CHECK qf_rc pq_label_index_put(struct pq_label_index *index, struct pq_eval *eval,
                                       struct qf_labels labels, uint32_t next, uint32_t *ret_id,
                                       bool *ret_new, struct qf_err *err);

/* An array in the evaluation's arena that grows by doubling. */
QF_MUST_CHECK bool pq_grow(struct qf_arena *arena, void *array_pointer, size_t *capacity,
                           size_t wanted, size_t size);
qf_rc pq_eval_canceled(struct qf_err *err);

#endif
