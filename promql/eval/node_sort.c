/* node_sort.c - sort, sort_desc, sort_by_label, sort_by_label_desc: the order of an instant query.
 */
#include "base/pure/alloc.h"
#include "promql/eval/sequence.h"
#include "promql/func/kernels.h"
#include "promql/func/texts.h"

struct sort {
    struct pq_exec exec;
    uint32_t *order;
    size_t capacity;
};

static qf_rc sort_step(struct sort *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    struct pq_batch *batch = &exec->batch;
    QF_CLEANUP(qf_freep)
    struct pq_order_item *items = qf_xcalloc(batch->series_count + 1, sizeof(*items));
    const struct pq_order order = { .compare = pq_kernels_of(exec->plan->function)->order,
                                    .names = exec->plan->strings,
                                    .name_count = exec->plan->string_count };
    size_t count = 0;

    if (!pq_grow(exec->eval->arena, &self->order, &self->capacity, batch->series_count,
                 sizeof(uint32_t)))
        return pq_eval_no_memory(err);
    for (size_t i = 0; i < pq_batch_length(batch); i++) {
        uint32_t s = pq_batch_at(batch, i);

        if (batch->present[s] & 1)
            items[count++] = (struct pq_order_item){ &order, exec->set.labels[s],
                                                     pq_row(batch, s)[0], s, (uint32_t)i };
    }
    pq_order_items(items, count);
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
    if (pq_function_get(exec->plan->function)->histograms == PQ_HISTOGRAMS_DROP)
        (void)pq_batch_drop_histograms(&exec->batch, NULL);
    if (params->start_ms != params->end_ms) {
        pq_note_sort_range(&exec->eval->notes, exec->plan->pos);
        return QF_OK;
    }
    return exec->plan->grid.count == 1 ? sort_step((struct sort *)exec, err) : QF_OK;
}

static const struct pq_exec_ops sort_ops = { sort_next, NULL };

struct pq_exec *pq_node_sort(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &sort_ops, sizeof(struct sort));
}
