/* node.h - the tree of ExecNodes to be: what the planner leaves for eval/.
 *
 * Everything eval/ needs to know of a query is in these nodes; it never looks at the syntax tree. */
#ifndef PROMQL_PLAN_NODE_H
#define PROMQL_PLAN_NODE_H

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
    struct pq_pos pos;   /* where it is written */
    struct pq_grid grid; /* steps it answers */
    struct pq_plan_node **children;
    struct pq_pos *child_pos; /* per child: where notes about it point to, if there may be some */
    size_t child_count;

    /* Series come out marked "drop the metric name"; whoever builds the tree drops at once or at
     * the end, as delayed_name_removal says. */
    bool drops_names;

    double number;                /* NUMBER */
    struct qf_str string;         /* STRING */
    struct pq_leaf *leaf;         /* LEAF; WINDOW over raw samples */
    struct pq_plan_window window; /* WINDOW, SUBQUERY */
    enum pq_function_id function; /* FUNCTION, WINDOW, SCALAR_OP, BUCKETS, SORT, LABEL */
    struct qf_labels labels;      /* ABSENT */
    const struct qf_str *strings; /* SORT: label names */
    size_t string_count;
    struct pq_label_call label_call; /* LABEL */
    enum pq_op op;                   /* SCALAR_OP, unless it is a function; BINARY, SET */
    /* SCALAR_OP, BINARY: a comparison answers 0 or 1 instead of choosing. */
    bool return_bool;
    bool scalar_left;                   /* SCALAR_OP: child 0 is the scalar, child 1 the vector */
    const struct pq_matching *matching; /* BINARY, SET */
    enum pq_agg agg;                    /* AGGREGATE, SELECT */
    bool without;                       /* AGGREGATE, SELECT, COUNT_VALUES */
    /* AGGREGATE, SELECT, COUNT_VALUES, BINARY, SET: sorted, without duplicates. */
    const struct qf_str *grouping;
    size_t grouping_count;
    struct qf_str label; /* COUNT_VALUES, BUCKETS of histogram_quantiles */
    /* INFO: data label matchers, and how far its info series are shifted against the steps. */
    const struct pq_matcher *matchers;
    size_t matcher_count;
};

const char *pq_plan_kind_text(enum pq_plan_kind kind);

#endif
