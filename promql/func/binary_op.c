/* binary_op.c - the binary operators on two floats. */
#include "promql/func/binary_op.h"

#include <assert.h>
#include <math.h>

#include "base/pure/macros.h"

static double add(double left, double right)
{
    return left + right;
}

static double sub(double left, double right)
{
    return left - right;
}

static double mul(double left, double right)
{
    return left * right;
}

static double divide(double left, double right)
{
    return left / right;
}

pq_arith_fn *pq_fn_arith(enum pq_op op)
{
    static pq_arith_fn *const kernels[] = {
        [PQ_OP_ADD] = add,  [PQ_OP_SUB] = sub, [PQ_OP_MUL] = mul,     [PQ_OP_DIV] = divide,
        [PQ_OP_MOD] = fmod, [PQ_OP_POW] = pow, [PQ_OP_ATAN2] = atan2,
    };

    return (size_t)op < QF_COUNT_OF(kernels) ? kernels[op] : NULL;
}

static bool equal(double left, double right)
{
    return left == right;
}

static bool not_equal(double left, double right)
{
    return left != right;
}

static bool less(double left, double right)
{
    return left < right;
}

static bool less_equal(double left, double right)
{
    return left <= right;
}

static bool greater(double left, double right)
{
    return left > right;
}

static bool greater_equal(double left, double right)
{
    return left >= right;
}

pq_compare_fn *pq_fn_compare(enum pq_op op)
{
    static pq_compare_fn *const kernels[] = {
        [PQ_OP_EQLC] = equal,     [PQ_OP_NEQ] = not_equal, [PQ_OP_LSS] = less,
        [PQ_OP_LTE] = less_equal, [PQ_OP_GTR] = greater,   [PQ_OP_GTE] = greater_equal,
    };

    return (size_t)op < QF_COUNT_OF(kernels) ? kernels[op] : NULL;
}

bool pq_fn_binary(enum pq_op op, double left, double right, bool return_bool, double *ret_value)
{
    pq_arith_fn *arith = pq_fn_arith(op);
    pq_compare_fn *compare;
    bool holds;

    if (arith) {
        *ret_value = arith(left, right);
        return true;
    }
    compare = pq_fn_compare(op);
    assert(compare);
    holds = compare(left, right);
    *ret_value = return_bool ? (double)holds : left;
    return holds || return_bool;
}
