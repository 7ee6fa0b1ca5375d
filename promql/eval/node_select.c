/* node_select.c - topk, bottomk, limitk, limit_ratio: series of the input, unchanged. */
#include <math.h>

#include "base/pure/number.h"
#include "promql/eval/groups.h"
#include "promql/eval/sequence.h"
#include "promql/func/texts.h"
#include "promql/partial/partial.h"
#include "promql/partial/topk.h"

struct select {
    struct pq_exec exec;
    const struct pq_aggregation *agg;
    struct pq_groups groups;
    struct pq_members members;
    struct pq_topk *heaps; /* per group */
    size_t heaps_capacity;
    struct pq_topk_item *items; /* as many as series */
    size_t items_capacity;
    size_t *sizes; /* series per group */
    size_t sizes_capacity;
    uint32_t *order, *met; /* series as listed; groups as met */
    size_t order_capacity, met_capacity;
    uint8_t *is_met; /* per group */
    size_t is_met_capacity;
    uint64_t *left_out; /* per series: steps at which it has a value that nobody chooses from */
    size_t left_out_capacity;
    double *hashes; /* limit_ratio: hash / 2^64 per series */
    size_t hashed, hashes_capacity;
    struct pq_param_range ratios;
};

/* The parameter of one step as Prometheus checks it; negative ones choose nothing. */
static qf_rc check_k(double k, size_t *ret_k, struct qf_err *err)
{
    char text[QF_DOUBLE_TEXT_MAX];

    if (isnan(k))
        return qf_err_set(err, QF_EEXEC, "Parameter value is NaN");
    if (k >= 9223372036854775808.0) {
        (void)qf_double_g(k, text);
        return qf_err_set(err, QF_EEXEC, "Scalar value %s overflows int64", text);
    }
    *ret_k = k < 1 ? 0 : (size_t)k;
    return QF_OK;
}

static qf_rc make_heaps(struct select *self, struct qf_err *err)
{
    struct qf_arena *arena = self->exec.eval->arena;
    size_t groups = self->groups.count, used = 0;

    if (!pq_grow(arena, &self->heaps, &self->heaps_capacity, groups, sizeof(*self->heaps)) ||
        !pq_grow(arena, &self->sizes, &self->sizes_capacity, groups, sizeof(*self->sizes)) ||
        !pq_grow(arena, &self->items, &self->items_capacity, self->members.known,
                 sizeof(*self->items)) ||
        !pq_grow(arena, &self->order, &self->order_capacity, self->members.known,
                 sizeof(*self->order)) ||
        !pq_grow(arena, &self->met, &self->met_capacity, groups, sizeof(*self->met)) ||
        !pq_grow(arena, &self->is_met, &self->is_met_capacity, groups, 1))
        return pq_eval_no_memory(err);
    for (size_t g = 0; g < groups; g++)
        self->sizes[g] = 0;
    for (size_t s = 0; s < self->members.known; s++)
        self->sizes[self->members.group_of[s]]++;
    for (size_t g = 0; g < groups; g++) {
        self->heaps[g].prefers = self->agg->prefers;
        self->heaps[g].items = self->items + used;
        used += self->sizes[g];
    }
    return QF_OK;
}

/* What the heap compares: a histogram is no better than zero. */
static double value_at(const struct pq_batch *batch, size_t s, size_t step)
{
    return pq_batch_histogram(batch, s, step) ? 0 : pq_row(batch, s)[step];
}

/* Offer the values of step @step to the heaps of their groups, in the order of the series; returns how
 * many groups were met. What is left out before is not offered, but its group was met. */
static size_t offer_step(struct select *self, size_t step, size_t k)
{
    struct pq_batch *batch = &self->exec.batch;
    uint64_t bit = (uint64_t)1 << step;
    size_t met = 0;

    for (size_t g = 0; g < self->groups.count; g++) {
        self->heaps[g].count = 0;
        self->heaps[g].k = QF_MIN(k, self->sizes[g]);
        self->is_met[g] = 0;
    }
    for (size_t i = 0; i < pq_batch_length(batch); i++) {
        uint32_t s = pq_batch_at(batch, i), g = self->members.group_of[s];

        if (!((batch->present[s] | self->left_out[s]) & bit))
            continue;
        if (!self->is_met[g])
            self->met[met++] = g;
        self->is_met[g] = 1;
        if (batch->present[s] & bit)
            (void)pq_topk_offer(&self->heaps[g], value_at(batch, s, step), s);
    }
    return met;
}

/* The best k of every group at step @step; the rest loses its value there. */
static void select_step(struct select *self, size_t step, size_t k)
{
    struct pq_exec *exec = &self->exec;
    struct pq_batch *batch = &exec->batch;
    uint64_t bit = (uint64_t)1 << step;
    size_t ordered = 0, met = offer_step(self, step, k);

    for (size_t s = 0; s < batch->series_count; s++)
        batch->present[s] &= ~bit;
    for (size_t m = 0; m < met; m++) {
        struct pq_topk *heap = &self->heaps[self->met[m]];

        if (pq_exec_is_ordered(exec))
            pq_topk_sort(heap);
        for (size_t i = 0; i < heap->count; i++) {
            batch->present[heap->items[i].id] |= bit;
            self->order[ordered++] = heap->items[i].id;
        }
    }
    if (pq_exec_is_ordered(exec)) {
        batch->order = self->order;
        batch->order_count = ordered;
    }
}

static qf_rc select_best(struct select *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const double *params = exec->children[1]->batch.values;
    qf_rc rc = make_heaps(self, err);

    for (size_t step = 0; step < exec->batch.steps && rc == QF_OK; step++) {
        size_t k = 0;

        rc = check_k(params[step], &k, err);
        if (rc == QF_OK)
            select_step(self, step, k);
    }
    return rc;
}

/* A series is in for a ratio r >= 0 if its hash lies below r, and for r < 0 if it lies in the top
 * part of size -r: both halves of a cut. */
static qf_rc select_ratio(struct select *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const double *ratios = exec->children[1]->batch.values;
    struct pq_pos pos = exec->plan->child_pos[1];

    if (pq_param_range_add(&self->ratios, exec, ratios)) {
        if (self->ratios.max > 1)
            pq_note_ratio(&exec->eval->notes, pos, self->ratios.max);
        if (self->ratios.min < -1)
            pq_note_ratio(&exec->eval->notes, pos, self->ratios.min);
    }
    if (!pq_grow(exec->eval->arena, &self->hashes, &self->hashes_capacity, exec->set.count,
                 sizeof(double)))
        return pq_eval_no_memory(err);
    for (; self->hashed < exec->set.count; self->hashed++)
        self->hashes[self->hashed] =
            (double)qf_labels_prom_hash(exec->set.labels[self->hashed]) / 18446744073709551615.0;
    for (size_t k = 0; k < exec->batch.steps; k++) {
        double ratio = ratios[k];

        if (isnan(ratio))
            return qf_err_set(err, QF_EEXEC, "Ratio value is NaN");
        ratio = fmin(fmax(ratio, -1), 1);
        for (size_t s = 0; s < exec->batch.series_count; s++) {
            double hash = self->hashes[s];
            bool in = ratio >= 0 ? hash < ratio || ratio >= 1 : hash >= 1 + ratio;
            uint64_t out = in && ratio != 0 ? 0 : exec->batch.present[s] & (uint64_t)1 << k;

            exec->batch.present[s] &= ~out;
            self->left_out[s] |= out;
        }
    }
    return QF_OK;
}

/* limit_ratio lists what it keeps as limitk does. */
static qf_rc list_ratio(struct select *self, struct qf_err *err)
{
    qf_rc rc = make_heaps(self, err);

    if (rc == QF_OK)
        select_step(self, 0, SIZE_MAX);
    return rc;
}

/* topk and bottomk leave histograms out. */
static qf_rc sort_out_histograms(struct select *self, bool *ret_any, struct qf_err *err)
{
    struct pq_batch *batch = &self->exec.batch;

    if (!pq_grow(self->exec.eval->arena, &self->left_out, &self->left_out_capacity,
                 batch->series_count, sizeof(*self->left_out)))
        return pq_eval_no_memory(err);
    *ret_any = false;
    if (self->agg->histograms == PQ_HISTOGRAMS_IGNORE)
        *ret_any = pq_batch_drop_histograms(batch, self->left_out);
    else if (batch->series_count)
        memset(self->left_out, 0, batch->series_count * sizeof(*self->left_out));
    return QF_OK;
}

/* Is there a step that asks for one series at least? */
static bool selects_any(const struct pq_exec *exec)
{
    for (size_t k = 0; k < exec->batch.steps; k++)
        if (exec->children[1]->batch.values[k] >= 1)
            return true;
    return false;
}

static qf_rc select_next(struct pq_exec *exec, struct qf_err *err)
{
    struct select *self = (struct select *)exec;
    bool any_ignored;
    qf_rc rc = pq_exec_next(exec->children[0], err);

    if (rc == QF_OK)
        rc = pq_exec_next(exec->children[1], err);
    if (rc == QF_OK)
        rc = pq_exec_mirror(exec, exec->children[0], err);
    if (rc == QF_OK)
        rc = pq_groups_assign(&self->groups, exec->eval, exec->children[0], &self->members, err);
    if (rc != QF_OK)
        return rc;
    pq_exec_alias(exec, exec->children[0]);
    rc = sort_out_histograms(self, &any_ignored, err);
    if (rc != QF_OK)
        return rc;
    if (any_ignored && selects_any(exec))
        pq_note_histogram_ignored_agg(&exec->eval->notes, exec->plan->pos,
                                      pq_agg_text(self->agg->id));
    if (self->agg->kind)
        return select_best(self, err);
    rc = select_ratio(self, err);
    return rc == QF_OK && pq_exec_is_ordered(exec) ? list_ratio(self, err) : rc;
}

static void select_close(struct pq_exec *exec)
{
    pq_groups_done(&((struct select *)exec)->groups);
}

static const struct pq_exec_ops select_ops = { select_next, select_close };

struct pq_exec *pq_node_select(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    struct select *self = (struct select *)pq_exec_new(eval, plan, &select_ops, sizeof(*self));

    if (!self ||
        !pq_groups_init(&self->groups, eval, plan->grouping, plan->grouping_count, plan->without))
        return NULL;
    self->agg = pq_aggregation_get(plan->agg);
    return &self->exec;
}
