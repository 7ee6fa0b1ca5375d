/* mixed.c - series and grids that hold native histograms beside floats, or instead of them. */
#include "base/pure/number.h"
#include "promql/func/histogram.h"
#include "promql/func/texts.h"
#include "promql/func/value_op.h"
#include "promql/histogram/arith.h"
#include "promql/histogram/reset.h"
#include "promql/histogram/window.h"
#include "promql/leaf/leaf_int.h"
#include "promql/leaf/values.h"

struct qf_arena *pq_chain_scope(struct pq_chain *chain)
{
    if (!chain->scratch)
        chain->scratch = qf_arena_new_within(chain->notes->arena);
    if (!chain->scope && chain->scratch)
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

/* The hint of a sample that follows @prev. */
static const struct pq_histogram *find_reset(struct qf_arena *scope, const struct pq_histogram *h,
                                             const struct pq_histogram *prev)
{
    if (!prev || h->reset_hint != PQ_RESET_UNKNOWN)
        return h;
    return pq_histogram_hinted(scope, h,
                               pq_histogram_is_reset(h, prev) ? PQ_RESET_YES : PQ_RESET_NO);
}

qf_rc pq_chain_find_resets(struct pq_chain *chain, struct pq_series *series, struct qf_err *err)
{
    const struct pq_histogram *prev = NULL, **items;

    if (!series->histograms || !chain->leaf->finds_resets)
        return QF_OK;
    if (!pq_chain_scope(chain))
        return pq_leaf_no_memory(err);
    items = QF_ARENA_ARRAY(chain->scope, const struct pq_histogram *, series->count);
    if (!items)
        return pq_leaf_no_memory(err);
    PQ_POLL_EACH (chain->poll, i, 0, series->count) {
        const struct pq_histogram *h = series->histograms[i];

        items[i] = h ? find_reset(chain->scope, h, prev) : NULL;
        if (h && !items[i])
            return pq_leaf_no_memory(err);
        if (h)
            prev = h;
        else if (qf_is_stale(series->values[i]))
            prev = NULL;
    }
    series->histograms = items;
    return QF_OK;
}

/* A series without stale markers, which windows slide over. */
struct mixed {
    int64_t *ts, *start_ts;
    double *values;
    const struct pq_histogram **histograms;
    size_t count;
    bool starts;
};

static bool copy_samples(const struct pq_series *series, struct qf_arena *scope, bool starts,
                         struct mixed *ret)
{
    *ret = (struct mixed){
        .ts = qf_arena_alloc(scope, series->count * sizeof(*ret->ts)),
        .start_ts = qf_arena_alloc(scope, series->count * sizeof(*ret->start_ts)),
        .values = qf_arena_alloc(scope, series->count * sizeof(*ret->values)),
        .histograms = qf_arena_alloc(scope, series->count * sizeof(*ret->histograms)),
        .starts = starts,
    };
    if (!ret->ts || !ret->start_ts || !ret->values || !ret->histograms)
        return false;
    for (size_t i = 0; i < series->count; i++) {
        if (!series->histograms[i] && qf_is_stale(series->values[i]))
            continue;
        ret->ts[ret->count] = series->ts[i];
        ret->start_ts[ret->count] = starts ? series->start_ts[i] : 0;
        ret->values[ret->count] = series->values[i];
        ret->histograms[ret->count++] = series->histograms[i];
    }
    return true;
}

/* The samples of [low, high). */
static struct pq_native_window part_of(struct pq_chain *chain, const struct mixed *mixed,
                                       size_t low, size_t high, unsigned *flags)
{
    qf_arena_reset(chain->scratch);
    return (struct pq_native_window){
        .ts = mixed->ts + low,
        .values = mixed->values + low,
        .histograms = mixed->histograms + low,
        .start_ts = mixed->starts ? mixed->start_ts + low : NULL,
        .count = high - low,
        .order = chain->order,
        .scope = chain->scope,
        .scratch = chain->scratch,
        .flags = flags,
        .poll = chain->poll,
    };
}

static qf_rc put_result(struct pq_chain *chain, struct pq_lane *out, size_t k,
                        enum pq_native_result result, struct pq_value value, struct qf_err *err)
{
    switch (result) {
    case PQ_NATIVE_VALUE:
        return pq_lane_put(chain, out, k, value, err);
    case PQ_NATIVE_NO_MEMORY:
        return pq_leaf_no_memory(err);
    case PQ_NATIVE_NONE:
        break;
    }
    return QF_OK;
}

/* Every step of the stage; smoothed instant selectors have windows as well. */
static qf_rc run_steps(struct pq_chain *chain, const struct pq_stage *stage,
                       const struct mixed *mixed, unsigned *flags, struct pq_lane *out,
                       struct qf_err *err)
{
    bool window = stage->kind == PQ_STAGE_WINDOW;
    enum pq_window_mode mode = pq_stage_window_mode(stage);
    int64_t before = window && mode != PQ_WINDOW_PLAIN ? stage->lookback_ms : 0;
    int64_t beyond = mode == PQ_WINDOW_SMOOTHED ? stage->lookback_ms : 0;
    size_t low = 0, high = 0;

    out->points = 0;
    PQ_POLL_EACH (chain->poll, k, 0, out->count) {
        int64_t end = pq_grid_time(&stage->grid, k) - stage->offset_ms;
        int64_t start = end - stage->range_ms;
        enum pq_native_result result;
        struct pq_native_window w;
        struct pq_value value;
        qf_rc rc;

        high = pq_fn_advance(mixed->ts, mixed->count, high, end + beyond);
        low = pq_fn_advance(mixed->ts, high, low, start - before);
        w = part_of(chain, mixed, low, high, flags);
        w.range_start = start;
        w.range_end = end;
        w.eval_ts = pq_grid_time(&stage->grid, k);
        w.params[0] = stage->params[0];
        w.params[1] = stage->params[1];
        w.mode = mode;
        out->values[k] = 0;
        out->present[k] = 0;
        result = window ? pq_native_run(stage->function, &w, &value)
                        : pq_native_smoothed_at(&w, end, &value);
        rc = put_result(chain, out, k, result, value, err);
        if (rc != QF_OK)
            return rc;
    }
    return QF_OK;
}

qf_rc pq_chain_run_mixed(struct pq_chain *chain, const struct pq_stage *stage, struct qf_str name,
                         const struct pq_series *series, struct pq_lane *out, struct qf_err *err)
{
    bool starts = chain->leaf->start_timestamps && series->start_ts;
    struct mixed mixed;
    unsigned flags = 0;
    qf_rc rc;

    if (!pq_chain_scope(chain) || !copy_samples(series, chain->scope, starts, &mixed))
        return pq_leaf_no_memory(err);
    pq_chain_reserve(chain, series->count);
    rc = run_steps(chain, stage, &mixed, &flags, out, err);
    if (rc == QF_OK)
        pq_window_notes(chain->notes, stage, name, flags);
    return rc;
}
