/* plan_int.h - the state of one planning run, and what the files of the planner share. */
#ifndef PROMQL_PLAN_PLAN_INT_H
#define PROMQL_PLAN_PLAN_INT_H

#include "promql/plan/node.h"

/* State of one planning run. Errors are sticky: the first one is kept in rc and err. */
struct pq_planner {
    struct qf_arena *arena;
    struct pq_plan *plan;
    struct qf_err *err;
    qf_rc rc;
    size_t leaf_capacity;
    /* Where the planner is: below a function that takes no more than counts and sums of native
     * histograms; inside a subquery. */
    bool stats_only, in_subquery;
};

/* Record an error and return NULL. */
void *pq_planner_fail(struct pq_planner *p, qf_rc rc, const char *fmt, ...) QF_PRINTF(3, 4);
/* A node for @expr, which may be NULL where the planner makes one up. */
struct pq_plan_node *pq_plan_node_new(struct pq_planner *p, enum pq_plan_kind kind,
                                      const struct pq_expr *expr, const struct pq_grid *grid,
                                      size_t child_count);

/* plan.c: plan a vector or scalar expression on @grid. NULL after an error. */
struct pq_plan_node *pq_plan_expr(struct pq_planner *p, const struct pq_expr *expr,
                                  const struct pq_grid *grid);

/* calls.c */
struct pq_plan_node *pq_plan_call(struct pq_planner *p, const struct pq_expr *call,
                                  const struct pq_grid *grid);
/* ranges.c: range functions, subqueries, bare range vectors */
struct pq_plan_node *pq_plan_range_call(struct pq_planner *p, const struct pq_expr *call,
                                        const struct pq_grid *grid);
struct pq_plan_node *pq_plan_bare_matrix(struct pq_planner *p, const struct pq_expr *expr,
                                         const struct pq_grid *grid);
/* aggregates.c */
struct pq_plan_node *pq_plan_aggregate(struct pq_planner *p, const struct pq_expr *expr,
                                       const struct pq_grid *grid);
/* info.c */
struct pq_plan_node *pq_plan_info(struct pq_planner *p, const struct pq_expr *call,
                                  const struct pq_grid *grid);

/* leaves.c: leaves are drafted bottom up and numbered at the end, equal ones once. */
struct pq_plan_node *pq_leaf_draft(struct pq_planner *p, const struct pq_expr *selector,
                                   const struct pq_grid *grid, struct pq_stage stage);
/* The leaf of @node if stages or an aggregation may still be put on top of it. */
struct pq_leaf *pq_leaf_open(const struct pq_planner *p, const struct pq_plan_node *node);
/* Put @stage on top; false if there is no room for it. */
bool pq_leaf_push(struct pq_planner *p, struct pq_leaf *leaf, struct pq_stage stage);
void pq_leaves_number(struct pq_planner *p, struct pq_plan_node *root);

/* times.c */
struct pq_times {
    bool fixed;       /* by @ */
    int64_t fixed_ms; /* that time less the offset */
    int64_t offset_ms;
};
/* Offset and @ as numbers. False after an error. */
bool pq_plan_shift(struct pq_planner *p, const struct pq_time_shift *shift, struct pq_times *ret);
/* A range or step that may be an expression: positive milliseconds. False after an error. */
bool pq_plan_duration(struct pq_planner *p, int64_t ms, const struct pq_expr *expr,
                      int64_t *ret_ms);
/* The grid of a subquery under steps of @outer; count may come out as 0. False after an error. */
bool pq_plan_subgrid(struct pq_planner *p, const struct pq_expr *subquery,
                     const struct pq_grid *outer, struct pq_grid *ret_grid,
                     struct pq_plan_window *ret_window);
static inline int64_t pq_grid_end(const struct pq_grid *grid)
{
    return pq_grid_time(grid, grid->count ? grid->count - 1 : 0);
}

/* rewrite_constant.c: the value of a scalar expression that does not change by step. */
bool pq_plan_constant(const struct pq_planner *p, const struct pq_expr *expr, double *ret_value);
/* rewrite_invariant.c: the expression answers the same at every step. */
bool pq_plan_invariant(const struct pq_expr *expr);

/* A copy of label names, sorted, each once. */
const struct qf_str *pq_sorted_names(struct pq_planner *p, const struct qf_str *names, size_t count,
                                     size_t *ret_count);

#endif
