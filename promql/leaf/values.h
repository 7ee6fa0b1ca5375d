/* values.h - functions and operators over arrays of values: what leaves and ExecNodes share.
 *
 * Values that are not there may be anything; computing them is cheaper than asking. */
#ifndef PROMQL_LEAF_VALUES_H
#define PROMQL_LEAF_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "promql/ast.h"

/* A scalar argument: one number for all steps (stride 0) or one per step (stride 1). */
struct pq_scalar_arg {
    const double *values;
    size_t stride;
};

static inline double pq_scalar_arg_at(struct pq_scalar_arg arg, size_t step)
{
    return arg.values[step * arg.stride];
}

/* A function of one value that takes @params scalars: what FUNCTION stages and nodes may be. */
bool pq_values_is_function(int function, size_t params);

/* values[i] = function(values[i], args...), any function of one value (FUNCTION in the plan). */
void pq_values_function(int function, double *values, size_t count,
                        const struct pq_scalar_arg *args, size_t arg_count);
/* clamp() with min > max answers nothing at step @step. */
bool pq_values_function_empty(int function, const struct pq_scalar_arg *args, size_t arg_count,
                              size_t step);

/* values[i] = values[i] op arg, or arg op values[i]: arithmetic operators. */
void pq_values_arith(enum pq_op op, double *values, size_t count, struct pq_scalar_arg arg,
                     bool scalar_left);
/* keep[i] = whether values[i] op arg (arg op values[i]) holds: comparisons. */
void pq_values_compare(enum pq_op op, const double *values, size_t count, struct pq_scalar_arg arg,
                       bool scalar_left, uint8_t *keep);

static inline bool pq_op_compares(enum pq_op op)
{
    return op >= PQ_OP_EQLC && op <= PQ_OP_GTR;
}

#endif
