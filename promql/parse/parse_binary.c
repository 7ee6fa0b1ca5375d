/* parse_binary.c - what stands between an operator and its right side, and the finished node. */
#include "base/pure/macros.h"
#include "promql/parse/parser.h"

static bool parse_group(struct pq_parser *p, struct pq_matching *matching);
static bool parse_fill(struct pq_parser *p, struct pq_matching *matching);

bool pq_parse_matching(struct pq_parser *p, bool *ret_bool, struct pq_matching *ret_matching)
{
    enum pq_token_type type;

    *ret_bool = pq_parser_accept(p, PQ_T_BOOL);
    type = pq_parser_peek(p);
    if (type == PQ_T_ON || type == PQ_T_IGNORING) {
        (void)pq_parser_next(p);
        ret_matching->on = type == PQ_T_ON;
        if (!pq_parse_grouping(p, &ret_matching->labels, &ret_matching->label_count) ||
            !parse_group(p, ret_matching))
            return false;
    }
    return parse_fill(p, ret_matching) && !p->failed;
}

static bool parse_group(struct pq_parser *p, struct pq_matching *matching)
{
    enum pq_token_type type = pq_parser_peek(p);

    if (type != PQ_T_GROUP_LEFT && type != PQ_T_GROUP_RIGHT)
        return true;
    (void)pq_parser_next(p);
    matching->card = type == PQ_T_GROUP_LEFT ? PQ_CARD_MANY_TO_ONE : PQ_CARD_ONE_TO_MANY;
    if (pq_parser_peek(p) != PQ_T_LEFT_PAREN)
        return true;
    return pq_parse_grouping(p, &matching->include, &matching->include_count);
}

static bool parse_fill_value(struct pq_parser *p, double *ret_value)
{
    bool minus = false;
    struct pq_expr *number;
    enum pq_token_type type;

    if (!pq_parser_expect(p, PQ_T_LEFT_PAREN))
        return false;
    if (!pq_parser_accept(p, PQ_T_ADD))
        minus = pq_parser_accept(p, PQ_T_SUB);
    type = pq_parser_peek(p);
    if (type != PQ_T_NUMBER && type != PQ_T_DURATION) {
        pq_parser_unexpected(p);
        return false;
    }
    number = pq_parse_number(p);
    if (!number || !pq_parser_expect(p, PQ_T_RIGHT_PAREN))
        return false;
    *ret_value = minus ? -number->number.value : number->number.value;
    return true;
}

/* fill(n), or fill_left(n) and fill_right(n) in any order. A metric may have these names, so only a
 * parenthesis makes them modifiers. */
static bool parse_fill(struct pq_parser *p, struct pq_matching *matching)
{
    for (;;) {
        enum pq_token_type type = pq_parser_peek(p);
        bool left = type == PQ_T_FILL_LEFT || type == PQ_T_FILL;
        bool right = type == PQ_T_FILL_RIGHT || type == PQ_T_FILL;
        double value;

        if ((!left && !right) || !pq_parser_call_follows(p))
            return true;
        if ((left && matching->has_fill_left) || (right && matching->has_fill_right)) {
            pq_parser_unexpected(p);
            return false;
        }
        (void)pq_parser_next(p);
        if (!parse_fill_value(p, &value))
            return false;
        if (left)
            matching->has_fill_left = true, matching->fill_left = value;
        if (right)
            matching->has_fill_right = true, matching->fill_right = value;
    }
}

struct pq_expr *pq_make_binary(struct pq_parser *p, struct pq_expr *proto,
                               const struct pq_matching *matching)
{
    const struct pq_expr *lhs = proto->binary.lhs, *rhs = proto->binary.rhs;
    struct pq_expr *node =
        pq_parser_node(p, PQ_BINARY, (struct pq_pos){ lhs->pos.start, rhs->pos.end });
    struct pq_matching *kept;

    if (!node)
        return NULL;
    if (!p->options.fill_modifiers && (matching->has_fill_left || matching->has_fill_right)) {
        pq_parser_fail(p, node->pos, "binop fill modifiers are experimental and not enabled");
        return NULL;
    }
    node->binary = proto->binary;
    node->height = 1 + QF_MAX(lhs->height, rhs->height);
    node->type = lhs->type == PQ_TYPE_SCALAR && rhs->type == PQ_TYPE_SCALAR ? PQ_TYPE_SCALAR
                                                                            : PQ_TYPE_VECTOR;
    kept = QF_ARENA_NEW(p->arena, struct pq_matching);
    if (!kept) {
        pq_parser_out_of_memory(p);
        return NULL;
    }
    *kept = *matching;
    pq_check_binary(p, node, kept);
    return p->failed ? NULL : node;
}
