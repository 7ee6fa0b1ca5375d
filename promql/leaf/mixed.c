/* mixed.c - series and grids that hold native histograms beside floats, or instead of them.
 *
 * Nothing is computed with histograms here. Functions that count samples or pick one treat both
 * kinds alike; others look at the floats alone, and say so; what would need arithmetic on
 * histograms is refused. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "promql/func/histogram.h"
#include "promql/func/texts.h"
#include "promql/leaf/leaf_int.h"
#include "promql/leaf/values.h"

qf_rc pq_leaf_refuse(const char *what, struct qf_err *err)
{
    return qf_err_set(err, QF_EUNSUPPORTED, PQ_NO_HISTOGRAMS, what);
}

void pq_lane_begin_histograms(struct pq_chain *chain, struct pq_lane *lane)
{
    if (!lane->histograms)
        lane->histograms = qf_xcalloc(chain->lane_capacity, sizeof(*lane->histograms));
    memset(lane->histograms, 0, lane->count * sizeof(*lane->histograms));
}

size_t pq_lane_drop_histograms(struct pq_lane *lane)
{
    size_t dropped = 0;

    for (size_t k = 0; lane->any_histogram && k < lane->count; k++) {
        if (!lane->present[k] || !lane->histograms[k])
            continue;
        lane->present[k] = 0;
        dropped++;
    }
    lane->points -= dropped;
    lane->any_histogram = false;
    return dropped;
}

qf_rc pq_lane_binary_histograms(const struct pq_stage *stage, struct pq_lane *lane,
                                struct pq_notes *notes, struct qf_err *err)
{
    bool computes = stage->op == PQ_OP_MUL || stage->op == PQ_OP_TRIM_UPPER ||
                    stage->op == PQ_OP_TRIM_LOWER ||
                    (stage->op == PQ_OP_DIV && !stage->scalar_left);

    if (!lane->any_histogram)
        return QF_OK;
    if (computes)
        return pq_leaf_refuse(pq_op_text(stage->op), err);
    if (pq_lane_drop_histograms(lane) > 0)
        pq_note_binop_types(notes, stage->pos, stage->scalar_left ? "float" : "histogram",
                            pq_op_text(stage->op), stage->scalar_left ? "histogram" : "float");
    return QF_OK;
}

/* Floats and histograms of a series apart; each is a window of its own at every step. */
struct mixed {
    struct pq_fn_samples floats;
    const int64_t *ts;
    const struct pq_histogram *const *items;
    size_t count;
    bool subquery;
};

/* One step: [low, high) of both. */
struct mixed_window {
    size_t low, high, h_low, h_high;
    int64_t start, end, eval_ts;
};

/* The first sample of the window, or the last one. */
static const struct pq_histogram *end_of_window(const struct mixed *mixed,
                                                const struct mixed_window *w, bool last,
                                                int64_t *ret_ts, double *ret_value)
{
    size_t f = last ? w->high - 1 : w->low, h = last ? w->h_high - 1 : w->h_low;
    bool floats = w->high > w->low;

    if (floats && w->h_high > w->h_low)
        floats = last == (mixed->floats.ts[f] > mixed->ts[h]);
    *ret_ts = floats ? mixed->floats.ts[f] : mixed->ts[h];
    *ret_value = floats ? mixed->floats.values[f] : 0;
    return floats ? NULL : mixed->items[h];
}

static qf_rc pick(const struct mixed *mixed, enum pq_function_id function,
                  const struct mixed_window *w, struct pq_lane *out, size_t k, struct qf_err *err)
{
    bool last = function == PQ_FN_LAST_OVER_TIME || function == PQ_FN_TS_OF_LAST_OVER_TIME;
    const struct pq_histogram *histogram;
    double value;
    int64_t ts;

    out->present[k] = 1;
    if (function == PQ_FN_COUNT_OVER_TIME || function == PQ_FN_PRESENT_OVER_TIME ||
        function == PQ_FN_ABSENT_OVER_TIME) {
        out->values[k] = function == PQ_FN_COUNT_OVER_TIME
                             ? (double)(w->high - w->low + w->h_high - w->h_low)
                             : 1;
        return QF_OK;
    }
    histogram = end_of_window(mixed, w, last, &ts, &value);
    if (function == PQ_FN_TS_OF_LAST_OVER_TIME || function == PQ_FN_TS_OF_FIRST_OVER_TIME) {
        out->values[k] = (double)ts / 1000;
        return QF_OK;
    }
    /* A subquery forgets what was known of resets, so it is not the same histogram any more. */
    if (histogram && mixed->subquery)
        return pq_leaf_refuse("this function over a subquery", err);
    out->values[k] = value;
    out->histograms[k] = histogram;
    out->any_histogram |= histogram != NULL;
    return QF_OK;
}

static void run_floats(struct pq_chain *chain, const struct pq_stage *stage,
                       const struct mixed *mixed, const struct mixed_window *w, unsigned *flags,
                       struct pq_lane *out, size_t k)
{
    struct pq_window window = {
        .ts = mixed->floats.ts + w->low,
        .values = mixed->floats.values + w->low,
        .start_ts = mixed->floats.start_ts ? mixed->floats.start_ts + w->low : NULL,
        .count = w->high - w->low,
        .range_start = w->start,
        .range_end = w->end,
        .eval_ts = w->eval_ts,
        .params = { stage->params[0], stage->params[1] },
        .scratch = chain->order,
        .flags = flags,
        .poll = chain->poll,
    };
    pq_window_fn *kernel = pq_fn_range_kernel(stage->function, PQ_WINDOW_PLAIN);

    out->present[k] = window.count > 0 && kernel(&window, &out->values[k]);
    if (!out->present[k])
        out->values[k] = 0;
}

/* Histograms among the last two samples: 0, 1 or 2; -1 if there are not two samples. */
static int histograms_in_pair(const struct mixed *mixed, const struct mixed_window *w)
{
    struct mixed_window rest = *w;
    const struct pq_histogram *last, *before;
    double value;
    int64_t ts;

    if (w->high - w->low + w->h_high - w->h_low < 2)
        return -1;
    last = end_of_window(mixed, &rest, true, &ts, &value);
    rest.high -= !last;
    rest.h_high -= last != NULL;
    before = end_of_window(mixed, &rest, true, &ts, &value);
    return (last != NULL) + (before != NULL);
}

static qf_rc run_step(struct pq_chain *chain, const struct pq_stage *stage, struct qf_str name,
                      const struct mixed *mixed, const struct mixed_window *w, unsigned *flags,
                      struct pq_lane *out, size_t k, struct qf_err *err)
{
    bool floats = w->high > w->low, histograms = w->h_high > w->h_low;
    const struct pq_function *function = pq_function_get(stage->function);
    enum pq_histogram_rule rule = function->histograms;
    int pair;

    if (histograms && rule == PQ_HISTOGRAMS_REFUSE)
        return pq_leaf_refuse(function->name, err);
    if (rule == PQ_HISTOGRAMS_ALIKE)
        return floats || histograms ? pick(mixed, stage->function, w, out, k, err) : QF_OK;
    if (histograms && rule == PQ_HISTOGRAMS_PAIR) {
        pair = histograms_in_pair(mixed, w);
        if (pair == 2)
            return pq_leaf_refuse(function->name, err);
        if (pair == 1)
            pq_note_mixed_floats(chain->notes, stage->pos, name);
        if (pair != 0)
            return QF_OK;
    }
    if (histograms && rule == PQ_HISTOGRAMS_EITHER) {
        if (!floats)
            return pq_leaf_refuse(function->name, err);
        pq_note_mixed_floats(chain->notes, stage->pos, name);
        return QF_OK;
    }
    if (histograms && floats && rule == PQ_HISTOGRAMS_IGNORE)
        pq_note_histogram_ignored_range(chain->notes, stage->pos, name);
    run_floats(chain, stage, mixed, w, flags, out, k);
    return QF_OK;
}

static qf_rc run_steps(struct pq_chain *chain, const struct pq_stage *stage, struct qf_str name,
                       const struct mixed *mixed, struct pq_lane *out, struct qf_err *err)
{
    struct mixed_window w = { 0 };
    unsigned flags = 0;

    out->points = 0;
    pq_lane_begin_histograms(chain, out);
    PQ_POLL_EACH (chain->poll, k, 0, out->count) {
        qf_rc rc;

        w.eval_ts = pq_grid_time(&stage->grid, k);
        w.end = w.eval_ts - stage->offset_ms;
        w.start = w.end - stage->range_ms;
        w.high = pq_fn_advance(mixed->floats.ts, mixed->floats.count, w.high, w.end);
        w.low = pq_fn_advance(mixed->floats.ts, w.high, w.low, w.start);
        w.h_high = pq_fn_advance(mixed->ts, mixed->count, w.h_high, w.end);
        w.h_low = pq_fn_advance(mixed->ts, w.h_high, w.h_low, w.start);
        out->values[k] = 0;
        out->present[k] = 0;
        rc = run_step(chain, stage, name, mixed, &w, &flags, out, k, err);
        if (rc != QF_OK)
            return rc;
        out->points += out->present[k];
    }
    if (out->points > 0)
        pq_window_notes(chain->notes, stage, name, flags);
    return QF_OK;
}

qf_rc pq_chain_window_mixed(struct pq_chain *chain, const struct pq_stage *stage,
                            struct qf_str name, const struct pq_series *series, bool subquery,
                            struct pq_lane *out, struct qf_err *err)
{
    QF_CLEANUP(qf_freep)
    const struct pq_histogram **items = qf_xcalloc(series->count + 1, sizeof(*items));
    QF_CLEANUP(qf_freep) int64_t *h_ts = qf_xcalloc(series->count + 1, sizeof(*h_ts));
    QF_CLEANUP(qf_freep) int64_t *ts = qf_xcalloc(series->count + 1, sizeof(*ts));
    QF_CLEANUP(qf_freep) int64_t *start_ts = qf_xcalloc(series->count + 1, sizeof(*start_ts));
    QF_CLEANUP(qf_freep) double *values = qf_xcalloc(series->count + 1, sizeof(*values));
    bool starts = chain->leaf->start_timestamps && series->start_ts;
    struct mixed mixed = { .floats = { ts, values, starts ? start_ts : NULL, 0 },
                           .ts = h_ts,
                           .items = items,
                           .subquery = subquery };

    for (size_t i = 0; i < series->count; i++) {
        if (series->histograms[i]) {
            h_ts[mixed.count] = series->ts[i];
            items[mixed.count++] = series->histograms[i];
        } else if (!qf_is_stale(series->values[i])) {
            ts[mixed.floats.count] = series->ts[i];
            start_ts[mixed.floats.count] = starts ? series->start_ts[i] : 0;
            values[mixed.floats.count++] = series->values[i];
        }
    }
    pq_chain_reserve(chain, series->count);
    return run_steps(chain, stage, name, &mixed, out, err);
}
