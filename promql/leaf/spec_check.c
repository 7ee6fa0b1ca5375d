/* spec_check.c - is this a leaf that can be run? Asked of everything that came over a wire. */
#include "promql/func/binary_op.h"
#include "promql/leaf/leaf_int.h"

/* Times far beyond any that make sense, but whose sums still fit int64. */
#define TIME_MAX ((int64_t)1 << 58)

static bool time_fits(int64_t ms)
{
    return ms >= -TIME_MAX && ms <= TIME_MAX;
}

static bool grid_valid(const struct pq_grid *grid)
{
    int64_t span;

    return grid->count >= 1 && grid->count <= PQ_GRID_MAX && grid->step_ms >= 1 &&
           time_fits(grid->start_ms) &&
           !__builtin_mul_overflow(grid->step_ms, (int64_t)grid->count, &span) && time_fits(span) &&
           time_fits(grid->start_ms + span);
}

static bool times_valid(const struct pq_stage *stage)
{
    return grid_valid(&stage->grid) && time_fits(stage->offset_ms) && stage->range_ms >= 0 &&
           time_fits(stage->range_ms) && stage->lookback_ms >= 0 && time_fits(stage->lookback_ms) &&
           !(stage->anchored && stage->smoothed);
}

static bool function_fits(const struct pq_stage *stage)
{
    const struct pq_function *function = pq_function_get(stage->function);

    return function->leaf && pq_function_takes_scalars(function, stage->param_count);
}

static bool window_valid(const struct pq_stage *stage, bool subquery)
{
    enum pq_window_mode mode = stage->anchored   ? PQ_WINDOW_ANCHORED
                               : stage->smoothed ? PQ_WINDOW_SMOOTHED
                                                 : PQ_WINDOW_PLAIN;

    if (stage->function == PQ_FN__COUNT || (subquery && mode != PQ_WINDOW_PLAIN))
        return false;
    return times_valid(stage) && function_fits(stage) &&
           pq_fn_range_kernel(stage->function, mode) &&
           pq_fn_range_params_check(stage->function, stage->params, NULL) == QF_OK;
}

static bool value_valid(const struct pq_stage *stage)
{
    return stage->function != PQ_FN__COUNT && function_fits(stage) &&
           pq_function_get(stage->function)->kind == PQ_CLASS_VALUE;
}

static bool stage_valid(const struct pq_stage *stage, size_t index, const struct pq_leaf *leaf)
{
    if (stage->take == PQ_TAKE_ALL && stage->kind != PQ_STAGE_SAMPLES)
        return false;
    switch (stage->kind) {
    case PQ_STAGE_INSTANT:
        return index == 0 && times_valid(stage) && !stage->anchored &&
               (!stage->smoothed || stage->take == PQ_TAKE_VALUE);
    case PQ_STAGE_WINDOW:
        return window_valid(stage, index > 0);
    case PQ_STAGE_FUNCTION:
        return index > 0 && value_valid(stage);
    case PQ_STAGE_BINARY:
        return index > 0 && stage->param_count == 1 &&
               (pq_fn_arith(stage->op) || pq_fn_compare(stage->op));
    case PQ_STAGE_SAMPLES:
        return times_valid(stage) && leaf->stage_count == 1;
    case PQ_STAGE__COUNT:
        break;
    }
    return false;
}

/* The kind is that of the aggregation, and what the aggregation needs is there. */
static bool aggregation_valid(const struct pq_leaf *leaf)
{
    const struct pq_aggregation *agg = leaf->agg;

    if (!agg)
        return (leaf->kind == &pq_leaf_series || leaf->kind == &pq_leaf_samples) &&
               leaf->grouping_count == 0;
    if (!agg->kind || leaf->kind != agg->kind)
        return false;
    switch (agg->shape) {
    case PQ_AGG_FOLDS:
        return true;
    case PQ_AGG_SELECTS:
        return leaf->param >= 1 && leaf->param <= (double)UINT32_MAX;
    case PQ_AGG_TALLIES:
        return leaf->label.len > 0;
    }
    return false;
}

bool pq_leaf_valid(const struct pq_leaf *leaf)
{
    if (leaf->stage_count == 0 || !aggregation_valid(leaf) || !time_fits(leaf->select.min_ts) ||
        !time_fits(leaf->select.max_ts))
        return false;
    if ((leaf->kind == &pq_leaf_samples) != (leaf->stages[0].kind == PQ_STAGE_SAMPLES))
        return false;
    for (size_t i = 0; i < leaf->stage_count; i++)
        if (!stage_valid(&leaf->stages[i], i, leaf))
            return false;
    for (size_t i = 1; i < leaf->grouping_count; i++)
        if (qf_str_cmp(leaf->grouping[i - 1], leaf->grouping[i]) >= 0)
            return false;
    return true;
}
