/* range.c - range functions by number, and one series over all steps. */
#include "promql/func/range.h"

#include <string.h>

#include "base/pure/macros.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"

pq_window_fn *pq_fn_range_kernel(enum pq_function_id fn, enum pq_window_mode mode)
{
    return pq_kernels_of(fn)->window[mode];
}

qf_rc pq_fn_range_mode_check(enum pq_function_id fn, enum pq_window_mode mode, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf allowed = QF_STRBUF_INIT;

    if (mode == PQ_WINDOW_PLAIN || pq_fn_range_kernel(fn, mode))
        return QF_OK;
    /* The table of functions is sorted by name, and so is the list. */
    for (enum pq_function_id other = 0; other < PQ_FN__COUNT; other++) {
        if (!pq_fn_range_kernel(other, mode))
            continue;
        if (allowed.len)
            qf_strbuf_puts(&allowed, ", ");
        qf_strbuf_puts(&allowed, pq_function_get(other)->name);
    }
    return qf_err_set(err, QF_EEXEC, "%s modifier can only be used with: %s - not with %s",
                      mode == PQ_WINDOW_ANCHORED ? "anchored" : "smoothed",
                      qf_strbuf_cstr(&allowed), pq_function_get(fn)->name);
}

qf_rc pq_fn_range_params_check(enum pq_function_id fn, const double params[2], struct qf_err *err)
{
    pq_valid_fn *valid = pq_kernels_of(fn)->valid;

    return valid ? valid(params[0], params[1], err) : QF_OK;
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
    pq_slide_fn *slide = call->mode == PQ_WINDOW_PLAIN ? pq_kernels_of(call->fn)->slide : NULL;

    /* Start timestamps make resets of counters, and notes: window by window only. */
    if (slide && !(series->start_ts && pq_function_get(call->fn)->counter))
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
