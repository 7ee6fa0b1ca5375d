/* selectors.h - the selectors of a query. */
#ifndef PROMQL_TESTING_SELECTORS_H
#define PROMQL_TESTING_SELECTORS_H

#include "base/pure/arena.h"
#include "promql/ast.h"

/* Every vector selector of @expr, left to right, those of range selectors included; in @arena. NULL
 * with *ret_count 0 if there is none or the budget is spent. */
const struct pq_expr **pq_selectors(struct qf_arena *arena, const struct pq_expr *expr,
                                    size_t *ret_count);
#endif
