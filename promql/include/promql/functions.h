/* functions.h - the numbers of the PromQL functions: PQ_FN_RATE, PQ_FN_ABS, ...
 *
 * The table itself is functions.def, beside this header; what a row says is read through struct
 * pq_function (ast.h). */
#ifndef PROMQL_FUNCTIONS_H
#define PROMQL_FUNCTIONS_H

#include "promql/ast.h"

enum pq_function_id {
#define PQ_FUNCTION(id, name, return_type, arg_count, variadic, experimental, ...) PQ_FN_##id,
#include "promql/functions.def"
#undef PQ_FUNCTION
    PQ_FN__COUNT,
};

/* The row of @id. */
const struct pq_function *pq_function_get(enum pq_function_id id);

/* The fewest and the most arguments a call may have; SIZE_MAX: any number. */
size_t pq_function_args_min(const struct pq_function *function);
size_t pq_function_args_max(const struct pq_function *function);
/* The type of argument number @index, counted from 0; the last type repeats. */
enum pq_type pq_function_arg_type(const struct pq_function *function, size_t index);

#endif
