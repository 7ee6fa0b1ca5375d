/* node_absent.c - absent(), absent_over_time(): 1 where nothing is. */
#include "promql/eval/exec.h"

static qf_rc absent_next(struct pq_exec *exec, struct qf_err *err)
{
    const struct pq_batch *in = &exec->children[0]->batch;
    uint64_t any = 0;
    qf_rc rc = pq_exec_next(exec->children[0], err);

    if (rc == QF_OK && exec->set.count == 0)
        rc = pq_exec_add(exec, exec->plan->labels, false, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    if (rc != QF_OK)
        return rc;
    for (size_t s = 0; s < in->series_count; s++)
        any |= in->present[s];
    exec->batch.present[0] = ~any & pq_all_steps(exec->batch.steps);
    for (size_t k = 0; k < exec->batch.steps; k++)
        exec->batch.values[k] = 1;
    return QF_OK;
}

static const struct pq_exec_ops absent_ops = { absent_next, NULL };

struct pq_exec *pq_node_absent(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &absent_ops, sizeof(struct pq_exec));
}
