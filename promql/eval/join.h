/* join.h - series that become one: values move to where their new labels are.
 *
 * Two series of the same labels at the same step are an error. As long as no two have come together
 * the child's batch is used as it is. */
#ifndef PROMQL_EVAL_JOIN_H
#define PROMQL_EVAL_JOIN_H

#include "promql/eval/sequence.h"

struct pq_join {
    struct pq_label_index index;
    uint32_t *out; /* child's series -> own */
    size_t known, capacity;
    bool moves; /* some series share an output */
    struct pq_sequence sequence;
};

void pq_join_done(struct pq_join *join);
/* Say that the next series of the child, join->known, has @labels from now on. */
QF_MUST_CHECK qf_rc pq_join_add(struct pq_join *join, struct pq_exec *exec, struct qf_labels labels,
                                bool drop, struct qf_err *err);
/* Fill exec->batch from the child's. */
QF_MUST_CHECK qf_rc pq_join_batch(struct pq_join *join, struct pq_exec *exec,
                                  const struct pq_exec *child, struct qf_err *err);

#endif
