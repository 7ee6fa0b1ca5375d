/* node_label.c - label_replace() and label_join(). */
#include "promql/eval/join.h"
#include "promql/func/kernels.h"

struct label {
    struct pq_exec exec;
    struct pq_join join;
};

static qf_rc label_next(struct pq_exec *exec, struct qf_err *err)
{
    struct label *self = (struct label *)exec;
    const struct pq_series_set *in = &exec->children[0]->set;
    bool names = qf_str_is(exec->plan->label_call.strings[0], QF_METRIC_NAME);
    const struct pq_label_function *function = pq_kernels_of(exec->plan->function)->label;
    qf_rc rc = pq_exec_next(exec->children[0], err);

    while (rc == QF_OK && self->join.known < in->count) {
        size_t i = self->join.known;
        struct qf_labels labels = in->labels[i];
        bool drop = in->drop[i], given = false;

        rc = function->apply(&exec->plan->label_call, exec->eval->arena, in->labels[i], &labels,
                             &given, err);
        /* A name given anew is there to stay. */
        if (names && given)
            drop = false;
        if (rc == QF_OK)
            rc = pq_join_add(&self->join, exec, labels, drop, err);
    }
    return rc == QF_OK ? pq_join_batch(&self->join, exec, exec->children[0], err) : rc;
}

static void label_close(struct pq_exec *exec)
{
    pq_join_done(&((struct label *)exec)->join);
}

static const struct pq_exec_ops label_ops = { label_next, label_close };

struct pq_exec *pq_node_label(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &label_ops, sizeof(struct label));
}
