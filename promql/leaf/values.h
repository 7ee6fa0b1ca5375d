/* values.h - functions and operators over arrays of values: what leaves and ExecNodes share.
 *
 * Values that are not there may be anything; computing them is cheaper than asking. */
#ifndef PROMQL_LEAF_VALUES_H
#define PROMQL_LEAF_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "promql/functions.h"
#include "promql/leaf.h"

/* A scalar argument: one number for all steps (stride 0) or one per step (stride 1). */
struct pq_scalar_arg {
    const double *values;
    size_t stride;
};

static inline double pq_scalar_arg_at(struct pq_scalar_arg arg, size_t step)
{
    return arg.values[step * arg.stride];
}

/* values[i] = function(values[i], args...), a function of class VALUE. */
void pq_values_function(enum pq_function_id function, double *values, size_t count,
                        const struct pq_scalar_arg *args, size_t arg_count);
/* With these scalars the function answers nothing at step @step: clamp() with min > max. */
bool pq_values_function_empty(enum pq_function_id function, const struct pq_scalar_arg *args,
                              size_t arg_count, size_t step);

/* What a range function has to say about a series it was applied to. */
void pq_window_notes(struct pq_notes *notes, const struct pq_stage *stage, struct qf_str name,
                     unsigned flags);

/* values[i] = values[i] op arg, or arg op values[i]: arithmetic operators. */
void pq_values_arith(enum pq_op op, double *values, size_t count, struct pq_scalar_arg arg,
                     bool scalar_left);
/* keep[i] = whether values[i] op arg (arg op values[i]) holds: comparisons. */
void pq_values_compare(enum pq_op op, const double *values, size_t count, struct pq_scalar_arg arg,
                       bool scalar_left, uint8_t *keep);

#endif
