/* node_set.c - and, or, unless: whole series by match group, step by step. */
#include "promql/eval/groups.h"
#include "promql/eval/sequence.h"

struct set {
    struct pq_exec exec;
    struct pq_groups groups;
    struct pq_members members[2];
    uint64_t *there; /* per group: steps at which the deciding side has a series */
    size_t there_capacity;
    /* or: series of both sides by labels. */
    struct pq_label_index index;
    uint32_t *out[2];
    size_t out_known[2], out_capacity[2];
    struct pq_sequence sequence;
};

/* Where side @side has any series, by group. */
static qf_rc find_there(struct set *self, size_t side, struct qf_err *err)
{
    const struct pq_batch *batch = &self->exec.children[side]->batch;

    if (!pq_grow(self->exec.eval->arena, &self->there, &self->there_capacity, self->groups.count,
                 sizeof(uint64_t)))
        return pq_eval_no_memory(err);
    for (size_t g = 0; g < self->groups.count; g++)
        self->there[g] = 0;
    for (size_t s = 0; s < batch->series_count; s++)
        self->there[self->members[side].group_of[s]] |= batch->present[s];
    return QF_OK;
}

static qf_rc filter(struct set *self, bool keep, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    qf_rc rc = pq_exec_mirror(exec, exec->children[0], err);

    if (rc == QF_OK)
        rc = find_there(self, 1, err);
    if (rc != QF_OK)
        return rc;
    pq_exec_alias(exec, exec->children[0]);
    for (size_t s = 0; s < exec->batch.series_count; s++) {
        uint64_t there = self->there[self->members[0].group_of[s]];

        exec->batch.present[s] &= keep ? there : ~there;
    }
    return QF_OK;
}

/* Series of both sides with the same labels are one. */
static qf_rc join_series(struct set *self, size_t side, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_series_set *in = &exec->children[side]->set;

    if (!pq_grow(exec->eval->arena, &self->out[side], &self->out_capacity[side], in->count,
                 sizeof(uint32_t)))
        return pq_eval_no_memory(err);
    for (; self->out_known[side] < in->count; self->out_known[side]++) {
        size_t i = self->out_known[side];
        bool fresh;
        qf_rc rc = pq_label_index_put(&self->index, exec->eval, in->labels[i],
                                      (uint32_t)exec->set.count, &self->out[side][i], &fresh, err);

        if (rc == QF_OK && fresh)
            rc = pq_exec_add(exec, in->labels[i], in->drop[i], err);
        if (rc != QF_OK)
            return rc;
    }
    return QF_OK;
}

static qf_rc copy_side(struct set *self, size_t side, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_batch *in = &exec->children[side]->batch;

    for (size_t s = 0; s < in->series_count; s++) {
        uint64_t bits = in->present[s];
        uint32_t out = self->out[side][s];

        if (side == 1)
            bits &= ~self->there[self->members[1].group_of[s]];
        if (exec->batch.present[out] & bits)
            return qf_err_set(err, QF_EEXEC, PQ_SAME_LABELSET);
        for (; bits; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);
            qf_rc rc = pq_exec_put(exec, out, k, pq_batch_value(in, s, k), err);

            if (rc != QF_OK)
                return rc;
        }
    }
    return QF_OK;
}

/* All of the left side, then what the right one adds. */
static qf_rc list_sides(struct set *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    qf_rc rc = pq_sequence_begin(&self->sequence, exec, err);

    for (size_t side = 0; side < 2 && rc == QF_OK; side++) {
        const struct pq_batch *in = &exec->children[side]->batch;

        for (size_t i = 0; i < pq_batch_length(in); i++)
            if (in->present[pq_batch_at(in, i)] & 1)
                pq_sequence_add(&self->sequence, exec, self->out[side][pq_batch_at(in, i)]);
    }
    if (rc == QF_OK)
        pq_sequence_end(&self->sequence, exec);
    return rc;
}

static qf_rc unite(struct set *self, struct qf_err *err)
{
    qf_rc rc = join_series(self, 0, err);

    if (rc == QF_OK)
        rc = join_series(self, 1, err);
    if (rc == QF_OK)
        rc = find_there(self, 0, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(&self->exec, err);
    if (rc == QF_OK)
        rc = copy_side(self, 0, err);
    if (rc == QF_OK)
        rc = copy_side(self, 1, err);
    if (rc == QF_OK && pq_exec_is_ordered(&self->exec))
        rc = list_sides(self, err);
    return rc;
}

static qf_rc set_next(struct pq_exec *exec, struct qf_err *err)
{
    struct set *self = (struct set *)exec;

    for (size_t i = 0; i < 2; i++) {
        qf_rc rc = pq_exec_next(exec->children[i], err);

        if (rc == QF_OK)
            rc = pq_groups_assign(&self->groups, exec->eval, exec->children[i], &self->members[i],
                                  err);
        if (rc != QF_OK)
            return rc;
    }
    if (exec->plan->op == PQ_OP_OR)
        return unite(self, err);
    return filter(self, exec->plan->op == PQ_OP_AND, err);
}

static void set_close(struct pq_exec *exec)
{
    struct set *self = (struct set *)exec;

    pq_groups_done(&self->groups);
    pq_label_index_done(&self->index);
}

static const struct pq_exec_ops set_ops = { set_next, set_close };

struct pq_exec *pq_node_set(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    struct set *self = (struct set *)pq_exec_new(eval, plan, &set_ops, sizeof(*self));

    if (!self || !pq_groups_init(&self->groups, eval, plan->grouping, plan->grouping_count,
                                 !plan->matching->on))
        return NULL;
    return &self->exec;
}
