/* window.h - range functions over windows in which there are native histograms.
 *
 * A native window has its samples of both kinds in one row, by time. Which kinds a function takes
 * is said in functions.def: those of one kind only get windows full of histograms here. What is to
 * be said of a window is flagged; whoever knows the metric's name and the place in the query makes
 * the notes (func/texts.h). */
#ifndef PROMQL_HISTOGRAM_WINDOW_H
#define PROMQL_HISTOGRAM_WINDOW_H

#include "promql/func/window.h"
#include "promql/functions.h"
#include "promql/value.h"

struct pq_native_window {
    const int64_t *ts;
    const double *values;
    const struct pq_histogram *const *histograms; /* NULL for a float */
    const int64_t *start_ts;                      /* NULL, or as in struct pq_window */
    size_t count;
    int64_t range_start, range_end, eval_ts; /* as in struct pq_window */
    double params[2];
    double *order; /* room for count values */
    enum pq_window_mode mode;
    struct qf_arena *scope;   /* where the result is made */
    struct qf_arena *scratch; /* what is needed on the way; void afterwards */
    unsigned *flags;          /* enum pq_window_flag */
    struct pq_poll *poll;
};

enum pq_native_result {
    PQ_NATIVE_NONE, /* the series has no point at this step */
    PQ_NATIVE_VALUE,
    PQ_NATIVE_NO_MEMORY,
};

/* A kernel, declared in func/kernels.h like those of floats: MIXED(f) in functions.def. */
typedef enum pq_native_result pq_native_window_fn(const struct pq_native_window *w,
                                                  struct pq_value *ret_value);

/* The function over a window of samples of any kind, as its row says what becomes of histograms.
 * PQ_WINDOW_FLOATS is flagged if the value is made of floats. */
enum pq_native_result pq_native_run(enum pq_function_id fn, const struct pq_native_window *w,
                                    struct pq_value *ret_value);

/* The smoothed value of a series at @at, which lies inside the window: its samples of
 * (at - lookback, at + lookback], of any kind. */
enum pq_native_result pq_native_smoothed_at(const struct pq_native_window *w, int64_t at,
                                            struct pq_value *ret_value);
/* The same where all are histograms. */
enum pq_native_result pq_native_interpolated(const struct pq_native_window *w, int64_t at,
                                             struct pq_value *ret_value);

/* Sample @i (> 0) begins a new count: it is of another kind than the one before, or smaller, or its
 * start timestamp says so. */
bool pq_native_is_reset(const struct pq_native_window *w, size_t i);

#endif
