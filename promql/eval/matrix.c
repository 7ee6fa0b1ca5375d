/* matrix.c - range vectors above the leaves. */
#include "promql/eval/matrix.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/histogram/block.h"

void pq_matrix_init(struct pq_matrix *matrix, struct pq_eval *eval, struct pq_exec *child,
                    const struct pq_leaf *leaf)
{
    *matrix = (struct pq_matrix){ .eval = eval, .child = child };
    if (!child)
        matrix->merge = eval->merges[leaf->id];
}

#define SAMPLE_BYTES (sizeof(int64_t) + sizeof(double) + sizeof(struct pq_histogram *))

static void free_histogram(struct pq_matrix *matrix, const struct pq_histogram *h)
{
    if (h) {
        matrix->bytes -= pq_histogram_block_bytes(h);
        matrix->histogram_bytes -= pq_histogram_block_bytes(h);
    }
    free((void *)(uintptr_t)h);
}

/* A copy that goes when its sample is forgotten. A subquery's results know nothing of resets: the
 * samples between them were passed over. */
static const struct pq_histogram *keep_histogram(struct pq_matrix *matrix,
                                                 const struct pq_histogram *h)
{
    struct pq_histogram *block = pq_histogram_block(h);

    if (matrix->child && h->reset_hint != PQ_RESET_GAUGE)
        block->reset_hint = PQ_RESET_UNKNOWN;
    matrix->bytes += pq_histogram_block_bytes(h);
    matrix->histogram_bytes += pq_histogram_block_bytes(h);
    return block;
}

void pq_matrix_done(struct pq_matrix *matrix)
{
    for (size_t i = 0; i < matrix->count; i++) {
        struct pq_queue *queue = &matrix->queues[i];

        for (size_t at = queue->first; at < queue->first + queue->count; at++)
            free_histogram(matrix, queue->histograms[at]);
        free(queue->ts);
        free(queue->values);
        free(queue->histograms);
    }
    free(matrix->queues);
    if (matrix->paid)
        qf_purse_give(matrix->eval->options.purse, matrix->paid);
    *matrix = (struct pq_matrix){ 0 };
}

const struct qf_labels *pq_matrix_series(const struct pq_matrix *matrix, size_t *ret_count,
                                         const uint8_t **ret_drop)
{
    *ret_drop = NULL;
    if (matrix->merge)
        return pq_merge_series(matrix->merge, ret_count);
    *ret_count = matrix->child->set.count;
    *ret_drop = matrix->child->set.drop;
    return matrix->child->set.labels;
}

static void add_series(struct pq_matrix *matrix)
{
    const uint8_t *drop;
    size_t count;

    (void)pq_matrix_series(matrix, &count, &drop);
    if (count > matrix->capacity) {
        matrix->capacity = QF_MAX(count, matrix->capacity * 2);
        matrix->queues = qf_xrealloc(matrix->queues, matrix->capacity * sizeof(*matrix->queues));
    }
    for (; matrix->count < count; matrix->count++)
        matrix->queues[matrix->count] = (struct pq_queue){ 0 };
}

/* Append; the front part that was forgotten is reused before the queue grows. */
static void push(struct pq_matrix *matrix, struct pq_queue *queue, int64_t ts,
                 struct pq_value value)
{
    if (queue->first + queue->count == queue->capacity) {
        if (queue->first > queue->count) {
            memcpy(queue->ts, queue->ts + queue->first, queue->count * sizeof(*queue->ts));
            memcpy(queue->values, queue->values + queue->first,
                   queue->count * sizeof(*queue->values));
            memcpy(queue->histograms, queue->histograms + queue->first,
                   queue->count * sizeof(*queue->histograms));
            queue->first = 0;
        } else {
            matrix->bytes -= queue->capacity * SAMPLE_BYTES;
            queue->capacity = QF_MAX(queue->capacity * 2, (size_t)16);
            matrix->bytes += queue->capacity * SAMPLE_BYTES;
            queue->ts = qf_xrealloc(queue->ts, queue->capacity * sizeof(*queue->ts));
            queue->values = qf_xrealloc(queue->values, queue->capacity * sizeof(*queue->values));
            queue->histograms =
                qf_xrealloc(queue->histograms, queue->capacity * sizeof(*queue->histograms));
        }
    }
    queue->ts[queue->first + queue->count] = ts;
    queue->values[queue->first + queue->count] = value.number;
    queue->histograms[queue->first + queue->count++] =
        value.histogram ? keep_histogram(matrix, value.histogram) : NULL;
    queue->histogram_count += value.histogram != NULL;
}

static void take(void *ctx, uint32_t series, int64_t ts, struct pq_value value)
{
    struct pq_matrix *matrix = ctx;

    push(matrix, &matrix->queues[series], ts, value);
    matrix->held++;
}

static void take_batch(struct pq_matrix *matrix)
{
    const struct pq_exec *child = matrix->child;
    const struct pq_batch *batch = &child->batch;

    add_series(matrix);
    for (size_t s = 0; s < batch->series_count; s++)
        for (uint64_t bits = batch->present[s]; bits; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);

            take(matrix, (uint32_t)s, pq_exec_time(child, k), pq_batch_value(batch, s, k));
        }
    matrix->read_until = pq_exec_time(child, batch->steps - 1);
}

static qf_rc check_held(struct pq_matrix *matrix, struct qf_err *err)
{
    uint64_t limit = matrix->eval->plan->params.samples_max;
    size_t memory = matrix->eval->options.memory_bytes_max;
    struct qf_purse *purse = matrix->eval->options.purse;

    if (purse && matrix->bytes > matrix->paid) {
        if (!qf_purse_take(purse, matrix->bytes - matrix->paid))
            return pq_eval_no_memory(err);
        matrix->paid = matrix->bytes;
    }
    if (limit && matrix->held > limit)
        return qf_err_set(err, QF_ELIMIT, PQ_TOO_MANY_SAMPLES);
    if (memory &&
        matrix->histogram_bytes + matrix->held * (sizeof(int64_t) + sizeof(double)) > memory)
        return pq_eval_no_memory(err);
    return QF_OK;
}

qf_rc pq_matrix_read(struct pq_matrix *matrix, int64_t until, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    if (matrix->merge) {
        add_series(matrix);
        rc = pq_merge_samples(matrix->merge, until, take, matrix, err);
    }
    while (rc == QF_OK && matrix->child && !matrix->ended &&
           (!matrix->started || matrix->read_until < until)) {
        rc = pq_exec_next(matrix->child, err);
        if (rc != QF_OK)
            return rc;
        matrix->started = true;
        matrix->ended = matrix->child->batch.steps == 0;
        if (!matrix->ended)
            take_batch(matrix);
        rc = check_held(matrix, err);
    }
    return rc == QF_OK ? check_held(matrix, err) : rc;
}

void pq_matrix_forget(struct pq_matrix *matrix, int64_t until)
{
    for (size_t i = 0; i < matrix->count; i++) {
        struct pq_queue *queue = &matrix->queues[i];

        while (queue->count > 0 && queue->ts[queue->first] <= until) {
            queue->histogram_count -= queue->histograms[queue->first] != NULL;
            free_histogram(matrix, queue->histograms[queue->first]);
            queue->first++;
            queue->count--;
            matrix->held--;
        }
    }
}
