/* node_leaf.c - what a BaseExpr leaf answers. */
#include "promql/eval/exec.h"
#include "promql/partial/natives.h"

struct leaf {
    struct pq_exec exec;
    struct pq_merge *merge;
};

/* The name of what a leaf aggregates, as far as it has one. */
static struct qf_str metric_below(const struct pq_leaf *leaf)
{
    return pq_leaf_drops_names(leaf) ? QF_STR("") : pq_select_metric(&leaf->select);
}

static qf_rc leaf_next(struct pq_exec *exec, struct qf_err *err)
{
    struct leaf *self = (struct leaf *)exec;
    const struct pq_leaf *leaf = exec->plan->leaf;
    struct pq_merge_block block;
    size_t count;
    const struct qf_labels *series = pq_merge_series(self->merge, &count);
    qf_rc rc = QF_OK;

    for (size_t i = exec->set.count; i < count && rc == QF_OK; i++)
        rc = pq_exec_add(exec, series[i], exec->plan->drops_names, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    if (rc != QF_OK)
        return rc;
    block = (struct pq_merge_block){ .values = exec->batch.values,
                                     .present = exec->batch.present,
                                     .scope = exec->scope };
    rc = pq_merge_next(self->merge, exec->position, &block, err);
    exec->batch.histograms = block.histograms;
    pq_natives_notes(&exec->eval->notes, leaf->agg_pos, metric_below(leaf),
                     pq_merge_flags(self->merge));
    return rc;
}

static const struct pq_exec_ops leaf_ops = { leaf_next, NULL };

struct pq_exec *pq_node_leaf(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    struct leaf *self = (struct leaf *)pq_exec_new(eval, plan, &leaf_ops, sizeof(*self));

    if (!self)
        return NULL;
    self->merge = eval->merges[plan->leaf->id];
    pq_merge_share(self->merge);
    return &self->exec;
}
