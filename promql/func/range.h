/* range.h - range functions by number, for one window or for all steps of a series in one pass.
 *
 * Windows slide: every sample enters and leaves once, and functions that need only the ends of a
 * window (rate and its kin, count, first, last) never look at what is between. The others look at
 * each window again, because a compensated sum that forgets values would end in other last bits.
 * Either way the results are those of the kernels, bit for bit. */
#ifndef PROMQL_FUNC_RANGE_H
#define PROMQL_FUNC_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/macros.h"
#include "promql/func/kernels.h"
#include "promql/func/window.h"
#include "promql/functions.h"

/* The kernel of a function in a mode; NULL if the function is no range function or does not allow
 * the mode. That of absent_over_time says where a series is present. */
pq_window_fn *pq_fn_range_kernel(enum pq_function_id fn, enum pq_window_mode mode);
/* "smoothed modifier can only be used with: ..." QF_EEXEC if the mode is not allowed. */
QF_MUST_CHECK qf_rc pq_fn_range_mode_check(enum pq_function_id fn, enum pq_window_mode mode,
                                           struct qf_err *err);
/* The scalars of a call, in order, are in their range: QF_EEXEC with Prometheus's text if not. */
QF_MUST_CHECK qf_rc pq_fn_range_params_check(enum pq_function_id fn, const double params[2],
                                             struct qf_err *err);

/* The steps of a query and where the selector looks: step k is evaluated at start + k * step, and
 * its window ends at that time, or at @at if the selector has an @, minus the offset. */
struct pq_fn_grid {
    int64_t start, step;
    size_t count;
    int64_t offset;
    bool fixed; /* the selector has an @ */
    int64_t at;
};

static inline int64_t pq_fn_grid_eval_ts(const struct pq_fn_grid *grid, size_t k)
{
    return grid->start + (int64_t)k * grid->step;
}
static inline int64_t pq_fn_grid_window_end(const struct pq_fn_grid *grid, size_t k)
{
    return (grid->fixed ? grid->at : pq_fn_grid_eval_ts(grid, k)) - grid->offset;
}

/* One call of a range function; parameters are the same for all steps. */
struct pq_fn_range_call {
    enum pq_function_id fn;
    enum pq_window_mode mode;
    int64_t range_ms;
    int64_t lookback_ms; /* how far anchored and smoothed windows may look beyond their ends */
    double params[2];
    double *scratch; /* room for as many values as the series has samples; see struct pq_window */
    struct pq_poll *poll; /* NULL, or who may stop the evaluation; the results are void then */
};

/* A series: ascending timestamps, floats only, no stale markers. */
struct pq_fn_samples {
    const int64_t *ts;
    const double *values;
    const int64_t *start_ts; /* NULL, or per sample; 0: unknown */
    size_t count;
};

/* Evaluate the call at every step. out[k] is valid where present[k] is 1; elsewhere out[k] is 0 and
 * present[k] 0. @flags as in struct pq_window, may be NULL. Returns the number of points. */
size_t pq_fn_range_steps(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                         const struct pq_fn_grid *grid, double *out, uint8_t *present,
                         unsigned *flags);

/* The same without any shortcut, one window at a time: what pq_fn_range_steps must equal. */
size_t pq_fn_range_steps_plain(const struct pq_fn_range_call *call,
                               const struct pq_fn_samples *series, const struct pq_fn_grid *grid,
                               double *out, uint8_t *present, unsigned *flags);

/* Copy the samples that are not stale markers. @ret arrays have room for @count; start timestamps
 * are copied if both are not NULL. Returns how many there are. */
size_t pq_fn_drop_stale(const int64_t *ts, const double *values, const int64_t *start_ts,
                        size_t count, int64_t *ret_ts, double *ret_values, int64_t *ret_start_ts);
/* True if one of the values is a stale marker. */
bool pq_fn_has_stale(const double *values, size_t count);

/* The first sample at or behind position @from that is later than @at. Windows mostly move by a few
 * samples, but may jump over any number. */
static inline size_t pq_fn_advance(const int64_t *ts, size_t count, size_t from, int64_t at)
{
    size_t low = from, high, stride = 8;

    for (size_t i = 0; i < 8; i++, low++)
        if (low == count || ts[low] > at)
            return low;
    for (high = low; high < count && ts[high] <= at; stride *= 2) {
        low = high + 1;
        high += QF_MIN(stride, count - high);
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ts[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Samples with timestamps in (after, until]: the index of the first, and how many. */
size_t pq_fn_find_window(const int64_t *ts, size_t count, int64_t after, int64_t until,
                         size_t *ret_first);

#endif
