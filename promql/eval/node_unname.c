/* node_unname.c - metric names go: in the end of a query, or behind every operation that drops
 * names, as delayed_name_removal says. */
#include "promql/eval/join.h"

struct unname {
    struct pq_exec exec;
    struct pq_join join;
};

static qf_rc unname_next(struct pq_exec *exec, struct qf_err *err)
{
    struct unname *self = (struct unname *)exec;
    const struct pq_series_set *in = &exec->children[0]->set;
    qf_rc rc = pq_exec_next(exec->children[0], err);

    while (rc == QF_OK && self->join.known < in->count) {
        struct qf_labels labels = in->labels[self->join.known];

        if (in->drop[self->join.known] && !pq_labels_unnamed(exec->eval->arena, labels, &labels))
            return pq_eval_no_memory(err);
        rc = pq_join_add(&self->join, exec, labels, false, err);
    }
    return rc == QF_OK ? pq_join_batch(&self->join, exec, exec->children[0], err) : rc;
}

static void unname_close(struct pq_exec *exec)
{
    pq_join_done(&((struct unname *)exec)->join);
}

static const struct pq_exec_ops unname_ops = { unname_next, unname_close };

struct pq_exec *pq_node_unname(struct pq_eval *eval, struct pq_exec *child)
{
    struct unname *self =
        (struct unname *)pq_exec_new(eval, child->plan, &unname_ops, sizeof(*self));

    if (!self)
        return NULL;
    self->exec.children = QF_ARENA_ARRAY(eval->arena, struct pq_exec *, 1);
    if (!self->exec.children)
        return NULL;
    self->exec.children[0] = child;
    self->exec.child_count = 1;
    return &self->exec;
}
