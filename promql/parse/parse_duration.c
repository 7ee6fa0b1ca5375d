/* parse_duration.c - duration expressions: arithmetic on durations inside brackets and offsets. */
#include <math.h>

#include "base/pure/macros.h"
#include "promql/parse/parser.h"

enum { LEVEL_SUM = 1, LEVEL_PRODUCT, LEVEL_POWER };

static struct pq_expr *parse_binary(struct pq_parser *p, int level_min);
static struct pq_expr *parse_operand(struct pq_parser *p);

/* The most seconds that Go's nanoseconds in an int64 can hold. */
#define SECONDS_MAX (0x1p63 / 1e9)

static bool check_range(struct pq_parser *p, const struct pq_expr *node)
{
    double value = node->number.value;

    if (value > SECONDS_MAX || value < -SECONDS_MAX || isnan(value)) {
        pq_parser_fail(p, node->pos, "duration out of range");
        return false;
    }
    return true;
}

struct pq_expr *pq_parse_positive_duration(struct pq_parser *p)
{
    struct pq_expr *node = parse_binary(p, LEVEL_SUM);

    if (!node || node->kind != PQ_NUMBER)
        return node;
    if (node->number.value <= 0) {
        pq_parser_fail(p, node->pos, "duration must be greater than 0");
        return NULL;
    }
    return check_range(p, node) ? node : NULL;
}

/* A node of @op over @lhs (NULL for a sign) and @rhs. */
static struct pq_expr *make(struct pq_parser *p, enum pq_op op, struct pq_expr *lhs,
                            struct pq_expr *rhs, struct pq_pos pos)
{
    struct pq_expr *node = pq_parser_node(p, PQ_DURATION_EXPR, pos);

    if (!node)
        return NULL;
    if (p->options.no_duration_expressions) {
        pq_parser_fail(p, pos, "experimental duration expression is not enabled");
        return NULL;
    }
    node->duration.op = op;
    node->duration.lhs = lhs;
    node->duration.rhs = rhs;
    if (lhs)
        node->height = lhs->height + 1;
    if (rhs)
        node->height = QF_MAX(node->height, rhs->height + 1);
    if (node->height > PQ_HEIGHT_MAX) {
        pq_parser_fail(p, pos, "duration expression is a tree of more than %d levels",
                       PQ_HEIGHT_MAX);
        p->error.rc = QF_ELIMIT;
        return NULL;
    }
    return node;
}

/* How tightly an operator binds; 0 for what is none. */
static int operator_level(enum pq_token_type type, enum pq_op *ret_op)
{
    static const struct {
        enum pq_token_type type;
        enum pq_op op;
        int level;
    } operators[] = {
        { PQ_T_ADD, PQ_OP_ADD, LEVEL_SUM },     { PQ_T_SUB, PQ_OP_SUB, LEVEL_SUM },
        { PQ_T_MUL, PQ_OP_MUL, LEVEL_PRODUCT }, { PQ_T_DIV, PQ_OP_DIV, LEVEL_PRODUCT },
        { PQ_T_MOD, PQ_OP_MOD, LEVEL_PRODUCT }, { PQ_T_POW, PQ_OP_POW, LEVEL_POWER },
    };

    *ret_op = PQ_OP_NONE;
    for (size_t i = 0; i < QF_COUNT_OF(operators); i++)
        if (operators[i].type == type) {
            *ret_op = operators[i].op;
            return operators[i].level;
        }
    return 0;
}

static struct pq_expr *nested(struct pq_parser *p, int level_min)
{
    struct pq_expr *node;

    if (!pq_parser_enter(p))
        return NULL;
    node = parse_binary(p, level_min);
    p->depth--;
    return node;
}

static struct pq_expr *parse_binary(struct pq_parser *p, int level_min)
{
    struct pq_expr *lhs = parse_operand(p);

    while (lhs) {
        enum pq_op op;
        int level = operator_level(pq_parser_peek(p), &op);
        struct pq_expr *rhs;
        struct pq_token token;

        if (level == 0 || level < level_min)
            return p->failed ? NULL : lhs;
        token = pq_parser_next(p);
        rhs = level == LEVEL_POWER ? nested(p, level) : parse_binary(p, level + 1);
        if (!rhs)
            return NULL;
        if ((op == PQ_OP_DIV || op == PQ_OP_MOD) && rhs->kind == PQ_NUMBER &&
            rhs->number.value == 0) {
            pq_parser_fail(p, token.pos, op == PQ_OP_DIV ? "division by zero" : "modulo by zero");
            return NULL;
        }
        lhs = make(p, op, lhs, rhs, (struct pq_pos){ lhs->pos.start, rhs->pos.end });
    }
    return NULL;
}

/* A sign goes into a number; a plus before anything else means nothing. */
static struct pq_expr *apply_sign(struct pq_parser *p, struct pq_token sign, struct pq_expr *node)
{
    if (node->kind == PQ_NUMBER) {
        if (sign.type == PQ_T_SUB)
            node->number.value = -node->number.value;
        node->pos.start = sign.pos.start;
        return node;
    }
    if (sign.type == PQ_T_ADD)
        return node;
    return make(p, PQ_OP_SUB, NULL, node, (struct pq_pos){ sign.pos.start, node->pos.end });
}

/* Parentheses are kept for printing: as a flag, or around a number as a plus with the flag. */
static struct pq_expr *parse_paren(struct pq_parser *p, bool after_sign)
{
    uint32_t start = pq_parser_next(p).pos.start;
    struct pq_expr *node = nested(p, LEVEL_SUM);

    if (!node || !pq_parser_expect(p, PQ_T_RIGHT_PAREN))
        return NULL;
    if (node->kind == PQ_NUMBER)
        node = make(p, PQ_OP_ADD, NULL, node,
                    after_sign ? node->pos : (struct pq_pos){ start, p->last.end });
    if (node)
        node->duration.wrapped = true;
    return node;
}

/* step(), range(), min_of(a, b), max_of(a, b) */
static struct pq_expr *parse_function(struct pq_parser *p)
{
    struct pq_token name = pq_parser_next(p);
    struct pq_expr *lhs = NULL, *rhs = NULL;
    enum pq_op op = name.type == PQ_T_STEP     ? PQ_OP_STEP
                    : name.type == PQ_T_RANGE  ? PQ_OP_RANGE
                    : name.type == PQ_T_MIN_OF ? PQ_OP_MIN_OF
                                               : PQ_OP_MAX_OF;

    if (!pq_parser_expect(p, PQ_T_LEFT_PAREN))
        return NULL;
    if (op == PQ_OP_MIN_OF || op == PQ_OP_MAX_OF) {
        lhs = nested(p, LEVEL_SUM);
        if (!lhs || !pq_parser_expect(p, PQ_T_COMMA))
            return NULL;
        rhs = nested(p, LEVEL_SUM);
    }
    if (p->failed || !pq_parser_expect(p, PQ_T_RIGHT_PAREN))
        return NULL;
    return make(p, op, lhs, rhs, (struct pq_pos){ name.pos.start, p->last.end });
}

/* A number, a function or a parenthesis; NULL and an error for anything else. */
static struct pq_expr *parse_atom(struct pq_parser *p, bool after_sign)
{
    enum pq_token_type next = pq_parser_peek(p);

    if (next == PQ_T_NUMBER || next == PQ_T_DURATION)
        return pq_parse_number(p);
    if (next == PQ_T_LEFT_PAREN)
        return parse_paren(p, after_sign);
    if (next == PQ_T_STEP || next == PQ_T_RANGE || next == PQ_T_MIN_OF || next == PQ_T_MAX_OF)
        return parse_function(p);
    pq_parser_unexpected(p);
    return NULL;
}

static struct pq_expr *parse_operand(struct pq_parser *p)
{
    enum pq_token_type type = pq_parser_peek(p);
    struct pq_token sign;
    struct pq_expr *node;

    if (type != PQ_T_ADD && type != PQ_T_SUB)
        return parse_atom(p, false);
    sign = pq_parser_next(p);
    node = nested(p, LEVEL_POWER);
    return node ? apply_sign(p, sign, node) : NULL;
}

/* After offset only an operand with an optional sign: "offset 5m - 3" subtracts from the value. */
struct pq_expr *pq_parse_offset_duration(struct pq_parser *p)
{
    enum pq_token_type type = pq_parser_peek(p);
    bool signed_ = type == PQ_T_ADD || type == PQ_T_SUB;
    struct pq_token sign = { PQ_T_ADD, { 0, 0 } };
    struct pq_expr *node;

    if (signed_)
        sign = pq_parser_next(p);
    node = parse_atom(p, signed_);
    if (node && signed_)
        node = apply_sign(p, sign, node);
    if (node && node->kind == PQ_NUMBER && !check_range(p, node))
        return NULL;
    return node;
}
