/* chain.c - one series through the stages of a leaf. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "promql/func/extended.h"
#include "promql/func/texts.h"
#include "promql/histogram/arith.h"
#include "promql/leaf/leaf_int.h"
#include "promql/leaf/values.h"

void pq_chain_init(struct pq_chain *chain, const struct pq_leaf *leaf, uint64_t samples_max,
                   struct pq_notes *notes, struct pq_poll *poll)
{
    uint64_t steps = 1;

    *chain =
        (struct pq_chain){ .leaf = leaf, .notes = notes, .samples_max = samples_max, .poll = poll };
    for (size_t i = 0; i < leaf->stage_count; i++)
        steps = QF_MAX(steps, leaf->stages[i].grid.count);
    chain->lane_capacity = (size_t)steps;
    for (size_t i = 0; i < QF_COUNT_OF(chain->lanes); i++) {
        chain->lanes[i].values = qf_xcalloc(chain->lane_capacity, sizeof(double));
        chain->lanes[i].present = qf_xcalloc(chain->lane_capacity, 1);
    }
}

void pq_chain_done(struct pq_chain *chain)
{
    for (size_t i = 0; i < QF_COUNT_OF(chain->lanes); i++) {
        free(chain->lanes[i].values);
        free(chain->lanes[i].present);
    }
    free(chain->ts);
    free(chain->start_ts);
    free(chain->values);
    free(chain->order);
}

void pq_chain_reserve(struct pq_chain *chain, size_t count)
{
    if (count <= chain->capacity)
        return;
    count = QF_MAX(count, chain->capacity * 2);
    chain->ts = qf_xrealloc(chain->ts, count * sizeof(*chain->ts));
    chain->start_ts = qf_xrealloc(chain->start_ts, count * sizeof(*chain->start_ts));
    chain->values = qf_xrealloc(chain->values, count * sizeof(*chain->values));
    chain->order = qf_xrealloc(chain->order, count * sizeof(*chain->order));
    chain->capacity = count;
}

static bool has_stale(struct pq_chain *chain, const struct pq_series *series)
{
    if (series->no_stale)
        return false;
    for (size_t i = 0, end; (end = pq_poll_piece(chain->poll, i, series->count)) > i; i = end)
        if (pq_fn_has_stale(series->values + i, end - i))
            return true;
    return false;
}

/* The samples of a series as range functions want them. */
static struct pq_fn_samples without_stale(struct pq_chain *chain, const struct pq_series *series)
{
    const int64_t *start_ts = chain->leaf->start_timestamps ? series->start_ts : NULL;
    struct pq_fn_samples samples = { series->ts, series->values, start_ts, series->count };

    pq_chain_reserve(chain, series->count);
    if (!has_stale(chain, series))
        return samples;
    samples.count = 0;
    for (size_t i = 0, end; (end = pq_poll_piece(chain->poll, i, series->count)) > i; i = end)
        samples.count +=
            pq_fn_drop_stale(series->ts + i, series->values + i, start_ts ? start_ts + i : NULL,
                             end - i, chain->ts + samples.count, chain->values + samples.count,
                             chain->start_ts + samples.count);
    samples.ts = chain->ts;
    samples.values = chain->values;
    samples.start_ts = start_ts ? chain->start_ts : NULL;
    return samples;
}

/* The values of the grid below a subquery, as samples. */
static struct pq_fn_samples from_lane(struct pq_chain *chain, const struct pq_lane *lane,
                                      const struct pq_grid *grid)
{
    size_t count = 0;

    pq_chain_reserve(chain, lane->points);
    PQ_POLL_EACH (chain->poll, k, 0, lane->count) {
        if (!lane->present[k])
            continue;
        chain->ts[count] = pq_grid_time(grid, k);
        chain->values[count++] = lane->values[k];
    }
    return (struct pq_fn_samples){ chain->ts, chain->values, NULL, count };
}

/* Newest sample of (ref - lookback, ref] for each step; a stale marker ends the series. */
static void run_instant(struct pq_chain *chain, const struct pq_stage *stage,
                        const struct pq_series *series, struct pq_lane *out)
{
    int64_t ref = stage->grid.start_ms - stage->offset_ms;
    size_t next = 0; /* first sample after ref */

    out->points = 0;
    PQ_POLL_EACH (chain->poll, k, 0, out->count) {
        next = pq_fn_advance(series->ts, series->count, next, ref);
        out->present[k] = next > 0 && series->ts[next - 1] > ref - stage->range_ms &&
                          !qf_is_stale(series->values[next - 1]);
        out->values[k] = out->present[k] ? series->values[next - 1] : 0;
        out->points += out->present[k];
        ref += stage->grid.step_ms;
        if (!out->present[k] || stage->take == PQ_TAKE_VALUE)
            continue;
        if (stage->take == PQ_TAKE_TIMESTAMP || stage->take == PQ_TAKE_INFO)
            out->values[k] = (double)series->ts[next - 1] / 1000;
        else
            out->values[k] = series->start_ts ? (double)series->start_ts[next - 1] / 1000 : 0;
    }
}

/* The histograms of the samples that run_instant() found. */
static qf_rc take_histograms(struct pq_chain *chain, const struct pq_stage *stage,
                             const struct pq_series *series, struct pq_lane *out,
                             struct qf_err *err)
{
    int64_t ref = stage->grid.start_ms - stage->offset_ms;
    size_t next = 0;

    PQ_POLL_EACH (chain->poll, k, 0, out->count) {
        next = pq_fn_advance(series->ts, series->count, next, ref);
        ref += stage->grid.step_ms;
        if (out->present[k] && series->histograms[next - 1]) {
            struct pq_value value = { .histogram = series->histograms[next - 1] };
            qf_rc rc = pq_lane_put(chain, out, k, value, err);

            if (rc != QF_OK)
                return rc;
        }
    }
    return QF_OK;
}

static void run_smoothed(struct pq_poll *poll, const struct pq_stage *stage,
                         const struct pq_fn_samples *samples, struct pq_lane *out)
{
    out->points = 0;
    PQ_POLL_EACH (poll, k, 0, out->count) {
        int64_t ref = pq_grid_time(&stage->grid, k) - stage->offset_ms;
        size_t first, count = pq_fn_find_window(samples->ts, samples->count, ref - stage->range_ms,
                                                ref + stage->lookback_ms, &first);

        out->values[k] = 0;
        out->present[k] = pq_fn_smoothed_at(samples->ts + first, samples->values + first, count,
                                            ref, &out->values[k]);
        out->points += out->present[k];
    }
}

/* Nothing comes of nothing. */
static void clear_lane(struct pq_lane *lane)
{
    memset(lane->values, 0, lane->count * sizeof(*lane->values));
    memset(lane->present, 0, lane->count);
    lane->points = 0;
}

/* A subquery's results know nothing of resets: the samples between them were passed over. */
static const struct pq_histogram *forget_resets(struct qf_arena *scope,
                                                const struct pq_histogram *h)
{
    if (!h || h->reset_hint == PQ_RESET_UNKNOWN || h->reset_hint == PQ_RESET_GAUGE)
        return h;
    return pq_histogram_hinted(scope, h, PQ_RESET_UNKNOWN);
}

/* The values of the grid below a subquery with histograms among them. */
static qf_rc run_mixed_below(struct pq_chain *chain, const struct pq_stage *stage,
                             const struct pq_grid *below, struct qf_str name,
                             const struct pq_lane *lane, struct pq_lane *out, struct qf_err *err)
{
    struct pq_fn_samples samples = from_lane(chain, lane, below);
    const struct pq_histogram **items =
        QF_ARENA_ARRAY(chain->scope, const struct pq_histogram *, samples.count);
    struct pq_series series = {
        .ts = samples.ts, .values = samples.values, .histograms = items, .count = samples.count
    };
    size_t count = 0;

    for (size_t k = 0; items && k < lane->count && count < samples.count; k++) {
        if (!lane->present[k])
            continue;
        items[count] = forget_resets(chain->scope, lane->histograms[k]);
        if (lane->histograms[k] && !items[count])
            return pq_leaf_no_memory(err);
        count++;
    }
    return items ? pq_chain_run_mixed(chain, stage, name, &series, out, err)
                 : pq_leaf_no_memory(err);
}

enum pq_window_mode pq_stage_window_mode(const struct pq_stage *stage)
{
    if (stage->anchored)
        return PQ_WINDOW_ANCHORED;
    return stage->smoothed ? PQ_WINDOW_SMOOTHED : PQ_WINDOW_PLAIN;
}

/* What is to be said of native histograms. */
static void note_histograms(struct pq_notes *notes, struct pq_pos pos, struct qf_str name,
                            unsigned flags)
{
    if (flags & PQ_WINDOW_NOT_COUNTER)
        pq_note_not_counter(notes, pos, name);
    if (flags & PQ_WINDOW_NOT_GAUGE)
        pq_note_not_gauge(notes, pos, name);
    if (flags & PQ_WINDOW_MIXED_SCHEMAS)
        pq_note_mixed_schemas(notes, pos, name);
    if (flags & PQ_WINDOW_MIXED_KINDS)
        pq_note_mixed_floats(notes, pos, name);
    if (flags & PQ_WINDOW_IGNORED)
        pq_note_histogram_ignored_range(notes, pos, name);
    if (flags & PQ_WINDOW_RECONCILED_SUB)
        pq_note_reconciled(notes, pos, "subtraction");
    if (flags & PQ_WINDOW_RECONCILED_ADD)
        pq_note_reconciled(notes, pos, "addition");
    if (flags & PQ_WINDOW_RECONCILED_AGG)
        pq_note_reconciled(notes, pos, "aggregation");
    if (flags & PQ_WINDOW_CONFLICT_AGG)
        pq_note_reset_conflict(notes, pos, "aggregation");
}

void pq_window_notes(struct pq_notes *notes, const struct pq_stage *stage, struct qf_str name,
                     unsigned flags)
{
    const struct pq_function *function =
        stage->kind == PQ_STAGE_WINDOW ? pq_function_get(stage->function) : NULL;

    if (function && function->counter && (flags & PQ_WINDOW_FLOATS))
        pq_note_counter_name(notes, stage->pos, name);
    if (function && function->quantile && (flags & PQ_WINDOW_FLOATS))
        pq_note_quantile(notes, stage->pos, stage->params[0]);
    if (flags & PQ_WINDOW_START_OVERLAP)
        pq_note_start_overlap(notes, stage->pos, name);
    note_histograms(notes, stage->pos, name, flags);
}

static void run_window(struct pq_chain *chain, const struct pq_stage *stage, struct qf_str name,
                       const struct pq_fn_samples *samples, struct pq_lane *out)
{
    struct pq_fn_range_call call = {
        .fn = stage->function,
        .mode = pq_stage_window_mode(stage),
        .range_ms = stage->range_ms,
        .lookback_ms = stage->lookback_ms,
        .params = { stage->params[0], stage->params[1] },
        .scratch = chain->order,
        .poll = chain->poll,
    };
    struct pq_fn_grid grid = { .start = stage->grid.start_ms,
                               .step = stage->grid.step_ms,
                               .count = out->count,
                               .offset = stage->offset_ms };
    unsigned flags = 0;

    out->points = pq_fn_range_steps(&call, samples, &grid, out->values, out->present, &flags);
    if (out->points > 0)
        pq_window_notes(chain->notes, stage, name, flags | PQ_WINDOW_FLOATS);
}

static void run_function(struct pq_poll *poll, const struct pq_stage *stage, struct pq_lane *lane)
{
    struct pq_scalar_arg args[PQ_STAGE_PARAMS_MAX] = { { &stage->params[0], 0 },
                                                       { &stage->params[1], 0 } };

    if (pq_values_function_empty(stage->function, args, stage->param_count, 0)) {
        memset(lane->present, 0, lane->count);
        lane->points = 0;
        return;
    }
    for (size_t k = 0, end; (end = pq_poll_piece(poll, k, lane->count)) > k; k = end)
        pq_values_function(stage->function, lane->values + k, end - k, args, stage->param_count);
}

/* The part [from, until) of the lane. */
static void run_binary(const struct pq_stage *stage, struct pq_lane *lane, uint8_t *keep,
                       size_t from, size_t until)
{
    struct pq_scalar_arg arg = { &stage->params[0], 0 };
    double *values = lane->values + from;

    if (!pq_op_compares(stage->op)) {
        pq_values_arith(stage->op, values, until - from, arg, stage->scalar_left);
        return;
    }
    pq_values_compare(stage->op, values, until - from, arg, stage->scalar_left, keep);
    if (stage->return_bool) {
        for (size_t k = 0; k < until - from; k++)
            values[k] = keep[k];
        return;
    }
    for (size_t k = from; k < until; k++) {
        uint8_t kept = lane->present[k] & keep[k - from];

        lane->points -= (size_t)(lane->present[k] - kept);
        lane->present[k] = kept;
    }
}

/* The most samples any one window holds. Prometheus adds them to the points it has so far; here
 * only one window alone counts, because what "so far" is depends on the shards. */
static size_t widest_window(struct pq_poll *poll, const struct pq_stage *stage,
                            const struct pq_fn_samples *samples)
{
    size_t widest = 0, low = 0, high = 0;

    PQ_POLL_EACH (poll, k, 0, (size_t)stage->grid.count) {
        int64_t end = pq_grid_time(&stage->grid, k) - stage->offset_ms;

        high = pq_fn_advance(samples->ts, samples->count, high, end);
        low = pq_fn_advance(samples->ts, high, low, end - stage->range_ms);
        widest = QF_MAX(widest, high - low);
    }
    return widest;
}

static qf_rc count_points(struct pq_chain *chain, const struct pq_stage *stage,
                          const struct pq_fn_samples *samples, const struct pq_lane *out,
                          struct qf_err *err)
{
    uint64_t held = 0;

    chain->points += out->points;
    if (chain->points_by_step)
        PQ_POLL_EACH (chain->poll, k, 0, out->count)
            chain->points_by_step[k] += out->present[k];
    if (chain->samples_max == 0)
        return QF_OK;
    if (samples && samples->count > chain->samples_max)
        held = widest_window(chain->poll, stage, samples);
    if (chain->points > chain->samples_max || held > chain->samples_max)
        return qf_err_set(err, QF_ELIMIT, PQ_TOO_MANY_SAMPLES);
    return QF_OK;
}

/* A stage that looks at time: at the series, or at the lane below it. */
static qf_rc run_time(struct pq_chain *chain, const struct pq_stage *stage,
                      const struct pq_grid *below, struct qf_str name,
                      const struct pq_series *series, struct pq_lane *lane, struct pq_lane *out,
                      struct qf_err *err)
{
    bool window = stage->kind == PQ_STAGE_WINDOW;
    struct pq_fn_samples samples = { 0 };
    qf_rc rc = QF_OK;

    if (!window && !stage->smoothed) {
        run_instant(chain, stage, series, out);
        if (series->histograms && stage->take == PQ_TAKE_VALUE)
            rc = take_histograms(chain, stage, series, out, err);
        if (rc != QF_OK)
            return rc;
        return count_points(chain, stage, NULL, out, err);
    }
    if (below ? lane->histograms != NULL : series->histograms != NULL) {
        rc = below ? run_mixed_below(chain, stage, below, name, lane, out, err)
                   : pq_chain_run_mixed(chain, stage, name, series, out, err);
        return rc == QF_OK ? count_points(chain, stage, NULL, out, err) : rc;
    }
    samples = below ? from_lane(chain, lane, below) : without_stale(chain, series);
    if (samples.count == 0)
        clear_lane(out);
    else if (window)
        run_window(chain, stage, name, &samples, out);
    else
        run_smoothed(chain->poll, stage, &samples, out);
    return count_points(chain, stage, window ? &samples : NULL, out, err);
}

static qf_rc run_stages(struct pq_chain *chain, const struct pq_series *series,
                        struct pq_lane *ret_lane, struct qf_err *err)
{
    const struct pq_leaf *leaf = chain->leaf;
    const struct pq_grid *below = NULL;
    struct qf_str name = qf_labels_get(series->labels, QF_STR(QF_METRIC_NAME));
    size_t current = 0;

    for (size_t i = 0; i < leaf->stage_count; i++) {
        const struct pq_stage *stage = &leaf->stages[i];
        struct pq_lane *lane = &chain->lanes[current], *other = &chain->lanes[1 - current];
        qf_rc rc;

        if (stage->kind == PQ_STAGE_FUNCTION) {
            (void)pq_lane_drop_histograms(lane);
            run_function(chain->poll, stage, lane);
        } else if (stage->kind == PQ_STAGE_BINARY) {
            rc = pq_lane_binary_histograms(chain, stage, lane, err);
            if (rc != QF_OK)
                return rc;
            for (size_t k = 0, end; (end = pq_poll_piece(chain->poll, k, lane->count)) > k; k = end)
                run_binary(stage, lane, other->present, k, end);
        } else {
            other->count = (size_t)stage->grid.count;
            other->histograms = NULL;
            rc = run_time(chain, stage, below, name, series, lane, other, err);
            if (rc != QF_OK)
                return rc;
            below = &stage->grid;
            current = 1 - current;
        }
        if (!leaf->delayed_name_removal && pq_stage_drops_names(stage))
            name = QF_STR("");
    }
    *ret_lane = chain->lanes[current];
    return QF_OK;
}

qf_rc pq_chain_run(struct pq_chain *chain, const struct pq_series *series, struct pq_lane *ret_lane,
                   struct qf_err *err)
{
    struct pq_series own = *series;
    qf_rc rc;

    if (chain->scope)
        qf_arena_reset(chain->scope);
    rc = pq_chain_find_resets(chain, &own, err);
    return rc == QF_OK ? run_stages(chain, &own, ret_lane, err) : rc;
}
