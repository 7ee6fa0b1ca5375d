/* binary_op.h - the binary operators on two floats. */
#ifndef PROMQL_FUNC_BINARY_OP_H
#define PROMQL_FUNC_BINARY_OP_H

#include <stdbool.h>

#include "promql/ast.h"

typedef double pq_arith_fn(double left, double right);
typedef bool pq_compare_fn(double left, double right);

/* + - * / % ^ atan2; NULL for other operators. */
pq_arith_fn *pq_fn_arith(enum pq_op op);
/* == != < <= > >=; NULL for other operators. NaN differs from everything and is ordered to nothing.
 */
pq_compare_fn *pq_fn_compare(enum pq_op op);

/* Any of them on two floats. Comparisons keep the left value, or with @return_bool answer 0 or 1.
 * False: the comparison does not hold and there is no result. Only for the operators above. */
bool pq_fn_binary(enum pq_op op, double left, double right, bool return_bool, double *ret_value);

#endif
