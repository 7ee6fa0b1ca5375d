/* parse_postfix.c - what may follow an operand: [range], [range:step], offset, @ and the extended
 * range selectors. They bind tighter than any operator and are applied in the order they come. */
#include <math.h>

#include "base/pure/macros.h"
#include "promql/parse/parser.h"

static struct pq_expr *parse_brackets(struct pq_parser *p, struct pq_expr *node);
static bool parse_offset(struct pq_parser *p, struct pq_expr *node);
static bool parse_at(struct pq_parser *p, struct pq_expr *node);
static bool set_extended(struct pq_parser *p, struct pq_expr *node, enum pq_token_type type);

/* Selectors are checked once they are complete, modifiers included. */
static void check(struct pq_parser *p, struct pq_expr *node)
{
    if (node->kind == PQ_VECTOR_SELECTOR)
        pq_check_selector(p, node);
}

struct pq_expr *pq_parse_postfix(struct pq_parser *p, struct pq_expr *node)
{
    check(p, node);
    while (node && !p->failed) {
        enum pq_token_type next = pq_parser_peek(p);
        bool ok = true;

        if (next == PQ_T_LEFT_BRACKET)
            node = parse_brackets(p, node);
        else if (next == PQ_T_OFFSET)
            ok = parse_offset(p, node);
        else if (next == PQ_T_AT)
            ok = parse_at(p, node);
        else if (next == PQ_T_ANCHORED || next == PQ_T_SMOOTHED)
            ok = set_extended(p, node, pq_parser_next(p).type);
        else
            break;
        if (!ok)
            return NULL;
    }
    return p->failed ? NULL : node;
}

/* Go holds durations in nanoseconds; what evaluates uses whole milliseconds of them. */
static int64_t to_ms(double seconds)
{
    return (int64_t)(round(seconds * 1e9) / 1e6);
}

static void set_duration(const struct pq_expr *duration, int64_t *ms, struct pq_expr **expr)
{
    if (duration->kind == PQ_NUMBER)
        *ms = to_ms(duration->number.value);
    else
        *expr = (struct pq_expr *)(uintptr_t)duration;
}

static struct pq_expr *make_matrix(struct pq_parser *p, struct pq_expr *selector,
                                   struct pq_expr *range, struct pq_pos brackets)
{
    const char *problem = NULL;
    struct pq_expr *node;

    if (selector->kind != PQ_VECTOR_SELECTOR)
        problem = "ranges only allowed for vector selectors";
    else if (selector->vector.shift.offset_ms != 0 || selector->vector.shift.offset_expr)
        problem = "no offset modifiers allowed before range";
    else if (selector->vector.shift.at != PQ_AT_NONE)
        problem = "no @ modifiers allowed before range";
    if (problem) {
        pq_parser_fail(p, brackets, "%s", problem);
        return NULL;
    }
    node =
        pq_parser_node(p, PQ_MATRIX_SELECTOR, (struct pq_pos){ selector->pos.start, brackets.end });
    if (!node)
        return NULL;
    node->matrix.selector = selector;
    set_duration(range, &node->matrix.range_ms, &node->matrix.range_expr);
    node->height = 2;
    node->type = PQ_TYPE_MATRIX;
    return node;
}

static struct pq_expr *make_subquery(struct pq_parser *p, struct pq_expr *expr,
                                     struct pq_expr *range, struct pq_expr *step)
{
    struct pq_expr *node =
        pq_parser_node(p, PQ_SUBQUERY, (struct pq_pos){ expr->pos.start, p->last.end });

    if (!node)
        return NULL;
    node->subquery.expr = expr;
    set_duration(range, &node->subquery.range_ms, &node->subquery.range_expr);
    if (step)
        set_duration(step, &node->subquery.step_ms, &node->subquery.step_expr);
    node->height = expr->height + 1;
    node->type = PQ_TYPE_MATRIX;
    pq_check_subquery(p, node);
    return node;
}

static struct pq_expr *parse_brackets(struct pq_parser *p, struct pq_expr *node)
{
    uint32_t start = pq_parser_next(p).pos.start;
    struct pq_context outer =
        pq_parser_context(p, "subquery or range selector", "number, duration, step(), or range()");
    struct pq_expr *range = pq_parse_positive_duration(p), *step = NULL;

    if (!range)
        return NULL;
    p->context.expected = "\":\" or \"]\"";
    if (pq_parser_accept(p, PQ_T_RIGHT_BRACKET)) {
        p->context = outer;
        return make_matrix(p, node, range, (struct pq_pos){ start, p->last.end });
    }
    if (!pq_parser_expect(p, PQ_T_COLON))
        return NULL;
    p->context =
        (struct pq_context){ "subquery selector", "number, duration, step(), range(), or \"]\"" };
    if (!pq_parser_accept(p, PQ_T_RIGHT_BRACKET)) {
        step = pq_parse_positive_duration(p);
        p->context.expected = "\"]\"";
        if (!step || !pq_parser_expect(p, PQ_T_RIGHT_BRACKET))
            return NULL;
    }
    p->context = outer;
    return make_subquery(p, node, range, step);
}

/* Where a node keeps its offset and @, or NULL and an error that names the modifier. */
static struct pq_time_shift *shift_of(struct pq_parser *p, struct pq_expr *node, const char *what)
{
    if (node->kind == PQ_VECTOR_SELECTOR)
        return &node->vector.shift;
    if (node->kind == PQ_MATRIX_SELECTOR)
        return &node->matrix.selector->vector.shift;
    if (node->kind == PQ_SUBQUERY)
        return &node->subquery.shift;
    pq_parser_fail(p, node->pos,
                   "%s modifier must be preceded by an instant vector selector or range vector "
                   "selector or a subquery",
                   what);
    return NULL;
}

static bool parse_offset(struct pq_parser *p, struct pq_expr *node)
{
    struct pq_context outer;
    struct pq_expr *duration;
    struct pq_time_shift *shift;

    (void)pq_parser_next(p);
    outer = pq_parser_context(p, "offset", "number, duration, step(), or range()");
    duration = pq_parse_offset_duration(p);
    if (!duration)
        return false;
    p->context = outer;
    shift = shift_of(p, node, "offset");
    if (!shift)
        return false;
    if (shift->offset_ms != 0 || shift->offset_expr) {
        pq_parser_fail(p, node->pos, "offset may not be set multiple times");
        return false;
    }
    set_duration(duration, &shift->offset_ms, &shift->offset_expr);
    node->pos.end = p->last.end;
    return true;
}

/* How Go's %f prints: C's, but for the names of infinity and NaN. */
static void fail_timestamp(struct pq_parser *p, const struct pq_expr *node, double seconds)
{
    static const char *const text = "timestamp out of bounds for @ modifier: ";

    if (isnan(seconds))
        pq_parser_fail(p, node->pos, "%sNaN", text);
    else if (isinf(seconds))
        pq_parser_fail(p, node->pos, "%s%sInf", text, seconds < 0 ? "-" : "+");
    else
        pq_parser_fail(p, node->pos, "%s%f", text, seconds);
}

static bool set_at(struct pq_parser *p, struct pq_expr *node, enum pq_at_kind at, double seconds)
{
    struct pq_time_shift *shift;
    double ms = round(seconds * 1000);

    if (at == PQ_AT_TIME && !(seconds > -0x1p63 && seconds < 0x1p63)) {
        fail_timestamp(p, node, seconds);
        return false;
    }
    shift = shift_of(p, node, "@");
    if (!shift)
        return false;
    if (shift->at != PQ_AT_NONE) {
        pq_parser_fail(p, node->pos, "@ <timestamp> may not be set multiple times");
        return false;
    }
    shift->at = at;
    if (at == PQ_AT_TIME) /* Go's conversion on x86 answers the lowest number when out of range */
        shift->at_ms = ms >= -0x1p63 && ms < 0x1p63 ? (int64_t)ms : INT64_MIN;
    node->pos.end = p->last.end;
    return true;
}

static bool parse_at(struct pq_parser *p, struct pq_expr *node)
{
    struct pq_context outer;
    enum pq_at_kind at = PQ_AT_TIME;
    struct pq_expr *number;
    double sign = 1, seconds = 0;
    enum pq_token_type type;

    (void)pq_parser_next(p);
    outer = pq_parser_context(p, "@", "timestamp");
    type = pq_parser_peek(p);
    if (type == PQ_T_START || type == PQ_T_END) {
        (void)pq_parser_next(p);
        at = type == PQ_T_START ? PQ_AT_START : PQ_AT_END;
        if (!pq_parser_expect(p, PQ_T_LEFT_PAREN) || !pq_parser_expect(p, PQ_T_RIGHT_PAREN))
            return false;
    } else {
        if (pq_parser_accept(p, PQ_T_SUB))
            sign = -1;
        else
            (void)pq_parser_accept(p, PQ_T_ADD);
        type = pq_parser_peek(p);
        if (type != PQ_T_NUMBER && type != PQ_T_DURATION) {
            pq_parser_unexpected(p);
            return false;
        }
        number = pq_parse_number(p);
        if (!number)
            return false;
        seconds = sign * number->number.value;
    }
    p->context = outer;
    return set_at(p, node, at, seconds);
}

static bool set_extended(struct pq_parser *p, struct pq_expr *node, enum pq_token_type type)
{
    const char *what = type == PQ_T_ANCHORED ? "anchored" : "smoothed";
    struct pq_expr *selector = node;

    if (!p->options.extended_range_selectors) {
        pq_parser_fail(p, node->pos, "%s modifier is experimental and not enabled", what);
        return false;
    }
    if (node->kind == PQ_SUBQUERY) {
        pq_parser_fail(p, node->pos, "%s modifier is not supported for subqueries", what);
        return false;
    }
    if (node->kind == PQ_MATRIX_SELECTOR)
        selector = node->matrix.selector;
    if (selector->kind != PQ_VECTOR_SELECTOR) {
        pq_parser_fail(p, node->pos, "%s modifier not implemented", what);
        return false;
    }
    if (type == PQ_T_ANCHORED)
        selector->vector.anchored = true;
    else
        selector->vector.smoothed = true;
    if (selector->vector.anchored && selector->vector.smoothed) {
        pq_parser_fail(p, node->pos, "anchored and smoothed modifiers cannot be used together");
        return false;
    }
    return true;
}
