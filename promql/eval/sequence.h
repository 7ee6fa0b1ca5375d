/* sequence.h - in which order an instant query lists its series.
 *
 * Prometheus sorts the answers of range queries alone. The series of an instant query stand in the
 * order in which its engine came upon them, and clients take the first one. Storage has them by
 * labels, names included; from there on each node keeps the order of its input, or has one of its own
 * (topk, sort), or lists groups as it meets them. Series ids are given in that order; where it takes
 * more than that, a node of one step lists the ids of its series in batch.order. */
#ifndef PROMQL_EVAL_SEQUENCE_H
#define PROMQL_EVAL_SEQUENCE_H

#include "promql/eval/exec.h"

/* One step, one order: longer grids are sorted by labels in the end. */
static inline bool pq_exec_is_ordered(const struct pq_exec *exec)
{
    return exec->plan->grid.count == 1;
}

/* Go through the series of a batch in their order: for i below the length, the series at place i. */
static inline size_t pq_batch_length(const struct pq_batch *batch)
{
    return batch->order ? batch->order_count : batch->series_count;
}
static inline uint32_t pq_batch_at(const struct pq_batch *batch, size_t i)
{
    return batch->order ? batch->order[i] : (uint32_t)i;
}

/* The list of a node's series while it is made. */
struct pq_sequence {
    uint32_t *ids;
    uint8_t *listed; /* per series */
    size_t count, ids_capacity, listed_capacity;
};

/* Begin a list of the series of @exec, whose batch is there. */
QF_MUST_CHECK qf_rc pq_sequence_begin(struct pq_sequence *sequence, const struct pq_exec *exec,
                                      struct qf_err *err);
/* Append a series that has a value, unless it is in the list. */
void pq_sequence_add(struct pq_sequence *sequence, const struct pq_exec *exec, uint32_t id);
/* Make it the order of the batch. */
void pq_sequence_end(const struct pq_sequence *sequence, struct pq_exec *exec);

/* The whole list: out[s] for each series s of @child's batch that has a value, or had one: @ignored is
 * NULL, or has the steps at which an aggregation ignored the histogram of a series. A group stands
 * where its first series is, ignored or not. */
QF_MUST_CHECK qf_rc pq_sequence_map(struct pq_sequence *sequence, struct pq_exec *exec,
                                    const struct pq_exec *child, const uint32_t *out,
                                    const uint64_t *ignored, struct qf_err *err);

#endif
