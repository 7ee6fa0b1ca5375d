/* window.h - the samples of one series that one evaluation of a range function sees. */
#ifndef PROMQL_FUNC_WINDOW_H
#define PROMQL_FUNC_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "promql/func/poll.h"

/* What a kernel wants to have noted; whoever knows the metric's name and the position in the query
 * makes the note. */
enum pq_window_flag {
    PQ_WINDOW_START_OVERLAP = 1,    /* a start timestamp lies before the previous sample */
    PQ_WINDOW_NOT_COUNTER = 2,      /* a native histogram is a gauge ... */
    PQ_WINDOW_NOT_GAUGE = 4,        /* ... or is none */
    PQ_WINDOW_MIXED_SCHEMAS = 8,    /* exponential and custom buckets */
    PQ_WINDOW_MIXED_KINDS = 16,     /* floats and histograms */
    PQ_WINDOW_RECONCILED_SUB = 32,  /* custom bounds that differ: in a subtraction, ... */
    PQ_WINDOW_RECONCILED_ADD = 64,  /* ... in an addition, ... */
    PQ_WINDOW_RECONCILED_AGG = 128, /* ... in adding up */
    PQ_WINDOW_CONFLICT_AGG = 256,   /* a reset and none were added up */
    PQ_WINDOW_IGNORED = 512,        /* histograms were left out beside floats */
    PQ_WINDOW_FLOATS = 1024,        /* a value came of floats */
};

/* How the selector is extended (extended.h). */
enum pq_window_mode { PQ_WINDOW_PLAIN, PQ_WINDOW_ANCHORED, PQ_WINDOW_SMOOTHED };
#define PQ_WINDOW_MODES 3

/* Plain arrays, ascending timestamps, floats only, stale markers removed.
 *
 * The window is left-open: (range_start, range_end]. Both are times of the data, that is after
 * offset and @ were applied. Ordinary kernels get exactly the samples inside. Kernels of `anchored`
 * and `smoothed` selectors (extended.h) also get those before it, and `smoothed` those after it, as
 * far as the lookback reaches. */
struct pq_window {
    const int64_t *ts;
    const double *values;
    const int64_t *start_ts; /* NULL, or per sample the start timestamp; 0: unknown */
    size_t count;
    int64_t range_start, range_end;
    int64_t eval_ts;  /* time of the evaluation step: what predict_linear counts from */
    double params[2]; /* the scalar arguments in the order they are written */
    double *scratch;  /* room for count values; only quantile_over_time and mad_over_time use it */
    unsigned *flags;  /* NULL, or where enum pq_window_flag bits are added */
    struct pq_poll *poll; /* NULL, or who may stop a kernel on its way; see poll.h */
};

/* A kernel: false when the series has no point at this step. */
typedef bool pq_window_fn(const struct pq_window *w, double *ret_value);

/* The length of the window in seconds, as Go's time.Duration computes it. */
static inline double pq_window_seconds(const struct pq_window *w)
{
    int64_t ms = w->range_end - w->range_start;

    return (double)(ms / 1000) + (double)(ms % 1000 * 1000000) / 1e9;
}

/* Every sample of the window from @first on. */
#define PQ_WINDOW_EACH(w, i, first) PQ_POLL_EACH ((w)->poll, i, first, (w)->count)

#endif
