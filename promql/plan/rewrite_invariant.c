/* rewrite_invariant.c - expressions that answer the same at every step: evaluated once. */
#include "promql/plan/plan_int.h"

/* Functions whose result depends on the evaluation time, whatever their arguments say. */
static bool depends_on_time(int function)
{
    switch (function) {
    case PQ_FN_DAYS_IN_MONTH:
    case PQ_FN_DAY_OF_MONTH:
    case PQ_FN_DAY_OF_WEEK:
    case PQ_FN_DAY_OF_YEAR:
    case PQ_FN_HOUR:
    case PQ_FN_MINUTE:
    case PQ_FN_MONTH:
    case PQ_FN_YEAR:
    case PQ_FN_PREDICT_LINEAR:
    case PQ_FN_TIME:
    case PQ_FN_TIMESTAMP:
        return true;
    default:
        return false;
    }
}

bool pq_plan_invariant(const struct pq_node *expr)
{
    expr = pq_unwrap(expr);
    switch (expr->kind) {
    case PQ_NUMBER:
    case PQ_STRING:
        return true;
    case PQ_VECTOR_SELECTOR:
        return expr->vector.shift.at != PQ_AT_NONE;
    case PQ_MATRIX_SELECTOR:
        return expr->matrix.selector->vector.shift.at != PQ_AT_NONE;
    case PQ_SUBQUERY:
        return expr->subquery.shift.at != PQ_AT_NONE;
    case PQ_CALL:
        if (depends_on_time(expr->call.function->id))
            return false;
        for (size_t i = 0; i < expr->call.arg_count; i++) {
            /* The info series follow the base series: what the selector itself says is no matter.
             */
            if (expr->call.function->id == PQ_FN_INFO && i == 1)
                continue;
            if (!pq_plan_invariant(expr->call.args[i]))
                return false;
        }
        return true;
    case PQ_AGGREGATE:
        return pq_plan_invariant(expr->aggregate.expr) &&
               (!expr->aggregate.param || pq_plan_invariant(expr->aggregate.param));
    case PQ_BINARY:
        return pq_plan_invariant(expr->binary.lhs) && pq_plan_invariant(expr->binary.rhs);
    case PQ_UNARY:
        return pq_plan_invariant(expr->unary.expr);
    case PQ_PAREN:
    case PQ_DURATION_EXPR:
        break;
    }
    return false;
}
