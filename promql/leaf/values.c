/* values.c - functions and operators over arrays of values. */
#include "promql/leaf/values.h"

#include "promql/func/binary_op.h"
#include "promql/func/kernels.h"

void pq_values_function(enum pq_function_id function, double *values, size_t count,
                        const struct pq_scalar_arg *args, size_t arg_count)
{
    const struct pq_kernels *kernels = pq_kernels_of(function);
    struct pq_scalar_arg left_out = { &kernels->left_out, 0 };
    struct pq_scalar_arg first = arg_count > 0 ? args[0] : left_out;
    struct pq_scalar_arg second = arg_count > 1 ? args[1] : left_out;

    if (kernels->value1)
        for (size_t i = 0; i < count; i++)
            values[i] = kernels->value1(values[i]);
    else if (kernels->value2)
        for (size_t i = 0; i < count; i++)
            values[i] = kernels->value2(values[i], pq_scalar_arg_at(first, i));
    else
        for (size_t i = 0; i < count; i++)
            values[i] =
                kernels->value3(values[i], pq_scalar_arg_at(first, i), pq_scalar_arg_at(second, i));
}

bool pq_values_function_empty(enum pq_function_id function, const struct pq_scalar_arg *args,
                              size_t arg_count, size_t step)
{
    pq_empty_fn *empty = pq_kernels_of(function)->empty;

    return empty && arg_count == 2 &&
           empty(pq_scalar_arg_at(args[0], step), pq_scalar_arg_at(args[1], step));
}

/* The four that compilers turn into vector instructions; false for the others. */
static bool plain_arith(enum pq_op op, double *values, size_t count, double arg, bool scalar_left)
{
    if (op == PQ_OP_ADD)
        for (size_t i = 0; i < count; i++)
            values[i] += arg;
    else if (op == PQ_OP_MUL)
        for (size_t i = 0; i < count; i++)
            values[i] *= arg;
    else if (op == PQ_OP_SUB)
        for (size_t i = 0; i < count; i++)
            values[i] = scalar_left ? arg - values[i] : values[i] - arg;
    else if (op == PQ_OP_DIV)
        for (size_t i = 0; i < count; i++)
            values[i] = scalar_left ? arg / values[i] : values[i] / arg;
    else
        return false;
    return true;
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
