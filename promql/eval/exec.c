/* exec.c - what all ExecNodes share. */
#include "promql/eval/exec.h"

#include <assert.h>
#include <math.h>

#include "promql/func/histogram.h"

static pq_exec_make *const makers[PQ_PLAN__COUNT] = {
    [PQ_PLAN_NUMBER] = pq_node_number,
    [PQ_PLAN_EMPTY] = pq_node_empty,
    [PQ_PLAN_LEAF] = pq_node_leaf,
    [PQ_PLAN_REPEAT] = pq_node_repeat,
    [PQ_PLAN_TIME] = pq_node_time,
    [PQ_PLAN_FUNCTION] = pq_node_function,
    [PQ_PLAN_SCALAR_OP] = pq_node_scalar_op,
    [PQ_PLAN_BINARY] = pq_node_binary,
    [PQ_PLAN_SET] = pq_node_set,
    [PQ_PLAN_AGGREGATE] = pq_node_aggregate,
    [PQ_PLAN_SELECT] = pq_node_select,
    [PQ_PLAN_COUNT_VALUES] = pq_node_count_values,
    [PQ_PLAN_WINDOW] = pq_node_window,
    [PQ_PLAN_ABSENT] = pq_node_absent,
    [PQ_PLAN_LABEL] = pq_node_label,
    [PQ_PLAN_SORT] = pq_node_sort,
    [PQ_PLAN_TO_SCALAR] = pq_node_to_scalar,
    [PQ_PLAN_TO_VECTOR] = pq_node_to_vector,
    [PQ_PLAN_TIMESTAMP] = pq_node_timestamp,
    [PQ_PLAN_BUCKETS] = pq_node_buckets,
    [PQ_PLAN_INFO] = pq_node_info,
};

struct pq_exec *pq_exec_build(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    struct pq_exec *exec = makers[plan->kind](eval, plan);

    if (!exec)
        return NULL;
    exec->child_count = 0;
    exec->children = QF_ARENA_ARRAY(eval->arena, struct pq_exec *, plan->child_count);
    if (!exec->children)
        return NULL;
    for (size_t i = 0; i < plan->child_count; i++) {
        /* A window over raw samples reads its leaf by itself. */
        if (plan->kind == PQ_PLAN_WINDOW && plan->children[i]->kind == PQ_PLAN_LEAF &&
            plan->children[i]->leaf->kind == &pq_leaf_samples)
            continue;
        exec->children[i] = pq_exec_build(eval, plan->children[i]);
        if (!exec->children[i])
            return NULL;
    }
    exec->child_count = plan->child_count;
    if (plan->drops_names && !eval->plan->params.delayed_name_removal)
        return pq_node_unname(eval, exec);
    return exec;
}

struct pq_exec *pq_exec_new(struct pq_eval *eval, const struct pq_plan_node *plan,
                            const struct pq_exec_ops *ops, size_t size)
{
    struct pq_exec *exec = qf_arena_calloc(eval->arena, 1, size);

    if (!exec)
        return NULL;
    exec->ops = ops;
    exec->eval = eval;
    exec->plan = plan;
    exec->scope = qf_arena_new_within(eval->arena);
    return exec->scope ? exec : NULL;
}

void pq_exec_close(struct pq_exec *exec)
{
    if (!exec)
        return;
    for (size_t i = 0; i < exec->child_count; i++)
        pq_exec_close(exec->children[i]);
    if (exec->ops->close)
        exec->ops->close(exec);
}

size_t pq_exec_steps(const struct pq_exec *exec)
{
    uint64_t left = exec->plan->grid.count - exec->position;

    return (size_t)QF_MIN(left, (uint64_t)PQ_BLOCK);
}

/* `next`, with a look at the clock before and after it, if there is one. */
static qf_rc compute(struct pq_exec *exec, struct qf_err *err)
{
    int64_t (*clock_ns)(void) = exec->eval->options.clock_ns;
    int64_t begun = clock_ns ? clock_ns() : 0;
    qf_rc rc = exec->ops->next(exec, err);

    if (clock_ns)
        exec->spent_ns += (uint64_t)(clock_ns() - begun);
    exec->blocks++;
    return rc;
}

qf_rc pq_exec_next(struct pq_exec *exec, struct qf_err *err)
{
    qf_rc rc;

    exec->position += exec->batch.steps;
    exec->batch.steps = 0;
    exec->batch.histograms = NULL;
    qf_arena_reset(exec->scope);
    if (exec->position >= exec->plan->grid.count)
        return QF_OK;
    if (pq_poll_look(&exec->eval->poll))
        return pq_eval_canceled(err);
    rc = compute(exec, err);
    if (rc != QF_OK)
        return rc;
    if (exec->eval->poll.stopped)
        return pq_eval_canceled(err);
    assert(exec->batch.steps == pq_exec_steps(exec));
    return QF_OK;
}

qf_rc pq_eval_canceled(struct qf_err *err)
{
    return qf_err_set(err, QF_ECANCELED, "query was canceled in query execution");
}

qf_rc pq_eval_no_memory(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "the query needs more memory than its limit");
}

bool pq_grow(struct qf_arena *arena, void *array_pointer, size_t *capacity, size_t wanted,
             size_t size)
{
    void **array = array_pointer;
    size_t room = QF_MAX(*capacity * 2, (size_t)8);
    void *grown;

    if (wanted <= *capacity)
        return true;
    room = QF_MAX(room, wanted);
    grown = qf_arena_grow(arena, *array, *capacity, room, size);
    if (!grown)
        return false;
    *array = grown;
    *capacity = room;
    return true;
}

qf_rc pq_exec_begin(struct pq_exec *exec, struct qf_err *err)
{
    struct pq_batch *batch = &exec->batch;
    size_t stride = (size_t)QF_MIN(exec->plan->grid.count, (uint64_t)PQ_BLOCK);
    size_t count = exec->set.count;

    if (count > exec->capacity) {
        size_t capacity = QF_MAX(count, exec->capacity * 2);

        batch->values = QF_ARENA_ARRAY(exec->eval->arena, double, capacity *stride);
        batch->present = QF_ARENA_ARRAY(exec->eval->arena, uint64_t, capacity);
        if (!batch->values || !batch->present)
            return pq_eval_no_memory(err);
        exec->capacity = capacity;
    }
    batch->steps = pq_exec_steps(exec);
    batch->stride = stride;
    batch->series_count = count;
    batch->order = NULL;
    batch->histograms = NULL;
    if (count)
        memset(batch->present, 0, count * sizeof(*batch->present));
    return QF_OK;
}

bool pq_batch_drop_histograms(struct pq_batch *batch, uint64_t *dropped)
{
    bool any = false;

    for (size_t s = 0; dropped && s < batch->series_count; s++)
        dropped[s] = 0;
    for (size_t s = 0; batch->histograms && s < batch->series_count; s++)
        for (uint64_t bits = batch->present[s]; bits; bits &= bits - 1) {
            if (!batch->histograms[s * batch->stride + (size_t)__builtin_ctzll(bits)])
                continue;
            batch->present[s] &= ~(bits & -bits);
            if (dropped)
                dropped[s] |= bits & -bits;
            any = true;
        }
    batch->histograms = NULL;
    return any;
}

void pq_exec_alias(struct pq_exec *exec, const struct pq_exec *child)
{
    exec->batch = child->batch;
}

qf_rc pq_exec_add(struct pq_exec *exec, struct qf_labels labels, bool drop, struct qf_err *err)
{
    struct pq_series_set *set = &exec->set;
    size_t capacity = set->capacity;
    uint64_t limit = exec->eval->plan->params.series_max;

    if (limit && set->count >= limit)
        return qf_err_set(err, QF_ELIMIT, "the query has more than %llu series",
                          (unsigned long long)limit);
    if (!pq_grow(exec->eval->arena, &set->labels, &capacity, set->count + 1,
                 sizeof(*set->labels)) ||
        !pq_grow(exec->eval->arena, &set->drop, &set->capacity, set->count + 1, 1))
        return pq_eval_no_memory(err);
    set->labels[set->count] = labels;
    set->drop[set->count++] = drop;
    return QF_OK;
}

qf_rc pq_exec_mirror(struct pq_exec *exec, const struct pq_exec *child, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    for (size_t i = exec->set.count; i < child->set.count && rc == QF_OK; i++)
        rc = pq_exec_add(exec, child->set.labels[i], child->set.drop[i] || exec->plan->drops_names,
                         err);
    return rc;
}

bool pq_param_range_add(struct pq_param_range *range, const struct pq_exec *exec,
                        const double *values)
{
    for (size_t k = 0; k < exec->batch.steps; k++) {
        double value = values[k];

        if (isnan(value)) {
            range->any_nan = true;
            continue;
        }
        range->min = range->any ? fmin(range->min, value) : value;
        range->max = range->any ? fmax(range->max, value) : value;
        range->any = true;
    }
    return exec->position + exec->batch.steps >= exec->plan->grid.count;
}

void pq_label_index_done(struct pq_label_index *index)
{
    qf_map_done(&index->map);
    qf_strbuf_done(&index->key);
}

qf_rc pq_label_index_put(struct pq_label_index *index, struct pq_eval *eval,
                         struct qf_labels labels, uint32_t next, uint32_t *ret_id, bool *ret_new,
                         struct qf_err *err)
{
    uint64_t *found;
    struct qf_str key;

    qf_strbuf_reset(&index->key);
    qf_labels_encode(&index->key, labels);
    found = qf_map_get(&index->map, qf_strbuf_view(&index->key));
    *ret_new = !found;
    if (found) {
        *ret_id = (uint32_t)*found;
        return QF_OK;
    }
    key = qf_arena_str(eval->arena, qf_strbuf_view(&index->key));
    if (!key.data)
        return pq_eval_no_memory(err);
    (void)qf_map_put(&index->map, key, next, NULL);
    *ret_id = next;
    return QF_OK;
}
