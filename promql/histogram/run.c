/* run.c - what a range function makes of a window with native histograms in it. */
#include "promql/func/extended.h"
#include "promql/func/kernels.h"
#include "promql/func/range.h"
#include "promql/histogram/window.h"

static size_t count_histograms(const struct pq_native_window *w)
{
    size_t count = 0;

    for (size_t i = 0; i < w->count; i++)
        count += w->histograms[i] != NULL;
    return count;
}

/* The floats of a window beside each other. False: budget spent. */
static bool floats_alone(const struct pq_native_window *w, struct pq_window *floats)
{
    int64_t *ts = qf_arena_alloc(w->scratch, w->count * sizeof(*ts));
    int64_t *start_ts = qf_arena_alloc(w->scratch, w->count * sizeof(*start_ts));
    double *values = qf_arena_alloc(w->scratch, w->count * sizeof(*values));
    size_t count = 0;

    if (!ts || !start_ts || !values)
        return false;
    for (size_t i = 0; i < w->count; i++) {
        if (w->histograms[i])
            continue;
        ts[count] = w->ts[i];
        start_ts[count] = w->start_ts ? w->start_ts[i] : 0;
        values[count++] = w->values[i];
    }
    floats->ts = ts;
    floats->values = values;
    floats->start_ts = w->start_ts ? start_ts : NULL;
    floats->count = count;
    return true;
}

static enum pq_native_result run_floats(enum pq_function_id fn, const struct pq_native_window *w,
                                        bool alone, struct pq_value *ret_value)
{
    struct pq_window floats = { .ts = w->ts,
                                .values = w->values,
                                .start_ts = w->start_ts,
                                .count = w->count,
                                .range_start = w->range_start,
                                .range_end = w->range_end,
                                .eval_ts = w->eval_ts,
                                .params = { w->params[0], w->params[1] },
                                .scratch = w->order,
                                .flags = w->flags,
                                .poll = w->poll };

    if (!alone && !floats_alone(w, &floats))
        return PQ_NATIVE_NO_MEMORY;
    *ret_value = pq_number(0);
    if (floats.count == 0 || !pq_fn_range_kernel(fn, w->mode)(&floats, &ret_value->number))
        return PQ_NATIVE_NONE;
    *w->flags |= PQ_WINDOW_FLOATS;
    return PQ_NATIVE_VALUE;
}

/* A window of one kind only. */
static enum pq_native_result run_either(enum pq_function_id fn, const struct pq_native_window *w,
                                        struct pq_value *ret_value)
{
    size_t histograms = count_histograms(w);

    if (histograms == 0)
        return run_floats(fn, w, true, ret_value);
    if (histograms == w->count)
        return pq_kernels_of(fn)->mixed(w, ret_value);
    *w->flags |= PQ_WINDOW_MIXED_KINDS;
    return PQ_NATIVE_NONE;
}

/* Of several kinds, only the last two samples count. */
static enum pq_native_result run_pair(enum pq_function_id fn, const struct pq_native_window *w,
                                      struct pq_value *ret_value)
{
    struct pq_native_window pair = *w;

    if (w->count < 2)
        return PQ_NATIVE_NONE;
    pair.ts += w->count - 2;
    pair.values += w->count - 2;
    pair.histograms += w->count - 2;
    if (w->start_ts)
        pair.start_ts += w->count - 2;
    pair.count = 2;
    return run_either(fn, &pair, ret_value);
}

static enum pq_native_result run_ignoring(enum pq_function_id fn, const struct pq_native_window *w,
                                          struct pq_value *ret_value)
{
    size_t histograms = count_histograms(w);

    if (histograms > 0 && histograms < w->count)
        *w->flags |= PQ_WINDOW_IGNORED;
    return run_floats(fn, w, histograms == 0, ret_value);
}

enum pq_native_result pq_native_run(enum pq_function_id fn, const struct pq_native_window *w,
                                    struct pq_value *ret_value)
{
    *ret_value = (struct pq_value){ 0 };
    if (w->count == 0)
        return PQ_NATIVE_NONE;
    switch (pq_function_get(fn)->histograms) {
    case PQ_HISTOGRAMS_ALIKE:
        return pq_kernels_of(fn)->mixed(w, ret_value);
    case PQ_HISTOGRAMS_EITHER:
        return run_either(fn, w, ret_value);
    case PQ_HISTOGRAMS_PAIR:
        return run_pair(fn, w, ret_value);
    case PQ_HISTOGRAMS_IGNORE:
        return run_ignoring(fn, w, ret_value);
    case PQ_HISTOGRAMS_NONE: /* no range functions */
    case PQ_HISTOGRAMS_DROP:
    case PQ_HISTOGRAMS_ONLY:
        break;
    }
    return PQ_NATIVE_NONE;
}

enum pq_native_result pq_native_smoothed_at(const struct pq_native_window *w, int64_t at,
                                            struct pq_value *ret_value)
{
    size_t histograms = count_histograms(w);

    *ret_value = (struct pq_value){ 0 };
    if (histograms == w->count)
        return pq_native_interpolated(w, at, ret_value);
    if (histograms > 0) {
        *w->flags |= PQ_WINDOW_MIXED_KINDS;
        return PQ_NATIVE_NONE;
    }
    return pq_fn_smoothed_at(w->ts, w->values, w->count, at, &ret_value->number) ? PQ_NATIVE_VALUE
                                                                                 : PQ_NATIVE_NONE;
}
