/* ast.h - the PromQL syntax tree, made of expressions.
 *
 * (struct pq_expr is what the query says, struct pq_plan_node what is to be done about it, and
 * struct pq_exec, an ExecNode, does it.)
 *
 * Expressions live in the arena they were parsed into and are plain data: the parser builds them,
 * the planner reads them. Positions are byte offsets into the query text, [start, end). Durations and
 * times are milliseconds. */
#ifndef PROMQL_AST_H
#define PROMQL_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/labels.h"
#include "base/pure/slice.h"

struct qf_regex;
struct pq_function;

struct pq_pos {
    uint32_t start, end;
};

enum pq_type { PQ_TYPE_NONE, PQ_TYPE_SCALAR, PQ_TYPE_VECTOR, PQ_TYPE_MATRIX, PQ_TYPE_STRING };

enum pq_expr_kind {
    PQ_NUMBER,
    PQ_STRING,
    PQ_VECTOR_SELECTOR,
    PQ_MATRIX_SELECTOR,
    PQ_SUBQUERY,
    PQ_CALL,
    PQ_AGGREGATE,
    PQ_BINARY,
    PQ_UNARY,
    PQ_PAREN,
    PQ_DURATION_EXPR, /* only as range, step or offset; never inside a value expression */
};

/* Binary and unary operators, and those of duration expressions. */
enum pq_op {
    PQ_OP_NONE,
    PQ_OP_ADD,
    PQ_OP_SUB,
    PQ_OP_MUL,
    PQ_OP_DIV,
    PQ_OP_MOD,
    PQ_OP_POW,
    PQ_OP_ATAN2,
    PQ_OP_EQLC, /* == */
    PQ_OP_NEQ,
    PQ_OP_LTE,
    PQ_OP_LSS,
    PQ_OP_GTE,
    PQ_OP_GTR,
    PQ_OP_AND,
    PQ_OP_OR,
    PQ_OP_UNLESS,
    PQ_OP_TRIM_UPPER, /* </ */
    PQ_OP_TRIM_LOWER, /* >/ */
    PQ_OP_STEP,       /* step() in a duration expression */
    PQ_OP_RANGE,      /* range() in a duration expression */
    PQ_OP_MIN_OF,
    PQ_OP_MAX_OF,
};

/* The aggregations of aggregations.def: PQ_AGG_AVG, PQ_AGG_SUM, ... */
enum pq_agg {
#define PQ_AGGREGATION(id, ...) PQ_AGG_##id,
#include "promql/aggregations.def"
#undef PQ_AGGREGATION
    PQ_AGG__COUNT,
};

enum pq_match_type { PQ_MATCH_EQUAL, PQ_MATCH_NOT_EQUAL, PQ_MATCH_REGEX, PQ_MATCH_NOT_REGEX };

struct pq_matcher {
    enum pq_match_type type;
    struct qf_str name;
    struct qf_str value;
    const struct qf_regex *regex; /* for the regex types; freed with the arena */
};

/* True if @value (empty for an absent label) satisfies the matcher. */
bool pq_matcher_matches(const struct pq_matcher *matcher, struct qf_str value);
/* True if every matcher accepts the label set. */
bool pq_matchers_match(const struct pq_matcher *matchers, size_t count, struct qf_labels labels);

enum pq_card { PQ_CARD_ONE_TO_ONE, PQ_CARD_MANY_TO_ONE, PQ_CARD_ONE_TO_MANY, PQ_CARD_MANY_TO_MANY };

struct pq_matching {
    enum pq_card card; /* group_left is many-to-one */
    bool on;           /* on(...) rather than ignoring(...) */
    const struct qf_str *labels;
    size_t label_count;
    const struct qf_str *include; /* group_left(...) / group_right(...) */
    size_t include_count;
    bool has_fill_left, has_fill_right;
    double fill_left, fill_right;
};

enum pq_at_kind { PQ_AT_NONE, PQ_AT_TIME, PQ_AT_START, PQ_AT_END };

struct pq_expr;

/* Offset and @ of selectors and subqueries, as written. */
struct pq_time_shift {
    int64_t offset_ms;           /* "offset 5m" is 300000; also when an expression was evaluated */
    struct pq_expr *offset_expr; /* PQ_DURATION_EXPR, or NULL */
    enum pq_at_kind at;
    int64_t at_ms; /* for PQ_AT_TIME */
};

struct pq_expr {
    enum pq_expr_kind kind;
    enum pq_type type; /* set by the parser; PQ_TYPE_NONE: derived by pq_expr_type */
    uint32_t height;   /* levels of the tree from here down, a leaf is 1; 0: not known */
    struct pq_pos pos;
    union {
        struct {
            double value;
            bool is_duration; /* written as 5m: printed so */
        } number;
        struct {
            struct qf_str value;
        } string;
        struct {
            struct qf_str name; /* as written before the braces; empty if none */
            const struct pq_matcher
                *matchers; /* incl. the one for __name__, in Prometheus's order */
            size_t matcher_count;
            struct pq_time_shift shift;
            bool anchored, smoothed;
            bool bypass_empty_check; /* second argument of info() */
        } vector;
        struct {
            struct pq_expr *selector; /* PQ_VECTOR_SELECTOR, with the offset and @ */
            int64_t range_ms;
            struct pq_expr *range_expr; /* PQ_DURATION_EXPR, or NULL */
        } matrix;
        struct {
            struct pq_expr *expr;
            int64_t range_ms;
            struct pq_expr *range_expr;
            int64_t step_ms; /* 0: the default resolution */
            struct pq_expr *step_expr;
            struct pq_time_shift shift;
        } subquery;
        struct {
            const struct pq_function *function;
            struct pq_expr **args;
            size_t arg_count;
        } call;
        struct {
            enum pq_agg op;
            struct pq_expr *expr;
            struct pq_expr *param; /* NULL unless the operator takes one */
            const struct qf_str *grouping;
            size_t grouping_count;
            bool without;
        } aggregate;
        struct {
            enum pq_op op;
            struct pq_expr *lhs, *rhs;
            bool return_bool;
            const struct pq_matching *matching; /* NULL unless both sides are vectors */
        } binary;
        struct {
            enum pq_op op; /* PQ_OP_ADD or PQ_OP_SUB */
            struct pq_expr *expr;
            uint32_t start_pos;
        } unary;
        struct {
            struct pq_expr *expr;
        } paren;
        struct {
            enum pq_op op;
            struct pq_expr *lhs, *rhs; /* NUMBER (seconds) or DURATION_EXPR; lhs NULL: unary */
            bool wrapped;              /* stood in parentheses */
        } duration;
    };
};

/* The row of functions.def (see functions.h), or NULL if unknown. */
const struct pq_function *pq_function_find(struct qf_str name);
const char *pq_op_text(enum pq_op op); /* "+", "==", "and", ... */
/* ==, !=, <=, <, >=, > */
static inline bool pq_op_compares(enum pq_op op)
{
    return op >= PQ_OP_EQLC && op <= PQ_OP_GTR;
}
/* What comes out is a part of what went in, and is still called by its name. */
static inline bool pq_op_keeps_name(enum pq_op op)
{
    return pq_op_compares(op) || op == PQ_OP_TRIM_UPPER || op == PQ_OP_TRIM_LOWER;
}
const char *pq_agg_text(enum pq_agg op);
/* The type of its parameter, PQ_TYPE_NONE if it takes none; whether it must be enabled. */
enum pq_type pq_agg_param(enum pq_agg op);
bool pq_agg_experimental(enum pq_agg op);
/* How errors call a type: "scalar", "instant vector", "range vector", "string", "none". */
const char *pq_type_text(enum pq_type type);
enum pq_type pq_expr_type(const struct pq_expr *expr);

/* The expression without the parentheses around it. */
static inline const struct pq_expr *pq_unwrap(const struct pq_expr *expr)
{
    while (expr->kind == PQ_PAREN)
        expr = expr->paren.expr;
    return expr;
}

#endif
