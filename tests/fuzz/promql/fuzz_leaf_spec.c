/* fuzz_leaf_spec.c - any bytes as a leaf spec; what decodes is run over a few samples. */
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "promql/leaf.h"

struct source {
    struct pq_source source;
    bool done;
};

static qf_rc next(struct pq_source *source, struct pq_series *ret_series, bool *ret_more,
                  struct qf_err *err)
{
    static const int64_t ts[] = { 0, 15000, 30000, 45000 };
    static const double values[] = { 1, 2, 1, 3 };
    static const struct qf_label labels[] = {
        { QF_STR_INIT("__name__"), QF_STR_INIT("up") },
        { QF_STR_INIT("a"), QF_STR_INIT("b") },
    };
    struct source *self = (struct source *)source;

    (void)err;
    *ret_more = !self->done;
    *ret_series =
        (struct pq_series){ .labels = { labels, 2 }, .ts = ts, .values = values, .count = 4 };
    self->done = true;
    return QF_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new((size_t)1 << 24);
    struct source source = { .source = { next, NULL } };
    struct pq_leaf_result result;
    struct pq_leaf *leaf;
    struct qf_err err = { 0 };

    if (pq_leaf_decode(arena, (struct qf_str){ (const char *)data, size }, &leaf, &err) != QF_OK)
        return 0;
    for (size_t i = 0; i < leaf->stage_count; i++)
        if (leaf->stages[i].grid.count > 100000)
            return 0; /* allowed, but slow */
    (void)!pq_leaf_run(leaf, &source.source, NULL, NULL, arena, &result, &err);
    return 0;
}
