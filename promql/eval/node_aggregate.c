/* node_aggregate.c - sum, avg, count, min, max, group, stddev, stdvar and quantile over groups. */
#include <math.h>

#include "promql/eval/groups.h"
#include "promql/eval/sequence.h"
#include "promql/func/quantile.h"
#include "promql/func/texts.h"
#include "promql/partial/cells.h"
#include "promql/partial/natives.h"

struct aggregate {
    struct pq_exec exec;
    struct pq_groups groups;
    struct pq_members members;
    const struct pq_aggregation *agg;
    struct pq_cells *cells; /* per group */
    size_t cells_count, cells_capacity;
    /* quantile: the values of one group and step. */
    double *values;
    size_t values_capacity;
    uint32_t *gathered; /* child's series, group by group */
    size_t gathered_capacity;
    size_t *group_end;
    size_t group_end_capacity;
    struct pq_param_range params;
    struct pq_sequence sequence;
    uint64_t *ignored; /* per series of the child: steps with a histogram that was left out */
    size_t ignored_capacity;
};

static qf_rc update_groups(struct aggregate *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    qf_rc rc = pq_groups_assign(&self->groups, exec->eval, exec->children[0], &self->members, err);

    for (size_t g = exec->set.count; g < self->groups.count && rc == QF_OK; g++)
        rc = pq_exec_add(exec, self->groups.labels[g], false, err);
    for (size_t g = 0; g < exec->set.count; g++)
        exec->set.drop[g] = self->groups.drop[g];
    return rc;
}

static void expand(uint64_t bits, size_t steps, uint8_t *present)
{
    for (size_t k = 0; k < steps; k++)
        present[k] = bits >> k & 1;
}

static qf_rc clear_cells(struct aggregate *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;

    if (!pq_grow(exec->eval->arena, &self->cells, &self->cells_capacity, exec->set.count,
                 sizeof(*self->cells)))
        return pq_eval_no_memory(err);
    for (; self->cells_count < exec->set.count; self->cells_count++)
        if (!pq_cells_init(&self->cells[self->cells_count], self->agg, exec->eval->arena,
                           exec->batch.stride, NULL))
            return pq_eval_no_memory(err);
    for (size_t g = 0; g < exec->set.count; g++)
        pq_cells_clear(&self->cells[g], self->agg, exec->batch.stride);
    return QF_OK;
}

/* The steps at which a series has a float; histograms go to the totals of its group. */
static qf_rc take_natives(struct aggregate *self, struct pq_natives *natives, size_t s,
                          uint64_t *ret_floats, struct qf_err *err)
{
    const struct pq_batch *in = &self->exec.children[0]->batch;
    size_t group = self->members.group_of[s];

    *ret_floats = in->present[s];
    if (!in->histograms || self->agg->histograms != PQ_HISTOGRAMS_EITHER)
        return QF_OK;
    for (uint64_t bits = in->present[s]; bits; bits &= bits - 1) {
        size_t k = (size_t)__builtin_ctzll(bits);
        const struct pq_histogram *h = pq_batch_histogram(in, s, k);

        if (!h)
            continue;
        *ret_floats &= ~(bits & -bits);
        if (!pq_natives_add(natives, group * self->exec.batch.stride + k, h))
            return pq_eval_no_memory(err);
    }
    return QF_OK;
}

/* The histograms of all groups; a step with floats as well has no value. */
/* The name that all series have; nothing if they differ. */
static struct qf_str common_metric(const struct pq_series_set *set)
{
    struct qf_str name = QF_STR("");

    for (size_t i = 0; i < set->count; i++) {
        struct qf_str other = qf_labels_get(set->labels[i], QF_STR(QF_METRIC_NAME));

        if (i > 0 && !qf_str_eq(name, other))
            return QF_STR("");
        name = other;
    }
    return name;
}

static qf_rc put_natives(struct aggregate *self, struct pq_natives *natives, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    unsigned flags = 0;

    for (size_t g = 0; natives->totals && g < exec->set.count; g++)
        for (size_t k = 0; k < exec->batch.steps; k++) {
            size_t cell = g * exec->batch.stride + k;
            uint64_t bit = (uint64_t)1 << k;
            struct pq_value value = { 0 };
            qf_rc rc;

            if (!pq_natives_has(natives, cell))
                continue;
            if (!pq_natives_value(natives, cell, exec->batch.present[g] & bit, exec->scope, &flags,
                                  &value.histogram))
                return pq_eval_no_memory(err);
            exec->batch.present[g] &= ~bit;
            rc = value.histogram ? pq_exec_put(exec, g, k, value, err) : QF_OK;
            if (rc != QF_OK)
                return rc;
        }
    if (flags)
        pq_natives_notes(&exec->eval->notes, exec->plan->child_pos[0],
                         common_metric(&exec->children[0]->set), flags);
    return QF_OK;
}

static qf_rc accumulate(struct aggregate *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_batch *in = &exec->children[0]->batch;
    size_t steps = exec->batch.steps;
    uint8_t present[PQ_BLOCK];
    struct pq_natives natives =
        pq_natives_of(exec->scope, self->agg, exec->set.count * exec->batch.stride);
    qf_rc rc = clear_cells(self, err);

    if (rc != QF_OK)
        return rc;
    for (size_t s = 0; s < in->series_count; s++) {
        uint64_t floats;

        if (!in->present[s])
            continue;
        rc = take_natives(self, &natives, s, &floats, err);
        if (rc != QF_OK)
            return rc;
        expand(floats, steps, present);
        pq_cells_add(&self->cells[self->members.group_of[s]], self->agg, pq_row(in, s), present,
                     steps, &exec->eval->poll);
        exec->batch.present[self->members.group_of[s]] |= floats;
    }
    for (size_t g = 0; g < exec->set.count; g++)
        for (uint64_t bits = exec->batch.present[g]; bits; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);

            pq_row(&exec->batch, g)[k] = pq_cells_value(&self->cells[g], self->agg, k);
        }
    return put_natives(self, &natives, err);
}

/* The series of each group beside each other. */
static qf_rc gather_members(struct aggregate *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    struct qf_arena *arena = exec->eval->arena;
    size_t groups = exec->set.count, total = 0;

    if (!pq_grow(arena, &self->gathered, &self->gathered_capacity, self->members.known,
                 sizeof(uint32_t)) ||
        !pq_grow(arena, &self->values, &self->values_capacity, self->members.known,
                 sizeof(double)) ||
        !pq_grow(arena, &self->group_end, &self->group_end_capacity, groups, sizeof(size_t)))
        return pq_eval_no_memory(err);
    for (size_t g = 0; g < groups; g++)
        self->group_end[g] = 0;
    for (size_t s = 0; s < self->members.known; s++)
        self->group_end[self->members.group_of[s]]++;
    for (size_t g = 0; g < groups; g++) {
        size_t size = self->group_end[g];

        self->group_end[g] = total;
        total += size;
    }
    for (size_t s = 0; s < self->members.known; s++)
        self->gathered[self->group_end[self->members.group_of[s]]++] = (uint32_t)s;
    return QF_OK;
}

static qf_rc quantiles(struct aggregate *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_batch *in = &exec->children[0]->batch;
    const double *q = exec->children[1]->batch.values;
    qf_rc rc = gather_members(self, err);
    size_t begin = 0;

    if (rc != QF_OK)
        return rc;
    if (pq_param_range_add(&self->params, exec, q)) {
        struct pq_pos pos = exec->plan->child_pos[1];

        if (self->params.any_nan)
            pq_note_quantile(&exec->eval->notes, pos, NAN);
        if (!self->params.any_nan && self->params.max > 1)
            pq_note_quantile(&exec->eval->notes, pos, self->params.max);
        if (!self->params.any_nan && self->params.min < 0)
            pq_note_quantile(&exec->eval->notes, pos, self->params.min);
    }
    for (size_t g = 0; g < exec->set.count; begin = self->group_end[g++])
        for (size_t k = 0; k < exec->batch.steps; k++) {
            size_t count = 0;

            for (size_t i = begin; i < self->group_end[g]; i++) {
                uint32_t s = self->gathered[i];

                if (in->present[s] >> k & 1)
                    self->values[count++] = pq_row(in, s)[k];
            }
            if (count == 0)
                continue;
            exec->batch.present[g] |= (uint64_t)1 << k;
            pq_row(&exec->batch, g)[k] =
                pq_fn_quantile(q[k], self->values, count, &exec->eval->poll);
        }
    return QF_OK;
}

/* Some leave histograms out; their series count for the order of groups all the same. */
static qf_rc sort_out_histograms(struct aggregate *self, bool *ret_any, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    struct pq_batch *in = &exec->children[0]->batch;

    *ret_any = false;
    if (!in->histograms || self->agg->histograms != PQ_HISTOGRAMS_IGNORE)
        return QF_OK;
    if (!pq_grow(exec->eval->arena, &self->ignored, &self->ignored_capacity, in->series_count,
                 sizeof(*self->ignored)))
        return pq_eval_no_memory(err);
    *ret_any = pq_batch_drop_histograms(in, self->ignored);
    if (*ret_any)
        pq_note_histogram_ignored_agg(&exec->eval->notes, exec->plan->child_pos[0],
                                      pq_agg_text(self->agg->id));
    return QF_OK;
}

static qf_rc aggregate_next(struct pq_exec *exec, struct qf_err *err)
{
    struct aggregate *self = (struct aggregate *)exec;
    bool any_ignored = false;
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < exec->child_count && rc == QF_OK; i++)
        rc = pq_exec_next(exec->children[i], err);
    if (rc == QF_OK)
        rc = sort_out_histograms(self, &any_ignored, err);
    if (rc == QF_OK)
        rc = update_groups(self, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    if (rc != QF_OK)
        return rc;
    rc = self->agg->kind ? accumulate(self, err) : quantiles(self, err);
    if (rc == QF_OK && pq_exec_is_ordered(exec))
        rc = pq_sequence_map(&self->sequence, exec, exec->children[0], self->members.group_of,
                             any_ignored ? self->ignored : NULL, err);
    return rc;
}

static void aggregate_close(struct pq_exec *exec)
{
    pq_groups_done(&((struct aggregate *)exec)->groups);
}

static const struct pq_exec_ops aggregate_ops = { aggregate_next, aggregate_close };

struct pq_exec *pq_node_aggregate(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    struct aggregate *self =
        (struct aggregate *)pq_exec_new(eval, plan, &aggregate_ops, sizeof(*self));

    if (!self ||
        !pq_groups_init(&self->groups, eval, plan->grouping, plan->grouping_count, plan->without))
        return NULL;
    self->agg = pq_aggregation_get(plan->agg);
    return &self->exec;
}
