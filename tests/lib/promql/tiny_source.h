/* tiny_source.h - a handful of series for programs that want some data and care little which. */
#ifndef TESTS_LIB_PROMQL_TINY_SOURCE_H
#define TESTS_LIB_PROMQL_TINY_SOURCE_H

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/ast.h"
#include "promql/source.h"

struct tiny_source {
    struct pq_source source;
    struct pq_select select;
    size_t next;
};

/* up{a="0",le="1"} ... up{a="3",le="+Inf"}, four samples each, 15 s apart. */
static inline qf_rc tiny_source_next(struct pq_source *source, struct pq_series *ret_series,
                                     bool *ret_more, struct qf_err *err)
{
#define TINY_LABELS(a, le)                                                                         \
    {                                                                                              \
        { QF_STR_INIT("__name__"), QF_STR_INIT("up") }, { QF_STR_INIT("a"), QF_STR_INIT(a) },      \
        {                                                                                          \
            QF_STR_INIT("le"), QF_STR_INIT(le)                                                     \
        }                                                                                          \
    }
    static const struct qf_label labels[4][3] = { TINY_LABELS("0", "1"), TINY_LABELS("1", "2"),
                                                  TINY_LABELS("2", "5"), TINY_LABELS("3", "+Inf") };
    static const int64_t ts[] = { 0, 15000, 30000, 45000 };
    static const double values[4][4] = {
        { 1, 2, 1, 3 }, { 0, 0, 0, 0 }, { -1, 1e308, 1e308, 5 }, { 4, 4, 5, 6 }
    };
    struct tiny_source *self = (struct tiny_source *)source;

    (void)err;
    while (self->next < 4) {
        size_t i = self->next++;

        *ret_series = (struct pq_series){
            .labels = { labels[i], 3 }, .ts = ts, .values = values[i], .count = 4
        };
        *ret_more = true;
        if (pq_matchers_match(self->select.matchers, self->select.matcher_count,
                              ret_series->labels))
            return QF_OK;
    }
    *ret_more = false;
    return QF_OK;
}

static inline void tiny_source_close(struct pq_source *source)
{
    free(source);
}

/* The `open` of struct pq_engine: shard 0 has all of it. */
static inline qf_rc tiny_source_open(void *ctx, size_t shard, const struct pq_select *select,
                                     struct pq_source **ret_source, struct qf_err *err)
{
    struct tiny_source *self = qf_xcalloc(1, sizeof(*self));

    (void)ctx;
    (void)err;
    *self = (struct tiny_source){ { tiny_source_next, tiny_source_close },
                                  *select,
                                  shard == 0 ? 0 : 4 };
    *ret_source = &self->source;
    return QF_OK;
}

#endif
