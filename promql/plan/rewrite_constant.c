/* rewrite_constant.c - scalar expressions whose value is known before any data is read. */
#include <math.h>

#include "promql/func/binary_op.h"
#include "promql/func/math.h"
#include "promql/plan/plan_int.h"

static bool call_constant(const struct pq_planner *p, const struct pq_node *call, double *ret)
{
    const struct pq_query_params *params = &p->plan->params;
    double a, b;

    switch (call->call.function->id) {
    case PQ_FN_PI:
        *ret = M_PI;
        return true;
    case PQ_FN_START:
        *ret = (double)params->start_ms / 1000;
        return true;
    case PQ_FN_END:
        *ret = (double)params->end_ms / 1000;
        return true;
    case PQ_FN_STEP:
        *ret = (double)params->step_ms / 1000;
        return true;
    case PQ_FN_RANGE:
        *ret = (double)(params->end_ms - params->start_ms) / 1000;
        return true;
    case PQ_FN_MIN_OF:
    case PQ_FN_MAX_OF:
        if (!pq_plan_constant(p, call->call.args[0], &a) ||
            !pq_plan_constant(p, call->call.args[1], &b))
            return false;
        *ret = call->call.function->id == PQ_FN_MIN_OF ? pq_fn_min_of(a, b) : pq_fn_max_of(a, b);
        return true;
    default:
        return false;
    }
}

bool pq_plan_constant(const struct pq_planner *p, const struct pq_node *expr, double *ret_value)
{
    double lhs, rhs;

    expr = pq_unwrap(expr);
    switch ((int)expr->kind) {
    case PQ_NUMBER:
        *ret_value = expr->number.value;
        return true;
    case PQ_UNARY:
        if (!pq_plan_constant(p, expr->unary.expr, &rhs))
            return false;
        *ret_value = expr->unary.op == PQ_OP_SUB ? -rhs : rhs;
        return true;
    case PQ_BINARY:
        if ((!pq_fn_arith(expr->binary.op) && !pq_fn_compare(expr->binary.op)) ||
            !pq_plan_constant(p, expr->binary.lhs, &lhs) ||
            !pq_plan_constant(p, expr->binary.rhs, &rhs))
            return false;
        return pq_fn_binary(expr->binary.op, lhs, rhs, true, ret_value);
    case PQ_CALL:
        return call_constant(p, expr, ret_value);
    default:
        return false;
    }
}
