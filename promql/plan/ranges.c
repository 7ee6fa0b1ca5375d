/* ranges.c - range functions over selectors and subqueries, and range vectors on their own. */
#include "promql/func/range.h"
#include "promql/plan/plan_int.h"

static const struct pq_expr *matrix_arg(const struct pq_expr *call)
{
    size_t index = pq_function_arg_of(call->call.function, PQ_TYPE_MATRIX);

    return pq_unwrap(call->call.args[index]);
}

/* Constant scalar arguments in the order they are written; false if one may change by step. */
static bool constant_params(struct pq_planner *p, const struct pq_expr *call,
                            struct pq_stage *stage)
{
    size_t matrix = pq_function_arg_of(call->call.function, PQ_TYPE_MATRIX);

    for (size_t i = 0; i < call->call.arg_count; i++) {
        if (i == matrix)
            continue;
        if (stage->param_count == PQ_STAGE_PARAMS_MAX ||
            !pq_plan_constant(p, call->call.args[i], &stage->params[stage->param_count]))
            return false;
        stage->param_count++;
    }
    /* Scalars out of range are an error, but only once there is a sample. */
    return pq_fn_range_params_check(call->call.function->id, stage->params, NULL) == QF_OK;
}

/* Where notes about the call of a range function point to. */
static struct pq_pos window_pos(const struct pq_expr *call)
{
    const struct pq_expr *first = call->call.args[0];

    /* Prometheus runs a subquery first and puts its result, which is written nowhere, in place of
     * the argument. */
    if (pq_unwrap(first)->kind == PQ_SUBQUERY)
        return (struct pq_pos){ 0 };
    return pq_function_arg_of(call->call.function, PQ_TYPE_MATRIX) == 0 ? pq_unwrap(first)->pos
                                                                        : first->pos;
}

/* A WINDOW node above @child (a subquery's expression, or raw samples). */
static struct pq_plan_node *window_node(struct pq_planner *p, const struct pq_expr *call,
                                        const struct pq_grid *grid, struct pq_plan_node *child,
                                        struct pq_plan_window window)
{
    size_t matrix = pq_function_arg_of(call->call.function, PQ_TYPE_MATRIX);
    struct pq_plan_node *node =
        pq_plan_node_new(p, PQ_PLAN_WINDOW, call, grid, call->call.arg_count);
    size_t next = 1;

    if (!node || !child)
        return NULL;
    node->function = call->call.function->id;
    node->window = window;
    node->children[0] = child;
    node->child_pos[0] = window_pos(call);
    for (size_t i = 0; i < call->call.arg_count; i++)
        if (i != matrix)
            node->children[next++] = pq_plan_expr(p, call->call.args[i], grid);
    node->drops_names = !call->call.function->keeps_name;
    return node;
}

/* A selector fixed by @ answers at that time, in its normal form: its values are not samples at the
 * steps of the subquery. */
static bool answers_on(const struct pq_leaf *leaf, const struct pq_grid *grid)
{
    const struct pq_grid *own = pq_leaf_grid(leaf);

    return own->start_ms == grid->start_ms && own->count == grid->count &&
           (own->step_ms == grid->step_ms || own->count == 1);
}

/* The expression of a subquery on its own grid. */
static struct pq_plan_node *plan_subquery(struct pq_planner *p, const struct pq_expr *subquery,
                                          const struct pq_grid *inner)
{
    bool outer = p->in_subquery;
    struct pq_plan_node *node;

    if (inner->count == 0)
        return pq_plan_node_new(p, PQ_PLAN_EMPTY, NULL, inner, 0);
    p->in_subquery = true;
    node = pq_plan_expr(p, subquery->subquery.expr, inner);
    p->in_subquery = outer;
    return node;
}

static struct pq_plan_node *over_subquery(struct pq_planner *p, const struct pq_expr *call,
                                          const struct pq_grid *grid)
{
    const struct pq_expr *subquery = matrix_arg(call);
    struct pq_stage stage = { .kind = PQ_STAGE_WINDOW,
                              .pos = window_pos(call),
                              .grid = *grid,
                              .function = call->call.function->id };
    struct pq_plan_window window;
    struct pq_plan_node *child;
    struct pq_grid inner;

    if (!pq_plan_subgrid(p, subquery, grid, &inner, &window))
        return NULL;
    child = plan_subquery(p, subquery, &inner);
    if (!child)
        return NULL;
    stage.offset_ms = window.offset_ms;
    stage.range_ms = window.range_ms;
    if (window.fixed) {
        /* The time of evaluation is lost in the normal form of one step: only for those functions
         * that look at the data alone. */
        stage.grid = (struct pq_grid){ window.fixed_ms, 1, 1 };
        stage.offset_ms = 0;
    }
    if (pq_leaf_open(p, child) && answers_on(child->leaf, &inner) &&
        constant_params(p, call, &stage) &&
        (!window.fixed || (grid->count == 1 && !call->call.function->eval_time)) &&
        pq_leaf_push(p, child->leaf, stage)) {
        child->grid = *grid;
        child->drops_names |= !call->call.function->keeps_name;
        return child;
    }
    return window_node(p, call, grid, child, window);
}

/* The raw samples of a range selector: for parameters that change by step, and at the root. */
static struct pq_plan_node *raw_samples(struct pq_planner *p, const struct pq_expr *matrix,
                                        const struct pq_grid *grid, const struct pq_times *times,
                                        int64_t range)
{
    struct pq_stage stage = { .kind = PQ_STAGE_SAMPLES,
                              .pos = matrix->pos,
                              .grid = *grid,
                              .offset_ms = times->offset_ms,
                              .range_ms = range };

    if (times->fixed) {
        stage.grid = (struct pq_grid){ times->fixed_ms, 1, 1 };
        stage.offset_ms = 0;
    }
    return pq_leaf_draft(p, matrix->matrix.selector, grid, stage);
}

static struct pq_plan_node *over_selector(struct pq_planner *p, const struct pq_expr *call,
                                          const struct pq_grid *grid)
{
    const struct pq_expr *matrix = matrix_arg(call);
    const struct pq_expr *selector = matrix->matrix.selector;
    struct pq_stage stage = { .kind = PQ_STAGE_WINDOW,
                              .pos = window_pos(call),
                              .grid = *grid,
                              .function = call->call.function->id,
                              .lookback_ms = p->plan->params.lookback_ms,
                              .anchored = selector->vector.anchored,
                              .smoothed = selector->vector.smoothed };
    struct pq_plan_node *node;
    struct pq_times times;
    qf_rc rc;

    rc = pq_fn_range_mode_check(stage.function,
                                stage.anchored   ? PQ_WINDOW_ANCHORED
                                : stage.smoothed ? PQ_WINDOW_SMOOTHED
                                                 : PQ_WINDOW_PLAIN,
                                p->err);
    if (rc != QF_OK) {
        p->rc = rc;
        return NULL;
    }
    if (!pq_plan_shift(p, &selector->vector.shift, &times) ||
        !pq_plan_duration(p, matrix->matrix.range_ms, matrix->matrix.range_expr, &stage.range_ms))
        return NULL;
    stage.offset_ms = times.offset_ms;
    if (times.fixed) {
        stage.grid = (struct pq_grid){ times.fixed_ms, 1, 1 };
        stage.offset_ms = 0;
    }
    if (!constant_params(p, call, &stage) ||
        (times.fixed && (grid->count > 1 || call->call.function->eval_time))) {
        struct pq_plan_window window = { stage.range_ms, times.offset_ms, times.fixed,
                                         times.fixed_ms };

        return window_node(p, call, grid, raw_samples(p, matrix, grid, &times, stage.range_ms),
                           window);
    }
    node = pq_leaf_draft(p, selector, grid, stage);
    if (!node)
        return NULL;
    node->drops_names = !call->call.function->keeps_name;
    return node;
}

struct pq_plan_node *pq_plan_range_call(struct pq_planner *p, const struct pq_expr *call,
                                        const struct pq_grid *grid)
{
    return matrix_arg(call)->kind == PQ_SUBQUERY ? over_subquery(p, call, grid)
                                                 : over_selector(p, call, grid);
}

struct pq_plan_node *pq_plan_bare_matrix(struct pq_planner *p, const struct pq_expr *expr,
                                         const struct pq_grid *grid)
{
    struct pq_times times;
    struct pq_plan_node *node;
    struct pq_grid inner;
    int64_t range;

    if (expr->kind == PQ_MATRIX_SELECTOR) {
        if (!pq_plan_shift(p, &expr->matrix.selector->vector.shift, &times) ||
            !pq_plan_duration(p, expr->matrix.range_ms, expr->matrix.range_expr, &range))
            return NULL;
        return raw_samples(p, expr, grid, &times, range);
    }
    node = pq_plan_node_new(p, PQ_PLAN_SUBQUERY, expr, grid, 1);
    if (!node || !pq_plan_subgrid(p, expr, grid, &inner, &node->window))
        return NULL;
    node->children[0] = plan_subquery(p, expr, &inner);
    return node;
}
