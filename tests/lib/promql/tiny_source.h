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

#define TINY_SERIES 6
#define TINY_LONG 200

/* A counter that restarts, scraped every second: long enough for the shortcuts of evenly spaced
 * samples. */
static inline void tiny_long_series(struct pq_series *ret_series)
{
    static int64_t ts[TINY_LONG];
    static double values[TINY_LONG];

    for (size_t i = 0; i < TINY_LONG; i++) {
        ts[i] = (int64_t)i * 1000;
        values[i] = (double)(i % 70 * 3);
    }
    ret_series->ts = ts;
    ret_series->values = values;
    ret_series->count = TINY_LONG;
}

/* Floats and native histograms by turns, with start timestamps. */
static inline void tiny_mixed_series(struct pq_series *ret_series)
{
    static const struct pq_span span = { 1, 2 };
    static const double buckets[] = { 1, 2 };
    static const struct pq_histogram histogram = { .count = 3,
                                                   .sum = 4,
                                                   .positive_spans = &span,
                                                   .positive_span_count = 1,
                                                   .positive_buckets = buckets,
                                                   .positive_bucket_count = 2 };
    static const struct pq_histogram *const histograms[] = { NULL, &histogram, &histogram, NULL };
    static const int64_t starts[] = { -5, 0, 15001, 30000 };

    ret_series->histograms = histograms;
    ret_series->start_ts = starts;
}

/* up{a="0",le="1"} ... up{a="3",le="+Inf"}, four samples each, 15 s apart; a="4" has histograms,
 * a="5" is longer. */
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
    static const struct qf_label labels[TINY_SERIES][3] = {
        TINY_LABELS("0", "1"),    TINY_LABELS("1", "2"), TINY_LABELS("2", "5"),
        TINY_LABELS("3", "+Inf"), TINY_LABELS("4", "x"), TINY_LABELS("5", "7")
    };
    static const int64_t ts[] = { 0, 15000, 30000, 45000 };
    static const double values[TINY_SERIES][4] = {
        { 1, 2, 1, 3 }, { 0, 0, 0, 0 }, { -1, 1e308, 1e308, 5 }, { 4, 4, 5, 6 }, { 1, 0, 0, 7 }
    };
    struct tiny_source *self = (struct tiny_source *)source;

    (void)err;
    while (self->next < TINY_SERIES) {
        size_t i = self->next++;

        *ret_series = (struct pq_series){
            .labels = { labels[i], 3 }, .ts = ts, .values = values[i], .count = 4
        };
        if (i == 4)
            tiny_mixed_series(ret_series);
        if (i == 5)
            tiny_long_series(ret_series);
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
                                  shard == 0 ? 0 : TINY_SERIES };
    *ret_source = &self->source;
    return QF_OK;
}

#endif
