/* join.c - series that become one. */
#include "promql/eval/join.h"

void pq_join_done(struct pq_join *join)
{
    pq_label_index_done(&join->index);
}

qf_rc pq_join_add(struct pq_join *join, struct pq_exec *exec, struct qf_labels labels, bool drop,
                  struct qf_err *err)
{
    bool fresh;
    qf_rc rc;

    if (!pq_grow(exec->eval->arena, &join->out, &join->capacity, join->known + 1,
                 sizeof(*join->out)))
        return pq_eval_no_memory(err);
    rc = pq_label_index_put(&join->index, exec->eval, labels, (uint32_t)exec->set.count,
                            &join->out[join->known], &fresh, err);
    if (rc == QF_OK && fresh)
        rc = pq_exec_add(exec, labels, drop, err);
    join->moves |= !fresh;
    join->known++;
    return rc;
}

qf_rc pq_join_batch(struct pq_join *join, struct pq_exec *exec, const struct pq_exec *child,
                    struct qf_err *err)
{
    const struct pq_batch *in = &child->batch;
    qf_rc rc;

    if (!join->moves) { /* ids are the same */
        pq_exec_alias(exec, child);
        exec->capacity = 0;
        return QF_OK;
    }
    rc = pq_exec_begin(exec, err);
    if (rc != QF_OK)
        return rc;
    for (size_t s = 0; s < in->series_count; s++) {
        uint32_t out = join->out[s];

        if (exec->batch.present[out] & in->present[s])
            return qf_err_set(err, QF_EEXEC, PQ_SAME_LABELSET);
        for (uint64_t bits = in->present[s]; bits; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);

            rc = pq_exec_put(exec, out, k, pq_batch_value(in, s, k), err);
            if (rc != QF_OK)
                return rc;
        }
    }
    return pq_exec_is_ordered(exec)
               ? pq_sequence_map(&join->sequence, exec, child, join->out, NULL, err)
               : QF_OK;
}
