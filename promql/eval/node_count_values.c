/* node_count_values.c - count_values: a series for every value met in a group. */
#include "promql/eval/groups.h"
#include "promql/eval/sequence.h"

struct count_values {
    struct pq_exec exec;
    struct pq_groups groups;
    struct pq_members members;
    struct pq_label_index index;
    struct qf_label *items; /* room for the labels of one series */
    size_t items_capacity;
    struct qf_strbuf text;
};

/* The series for a value of a group. */
static qf_rc find_series(struct count_values *self, uint32_t group, struct pq_value value,
                         uint32_t *ret_id, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    struct qf_labels labels = self->groups.labels[group], copy;
    bool fresh;
    qf_rc rc;

    if (!pq_grow(exec->eval->arena, &self->items, &self->items_capacity, labels.count + 1,
                 sizeof(*self->items)))
        return pq_eval_no_memory(err);
    qf_strbuf_reset(&self->text);
    labels =
        qf_labels_set_in(self->items, labels, exec->plan->label, pq_value_text(&self->text, value));
    rc = pq_label_index_put(&self->index, exec->eval, labels, (uint32_t)exec->set.count, ret_id,
                            &fresh, err);
    if (rc != QF_OK || !fresh)
        return rc;
    if (!qf_labels_copy(exec->eval->arena, labels, &copy))
        return pq_eval_no_memory(err);
    return pq_exec_add(exec, copy, self->groups.drop[group], err);
}

/* Calls @visit for every value. */
static qf_rc each_value(struct count_values *self, bool counting, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_batch *in = &exec->children[0]->batch;

    for (size_t i = 0; i < pq_batch_length(in); i++) {
        size_t s = pq_batch_at(in, i);

        for (uint64_t bits = in->present[s]; bits; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);
            uint32_t id;
            qf_rc rc =
                find_series(self, self->members.group_of[s], pq_batch_value(in, s, k), &id, err);

            if (rc != QF_OK)
                return rc;
            if (!counting)
                continue;
            if (!(exec->batch.present[id] >> k & 1))
                pq_row(&exec->batch, id)[k] = 0;
            exec->batch.present[id] |= (uint64_t)1 << k;
            pq_row(&exec->batch, id)[k]++;
        }
    }
    return QF_OK;
}

static qf_rc count_values_next(struct pq_exec *exec, struct qf_err *err)
{
    struct count_values *self = (struct count_values *)exec;
    qf_rc rc = pq_exec_next(exec->children[0], err);

    if (rc == QF_OK)
        rc = pq_groups_assign(&self->groups, exec->eval, exec->children[0], &self->members, err);
    /* First all series, then room for them, then the counts. */
    if (rc == QF_OK)
        rc = each_value(self, false, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    if (rc == QF_OK)
        rc = each_value(self, true, err);
    return rc;
}

static void count_values_close(struct pq_exec *exec)
{
    struct count_values *self = (struct count_values *)exec;

    pq_groups_done(&self->groups);
    pq_label_index_done(&self->index);
    qf_strbuf_done(&self->text);
}

static const struct pq_exec_ops count_values_ops = { count_values_next, count_values_close };

struct pq_exec *pq_node_count_values(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    struct count_values *self =
        (struct count_values *)pq_exec_new(eval, plan, &count_values_ops, sizeof(*self));

    if (!self ||
        !pq_groups_init(&self->groups, eval, plan->grouping, plan->grouping_count, plan->without))
        return NULL;
    return &self->exec;
}
