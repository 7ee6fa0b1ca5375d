/* engine.c - the whole pipeline in one process. */
#include "promql/testing/engine.h"

#include <stdlib.h>

#include "base/pure/alloc.h"

/* Bytes that readers borrow, kept until the evaluation is over. */
struct held {
    struct pq_leaf_reader **readers;
    struct qf_strbuf *bytes;
    size_t count;
};

static void held_done(struct held *held)
{
    for (size_t i = 0; i < held->count; i++)
        qf_strbuf_done(&held->bytes[i]);
    free(held->bytes);
    free(held->readers);
}

static void close_source(struct pq_source **source)
{
    if (*source && (*source)->close)
        (*source)->close(*source);
}

/* One leaf on one shard: what a worker does, and what reaches the API of it. */
static qf_rc run_shard(const struct pq_engine *engine, struct qf_arena *arena,
                       const struct pq_leaf *leaf, const struct pq_query_params *params,
                       size_t shard, struct qf_strbuf *bytes, struct pq_leaf_reader **ret_reader,
                       struct qf_err *err)
{
    QF_CLEANUP(close_source) struct pq_source *source = NULL;
    struct pq_leaf_limits limits = { params->samples_max, params->series_max };
    struct pq_leaf_result *result = QF_ARENA_NEW(arena, struct pq_leaf_result);
    qf_rc rc;

    if (!result)
        return qf_err_set(err, QF_ELIMIT, "the query needs more memory than its limit");
    rc = engine->open(engine->ctx, shard, &leaf->select, &source, err);
    if (rc == QF_OK)
        rc = pq_leaf_run(leaf, source, &limits, NULL, arena, result, err);
    if (rc != QF_OK)
        return rc;
    if (engine->codec) {
        rc = engine->codec->encode(engine->codec->ctx, result, bytes, err);
        if (rc == QF_OK)
            rc = engine->codec->decode(engine->codec->ctx, qf_strbuf_view(bytes), ret_reader, err);
        return rc;
    }
    *ret_reader = pq_leaf_result_reader(arena, result);
    return *ret_reader ? QF_OK
                       : qf_err_set(err, QF_ELIMIT, "the query needs more memory than its limit");
}

static qf_rc run_leaf(const struct pq_engine *engine, struct qf_arena *arena,
                      const struct pq_plan *plan, size_t index, struct held *held,
                      struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf spec = QF_STRBUF_INIT;
    struct pq_leaf *leaf = NULL;
    qf_rc rc;

    pq_leaf_encode(plan->leaves[index], &spec);
    rc = pq_leaf_decode(arena, qf_strbuf_view(&spec), &leaf, err);
    for (size_t shard = 0; shard < engine->shard_count && rc == QF_OK; shard++) {
        size_t at = index * engine->shard_count + shard;

        rc = run_shard(engine, arena, leaf, &plan->params, shard, &held->bytes[at],
                       &held->readers[at], err);
    }
    return rc;
}

static void close_readers(struct held *held)
{
    for (size_t i = 0; i < held->count; i++)
        if (held->readers[i])
            held->readers[i]->close(held->readers[i]);
}

qf_rc pq_engine_run(const struct pq_engine *engine, struct qf_arena *arena,
                    const struct pq_expr *expr, struct qf_str query,
                    const struct pq_query_params *params, struct pq_result *ret_result,
                    struct qf_err *err)
{
    QF_CLEANUP(held_done) struct held held = { 0 };
    QF_CLEANUP(pq_eval_freep) struct pq_eval *eval = NULL;
    struct pq_plan *plan;
    qf_rc rc = pq_plan_new(arena, expr, query, params, &plan, err);

    if (rc != QF_OK)
        return rc;
    held.count = plan->leaf_count * engine->shard_count;
    held.readers = qf_xcalloc(held.count + 1, sizeof(*held.readers));
    held.bytes = qf_xcalloc(held.count + 1, sizeof(*held.bytes));
    for (size_t i = 0; i < plan->leaf_count && rc == QF_OK; i++)
        rc = run_leaf(engine, arena, plan, i, &held, err);
    if (rc != QF_OK) {
        close_readers(&held);
        return rc;
    }
    rc = pq_eval_new(plan, held.readers, engine->shard_count, NULL, &eval, err);
    if (rc == QF_OK)
        rc = pq_eval_collect(eval, arena, ret_result, err);
    return rc;
}
