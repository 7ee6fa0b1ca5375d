/* range.c - range functions by number, and one series over all steps. */
#include "promql/func/range.h"

#include <string.h>

#include "base/pure/macros.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "promql/func/extended.h"
#include "promql/func/over_time.h"
#include "promql/func/range_slide.h"
#include "promql/func/rate.h"

/* Kernels by mode: plain, anchored, smoothed. */
static pq_window_fn *const kernels[PQ_FN__COUNT][3] = {
    [PQ_FN_RATE] = { pq_fn_rate, pq_fn_rate_anchored, pq_fn_rate_smoothed },
    [PQ_FN_INCREASE] = { pq_fn_increase, pq_fn_increase_anchored, pq_fn_increase_smoothed },
    [PQ_FN_DELTA] = { pq_fn_delta, pq_fn_delta_anchored, pq_fn_delta_smoothed },
    [PQ_FN_RESETS] = { pq_fn_resets, pq_fn_resets_anchored, NULL },
    [PQ_FN_CHANGES] = { pq_fn_changes, pq_fn_changes_anchored, NULL },
    [PQ_FN_IRATE] = { pq_fn_irate },
    [PQ_FN_IDELTA] = { pq_fn_idelta },
    [PQ_FN_SUM_OVER_TIME] = { pq_fn_sum_over_time },
    [PQ_FN_AVG_OVER_TIME] = { pq_fn_avg_over_time },
    [PQ_FN_MIN_OVER_TIME] = { pq_fn_min_over_time },
    [PQ_FN_MAX_OVER_TIME] = { pq_fn_max_over_time },
    [PQ_FN_COUNT_OVER_TIME] = { pq_fn_count_over_time },
    [PQ_FN_PRESENT_OVER_TIME] = { pq_fn_present_over_time },
    [PQ_FN_ABSENT_OVER_TIME] = { pq_fn_present_over_time }, /* plan/calls.c turns it around */
    [PQ_FN_LAST_OVER_TIME] = { pq_fn_last_over_time },
    [PQ_FN_FIRST_OVER_TIME] = { pq_fn_first_over_time },
    [PQ_FN_STDDEV_OVER_TIME] = { pq_fn_stddev_over_time },
    [PQ_FN_STDVAR_OVER_TIME] = { pq_fn_stdvar_over_time },
    [PQ_FN_QUANTILE_OVER_TIME] = { pq_fn_quantile_over_time },
    [PQ_FN_MAD_OVER_TIME] = { pq_fn_mad_over_time },
    [PQ_FN_TS_OF_MIN_OVER_TIME] = { pq_fn_ts_of_min_over_time },
    [PQ_FN_TS_OF_MAX_OVER_TIME] = { pq_fn_ts_of_max_over_time },
    [PQ_FN_TS_OF_FIRST_OVER_TIME] = { pq_fn_ts_of_first_over_time },
    [PQ_FN_TS_OF_LAST_OVER_TIME] = { pq_fn_ts_of_last_over_time },
    [PQ_FN_DERIV] = { pq_fn_deriv },
    [PQ_FN_PREDICT_LINEAR] = { pq_fn_predict_linear },
    [PQ_FN_DOUBLE_EXPONENTIAL_SMOOTHING] = { pq_fn_double_exponential_smoothing },
};

pq_window_fn *pq_fn_range_kernel(enum pq_function_id fn, enum pq_window_mode mode)
{
    return (size_t)fn < PQ_FN__COUNT ? kernels[fn][mode] : NULL;
}

size_t pq_fn_range_arg(enum pq_function_id fn)
{
    return fn == PQ_FN_QUANTILE_OVER_TIME ? 1 : 0;
}

bool pq_fn_range_keeps_name(enum pq_function_id fn)
{
    return fn == PQ_FN_LAST_OVER_TIME || fn == PQ_FN_FIRST_OVER_TIME ||
           fn == PQ_FN_ABSENT_OVER_TIME;
}

bool pq_fn_range_wants_counter(enum pq_function_id fn)
{
    return fn == PQ_FN_RATE || fn == PQ_FN_INCREASE;
}

qf_rc pq_fn_range_mode_check(enum pq_function_id fn, enum pq_window_mode mode, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf allowed = QF_STRBUF_INIT;

    if (mode == PQ_WINDOW_PLAIN || pq_fn_range_kernel(fn, mode))
        return QF_OK;
    /* The table of functions is sorted by name, and so is the list. */
    for (size_t i = 0; i < PQ_FN__COUNT; i++) {
        if (!kernels[i][mode])
            continue;
        if (allowed.len)
            qf_strbuf_puts(&allowed, ", ");
        qf_strbuf_puts(&allowed, pq_function_get((enum pq_function_id)i)->name);
    }
    return qf_err_set(err, QF_EEXEC, "%s modifier can only be used with: %s - not with %s",
                      mode == PQ_WINDOW_ANCHORED ? "anchored" : "smoothed",
                      qf_strbuf_cstr(&allowed), pq_function_get(fn)->name);
}

qf_rc pq_fn_smoothing_check(double smoothing, double trend, struct qf_err *err)
{
    /* Written so that a NaN is as good as Prometheus takes it: it is neither too small nor too
     * large. */
    if (smoothing <= 0 || smoothing >= 1)
        return qf_err_set(err, QF_EEXEC, "invalid smoothing factor. Expected: 0 < sf < 1, got: %f",
                          smoothing);
    if (trend <= 0 || trend >= 1)
        return qf_err_set(err, QF_EEXEC, "invalid trend factor. Expected: 0 < tf < 1, got: %f",
                          trend);
    return QF_OK;
}

size_t pq_fn_range_steps_plain(const struct pq_fn_range_call *call,
                               const struct pq_fn_samples *series, const struct pq_fn_grid *grid,
                               double *out, uint8_t *present, unsigned *flags)
{
    pq_window_fn *kernel = pq_fn_range_kernel(call->fn, call->mode);
    int64_t before = call->mode == PQ_WINDOW_PLAIN ? 0 : call->lookback_ms;
    int64_t beyond = call->mode == PQ_WINDOW_SMOOTHED ? call->lookback_ms : 0;
    size_t points = 0, low = 0, high = 0;

    for (size_t k = 0; k < grid->count; k++) {
        int64_t end = pq_fn_grid_window_end(grid, k);
        int64_t start = end - call->range_ms;
        struct pq_window w;

        if (pq_poll_work(call->poll, 1))
            break;
        high = pq_fn_advance(series->ts, series->count, high, end + beyond);
        low = pq_fn_advance(series->ts, high, low, start - before);
        w = (struct pq_window){
            .ts = series->ts + low,
            .values = series->values + low,
            .start_ts = series->start_ts ? series->start_ts + low : NULL,
            .count = high - low,
            .range_start = start,
            .range_end = end,
            .eval_ts = pq_fn_grid_eval_ts(grid, k),
            .params = { call->params[0], call->params[1] },
            .scratch = call->scratch,
            .flags = flags,
            .poll = call->poll,
        };
        out[k] = 0;
        present[k] = w.count > 0 && kernel(&w, &out[k]);
        points += present[k];
    }
    return points;
}

size_t pq_fn_range_steps(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                         const struct pq_fn_grid *grid, double *out, uint8_t *present,
                         unsigned *flags)
{
    pq_slide_fn *slide = pq_slide_find(call, series);

    if (slide)
        return slide(call, series, grid, out, present);
    return pq_fn_range_steps_plain(call, series, grid, out, present, flags);
}

bool pq_fn_has_stale(const double *values, size_t count)
{
    uint64_t found = 0;

    for (size_t i = 0; i < count; i++)
        found |= qf_double_bits(values[i]) == QF_STALE_NAN_BITS;
    return found != 0;
}

size_t pq_fn_drop_stale(const int64_t *ts, const double *values, const int64_t *start_ts,
                        size_t count, int64_t *ret_ts, double *ret_values, int64_t *ret_start_ts)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (qf_is_stale(values[i]))
            continue;
        ret_ts[kept] = ts[i];
        ret_values[kept] = values[i];
        if (start_ts && ret_start_ts)
            ret_start_ts[kept] = start_ts[i];
        kept++;
    }
    return kept;
}

size_t pq_fn_find_window(const int64_t *ts, size_t count, int64_t after, int64_t until,
                         size_t *ret_first)
{
    *ret_first = pq_fn_advance(ts, count, 0, after);
    return pq_fn_advance(ts, count, *ret_first, until) - *ret_first;
}
