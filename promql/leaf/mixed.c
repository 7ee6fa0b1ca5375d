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
#include "promql/func/value_op.h"
#include "promql/leaf/leaf_int.h"
#include "promql/leaf/values.h"

qf_rc pq_leaf_refuse(const char *what, struct qf_err *err)
{
    return qf_err_set(err, QF_EUNSUPPORTED, PQ_NO_HISTOGRAMS, what);
}

struct qf_arena *pq_chain_scope(struct pq_chain *chain)
{
    if (!chain->scope)
        chain->scope = qf_arena_new_within(chain->notes->arena);
    return chain->scope;
}

qf_rc pq_lane_put(struct pq_chain *chain, struct pq_lane *lane, size_t k, struct pq_value value,
                  struct qf_err *err)
{
    struct qf_arena *scope = value.histogram ? pq_chain_scope(chain) : chain->scope;

    if ((value.histogram && !scope) ||
        !pq_value_put(scope, lane->values, &lane->histograms, lane->count, k, value))
        return pq_leaf_no_memory(err);
    lane->points += !lane->present[k];
    lane->present[k] = 1;
    return QF_OK;
}

size_t pq_lane_drop_histograms(struct pq_lane *lane)
{
    size_t dropped = 0;

    for (size_t k = 0; lane->histograms && k < lane->count; k++) {
        if (!lane->present[k] || !lane->histograms[k])
            continue;
        lane->present[k] = 0;
        dropped++;
    }
    lane->points -= dropped;
    lane->histograms = NULL;
    return dropped;
}

qf_rc pq_lane_binary_histograms(struct pq_chain *chain, const struct pq_stage *stage,
                                struct pq_lane *lane, struct qf_err *err)
{
    struct pq_value_op op = { .op = stage->op,
                              .return_bool = stage->return_bool,
                              .pos = stage->pos,
                              .notes = chain->notes,
                              .scope = chain->scope };
    struct pq_value scalar = pq_number(stage->params[0]), value;
    bool any = false;

    PQ_POLL_EACH (chain->poll, k, 0, lane->histograms ? lane->count : 0) {
        struct pq_value operand = pq_value_at(lane->values, lane->histograms, k);
        bool there;
        qf_rc rc;

        if (!lane->present[k] || !operand.histogram)
            continue;
        rc = stage->scalar_left ? pq_value_op(&op, scalar, operand, &there, &value, err)
                                : pq_value_op(&op, operand, scalar, &there, &value, err);
        lane->histograms[k] = NULL;
        lane->present[k] = 0;
        lane->points--;
        if (rc == QF_OK && there)
            rc = pq_lane_put(chain, lane, k, value, err);
        if (rc != QF_OK)
            return rc;
        any |= lane->histograms[k] != NULL;
    }
    if (!any)
        lane->histograms = NULL;
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
static struct pq_value end_of_window(const struct mixed *mixed, const struct mixed_window *w,
                                     bool last, int64_t *ret_ts)
{
    size_t f = last ? w->high - 1 : w->low, h = last ? w->h_high - 1 : w->h_low;
    bool floats = w->high > w->low;

    if (floats && w->h_high > w->h_low)
        floats = last == (mixed->floats.ts[f] > mixed->ts[h]);
    *ret_ts = floats ? mixed->floats.ts[f] : mixed->ts[h];
    if (floats)
        return pq_number(mixed->floats.values[f]);
    return (struct pq_value){ .histogram = mixed->items[h] };
}

static qf_rc pick(struct pq_chain *chain, const struct mixed *mixed, enum pq_function_id function,
                  const struct mixed_window *w, struct pq_lane *out, size_t k, struct qf_err *err)
{
    bool last = function == PQ_FN_LAST_OVER_TIME || function == PQ_FN_TS_OF_LAST_OVER_TIME;
    size_t count = w->high - w->low + w->h_high - w->h_low;
    struct pq_value value;
    int64_t ts;

    if (function == PQ_FN_COUNT_OVER_TIME)
        return pq_lane_put(chain, out, k, pq_number((double)count), err);
    if (function == PQ_FN_PRESENT_OVER_TIME || function == PQ_FN_ABSENT_OVER_TIME)
        return pq_lane_put(chain, out, k, pq_number(1), err);
    value = end_of_window(mixed, w, last, &ts);
    if (function == PQ_FN_TS_OF_LAST_OVER_TIME || function == PQ_FN_TS_OF_FIRST_OVER_TIME)
        return pq_lane_put(chain, out, k, pq_number((double)ts / 1000), err);
    /* A subquery forgets what was known of resets, so it is not the same histogram any more. */
    if (value.histogram && mixed->subquery)
        return pq_leaf_refuse("this function over a subquery", err);
    return pq_lane_put(chain, out, k, value, err);
}

static qf_rc run_floats(struct pq_chain *chain, const struct pq_stage *stage,
                        const struct mixed *mixed, const struct mixed_window *w, unsigned *flags,
                        struct pq_lane *out, size_t k, struct qf_err *err)
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

    double value;

    if (window.count == 0 || !kernel(&window, &value))
        return QF_OK;
    return pq_lane_put(chain, out, k, pq_number(value), err);
}

/* Histograms among the last two samples: 0, 1 or 2; -1 if there are not two samples. */
static int histograms_in_pair(const struct mixed *mixed, const struct mixed_window *w)
{
    struct mixed_window rest = *w;
    bool last, before;
    int64_t ts;

    if (w->high - w->low + w->h_high - w->h_low < 2)
        return -1;
    last = end_of_window(mixed, &rest, true, &ts).histogram;
    rest.high -= !last;
    rest.h_high -= last;
    before = end_of_window(mixed, &rest, true, &ts).histogram;
    return last + before;
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
        return floats || histograms ? pick(chain, mixed, stage->function, w, out, k, err) : QF_OK;
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
    return run_floats(chain, stage, mixed, w, flags, out, k, err);
}

static qf_rc run_steps(struct pq_chain *chain, const struct pq_stage *stage, struct qf_str name,
                       const struct mixed *mixed, struct pq_lane *out, struct qf_err *err)
{
    struct mixed_window w = { 0 };
    unsigned flags = 0;

    out->points = 0;
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
