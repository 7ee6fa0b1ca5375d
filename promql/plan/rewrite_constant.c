/* rewrite_constant.c - scalar expressions whose value is known before any data is read. */
#include "promql/func/binary_op.h"
#include "promql/func/kernels.h"
#include "promql/plan/plan_int.h"

static bool call_constant(const struct pq_planner *p, const struct pq_expr *call, double *ret)
{
    const struct pq_kernels *kernels = pq_kernels_of(call->call.function->id);
    double a, b;

    if (kernels->constant) {
        *ret = kernels->constant(&p->plan->params);
        return true;
    }
    if (call->call.function->kind != PQ_CLASS_SCALARS ||
        !pq_plan_constant(p, call->call.args[0], &a) ||
        !pq_plan_constant(p, call->call.args[1], &b))
        return false;
    *ret = kernels->value2(a, b);
    return true;
}

bool pq_plan_constant(const struct pq_planner *p, const struct pq_expr *expr, double *ret_value)
{
    double lhs, rhs;

    expr = pq_unwrap(expr);
    switch (expr->kind) {
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
    case PQ_STRING:
    case PQ_VECTOR_SELECTOR:
    case PQ_MATRIX_SELECTOR:
    case PQ_SUBQUERY:
    case PQ_AGGREGATE:
    case PQ_PAREN:
    case PQ_DURATION_EXPR:
        break;
    }
    return false;
}
