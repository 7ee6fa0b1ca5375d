/* fuzz_query.c - any text as a query, planned, explained and run over a few series.
 *
 * Both ways of dropping names, with one and with two shards, instant and range. */
#include <stddef.h>
#include <stdint.h>

#include "promql/testing/engine.h"
#include "promql/parse.h"
#include "tests/lib/promql/tiny_source.h"

/* Finer grids are allowed but make a fuzzer slow. */
static bool is_small(const struct pq_plan *plan)
{
    for (size_t i = 0; i < plan->leaf_count; i++)
        for (size_t j = 0; j < plan->leaves[i]->stage_count; j++)
            if (plan->leaves[i]->stages[j].grid.count > 2000)
                return false;
    return true;
}

static void run(struct qf_str query, const struct pq_query_params *params, size_t shards)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new((size_t)1 << 26);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct pq_parse_options options = { .experimental_functions = true,
                                        .extended_range_selectors = true,
                                        .fill_modifiers = true,
                                        .length_max = 300 };
    struct pq_engine engine = { .shard_count = shards, .open = tiny_source_open };
    struct pq_result result;
    struct pq_expr *expr;
    struct pq_plan *plan;
    struct qf_err err = { 0 };

    if (pq_parse(arena, query, &options, &expr, &err) != QF_OK ||
        pq_plan_new(arena, expr, query, params, &plan, &err) != QF_OK)
        return;
    pq_plan_explain(&text, plan);
    if (is_small(plan))
        (void)!pq_engine_run(&engine, arena, expr, query, params, &result, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str query = { (const char *)data, size };
    struct pq_query_params instant = {
        .start_ms = 45000, .end_ms = 45000, .samples_max = 20000, .delayed_name_removal = true
    };
    struct pq_query_params range = {
        .start_ms = 0, .end_ms = 100000, .step_ms = 1000, .samples_max = 20000
    };

    run(query, &instant, 1);
    run(query, &range, 2);
    return 0;
}
