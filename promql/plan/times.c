/* times.c - offsets, @, ranges and duration expressions as plain milliseconds. */
#include <math.h>

#include "base/pure/duration.h"
#include "promql/plan/plan_int.h"

/* @ may name any time; beyond this there is no data, and sums of times must not overflow. */
#define AT_MAX ((int64_t)1 << 57)

/* The value of a duration expression in seconds. */
static bool duration_value(struct pq_planner *p, const struct pq_expr *expr, double *ret)
{
    const struct pq_query_params *params = &p->plan->params;
    double lhs = 0, rhs = 0;

    expr = pq_unwrap(expr);
    if (expr->kind == PQ_NUMBER) {
        *ret = expr->number.value;
        return true;
    }
    if (expr->kind != PQ_DURATION_EXPR)
        return pq_planner_fail(p, QF_EINTERNAL, "unexpected node in a duration expression");
    if (expr->duration.lhs && !duration_value(p, expr->duration.lhs, &lhs))
        return false;
    if (expr->duration.rhs && !duration_value(p, expr->duration.rhs, &rhs))
        return false;
    switch (expr->duration.op) {
    case PQ_OP_STEP:
        *ret = (double)params->step_ms / 1000;
        return true;
    case PQ_OP_RANGE:
        *ret = (double)(params->end_ms - params->start_ms) / 1000;
        return true;
    case PQ_OP_MIN_OF:
        *ret = fmin(lhs, rhs);
        return true;
    case PQ_OP_MAX_OF:
        *ret = fmax(lhs, rhs);
        return true;
    case PQ_OP_NONE: /* parentheses */
        *ret = rhs;
        return true;
    case PQ_OP_ADD:
        *ret = lhs + rhs;
        return true;
    case PQ_OP_SUB: /* unary minus when there is no left side: 0 - rhs */
        *ret = lhs - rhs;
        return true;
    case PQ_OP_MUL:
        *ret = lhs * rhs;
        return true;
    case PQ_OP_DIV:
        if (rhs == 0)
            return pq_planner_fail(p, QF_EEXEC, "%u:%u: division by zero", expr->pos.start,
                                   expr->pos.end);
        *ret = lhs / rhs;
        return true;
    case PQ_OP_MOD:
        if (rhs == 0)
            return pq_planner_fail(p, QF_EEXEC, "%u:%u: modulo by zero", expr->pos.start,
                                   expr->pos.end);
        *ret = fmod(lhs, rhs);
        return true;
    case PQ_OP_POW:
        *ret = pow(lhs, rhs);
        return true;
    case PQ_OP_ATAN2:
    case PQ_OP_EQLC:
    case PQ_OP_NEQ:
    case PQ_OP_LTE:
    case PQ_OP_LSS:
    case PQ_OP_GTE:
    case PQ_OP_GTR:
    case PQ_OP_AND:
    case PQ_OP_OR:
    case PQ_OP_UNLESS:
    case PQ_OP_TRIM_UPPER:
    case PQ_OP_TRIM_LOWER:
        break;
    }
    return pq_planner_fail(p, QF_EEXEC, "unexpected duration expression operator %s",
                           pq_op_text(expr->duration.op));
}

/* Go's time.Duration holds nanoseconds in an int64: that is what "out of range" means. */
static bool duration_ms(struct pq_planner *p, const struct pq_expr *expr, bool negative_allowed,
                        int64_t *ret_ms)
{
    double seconds;

    if (!duration_value(p, expr, &seconds))
        return false;
    if (seconds <= 0 && !negative_allowed)
        return pq_planner_fail(p, QF_EEXEC, "%u:%u: duration must be greater than 0",
                               expr->pos.start, expr->pos.end);
    if (!(fabs(seconds) < 9223372036.0))
        return pq_planner_fail(p, QF_EEXEC, "%u:%u: duration is out of range", expr->pos.start,
                               expr->pos.end);
    *ret_ms = (int64_t)trunc(seconds * 1e9) / 1000000;
    return true;
}

bool pq_plan_duration(struct pq_planner *p, int64_t ms, const struct pq_expr *expr, int64_t *ret_ms)
{
    if (!expr) {
        *ret_ms = ms;
        return true;
    }
    return duration_ms(p, expr, false, ret_ms);
}

bool pq_plan_shift(struct pq_planner *p, const struct pq_time_shift *shift, struct pq_times *ret)
{
    const struct pq_query_params *params = &p->plan->params;
    int64_t offset = shift->offset_ms;
    int64_t at = 0;

    if (shift->offset_expr && !duration_ms(p, shift->offset_expr, true, &offset))
        return false;
    switch (shift->at) {
    case PQ_AT_NONE:
        break;
    case PQ_AT_TIME:
        at = shift->at_ms;
        break;
    case PQ_AT_START:
        at = params->start_ms;
        break;
    case PQ_AT_END:
        at = params->end_ms;
        break;
    }
    at = QF_MAX(at, -AT_MAX);
    at = QF_MIN(at, AT_MAX);
    *ret = (struct pq_times){ .fixed = shift->at != PQ_AT_NONE,
                              .fixed_ms = at - offset,
                              .offset_ms = offset };
    return true;
}

bool pq_plan_subgrid(struct pq_planner *p, const struct pq_expr *subquery,
                     const struct pq_grid *outer, struct pq_grid *ret_grid,
                     struct pq_plan_window *ret_window)
{
    struct pq_times times;
    int64_t range, step, first_ref, last_ref, start;
    uint64_t count;

    if (!pq_plan_shift(p, &subquery->subquery.shift, &times) ||
        !pq_plan_duration(p, subquery->subquery.range_ms, subquery->subquery.range_expr, &range) ||
        !pq_plan_duration(p, subquery->subquery.step_ms, subquery->subquery.step_expr, &step))
        return false;
    if (step == 0)
        step = p->plan->params.subquery_step_ms;
    first_ref = times.fixed ? times.fixed_ms : outer->start_ms - times.offset_ms;
    last_ref = times.fixed ? times.fixed_ms : pq_grid_end(outer) - times.offset_ms;
    /* Steps of a subquery are multiples of its resolution; its windows are open on the left. */
    start = (qf_floor_div(first_ref - range, step) + 1) * step;
    count = last_ref < start ? 0 : (uint64_t)((last_ref - start) / step) + 1;
    if (count > PQ_GRID_MAX)
        return pq_planner_fail(p, QF_ELIMIT, "a subquery has more than %llu steps",
                               (unsigned long long)PQ_GRID_MAX);
    *ret_grid = (struct pq_grid){ start, step, count };
    *ret_window = (struct pq_plan_window){ .range_ms = range,
                                           .offset_ms = times.offset_ms,
                                           .fixed = times.fixed,
                                           .fixed_ms = times.fixed_ms };
    return true;
}
