/* node_window.c - range functions over subqueries, and over raw samples when a parameter changes by
 * step. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/eval/matrix.h"
#include "promql/func/range.h"
#include "promql/leaf/values.h"

struct window {
    struct pq_exec exec;
    struct pq_matrix matrix;
    bool opened;
    double *scratch;
    size_t scratch_capacity;
};

/* The time the window of step @k ends at. */
static int64_t window_end(const struct pq_exec *exec, size_t k)
{
    const struct pq_plan_window *window = &exec->plan->window;

    return window->fixed ? window->fixed_ms : pq_exec_time(exec, k) - window->offset_ms;
}

static qf_rc update_series(struct window *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const uint8_t *drop;
    size_t count;
    const struct qf_labels *series = pq_matrix_series(&self->matrix, &count, &drop);
    qf_rc rc = QF_OK;

    for (size_t i = exec->set.count; i < count && rc == QF_OK; i++)
        rc = pq_exec_add(exec, series[i], (drop && drop[i]) || exec->plan->drops_names, err);
    return rc;
}

static qf_rc run_series(struct window *self, size_t s, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_queue *queue = &self->matrix.queues[s];
    pq_window_fn *kernel = pq_fn_range_kernel(exec->plan->function, PQ_WINDOW_PLAIN);
    struct pq_stage stage = { .function = exec->plan->function, .pos = exec->plan->child_pos[0] };
    struct qf_str name = qf_labels_get(exec->set.labels[s], QF_STR(QF_METRIC_NAME));
    unsigned flags = 0;

    for (size_t k = 0; k < exec->batch.steps; k++) {
        struct pq_window w = { .range_end = window_end(exec, k),
                               .eval_ts = pq_exec_time(exec, k),
                               .scratch = self->scratch,
                               .flags = &flags,
                               .poll = &exec->eval->poll };
        size_t first;
        qf_rc rc;

        w.range_start = w.range_end - exec->plan->window.range_ms;
        w.count = pq_fn_find_window(queue->ts + queue->first, queue->count, w.range_start,
                                    w.range_end, &first);
        if (w.count == 0)
            continue;
        if (pq_poll_work(w.poll, 1))
            return pq_eval_canceled(err);
        w.ts = queue->ts + queue->first + first;
        w.values = queue->values + queue->first + first;
        for (size_t i = 1; i < exec->child_count; i++)
            stage.params[i - 1] = w.params[i - 1] = exec->children[i]->batch.values[k];
        rc = pq_fn_range_params_check(stage.function, w.params, err);
        if (rc != QF_OK)
            return rc;
        if (!kernel(&w, &pq_row(&exec->batch, s)[k]))
            continue;
        exec->batch.present[s] |= (uint64_t)1 << k;
        pq_window_notes(&exec->eval->notes, &stage, name, flags);
    }
    return QF_OK;
}

static void open_matrix(struct window *self)
{
    struct pq_exec *exec = &self->exec;

    if (!self->opened)
        pq_matrix_init(&self->matrix, exec->eval, exec->children[0], exec->plan->children[0]->leaf);
    self->opened = true;
}

static qf_rc window_next(struct pq_exec *exec, struct qf_err *err)
{
    struct window *self = (struct window *)exec;
    size_t steps = pq_exec_steps(exec);
    qf_rc rc = QF_OK;

    open_matrix(self);
    for (size_t i = 1; i < exec->child_count && rc == QF_OK; i++)
        rc = pq_exec_next(exec->children[i], err);
    if (rc == QF_OK)
        rc = pq_matrix_read(&self->matrix, window_end(exec, steps - 1), err);
    if (rc == QF_OK)
        rc = update_series(self, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    if (rc != QF_OK)
        return rc;
    for (size_t s = 0; s < self->matrix.count; s++)
        if (self->matrix.queues[s].count > self->scratch_capacity) {
            self->scratch_capacity = self->matrix.queues[s].count * 2;
            self->scratch =
                qf_xrealloc(self->scratch, self->scratch_capacity * sizeof(*self->scratch));
        }
    for (size_t s = 0; s < self->matrix.count && rc == QF_OK; s++)
        if (self->matrix.queues[s].count > 0)
            rc = run_series(self, s, err);
    if (rc != QF_OK)
        return rc;
    if (!exec->plan->window.fixed)
        pq_matrix_forget(&self->matrix, window_end(exec, steps) - exec->plan->window.range_ms);
    return QF_OK;
}

static void window_close(struct pq_exec *exec)
{
    struct window *self = (struct window *)exec;

    pq_matrix_done(&self->matrix);
    free(self->scratch);
}

static const struct pq_exec_ops window_ops = { window_next, window_close };

struct pq_exec *pq_node_window(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &window_ops, sizeof(struct window));
}
