/* parse.c - expressions: precedence climbing over operands.
 *
 * Chains of left-associative operators and of postfix modifiers are loops; what recurses (a
 * parenthesis, an argument, a sign, the right side of ^) counts as a level of nesting. */
#include "promql/parse.h"

#include "base/pure/macros.h"
#include "promql/functions.h"
#include "promql/parse/parser.h"

static struct pq_expr *parse_binary(struct pq_parser *p, int level_min);
static struct pq_expr *parse_unary(struct pq_parser *p);
static struct pq_expr *parse_operand(struct pq_parser *p);
static struct pq_expr *parse_paren(struct pq_parser *p);
static struct pq_expr *parse_word(struct pq_parser *p);
static bool is_metric_word(enum pq_token_type type);
static struct pq_expr *parse_selector(struct pq_parser *p, const struct pq_token *name);
static struct pq_expr *parse_call(struct pq_parser *p, struct pq_token name);
static struct pq_expr *parse_aggregate(struct pq_parser *p, struct pq_token op);

qf_rc pq_parse(struct qf_arena *arena, struct qf_str text, const struct pq_parse_options *options,
               struct pq_expr **ret_expr, struct qf_err *err)
{
    struct pq_parser p;
    struct pq_expr *node = NULL;
    qf_rc rc;

    pq_parser_init(&p, arena, text, options, NULL);
    if (pq_parser_peek(&p) == PQ_T_EOF)
        pq_parser_fail(&p, (struct pq_pos){ 0, 0 }, "no expression found in input");
    else
        node = pq_parse_expr(&p);
    if (!p.failed)
        (void)pq_parser_expect(&p, PQ_T_EOF);
    rc = pq_parser_finish(&p, err);
    if (rc != QF_OK)
        return rc;
    if (node->height > PQ_HEIGHT_MAX)
        return qf_err_set(err, QF_ELIMIT, "query is a tree of %u levels, the limit is %d",
                          node->height, PQ_HEIGHT_MAX);
    *ret_expr = node;
    return QF_OK;
}

qf_rc pq_parse_selector(struct qf_arena *arena, struct qf_str text,
                        const struct pq_parse_options *options,
                        const struct pq_matcher **ret_matchers, size_t *ret_count,
                        struct qf_err *err)
{
    struct pq_parser p;
    struct pq_expr *node = NULL;
    enum pq_token_type first;
    qf_rc rc;

    pq_parser_init(&p, arena, text, options, NULL);
    first = pq_parser_peek(&p);
    if (first == PQ_T_LEFT_BRACE) {
        node = parse_selector(&p, NULL);
    } else if (is_metric_word(first)) {
        struct pq_token name = pq_parser_next(&p);

        node = parse_selector(&p, &name);
    } else {
        pq_parser_unexpected(&p);
    }
    if (!p.failed)
        (void)pq_parser_expect(&p, PQ_T_EOF);
    rc = pq_parser_finish(&p, err);
    if (rc != QF_OK)
        return rc;
    *ret_matchers = node->vector.matchers;
    *ret_count = node->vector.matcher_count;
    return QF_OK;
}

struct pq_expr *pq_parse_expr(struct pq_parser *p)
{
    struct pq_expr *node;

    if (!pq_parser_enter(p))
        return NULL;
    node = parse_binary(p, 1);
    p->depth--;
    return node;
}

/* Levels of the operators from loosest to tightest; a sign binds like a product. */
enum { LEVEL_NONE, LEVEL_OR, LEVEL_AND, LEVEL_COMPARE, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_POWER };

static int operator_level(enum pq_token_type type, enum pq_op *ret_op)
{
    static const struct {
        enum pq_op op;
        int level;
    } operators[PQ_T__COUNT] = {
        [PQ_T_LOR] = { PQ_OP_OR, LEVEL_OR },
        [PQ_T_LAND] = { PQ_OP_AND, LEVEL_AND },
        [PQ_T_LUNLESS] = { PQ_OP_UNLESS, LEVEL_AND },
        [PQ_T_EQLC] = { PQ_OP_EQLC, LEVEL_COMPARE },
        [PQ_T_NEQ] = { PQ_OP_NEQ, LEVEL_COMPARE },
        [PQ_T_LTE] = { PQ_OP_LTE, LEVEL_COMPARE },
        [PQ_T_LSS] = { PQ_OP_LSS, LEVEL_COMPARE },
        [PQ_T_GTE] = { PQ_OP_GTE, LEVEL_COMPARE },
        [PQ_T_GTR] = { PQ_OP_GTR, LEVEL_COMPARE },
        [PQ_T_TRIM_UPPER] = { PQ_OP_TRIM_UPPER, LEVEL_COMPARE },
        [PQ_T_TRIM_LOWER] = { PQ_OP_TRIM_LOWER, LEVEL_COMPARE },
        [PQ_T_ADD] = { PQ_OP_ADD, LEVEL_SUM },
        [PQ_T_SUB] = { PQ_OP_SUB, LEVEL_SUM },
        [PQ_T_MUL] = { PQ_OP_MUL, LEVEL_PRODUCT },
        [PQ_T_DIV] = { PQ_OP_DIV, LEVEL_PRODUCT },
        [PQ_T_MOD] = { PQ_OP_MOD, LEVEL_PRODUCT },
        [PQ_T_ATAN2] = { PQ_OP_ATAN2, LEVEL_PRODUCT },
        [PQ_T_POW] = { PQ_OP_POW, LEVEL_POWER },
    };

    *ret_op = operators[type].op;
    return operators[type].level;
}

/* The right side: an operand and what binds tighter than the operator; ^ takes further ^ too. */
static struct pq_expr *parse_right(struct pq_parser *p, int level)
{
    struct pq_expr *node;

    if (level != LEVEL_POWER)
        return parse_binary(p, level + 1);
    if (!pq_parser_enter(p))
        return NULL;
    node = parse_binary(p, level);
    p->depth--;
    return node;
}

static struct pq_expr *parse_binary(struct pq_parser *p, int level_min)
{
    struct pq_expr *lhs = parse_unary(p);

    while (lhs) {
        struct pq_expr proto = { .kind = PQ_BINARY };
        struct pq_matching matching = { PQ_CARD_ONE_TO_ONE };
        int level = operator_level(pq_parser_peek(p), &proto.binary.op);

        if (level == LEVEL_NONE || level < level_min)
            return p->failed ? NULL : lhs;
        (void)pq_parser_next(p);
        if (!pq_parse_matching(p, &proto.binary.return_bool, &matching))
            return NULL;
        proto.binary.lhs = lhs;
        proto.binary.rhs = parse_right(p, level);
        if (!proto.binary.rhs)
            return NULL;
        lhs = pq_make_binary(p, &proto, &matching);
    }
    return NULL;
}

/* A sign before a number becomes part of it. */
static struct pq_expr *make_unary(struct pq_parser *p, struct pq_token sign, struct pq_expr *expr)
{
    struct pq_expr *node;

    if (expr->kind == PQ_NUMBER) {
        if (sign.type == PQ_T_SUB)
            expr->number.value = -expr->number.value;
        expr->pos.start = sign.pos.start;
        return expr;
    }
    node = pq_parser_node(p, PQ_UNARY, (struct pq_pos){ sign.pos.start, expr->pos.end });
    if (!node)
        return NULL;
    node->unary.op = sign.type == PQ_T_SUB ? PQ_OP_SUB : PQ_OP_ADD;
    node->unary.expr = expr;
    node->unary.start_pos = sign.pos.start;
    node->height = expr->height + 1;
    node->type = expr->type;
    pq_check_unary(p, node);
    return node;
}

static struct pq_expr *parse_unary(struct pq_parser *p)
{
    enum pq_token_type type = pq_parser_peek(p);
    struct pq_token sign;
    struct pq_expr *expr;

    if (type != PQ_T_ADD && type != PQ_T_SUB) {
        expr = parse_operand(p);
        return expr ? pq_parse_postfix(p, expr) : NULL;
    }
    sign = pq_parser_next(p);
    if (!pq_parser_enter(p))
        return NULL;
    expr = parse_binary(p, LEVEL_POWER);
    p->depth--;
    return expr ? make_unary(p, sign, expr) : NULL;
}

static bool is_metric_word(enum pq_token_type type)
{
    if (type == PQ_T_BOOL || type == PQ_T_ON || type == PQ_T_IGNORING || type == PQ_T_GROUP_LEFT ||
        type == PQ_T_GROUP_RIGHT)
        return false;
    return type == PQ_T_IDENTIFIER || type == PQ_T_METRIC_IDENTIFIER || type == PQ_T_LAND ||
           type == PQ_T_LOR || type == PQ_T_LUNLESS || pq_token_is_keyword(type) ||
           pq_token_is_aggregator(type);
}

/* Whether an expression can begin with @type. */
static bool starts_expr(enum pq_token_type type)
{
    return is_metric_word(type) || type == PQ_T_NUMBER || type == PQ_T_DURATION ||
           type == PQ_T_STRING || type == PQ_T_LEFT_PAREN || type == PQ_T_LEFT_BRACE ||
           type == PQ_T_ADD || type == PQ_T_SUB;
}

static struct pq_expr *parse_operand(struct pq_parser *p)
{
    enum pq_token_type type = pq_parser_peek(p);
    struct pq_expr *node;

    if (type == PQ_T_NUMBER || type == PQ_T_DURATION)
        return pq_parse_number(p);
    if (type == PQ_T_LEFT_PAREN)
        return parse_paren(p);
    if (type == PQ_T_LEFT_BRACE)
        return parse_selector(p, NULL);
    if (is_metric_word(type))
        return parse_word(p);
    if (type != PQ_T_STRING) {
        pq_parser_unexpected(p);
        return NULL;
    }
    node = pq_parser_node(p, PQ_STRING, pq_parser_next(p).pos);
    if (node) {
        node->string.value = pq_parser_string(p, node->pos);
        node->type = PQ_TYPE_STRING;
    }
    return node;
}

struct pq_expr *pq_parse_number(struct pq_parser *p)
{
    struct pq_token token = pq_parser_next(p);
    struct pq_expr *node = pq_parser_node(p, PQ_NUMBER, token.pos);

    if (!node)
        return NULL;
    node->type = PQ_TYPE_SCALAR;
    node->number.is_duration = token.type == PQ_T_DURATION;
    node->number.value = node->number.is_duration ? pq_parser_duration(p, token.pos)
                                                  : pq_parser_number(p, token.pos);
    return p->failed ? NULL : node;
}

static struct pq_expr *parse_paren(struct pq_parser *p)
{
    uint32_t start = pq_parser_next(p).pos.start;
    struct pq_expr *expr = pq_parse_expr(p), *node;

    if (!expr || !pq_parser_expect(p, PQ_T_RIGHT_PAREN))
        return NULL;
    node = pq_parser_node(p, PQ_PAREN, (struct pq_pos){ start, p->last.end });
    if (node) {
        node->paren.expr = expr;
        node->height = expr->height + 1;
        node->type = expr->type;
    }
    return node;
}

/* A word is an aggregation, a call or the name of a metric: the next token tells. */
static struct pq_expr *parse_word(struct pq_parser *p)
{
    struct pq_token word = pq_parser_next(p);
    enum pq_token_type next = pq_parser_peek(p);

    if (next == PQ_T_ERROR)
        return NULL;
    if (pq_token_is_aggregator(word.type)) {
        if (next == PQ_T_LEFT_PAREN || next == PQ_T_BY || next == PQ_T_WITHOUT)
            return parse_aggregate(p, word);
        return parse_selector(p, &word);
    }
    if (next != PQ_T_LEFT_PAREN)
        return parse_selector(p, &word);
    /* Some functions are called like keywords. */
    if (word.type == PQ_T_IDENTIFIER || word.type == PQ_T_START || word.type == PQ_T_END ||
        word.type == PQ_T_STEP || word.type == PQ_T_RANGE || word.type == PQ_T_MIN_OF ||
        word.type == PQ_T_MAX_OF)
        return parse_call(p, word);
    return parse_selector(p, &word);
}

static struct pq_expr *parse_selector(struct pq_parser *p, const struct pq_token *name)
{
    struct pq_matcher *matchers = NULL;
    size_t count = 0;
    struct pq_expr *node = pq_parser_node(p, PQ_VECTOR_SELECTOR, name ? name->pos : p->token.pos);

    if (!node)
        return NULL;
    if (pq_parser_peek(p) == PQ_T_LEFT_BRACE) {
        if (!pq_parse_matchers(p, &matchers, &count))
            return NULL;
        node->pos.end = p->last.end;
    }
    if (name) {
        struct pq_matcher *matcher =
            pq_parser_push(p, (void **)&matchers, &count, sizeof(*matchers));

        if (!matcher)
            return NULL;
        node->vector.name = pq_parser_text(p, name->pos);
        *matcher =
            (struct pq_matcher){ PQ_MATCH_EQUAL, QF_STR(QF_METRIC_NAME), node->vector.name, NULL };
    }
    node->vector.matchers = matchers;
    node->vector.matcher_count = count;
    node->type = PQ_TYPE_VECTOR;
    return p->failed ? NULL : node;
}

/* Arguments in parentheses. The type errors of each stay apart (@checks, when not NULL, as many as
 * arguments), since the order in which they are reported is not that of the text. */
static bool parse_arguments(struct pq_parser *p, struct pq_expr ***args, size_t *count,
                            const struct pq_check ***checks)
{
    size_t check_count = 0;

    if (!pq_parser_expect(p, PQ_T_LEFT_PAREN))
        return false;
    if (pq_parser_accept(p, PQ_T_RIGHT_PAREN))
        return true;
    for (;;) {
        const struct pq_check *outer = p->check, **check;
        struct pq_expr **slot, *arg;
        struct pq_token comma;

        p->check = NULL;
        arg = pq_parse_expr(p);
        if (!arg)
            return false;
        slot = pq_parser_push(p, (void **)args, count, sizeof(*slot));
        check = pq_parser_push(p, (void **)checks, &check_count, sizeof(*check));
        if (!slot || !check)
            return false;
        *slot = arg;
        *check = p->check;
        p->check = outer;
        if (pq_parser_peek(p) != PQ_T_COMMA)
            return pq_parser_expect(p, PQ_T_RIGHT_PAREN);
        comma = pq_parser_next(p);
        if (pq_parser_peek(p) != PQ_T_ERROR && !starts_expr(pq_parser_peek(p))) {
            pq_parser_fail(p, comma.pos, "trailing commas not allowed in function call args");
            return false;
        }
    }
}

static void raise_to(struct pq_expr *node, const struct pq_expr *child)
{
    node->height = QF_MAX(node->height, child->height + 1);
}

static void take_check(struct pq_parser *p, const struct pq_check *check)
{
    if (!p->check)
        p->check = check;
}

static struct pq_expr *parse_call(struct pq_parser *p, struct pq_token name)
{
    struct qf_str text = pq_parser_text(p, name.pos);
    const struct pq_check **checks = NULL;
    struct pq_expr *node = pq_parser_node(p, PQ_CALL, name.pos);
    const struct pq_function *function;

    if (!node || !parse_arguments(p, &node->call.args, &node->call.arg_count, &checks))
        return NULL;
    function = pq_function_find(text);
    if (!function) {
        pq_parser_fail(p, name.pos, "unknown function with name %s", pq_parser_quote(p, text));
        return NULL;
    }
    if (function->experimental && !p->options.experimental_functions) {
        pq_parser_fail(p, name.pos, "function %s is not enabled", pq_parser_quote(p, text));
        return NULL;
    }
    node->pos.end = p->last.end;
    node->call.function = function;
    node->type = function->return_type;
    pq_check_call_count(p, node);
    for (size_t i = 0; i < node->call.arg_count; i++) {
        raise_to(node, node->call.args[i]);
        if (node->call.args[i]->kind != PQ_VECTOR_SELECTOR ||
            !node->call.args[i]->vector.bypass_empty_check)
            take_check(p, checks[i]);
        pq_check_argument(p, function, i, node->call.args[i]);
    }
    return p->failed ? NULL : node;
}

/* The aggregation that a word of class AGGREGATOR names. */
static enum pq_agg aggregator(enum pq_token_type type)
{
    static const enum pq_token_type tokens[PQ_AGG__COUNT] = {
#define PQ_AGGREGATION(id, ...) [PQ_AGG_##id] = PQ_T_##id,
#include "promql/aggregations.def"
#undef PQ_AGGREGATION
    };
    size_t agg = 0;

    while (tokens[agg] != type)
        agg++;
    return (enum pq_agg)agg;
}

static bool parse_by(struct pq_parser *p, struct pq_expr *node)
{
    enum pq_token_type type = pq_parser_peek(p);

    if (type != PQ_T_BY && type != PQ_T_WITHOUT)
        return false;
    (void)pq_parser_next(p);
    node->aggregate.without = type == PQ_T_WITHOUT;
    return pq_parse_grouping(p, &node->aggregate.grouping, &node->aggregate.grouping_count);
}

/* The arguments in their places. What comes first in the text is checked last: the parameter. */
static bool place_arguments(struct pq_parser *p, struct pq_expr *node, struct pq_expr **args,
                            size_t count, const struct pq_check **checks)
{
    enum pq_agg op = node->aggregate.op;
    size_t want = pq_agg_param(op) == PQ_TYPE_NONE ? 1 : 2;

    if (count == 0) {
        pq_parser_fail(p, node->pos, "no arguments for aggregate expression provided");
        return false;
    }
    if (pq_agg_experimental(op) && !p->options.experimental_functions) {
        pq_parser_fail(p, node->pos,
                       "%s() is experimental and must be enabled with "
                       "--enable-feature=promql-experimental-functions",
                       pq_agg_text(op));
        return false;
    }
    if (count != want) {
        pq_parser_fail(p, node->pos,
                       "wrong number of arguments for aggregate expression provided, expected %zu, "
                       "got %zu",
                       want, count);
        return false;
    }
    node->aggregate.expr = args[want - 1];
    node->aggregate.param = want == 2 ? args[0] : NULL;
    for (size_t i = 0; i < want; i++)
        raise_to(node, args[i]);
    take_check(p, checks[want - 1]);
    pq_check_aggregate(p, node, want == 2 ? checks[0] : NULL);
    return true;
}

static struct pq_expr *parse_aggregate(struct pq_parser *p, struct pq_token op)
{
    struct pq_context outer = pq_parser_context(p, "aggregation", "");
    struct pq_expr *node = pq_parser_node(p, PQ_AGGREGATE, op.pos);
    const struct pq_check **checks = NULL;
    struct pq_expr **args = NULL;
    size_t count = 0;
    bool grouped;

    if (!node)
        return NULL;
    grouped = parse_by(p, node);
    if (!parse_arguments(p, &args, &count, &checks))
        return NULL;
    if (!grouped)
        (void)parse_by(p, node);
    p->context = outer;
    if (p->failed)
        return NULL;
    node->pos.end = p->last.end;
    node->aggregate.op = aggregator(op.type);
    node->type = PQ_TYPE_VECTOR;
    return place_arguments(p, node, args, count, checks) ? node : NULL;
}
