/* ast.c - questions about syntax trees. */
#include "promql/functions.h"

#include "base/pure/macros.h"
#include "base/regex/regex.h"

bool pq_matcher_matches(const struct pq_matcher *matcher, struct qf_str value)
{
    switch (matcher->type) {
    case PQ_MATCH_EQUAL:
        return qf_str_eq(matcher->value, value);
    case PQ_MATCH_NOT_EQUAL:
        return !qf_str_eq(matcher->value, value);
    case PQ_MATCH_REGEX:
        return qf_regex_match(matcher->regex, value.data, value.len);
    case PQ_MATCH_NOT_REGEX:
        return !qf_regex_match(matcher->regex, value.data, value.len);
    }
    return false;
}

bool pq_matchers_match(const struct pq_matcher *matchers, size_t count, struct qf_labels labels)
{
    for (size_t i = 0; i < count; i++)
        if (!pq_matcher_matches(&matchers[i], qf_labels_get(labels, matchers[i].name)))
            return false;
    return true;
}

const char *pq_op_text(enum pq_op op)
{
    static const char *const texts[] = {
        [PQ_OP_NONE] = "",         [PQ_OP_ADD] = "+",         [PQ_OP_SUB] = "-",
        [PQ_OP_MUL] = "*",         [PQ_OP_DIV] = "/",         [PQ_OP_MOD] = "%",
        [PQ_OP_POW] = "^",         [PQ_OP_ATAN2] = "atan2",   [PQ_OP_EQLC] = "==",
        [PQ_OP_NEQ] = "!=",        [PQ_OP_LTE] = "<=",        [PQ_OP_LSS] = "<",
        [PQ_OP_GTE] = ">=",        [PQ_OP_GTR] = ">",         [PQ_OP_AND] = "and",
        [PQ_OP_OR] = "or",         [PQ_OP_UNLESS] = "unless", [PQ_OP_TRIM_UPPER] = "</",
        [PQ_OP_TRIM_LOWER] = ">/", [PQ_OP_STEP] = "step",     [PQ_OP_RANGE] = "range",
        [PQ_OP_MIN_OF] = "min_of", [PQ_OP_MAX_OF] = "max_of",
    };

    return (size_t)op < QF_COUNT_OF(texts) ? texts[op] : "";
}

static const struct {
    const char *name;
    enum pq_type param;
    bool experimental;
} aggregations[PQ_AGG__COUNT] = {
#define PQ_AGGREGATION(id, name, param, experimental, object)                                      \
    [PQ_AGG_##id] = { name, PQ_TYPE_##param, experimental },
#include "promql/aggregations.def"
#undef PQ_AGGREGATION
};

const char *pq_agg_text(enum pq_agg op)
{
    return aggregations[op].name;
}

enum pq_type pq_agg_param(enum pq_agg op)
{
    return aggregations[op].param;
}

bool pq_agg_experimental(enum pq_agg op)
{
    return aggregations[op].experimental;
}

const char *pq_type_text(enum pq_type type)
{
    switch (type) {
    case PQ_TYPE_SCALAR:
        return "scalar";
    case PQ_TYPE_VECTOR:
        return "instant vector";
    case PQ_TYPE_MATRIX:
        return "range vector";
    case PQ_TYPE_STRING:
        return "string";
    case PQ_TYPE_NONE:
        break;
    }
    return "none";
}

enum pq_type pq_expr_type(const struct pq_expr *node)
{
    if (node->type != PQ_TYPE_NONE)
        return node->type;
    switch (node->kind) {
    case PQ_NUMBER:
        return PQ_TYPE_SCALAR;
    case PQ_STRING:
        return PQ_TYPE_STRING;
    case PQ_VECTOR_SELECTOR:
    case PQ_AGGREGATE:
        return PQ_TYPE_VECTOR;
    case PQ_MATRIX_SELECTOR:
    case PQ_SUBQUERY:
        return PQ_TYPE_MATRIX;
    case PQ_CALL:
        return node->call.function->return_type;
    case PQ_BINARY:
        return pq_expr_type(node->binary.lhs) == PQ_TYPE_SCALAR &&
                       pq_expr_type(node->binary.rhs) == PQ_TYPE_SCALAR
                   ? PQ_TYPE_SCALAR
                   : PQ_TYPE_VECTOR;
    case PQ_UNARY:
        return pq_expr_type(node->unary.expr);
    case PQ_PAREN:
        return pq_expr_type(node->paren.expr);
    case PQ_DURATION_EXPR:
        break;
    }
    return PQ_TYPE_NONE;
}
