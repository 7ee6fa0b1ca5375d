/* plan_int.h - the tree of ExecNodes to be, as the planner leaves it for eval/. */
#ifndef PROMQL_PLAN_PLAN_INT_H
#define PROMQL_PLAN_PLAN_INT_H

#include "promql/func/label.h"
#include "promql/functions.h"
#include "promql/plan.h"

/* X(kind, name in explain) */
#define PQ_PLAN_KINDS(X)                                                                           \
    X(NUMBER, "number")             /* a constant */                                               \
    X(STRING, "string")             /* only at the root */                                         \
    X(EMPTY, "empty")               /* a vector that never has an element */                       \
    X(LEAF, "leaf")                 /* what a BaseExpr leaf answers, merged over the shards */     \
    X(REPEAT, "repeat")             /* the one step of its child, for every step */                \
    X(TIME, "time")                 /* time() */                                                   \
    X(FUNCTION, "function")         /* value by value; scalar arguments may vary by step */        \
    X(SCALAR_OP, "scalar_op")       /* vector op scalar, scalar op vector, scalar op scalar */     \
    X(BINARY, "binary")             /* vector op vector */                                         \
    X(SET, "set")                   /* and, or, unless */                                          \
    X(AGGREGATE, "aggregate")       /* sum ... quantile */                                         \
    X(SELECT, "select")             /* topk, bottomk, limitk, limit_ratio */                       \
    X(COUNT_VALUES, "count_values") /* series that depend on values */                             \
    X(WINDOW, "window")             /* a range function over raw samples or a subquery */          \
    X(SUBQUERY, "subquery")         /* a bare subquery: only at the root */                        \
    X(ABSENT, "absent")             /* absent, absent_over_time */                                 \
    X(LABEL, "label")               /* label_replace, label_join */                                \
    X(SORT, "sort")                 /* sort, sort_desc, sort_by_label, sort_by_label_desc */       \
    X(TO_SCALAR, "scalar")          /* scalar() */                                                 \
    X(TO_VECTOR, "vector")          /* vector() */                                                 \
    X(TIMESTAMP, "timestamp")       /* timestamp() of anything but a selector */                   \
    X(BUCKETS, "buckets")           /* histogram_quantile and the like over classic buckets */     \
    X(INFO, "info")

enum pq_plan_kind {
#define PQ_PLAN_ENUM(kind, name) PQ_PLAN_##kind,
    PQ_PLAN_KINDS(PQ_PLAN_ENUM)
#undef PQ_PLAN_ENUM
        PQ_PLAN__COUNT,
};

/* The times a matrix is looked at: window k is (ref - range, ref] with ref = the fixed time, or the
 * time of step k less the offset. */
struct pq_plan_window {
    int64_t range_ms;
    int64_t offset_ms;
    bool fixed;
    int64_t fixed_ms;
};

struct pq_plan_node {
    enum pq_plan_kind kind;
    const struct pq_expr *ast; /* without parentheses; NULL for nodes the planner made up */
    struct pq_pos pos;
    struct pq_grid grid; /* steps it answers */
    struct pq_plan_node **children;
    size_t child_count;

    /* Series come out marked "drop the metric name"; whoever builds the tree drops at once or at
     * the end, as delayed_name_removal says. */
    bool drops_names;

    double number;                /* NUMBER */
    struct pq_leaf *leaf;         /* LEAF; WINDOW over raw samples */
    struct pq_plan_window window; /* WINDOW, SUBQUERY */
    enum pq_function_id function; /* FUNCTION, WINDOW, SCALAR_OP, BUCKETS, SORT, LABEL */
    struct qf_labels labels;      /* ABSENT */
    const struct qf_str *strings; /* SORT: label names */
    size_t string_count;
    struct pq_label_call label_call; /* LABEL */
    /* AGGREGATE, SELECT, COUNT_VALUES, BINARY, SET: sorted, without duplicates. */
    const struct qf_str *grouping;
    size_t grouping_count;
    struct qf_str label; /* COUNT_VALUES, BUCKETS of histogram_quantiles */
    /* INFO: data label matchers, and how far its info series are shifted against the steps. */
    const struct pq_matcher *matchers;
    size_t matcher_count;
};

const char *pq_plan_kind_text(enum pq_plan_kind kind);

/* State of one planning run. Errors are sticky: the first one is kept in rc and err. */
struct pq_planner {
    struct qf_arena *arena;
    struct pq_plan *plan;
    struct qf_err *err;
    qf_rc rc;
    size_t leaf_capacity;
};

/* Record an error and return NULL. */
void *pq_planner_fail(struct pq_planner *p, qf_rc rc, const char *fmt, ...) QF_PRINTF(3, 4);
struct pq_plan_node *pq_plan_node_new(struct pq_planner *p, enum pq_plan_kind kind,
                                      const struct pq_expr *ast, const struct pq_grid *grid,
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
/* Where notes about the call of a range function point to. */
struct pq_pos pq_plan_range_pos(const struct pq_expr *call);
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
