/* info.c - info(): the base vector, and a leaf for the info series beside it.
 *
 * Info series are looked up at the time the base series were read: @ and offset inside the base
 * expression move both. The leaf answers the time of the sample it found, since of several info
 * series with the same identity the one with the newest sample counts. */
#include "promql/parse/pattern.h"
#include "promql/plan/plan_int.h"

/* @ and offsets on the way to the first selector of @expr. False: there is no selector. */
static bool first_selector_times(struct pq_planner *p, const struct pq_expr *expr,
                                 struct pq_times *times)
{
    struct pq_times own;
    const struct pq_time_shift *shift;

    expr = pq_unwrap(expr);
    switch (expr->kind) {
    case PQ_VECTOR_SELECTOR:
    case PQ_SUBQUERY:
        shift = expr->kind == PQ_SUBQUERY ? &expr->subquery.shift : &expr->vector.shift;
        if (!pq_plan_shift(p, shift, &own))
            return false;
        if (own.fixed)
            *times = own;
        else if (times->fixed)
            times->fixed_ms -= own.offset_ms;
        else
            times->offset_ms += own.offset_ms;
        return expr->kind == PQ_VECTOR_SELECTOR ||
               first_selector_times(p, expr->subquery.expr, times);
    case PQ_MATRIX_SELECTOR:
        return first_selector_times(p, expr->matrix.selector, times);
    case PQ_CALL:
        for (size_t i = 0; i < expr->call.arg_count; i++)
            if (first_selector_times(p, expr->call.args[i], times))
                return true;
        return false;
    case PQ_AGGREGATE:
        return first_selector_times(p, expr->aggregate.expr, times);
    case PQ_BINARY:
        return first_selector_times(p, expr->binary.lhs, times) ||
               first_selector_times(p, expr->binary.rhs, times);
    case PQ_UNARY:
        return first_selector_times(p, expr->unary.expr, times);
    case PQ_NUMBER:
    case PQ_STRING:
    case PQ_PAREN:
    case PQ_DURATION_EXPR:
        break;
    }
    return false;
}

/* Without a matcher that says which names are meant: target_info; with exclusions only: all names
 * that end in _info. */
static bool default_name(struct pq_planner *p, bool excludes, struct pq_matcher *ret)
{
    struct qf_regex *regex = NULL;
    char msg[100];

    *ret =
        (struct pq_matcher){ PQ_MATCH_EQUAL, QF_STR(QF_METRIC_NAME), QF_STR("target_info"), NULL };
    if (!excludes)
        return true;
    if (pq_pattern_compile(p->arena, QF_STR(".+_info"), &regex, msg, sizeof(msg)) != QF_OK)
        return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
    ret->type = PQ_MATCH_REGEX;
    ret->value = QF_STR(".+_info");
    ret->regex = regex;
    return true;
}

static bool info_matchers(struct pq_planner *p, const struct pq_expr *call,
                          struct pq_plan_node *node)
{
    const struct pq_expr *selector =
        call->call.arg_count > 1 ? pq_unwrap(call->call.args[1]) : NULL;
    size_t count = selector ? selector->vector.matcher_count : 0;
    struct pq_matcher *matchers = QF_ARENA_ARRAY(p->arena, struct pq_matcher, count + 1);
    bool includes = false, excludes = false;

    if (!matchers)
        return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
    for (size_t i = 0; i < count; i++) {
        const struct pq_matcher *m = &selector->vector.matchers[i];
        bool negative = m->type == PQ_MATCH_NOT_EQUAL || m->type == PQ_MATCH_NOT_REGEX;

        matchers[i] = *m;
        if (!qf_str_is(m->name, QF_METRIC_NAME))
            continue;
        includes |= !negative;
        excludes |= negative;
    }
    if (!includes && !default_name(p, excludes, &matchers[count++]))
        return false;
    node->matchers = matchers;
    node->matcher_count = count;
    return true;
}

static struct pq_plan_node *info_leaf(struct pq_planner *p, const struct pq_plan_node *node,
                                      const struct pq_expr *base, const struct pq_grid *grid)
{
    struct pq_expr *selector = QF_ARENA_NEW(p->arena, struct pq_expr);
    struct pq_stage stage = { .kind = PQ_STAGE_INSTANT,
                              .pos = node->pos,
                              .grid = *grid,
                              .range_ms = p->plan->params.lookback_ms,
                              .take = PQ_TAKE_INFO };
    struct pq_grid once = { grid->start_ms, grid->step_ms, 1 };
    struct pq_times times = { 0 };
    struct pq_plan_node *leaf, *repeat;

    if (!selector)
        return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
    selector->kind = PQ_VECTOR_SELECTOR;
    selector->pos = node->pos;
    selector->vector.matchers = node->matchers;
    selector->vector.matcher_count = node->matcher_count;
    (void)first_selector_times(p, base, &times);
    stage.offset_ms = times.offset_ms;
    if (times.fixed) {
        stage.grid = (struct pq_grid){ times.fixed_ms, 1, 1 };
        stage.offset_ms = 0;
    }
    leaf = pq_leaf_draft(p, selector, times.fixed ? &once : grid, stage);
    if (!leaf || !times.fixed || grid->count == 1)
        return leaf;
    repeat = pq_plan_node_new(p, PQ_PLAN_REPEAT, NULL, grid, 1);
    if (repeat)
        repeat->children[0] = leaf;
    return repeat;
}

struct pq_plan_node *pq_plan_info(struct pq_planner *p, const struct pq_expr *call,
                                  const struct pq_grid *grid)
{
    struct pq_plan_node *node = pq_plan_node_new(p, PQ_PLAN_INFO, call, grid, 2);

    if (!node || !info_matchers(p, call, node))
        return NULL;
    node->children[0] = pq_plan_expr(p, call->call.args[0], grid);
    node->children[1] = info_leaf(p, node, call->call.args[0], grid);
    return node;
}
