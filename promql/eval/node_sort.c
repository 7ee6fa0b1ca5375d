/* node_sort.c - sort, sort_desc, sort_by_label, sort_by_label_desc: the order of an instant query.
 */
#include <math.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/eval/exec.h"
#include "promql/func/texts.h"

struct sort {
    struct pq_exec exec;
    uint32_t *order;
    size_t capacity;
};

struct sorted {
    const struct pq_plan_node *plan;
    struct qf_labels labels;
    double value;
    uint32_t id;
};

/* NaN comes last both ways. */
static int by_value(const struct sorted *a, const struct sorted *b, bool descending)
{
    if (isnan(a->value) || isnan(b->value))
        return isnan(a->value) - isnan(b->value);
    if (a->value == b->value)
        return 0;
    return (a->value < b->value) != descending ? -1 : 1;
}

static int by_label(const struct sorted *a, const struct sorted *b)
{
    for (size_t i = 0; i < a->plan->string_count; i++) {
        struct qf_str name = a->plan->strings[i];
        struct qf_str x = qf_labels_get(a->labels, name), y = qf_labels_get(b->labels, name);
        int order = qf_str_eq(x, y) ? 0 : pq_label_natural_cmp(x, y);

        if (order)
            return order;
    }
    return qf_labels_cmp(a->labels, b->labels);
}

static int compare(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    int order = 0;

    switch (x->plan->function) {
    case PQ_FN_SORT:
    case PQ_FN_SORT_DESC:
        order = by_value(x, y, x->plan->function == PQ_FN_SORT_DESC);
        break;
    case PQ_FN_SORT_BY_LABEL:
        order = by_label(x, y);
        break;
    default:
        order = by_label(y, x);
        break;
    }
    /* A total order: equal elements keep that of their labels. */
    if (order == 0)
        order = qf_labels_cmp(x->labels, y->labels);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static qf_rc sort_step(struct sort *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    struct pq_batch *batch = &exec->batch;
    QF_CLEANUP(qf_freep)
    struct sorted *items = qf_xcalloc(batch->series_count + 1, sizeof(*items));
    size_t count = 0;

    if (!pq_grow(exec->eval->arena, &self->order, &self->capacity, batch->series_count,
                 sizeof(uint32_t)))
        return pq_eval_no_memory(err);
    for (size_t s = 0; s < batch->series_count; s++)
        if (batch->present[s] & 1)
            items[count++] = (struct sorted){ exec->plan, exec->set.labels[s], pq_row(batch, s)[0],
                                              (uint32_t)s };
    qsort(items, count, sizeof(*items), compare);
    for (size_t i = 0; i < count; i++)
        self->order[i] = items[i].id;
    batch->order = self->order;
    batch->order_count = count;
    return QF_OK;
}

static qf_rc sort_next(struct pq_exec *exec, struct qf_err *err)
{
    const struct pq_query_params *params = &exec->eval->plan->params;
    qf_rc rc = pq_exec_next(exec->children[0], err);

    if (rc == QF_OK)
        rc = pq_exec_mirror(exec, exec->children[0], err);
    if (rc != QF_OK)
        return rc;
    pq_exec_alias(exec, exec->children[0]);
    /* By value only floats can be sorted. */
    if (exec->plan->function == PQ_FN_SORT || exec->plan->function == PQ_FN_SORT_DESC)
        (void)pq_batch_drop_histograms(&exec->batch);
    if (params->start_ms != params->end_ms) {
        pq_note_sort_range(&exec->eval->notes, exec->plan->pos);
        return QF_OK;
    }
    return exec->plan->grid.count == 1 ? sort_step((struct sort *)exec, err) : QF_OK;
}

static const struct pq_exec_ops sort_ops = { sort_next, NULL, true };

struct pq_exec *pq_node_sort(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &sort_ops, sizeof(struct sort));
}
