/* node_window.c - range functions over subqueries, and over raw samples when a parameter changes by
 * step. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/eval/matrix.h"
#include "promql/func/range.h"
#include "promql/histogram/window.h"
#include "promql/leaf/values.h"

struct window {
    struct pq_exec exec;
    struct pq_matrix matrix;
    bool opened;
    double *scratch;
    size_t scratch_capacity;
    struct qf_arena *step; /* what one window with histograms needs */
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

/* The parameters at step @k, which may be no good. */
static qf_rc take_params(const struct pq_exec *exec, size_t k, double *params, struct qf_err *err)
{
    for (size_t i = 1; i < exec->child_count; i++)
        params[i - 1] = exec->children[i]->batch.values[k];
    return pq_fn_range_params_check(exec->plan->function, params, err);
}

/* One window with native histograms in the queue, which may lie inside. */
static qf_rc run_mixed(struct window *self, size_t s, size_t k, const struct pq_window *floats,
                       size_t first, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    struct pq_native_window w = { .ts = floats->ts,
                                  .values = floats->values,
                                  .histograms = self->matrix.queues[s].histograms + first,
                                  .count = floats->count,
                                  .range_start = floats->range_start,
                                  .range_end = floats->range_end,
                                  .eval_ts = floats->eval_ts,
                                  .params = { floats->params[0], floats->params[1] },
                                  .order = floats->scratch,
                                  .scope = exec->scope,
                                  .scratch = self->step,
                                  .flags = floats->flags,
                                  .poll = floats->poll };
    struct pq_value value;

    qf_arena_reset(self->step);
    switch (pq_native_run(exec->plan->function, &w, &value)) {
    case PQ_NATIVE_VALUE:
        exec->batch.present[s] |= (uint64_t)1 << k;
        /* Samples are forgotten before the batch is. */
        if (!pq_value_copy(exec->scope, value, &value))
            return pq_eval_no_memory(err);
        return pq_exec_put(exec, (uint32_t)s, k, value, err);
    case PQ_NATIVE_NO_MEMORY:
        return pq_eval_no_memory(err);
    case PQ_NATIVE_NONE:
        break;
    }
    return QF_OK;
}

static qf_rc run_series(struct window *self, size_t s, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_queue *queue = &self->matrix.queues[s];
    pq_window_fn *kernel = pq_fn_range_kernel(exec->plan->function, PQ_WINDOW_PLAIN);
    struct pq_stage stage = { .kind = PQ_STAGE_WINDOW,
                              .function = exec->plan->function,
                              .pos = exec->plan->child_pos[0] };
    struct qf_str name = qf_labels_get(exec->set.labels[s], QF_STR(QF_METRIC_NAME));

    for (size_t k = 0; k < exec->batch.steps; k++) {
        unsigned flags = 0;
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
        first += queue->first;
        w.ts = queue->ts + first;
        w.values = queue->values + first;
        rc = take_params(exec, k, w.params, err);
        stage.params[0] = w.params[0];
        stage.params[1] = w.params[1];
        if (rc == QF_OK && queue->histogram_count > 0) {
            rc = run_mixed(self, s, k, &w, first, err);
        } else if (rc == QF_OK && kernel(&w, &pq_row(&exec->batch, s)[k])) {
            exec->batch.present[s] |= (uint64_t)1 << k;
            flags |= PQ_WINDOW_FLOATS;
        }
        if (rc != QF_OK)
            return rc;
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
    struct window *self = (struct window *)pq_exec_new(eval, plan, &window_ops, sizeof(*self));

    if (self)
        self->step = qf_arena_new_within(eval->arena);
    return self && self->step ? &self->exec : NULL;
}
