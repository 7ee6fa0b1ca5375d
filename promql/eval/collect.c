/* collect.c - a whole answer at once. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "promql/eval/matrix.h"

struct point {
    int64_t ts;
    struct pq_value value; /* in the arena of the result */
};

/* The points of one series while they are gathered. */
struct points {
    struct point *items;
    size_t count, capacity;
};

struct gathered {
    struct points *items; /* per series */
    size_t count, capacity;
};

static void gathered_done(struct gathered *gathered)
{
    for (size_t i = 0; i < gathered->count; i++)
        free(gathered->items[i].items);
    free(gathered->items);
}

static void make_room(struct gathered *gathered, size_t count)
{
    while (gathered->count < count)
        QF_VEC_PUSH(gathered, (struct points){ 0 });
}

static qf_rc no_memory(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "the result is larger than its limit");
}

static qf_rc keep_series(struct qf_arena *arena, struct qf_labels labels,
                         const struct points *points, struct pq_result_series *ret,
                         struct qf_err *err)
{
    int64_t *ts = qf_arena_alloc(arena, points->count * sizeof(*ts));
    double *values = qf_arena_alloc(arena, points->count * sizeof(*values));
    const struct pq_histogram **histograms = NULL;

    if (!ts || !values || !qf_labels_copy(arena, labels, &ret->labels))
        return no_memory(err);
    for (size_t i = 0; i < points->count; i++) {
        ts[i] = points->items[i].ts;
        if (!pq_value_put(arena, values, &histograms, points->count, i, points->items[i].value))
            return no_memory(err);
    }
    ret->count = points->count;
    ret->ts = ts;
    ret->values = values;
    ret->histograms = histograms;
    return QF_OK;
}

static int by_labels(const void *a, const void *b)
{
    return qf_labels_cmp(((const struct pq_result_series *)a)->labels,
                         ((const struct pq_result_series *)b)->labels);
}

/* Series with points; those of a vector in @order, or by id if it is NULL, else by labels. */
static qf_rc keep_all(struct qf_arena *arena, const struct gathered *gathered,
                      const struct qf_labels *labels, const uint32_t *order, size_t order_count,
                      struct pq_result *result, struct qf_err *err)
{
    size_t count = order ? order_count : gathered->count;

    result->series = QF_ARENA_ARRAY(arena, struct pq_result_series, count);
    if (!result->series)
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        size_t id = order ? order[i] : i;
        qf_rc rc;

        if (gathered->items[id].count == 0)
            continue;
        rc = keep_series(arena, labels[id], &gathered->items[id],
                         &result->series[result->series_count], err);
        if (rc != QF_OK)
            return rc;
        result->series_count++;
    }
    if (result->type != PQ_TYPE_VECTOR)
        qsort(result->series, result->series_count, sizeof(*result->series), by_labels);
    return QF_OK;
}

static bool keep_value(struct qf_arena *arena, struct point *point)
{
    return pq_value_copy(arena, point->value, &point->value);
}

/* A batch is there until the next one is asked for: what it holds is copied. */
static qf_rc gather_batch(const struct pq_eval_batch *batch, struct qf_arena *arena,
                          struct gathered *gathered, struct qf_err *err)
{
    make_room(gathered, batch->series_count);
    for (size_t s = 0; s < batch->series_count; s++)
        for (uint64_t bits = batch->present[s]; bits; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);
            size_t at = s * batch->stride + k;
            struct points *points = &gathered->items[s];

            QF_VEC_PUSH(points,
                        (struct point){ batch->start_ms + (int64_t)k * batch->step_ms,
                                        pq_value_at(batch->values, batch->histograms, at) });
            if (batch->histograms && !keep_value(arena, &points->items[points->count - 1]))
                return no_memory(err);
        }
    return QF_OK;
}

static qf_rc collect_steps(struct pq_eval *eval, struct qf_arena *arena, struct gathered *gathered,
                           struct pq_result *result, struct qf_err *err)
{
    const uint32_t *order = NULL;
    size_t order_count = 0;

    for (;;) {
        struct pq_eval_batch batch;
        qf_rc rc = pq_eval_next(eval, &batch, err);

        if (rc != QF_OK)
            return rc;
        if (batch.steps == 0)
            break;
        rc = gather_batch(&batch, arena, gathered, err);
        if (rc != QF_OK)
            return rc;
        if (result->type == PQ_TYPE_VECTOR) {
            order = eval->root->batch.order;
            order_count = eval->root->batch.order_count;
        }
    }
    if (result->type == PQ_TYPE_SCALAR) {
        result->scalar = gathered->items[0].items[0].value.number;
        return QF_OK;
    }
    return keep_all(arena, gathered, eval->root->set.labels, order, order_count, result, err);
}

/* A bare range selector: samples as they are. */
static qf_rc collect_samples(struct pq_eval *eval, struct qf_arena *arena,
                             struct gathered *gathered, struct pq_result *result,
                             struct qf_err *err)
{
    const struct pq_leaf *leaf = eval->plan->root->leaf;
    struct pq_matrix matrix;
    const struct qf_labels *labels;
    const uint8_t *drop;
    size_t count;
    qf_rc rc;

    pq_matrix_init(&matrix, eval, NULL, leaf);
    labels = pq_matrix_series(&matrix, &count, &drop);
    rc = pq_matrix_read(&matrix, INT64_MAX, err);
    make_room(gathered, matrix.count);
    for (size_t s = 0; s < matrix.count; s++)
        for (size_t i = 0; i < matrix.queues[s].count && rc == QF_OK; i++) {
            size_t at = matrix.queues[s].first + i;
            struct pq_value value =
                pq_value_at(matrix.queues[s].values, matrix.queues[s].histograms, at);

            if (!pq_value_copy(arena, value, &value))
                rc = no_memory(err);
            QF_VEC_PUSH(&gathered->items[s], (struct point){ matrix.queues[s].ts[at], value });
            eval->stats.points++;
        }
    pq_matrix_done(&matrix);
    return rc == QF_OK ? keep_all(arena, gathered, labels, NULL, 0, result, err) : rc;
}

qf_rc pq_eval_collect(struct pq_eval *eval, struct qf_arena *arena, struct pq_result *ret_result,
                      struct qf_err *err)
{
    QF_CLEANUP(gathered_done) struct gathered gathered = { 0 };
    struct pq_result result = { .type = eval->plan->type,
                                .ts = eval->plan->params.end_ms,
                                .notes.arena = arena };
    const struct pq_plan_node *root = eval->plan->root;
    qf_rc rc = QF_OK;

    if (root->kind == PQ_PLAN_STRING)
        result.string = qf_arena_str(arena, root->string);
    else if (!eval->root)
        rc = collect_samples(eval, arena, &gathered, &result, err);
    else
        rc = collect_steps(eval, arena, &gathered, &result, err);
    if (rc != QF_OK)
        return rc;
    pq_eval_merge_notes(eval);
    pq_notes_merge(&result.notes, &eval->notes);
    result.stats = pq_eval_stats(eval);
    *ret_result = result;
    return QF_OK;
}
