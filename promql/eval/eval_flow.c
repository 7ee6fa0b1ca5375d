/* eval_flow.c - EvalFlow: leaf results in, steps of the answer out, in order of time. */
#include "promql/eval/exec.h"

/* Each shard kept to the limit; so must all of them. */
static qf_rc check_points(const struct pq_eval *eval, size_t leaf, struct qf_err *err)
{
    uint64_t limit = eval->plan->params.samples_max, points = 0;

    for (size_t i = 0; i < eval->shard_count; i++) {
        const struct pq_leaf_reader *reader = eval->readers[leaf * eval->shard_count + i];

        points += reader ? QF_MIN(reader->points, UINT64_MAX - points) : 0;
    }
    if (limit && points > limit)
        return qf_err_set(err, QF_ELIMIT, PQ_TOO_MANY_SAMPLES);
    return QF_OK;
}

static qf_rc build(struct pq_eval *eval, struct qf_err *err)
{
    const struct pq_plan *plan = eval->plan;

    eval->merges = QF_ARENA_ARRAY(eval->arena, struct pq_merge *, plan->leaf_count);
    if (!eval->merges)
        return pq_eval_no_memory(err);
    for (size_t i = 0; i < plan->leaf_count; i++) {
        qf_rc rc = pq_merge_new(eval->arena, plan->leaves[i], eval->readers + i * eval->shard_count,
                                eval->shard_count, &eval->merges[i], err);

        if (rc == QF_OK)
            rc = check_points(eval, i, err);
        if (rc != QF_OK)
            return rc;
    }
    if (plan->root->kind == PQ_PLAN_STRING ||
        (plan->root->kind == PQ_PLAN_LEAF && plan->root->leaf->kind == &pq_leaf_samples))
        return QF_OK;
    /* A bare subquery is the values of its expression. */
    eval->root = pq_exec_build(eval, plan->root->kind == PQ_PLAN_SUBQUERY ? plan->root->children[0]
                                                                          : plan->root);
    if (eval->root)
        eval->root = pq_node_unname(eval, eval->root);
    return eval->root ? QF_OK : pq_eval_no_memory(err);
}

static void close_readers(struct pq_leaf_reader **readers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (readers[i])
            readers[i]->close(readers[i]);
}

qf_rc pq_eval_new(const struct pq_plan *plan, struct pq_leaf_reader **readers, size_t shard_count,
                  const struct pq_eval_options *options, struct pq_eval **ret_eval,
                  struct qf_err *err)
{
    static const struct pq_eval_options defaults;
    size_t budget, reader_count = plan->leaf_count * shard_count;
    struct qf_arena *arena;
    struct pq_eval *eval;
    qf_rc rc;

    if (!options)
        options = &defaults;
    budget = options->memory_bytes_max ? options->memory_bytes_max : SIZE_MAX;
    arena = options->purse ? qf_arena_new_from(options->purse) : qf_arena_new(budget);
    eval = QF_ARENA_NEW(arena, struct pq_eval);
    if (eval) {
        *eval = (struct pq_eval){ .plan = plan,
                                  .arena = arena,
                                  .options = *options,
                                  .poll.canceled = options->canceled,
                                  .notes.arena = arena,
                                  .shard_count = shard_count };
        eval->readers = QF_ARENA_ARRAY(arena, struct pq_leaf_reader *, reader_count);
    }
    if (!eval || !eval->readers) {
        close_readers(readers, reader_count);
        (void)qf_arena_free(arena);
        return pq_eval_no_memory(err);
    }
    for (size_t i = 0; i < reader_count; i++)
        eval->readers[i] = readers[i];
    rc = build(eval, err);
    if (rc == QF_OK)
        *ret_eval = eval;
    else
        (void)pq_eval_free(eval);
    return rc;
}

struct pq_eval *pq_eval_free(struct pq_eval *eval)
{
    if (!eval)
        return NULL;
    pq_exec_close(eval->root);
    close_readers(eval->readers, eval->plan->leaf_count * eval->shard_count);
    (void)qf_arena_free(eval->arena);
    return NULL;
}

void pq_eval_freep(struct pq_eval **eval)
{
    *eval = pq_eval_free(*eval);
}

/* Notes of the leaves come first, in the order of leaves and shards. */
void pq_eval_merge_notes(struct pq_eval *eval)
{
    if (eval->notes_merged)
        return;
    eval->notes_merged = true;
    for (size_t i = 0; i < eval->plan->leaf_count * eval->shard_count; i++) {
        if (!eval->readers[i])
            continue;
        pq_notes_merge(&eval->notes, &eval->readers[i]->notes);
        eval->stats.samples_read += eval->readers[i]->samples_read;
    }
}

static qf_rc count_points(struct pq_eval *eval, const struct pq_batch *batch, struct qf_err *err)
{
    uint64_t limit = eval->plan->params.samples_max, held = 0;

    for (size_t s = 0; batch->steps > 0 && s < batch->series_count; s++)
        held += (uint64_t)__builtin_popcountll(batch->present[s]);
    eval->stats.points += held;
    if (limit && eval->stats.points > limit)
        return qf_err_set(err, QF_ELIMIT, PQ_TOO_MANY_SAMPLES);
    return QF_OK;
}

qf_rc pq_eval_next(struct pq_eval *eval, struct pq_eval_batch *ret_batch, struct qf_err *err)
{
    struct pq_exec *root = eval->root;
    qf_rc rc;

    if (!root)
        return qf_err_set(err, QF_EINVAL, "the result of this query has no steps");
    pq_eval_merge_notes(eval);
    rc = pq_exec_next(root, err);
    if (rc == QF_OK)
        rc = count_points(eval, &root->batch, err);
    if (rc != QF_OK)
        return rc;
    *ret_batch = (struct pq_eval_batch){ .steps = root->batch.steps,
                                         .start_ms = pq_exec_time(root, 0),
                                         .step_ms = root->plan->grid.step_ms,
                                         .series = root->set.labels,
                                         .series_count = root->batch.series_count,
                                         .stride = root->batch.stride,
                                         .values = root->batch.values,
                                         .present = root->batch.present,
                                         .histograms = root->batch.histograms };
    if (ret_batch->steps == 0)
        ret_batch->series_count = 0;
    return QF_OK;
}

const struct pq_notes *pq_eval_notes(const struct pq_eval *eval)
{
    return &eval->notes;
}

struct pq_eval_stats pq_eval_stats(const struct pq_eval *eval)
{
    struct pq_eval_stats stats = eval->stats;

    for (size_t i = 0; i < eval->plan->leaf_count; i++)
        stats.rows += pq_merge_rows(eval->merges[i]);
    stats.memory_bytes = qf_arena_used(eval->arena);
    return stats;
}
