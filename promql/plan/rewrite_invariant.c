/* rewrite_invariant.c - expressions that answer the same at every step: evaluated once. */
#include "promql/plan/plan_int.h"

bool pq_plan_invariant(const struct pq_expr *expr)
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
        if (expr->call.function->eval_time)
            return false;
        for (size_t i = 0; i < expr->call.arg_count; i++) {
            /* The info series follow the base series: what the selector itself says is no matter.
             */
            if (expr->call.function->kind == PQ_CLASS_INFO && i == 1)
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
