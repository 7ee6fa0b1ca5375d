/* values.c - functions and operators over arrays of values. */
#include "promql/leaf/values.h"

#include "promql/func/binary_op.h"
#include "promql/func/math.h"

bool pq_values_is_function(int function, size_t params)
{
    switch (function) {
    case PQ_FN_ROUND:
        return params <= 1;
    case PQ_FN_CLAMP:
        return params == 2;
    case PQ_FN_CLAMP_MIN:
    case PQ_FN_CLAMP_MAX:
        return params == 1;
    default:
        return params == 0 && function >= 0 && pq_fn_unary((enum pq_function_id)function);
    }
}

void pq_values_function(int function, double *values, size_t count,
                        const struct pq_scalar_arg *args, size_t arg_count)
{
    pq_unary_fn *unary = pq_fn_unary((enum pq_function_id)function);
    const double one = 1;
    struct pq_scalar_arg nearest = { &one, 0 };

    if (unary) {
        for (size_t i = 0; i < count; i++)
            values[i] = unary(values[i]);
        return;
    }
    if (function == PQ_FN_ROUND && arg_count > 0)
        nearest = args[0];
    for (size_t i = 0; i < count; i++) {
        if (function == PQ_FN_ROUND)
            values[i] = pq_fn_round(values[i], pq_scalar_arg_at(nearest, i));
        else if (function == PQ_FN_CLAMP)
            values[i] =
                pq_fn_clamp(values[i], pq_scalar_arg_at(args[0], i), pq_scalar_arg_at(args[1], i));
        else if (function == PQ_FN_CLAMP_MIN)
            values[i] = pq_fn_clamp_min(values[i], pq_scalar_arg_at(args[0], i));
        else
            values[i] = pq_fn_clamp_max(values[i], pq_scalar_arg_at(args[0], i));
    }
}

bool pq_values_function_empty(int function, const struct pq_scalar_arg *args, size_t arg_count,
                              size_t step)
{
    return function == PQ_FN_CLAMP && arg_count == 2 &&
           pq_fn_clamp_empty(pq_scalar_arg_at(args[0], step), pq_scalar_arg_at(args[1], step));
}

/* The four that compilers turn into vector instructions. */
static bool plain_arith(enum pq_op op, double *values, size_t count, double arg, bool scalar_left)
{
    switch ((int)op) {
    case PQ_OP_ADD:
        for (size_t i = 0; i < count; i++)
            values[i] += arg;
        return true;
    case PQ_OP_MUL:
        for (size_t i = 0; i < count; i++)
            values[i] *= arg;
        return true;
    case PQ_OP_SUB:
        for (size_t i = 0; i < count; i++)
            values[i] = scalar_left ? arg - values[i] : values[i] - arg;
        return true;
    case PQ_OP_DIV:
        for (size_t i = 0; i < count; i++)
            values[i] = scalar_left ? arg / values[i] : values[i] / arg;
        return true;
    default:
        return false;
    }
}

void pq_values_arith(enum pq_op op, double *values, size_t count, struct pq_scalar_arg arg,
                     bool scalar_left)
{
    pq_arith_fn *arith = pq_fn_arith(op);

    if (arg.stride == 0 && plain_arith(op, values, count, arg.values[0], scalar_left))
        return;
    for (size_t i = 0; i < count; i++) {
        double scalar = pq_scalar_arg_at(arg, i);

        values[i] = scalar_left ? arith(scalar, values[i]) : arith(values[i], scalar);
    }
}

void pq_values_compare(enum pq_op op, const double *values, size_t count, struct pq_scalar_arg arg,
                       bool scalar_left, uint8_t *keep)
{
    pq_compare_fn *compare = pq_fn_compare(op);

    for (size_t i = 0; i < count; i++) {
        double scalar = pq_scalar_arg_at(arg, i);

        keep[i] = scalar_left ? compare(scalar, values[i]) : compare(values[i], scalar);
    }
}
