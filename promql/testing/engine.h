/* engine.h - the whole pipeline in one process: for the conformance runner, tests and benchmarks.
 *
 * The same code as in the daemons, in the same order: plan, encode each leaf and decode it again,
 * run it on each shard, pass each leaf result through the artifact codec, merge, evaluate. */
#ifndef PROMQL_TESTING_ENGINE_H
#define PROMQL_TESTING_ENGINE_H

#include "promql/eval.h"
#include "promql/leaf.h"
#include "promql/plan.h"

/* How a leaf result crosses from worker to API. With a NULL codec results are handed over as they
 * are. The real one is Parquet (segments/parquet/artifact.h). */
struct pq_result_codec {
    /* Append the bytes of @result to @buf. */
    qf_rc (*encode)(void *ctx, const struct pq_leaf_result *result, struct qf_strbuf *buf,
                    struct qf_err *err);
    /* A reader over @bytes, which outlive it. The caller closes it. */
    qf_rc (*decode)(void *ctx, struct qf_str bytes, struct pq_leaf_reader **ret_reader,
                    struct qf_err *err);
    void *ctx;
};

struct pq_engine {
    size_t shard_count;
    /* Open the series of @shard that @select asks for. The engine closes the source. */
    qf_rc (*open)(void *ctx, size_t shard, const struct pq_select *select,
                  struct pq_source **ret_source, struct qf_err *err);
    void *ctx;
    const struct pq_result_codec *codec; /* NULL: none */
};

/* Run @expr, parsed from @query into @arena, and keep the answer in @arena. Errors are those of
 * pq_plan_new, pq_leaf_run, pq_eval_collect and of the callbacks. */
QF_MUST_CHECK qf_rc pq_engine_run(const struct pq_engine *engine, struct qf_arena *arena,
                                  const struct pq_expr *expr, struct qf_str query,
                                  const struct pq_query_params *params,
                                  struct pq_result *ret_result, struct qf_err *err);

/* A reader over a result in memory, for when both halves of a query share a process. The result is
 * borrowed; the reader itself lives in @arena and its close frees nothing. NULL: budget spent. */
struct pq_leaf_reader *pq_leaf_result_reader(struct qf_arena *arena,
                                             const struct pq_leaf_result *result);

#endif
