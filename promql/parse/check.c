/* check.c - type checks. The texts and positions are Prometheus's. */
#include "promql/functions.h"
#include "promql/parse/parser.h"

static const struct pq_pos NOWHERE = { 0, 0 };

void pq_check_selector(struct pq_parser *p, const struct pq_expr *node)
{
    size_t count = node->vector.matcher_count;
    const struct pq_matcher *matchers = node->vector.matchers;

    if (node->vector.name.len) { /* the last matcher is that name */
        for (size_t i = 0; i + 1 < count; i++)
            if (qf_str_is(matchers[i].name, QF_METRIC_NAME))
                pq_parser_check(p, node, NOWHERE, "metric name must not be set twice: %s or %s",
                                pq_parser_quote(p, node->vector.name),
                                pq_parser_quote(p, matchers[i].value));
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!pq_matcher_matches(&matchers[i], QF_STR("")))
            return;
    pq_parser_check(p, node, NOWHERE,
                    "vector selector must contain at least one non-empty matcher");
}

static void expect_type(struct pq_parser *p, const struct pq_expr *node, enum pq_type want,
                        const char *context)
{
    if (node->type != want)
        pq_parser_check(p, node, NOWHERE, "expected type %s in %s, got %s", pq_type_text(want),
                        context, pq_type_text(node->type));
}

void pq_check_aggregate(struct pq_parser *p, const struct pq_expr *node,
                        const struct pq_check *param_check)
{
    expect_type(p, node->aggregate.expr, PQ_TYPE_VECTOR, "aggregation expression");
    if (!p->check)
        p->check = param_check;
    if (node->aggregate.param)
        expect_type(p, node->aggregate.param, pq_agg_param(node->aggregate.op),
                    "aggregation parameter");
}

void pq_check_unary(struct pq_parser *p, const struct pq_expr *node)
{
    enum pq_type type = node->unary.expr->type;

    if (type != PQ_TYPE_SCALAR && type != PQ_TYPE_VECTOR)
        pq_parser_check(p, node, NOWHERE,
                        "unary expression only allowed on expressions of type scalar or instant "
                        "vector, got \"%s\"",
                        pq_type_text(type));
}

void pq_check_subquery(struct pq_parser *p, const struct pq_expr *node)
{
    static const char *const names[] = { "none", "scalar", "vector", "matrix", "string" };
    enum pq_type type = node->subquery.expr->type;

    if (type != PQ_TYPE_VECTOR)
        pq_parser_check(p, node, NOWHERE,
                        "subquery is only allowed on instant vector, got %s instead", names[type]);
}

static bool is_set_operator(enum pq_op op)
{
    return op == PQ_OP_AND || op == PQ_OP_OR || op == PQ_OP_UNLESS;
}

/* The operator with its modifiers, without the blanks around; one character short at its end, as
 * Prometheus has it. */
static struct pq_pos operator_range(const struct pq_parser *p, const struct pq_expr *node)
{
    struct pq_pos pos = { node->binary.lhs->pos.end, node->binary.rhs->pos.start - 1 };

    while (pos.start < p->lex.text.len && pq_is_space(p->lex.text.data[pos.start]))
        pos.start++;
    while (pos.end > 0 && pq_is_space(p->lex.text.data[pos.end]))
        pos.end--;
    return pos;
}

static void check_on_and_group(struct pq_parser *p, const struct pq_expr *node,
                               const struct pq_matching *matching)
{
    for (size_t i = 0; matching->on && i < matching->label_count && !p->check; i++)
        for (size_t j = 0; j < matching->include_count; j++)
            if (qf_str_eq(matching->labels[i], matching->include[j])) {
                pq_parser_check(p, NULL, operator_range(p, node),
                                "label %s must not occur in ON and GROUP clause at once",
                                pq_parser_quote(p, matching->labels[i]));
                return;
            }
}

static void check_set_operator(struct pq_parser *p, const struct pq_expr *node,
                               const struct pq_matching *matching)
{
    if (matching->card == PQ_CARD_ONE_TO_MANY || matching->card == PQ_CARD_MANY_TO_ONE)
        pq_parser_check(p, node, NOWHERE, "no grouping allowed for \"%s\" operation",
                        pq_op_text(node->binary.op));
    if (matching->has_fill_left || matching->has_fill_right)
        pq_parser_check(p, node, NOWHERE,
                        "filling in missing series not allowed for set operators");
}

static bool is_value(enum pq_type type)
{
    return type == PQ_TYPE_SCALAR || type == PQ_TYPE_VECTOR;
}

static void check_operands(struct pq_parser *p, const struct pq_expr *node)
{
    static const char *const text =
        "binary expression must contain only scalar and instant vector types";

    if (!is_value(node->binary.lhs->type))
        pq_parser_check(p, node->binary.lhs, NOWHERE, "%s", text);
    if (!is_value(node->binary.rhs->type))
        pq_parser_check(p, node->binary.rhs, NOWHERE, "%s", text);
}

void pq_check_binary(struct pq_parser *p, struct pq_expr *node, struct pq_matching *matching)
{
    enum pq_op op = node->binary.op;
    enum pq_type left = node->binary.lhs->type, right = node->binary.rhs->type;

    if (node->binary.return_bool && !pq_op_compares(op))
        pq_parser_check(p, NULL, operator_range(p, node),
                        "bool modifier can only be used on comparison operators");
    if (pq_op_compares(op) && !node->binary.return_bool && left == PQ_TYPE_SCALAR &&
        right == PQ_TYPE_SCALAR)
        pq_parser_check(p, NULL, operator_range(p, node),
                        "comparisons between scalars must use BOOL modifier");
    if (is_set_operator(op) && matching->card == PQ_CARD_ONE_TO_ONE)
        matching->card = PQ_CARD_MANY_TO_MANY;
    check_on_and_group(p, node, matching);
    check_operands(p, node);
    if (left == PQ_TYPE_VECTOR && right == PQ_TYPE_VECTOR) {
        node->binary.matching = matching;
        if (is_set_operator(op))
            check_set_operator(p, node, matching);
    } else {
        if (matching->label_count > 0)
            pq_parser_check(p, node, NOWHERE,
                            "vector matching only allowed between instant vectors");
        if (matching->has_fill_left || matching->has_fill_right)
            pq_parser_check(p, node, NOWHERE,
                            "filling in missing series only allowed between instant vectors");
    }
    if (is_set_operator(op) && (left == PQ_TYPE_SCALAR || right == PQ_TYPE_SCALAR))
        pq_parser_check(p, node, NOWHERE,
                        "set operator \"%s\" not allowed in binary scalar expression",
                        pq_op_text(op));
}

/* info()'s second argument is a bare selector, which may match anything. */
static void check_info(struct pq_parser *p, const struct pq_expr *node)
{
    struct pq_expr *arg = node->call.args[1];

    if (arg->type != PQ_TYPE_VECTOR) {
        pq_parser_check(p, node, NOWHERE,
                        "expected type instant vector in call to function \"info\", got %s",
                        pq_type_text(arg->type));
    } else if (arg->kind != PQ_VECTOR_SELECTOR) {
        pq_parser_check(p, arg, NOWHERE, "expected label selectors only");
    } else {
        if (arg->vector.name.len)
            pq_parser_check(p, arg, NOWHERE,
                            "expected label selectors only, got vector selector instead");
        arg->vector.bypass_empty_check = true;
    }
}

void pq_check_call_count(struct pq_parser *p, const struct pq_expr *node)
{
    const struct pq_function *function = node->call.function;
    size_t min = pq_function_args_min(function), max = pq_function_args_max(function);
    size_t count = node->call.arg_count;

    if (count < min || count > max)
        pq_parser_check(p, node, NOWHERE, "expected %s%zu argument(s) in call to \"%s\", got %zu",
                        function->variadic == 0 ? ""
                        : count < min           ? "at least "
                                                : "at most ",
                        count < min ? min : max, function->name, count);
    if (function->id == PQ_FN_INFO && count > 1)
        check_info(p, node);
}

void pq_check_argument(struct pq_parser *p, const struct pq_function *function, size_t index,
                       const struct pq_expr *arg)
{
    char context[64];

    if (index >= function->arg_count && function->variadic == 0)
        return;
    (void)snprintf(context, sizeof(context), "call to function \"%s\"", function->name);
    expect_type(p, arg, pq_function_arg_type(function, index), context);
}
