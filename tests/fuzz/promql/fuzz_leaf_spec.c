/* fuzz_leaf_spec.c - any bytes as a leaf spec, and real specs with bytes changed; what decodes is
 * run over a few samples.
 *
 * Input that begins with the version's tag is taken as a spec. Otherwise the first byte chooses a
 * query, and pairs of a place and a value are changes to the spec of its leaf. */
#include <stddef.h>
#include <stdint.h>

#include "promql/parse.h"
#include "promql/plan.h"
#include "tests/lib/promql/spec_queries.h"
#include "tests/lib/promql/tiny_source.h"

#define VERSION_TAG 0x08

static void decode_and_run(struct qf_arena *arena, struct qf_str bytes)
{
    struct tiny_source source = { .source = { tiny_source_next, NULL } };
    struct pq_leaf_result result;
    struct pq_leaf *leaf;
    struct qf_err err = { 0 };

    if (pq_leaf_decode(arena, bytes, &leaf, &err) != QF_OK)
        return;
    for (size_t i = 0; i < leaf->stage_count; i++)
        if (leaf->stages[i].grid.count > 10000)
            return; /* allowed, but slow */
    source.select = leaf->select;
    (void)!pq_leaf_run(leaf, &source.source, NULL, NULL, arena, &result, &err);
}

static void change_and_run(struct qf_arena *arena, const uint8_t *data, size_t size)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct pq_parse_options options = { .experimental_functions = true,
                                        .extended_range_selectors = true };
    struct pq_query_params params = { .start_ms = 0, .end_ms = 60000, .step_ms = 10000 };
    struct qf_str query = qf_str_from(spec_queries[data[0] % QF_COUNT_OF(spec_queries)]);
    struct pq_expr *expr;
    struct pq_plan *plan;
    struct qf_err err = { 0 };

    if (pq_parse(arena, query, &options, &expr, &err) != QF_OK ||
        pq_plan_new(arena, expr, query, &params, &plan, &err) != QF_OK)
        return;
    pq_leaf_encode(plan->leaves[0], &bytes);
    for (size_t i = 1; i + 1 < size; i += 2)
        bytes.data[data[i] * bytes.len / 256] = (char)data[i + 1];
    decode_and_run(arena, qf_strbuf_view(&bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new((size_t)1 << 24);

    if (size > 0 && data[0] != VERSION_TAG)
        change_and_run(arena, data, size);
    else
        decode_and_run(arena, (struct qf_str){ (const char *)data, size });
    return 0;
}
