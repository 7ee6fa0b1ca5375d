/* print.c - trees as text on one line.
 *
 * The parentheses of the text are nodes of the tree, so none need to be invented, and what is
 * printed reads back as the same tree. Printing stops early once the buffer has overflowed its
 * limit. */
#include "promql/parse/print.h"

#include <math.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/macros.h"
#include "base/pure/number.h"
#include "promql/functions.h"
#include "promql/parse.h"

static void print_number(struct qf_strbuf *buf, const struct pq_expr *node)
{
    char text[QF_DOUBLE_TEXT_MAX];

    if (node->number.is_duration) {
        qf_duration_print(buf, (int64_t)round(node->number.value * 1000));
    } else {
        size_t len = qf_double_f(node->number.value, text);

        qf_strbuf_add(buf, text, len);
    }
}

/* Quoted; U+FFFD is escaped, since the lexer takes it for invalid UTF-8 when it stands in a text.
 */
static void print_quoted(struct qf_strbuf *buf, struct qf_str text)
{
    static const struct qf_str replacement = QF_STR_INIT("\xef\xbf\xbd");
    struct qf_strbuf quoted = QF_STRBUF_INIT;
    struct qf_str rest;
    const char *found;

    if (text.len < replacement.len ||
        !memmem(text.data, text.len, replacement.data, replacement.len)) {
        qf_strbuf_quote(buf, text);
        return;
    }
    qf_strbuf_quote(&quoted, text);
    rest = qf_strbuf_view(&quoted);
    while ((found = memmem(rest.data, rest.len, replacement.data, replacement.len)) != NULL) {
        qf_strbuf_add(buf, rest.data, (size_t)(found - rest.data));
        qf_strbuf_puts(buf, "\\ufffd");
        rest = qf_str_sub(rest, (size_t)(found - rest.data) + replacement.len, rest.len);
    }
    qf_strbuf_str(buf, rest);
    qf_strbuf_done(&quoted);
}

static void print_label_name(struct qf_strbuf *buf, struct qf_str name)
{
    if (qf_label_name_plain(name))
        qf_strbuf_str(buf, name);
    else
        print_quoted(buf, name);
}

static void print_names(struct qf_strbuf *buf, const struct qf_str *names, size_t count)
{
    qf_strbuf_putc(buf, '(');
    for (size_t i = 0; i < count && !buf->overflowed; i++) {
        if (i)
            qf_strbuf_puts(buf, ", ");
        print_label_name(buf, names[i]);
    }
    qf_strbuf_putc(buf, ')');
}

static void print_matcher(struct qf_strbuf *buf, const struct pq_matcher *matcher)
{
    static const char *const types[] = { "=", "!=", "=~", "!~" };

    print_label_name(buf, matcher->name);
    qf_strbuf_puts(buf, types[matcher->type]);
    print_quoted(buf, matcher->value);
}

void pq_print_matchers(struct qf_strbuf *buf, const struct pq_matcher *matchers, size_t count)
{
    qf_strbuf_putc(buf, '{');
    for (size_t i = 0; i < count && !buf->overflowed; i++) {
        if (i)
            qf_strbuf_puts(buf, ", ");
        print_matcher(buf, &matchers[i]);
    }
    qf_strbuf_putc(buf, '}');
}

/* The duration written, or the expression that stands for it. */
static void print_duration(struct qf_strbuf *buf, int64_t ms, const struct pq_expr *expr)
{
    if (expr)
        pq_print(buf, expr);
    else
        qf_duration_print(buf, ms);
}

static void print_shift(struct qf_strbuf *buf, const struct pq_time_shift *shift)
{
    if (shift->at == PQ_AT_TIME)
        qf_strbuf_printf(buf, " @ %.3f", (double)shift->at_ms / 1000.0);
    else if (shift->at != PQ_AT_NONE)
        qf_strbuf_puts(buf, shift->at == PQ_AT_START ? " @ start()" : " @ end()");
    if (shift->offset_expr || shift->offset_ms) {
        qf_strbuf_puts(buf, " offset ");
        print_duration(buf, shift->offset_ms, shift->offset_expr);
    }
}

static int compare_texts(const void *a, const void *b)
{
    return qf_str_cmp(*(const struct qf_str *)a, *(const struct qf_str *)b);
}

/* Matchers are sorted by their text. */
static void print_sorted_matchers(struct qf_strbuf *buf, const struct pq_expr *node)
{
    size_t count = node->vector.matcher_count, kept = 0;
    struct qf_strbuf one = QF_STRBUF_INIT;
    struct qf_str *texts;

    if (buf->limit && count > buf->limit) { /* they cannot fit: not even sorted */
        buf->overflowed = true;
        return;
    }
    texts = count ? qf_xcalloc(count, sizeof(*texts)) : NULL;
    for (size_t i = 0; i < count; i++) {
        const struct pq_matcher *matcher = &node->vector.matchers[i];

        if (qf_str_is(matcher->name, QF_METRIC_NAME) && matcher->type == PQ_MATCH_EQUAL &&
            matcher->value.len && qf_str_eq(matcher->value, node->vector.name))
            continue; /* it is said before the braces */
        print_matcher(&one, matcher);
        texts[kept].len = one.len;
        texts[kept++].data = qf_strbuf_take(&one);
    }
    if (kept)
        qsort(texts, kept, sizeof(*texts), compare_texts);
    if (kept || node->vector.bypass_empty_check)
        qf_strbuf_putc(buf, '{');
    for (size_t i = 0; i < kept; i++) {
        if (i)
            qf_strbuf_putc(buf, ',');
        qf_strbuf_str(buf, texts[i]);
        free((void *)(uintptr_t)texts[i].data);
    }
    if (kept || node->vector.bypass_empty_check)
        qf_strbuf_putc(buf, '}');
    free(texts);
}

/* The selector with @range, if it has one, between its matchers and its modifiers. */
static void print_selector(struct qf_strbuf *buf, const struct pq_expr *node,
                           const struct pq_expr *matrix)
{
    qf_strbuf_str(buf, node->vector.name);
    print_sorted_matchers(buf, node);
    if (matrix) {
        qf_strbuf_putc(buf, '[');
        print_duration(buf, matrix->matrix.range_ms, matrix->matrix.range_expr);
        qf_strbuf_putc(buf, ']');
    }
    if (node->vector.anchored)
        qf_strbuf_puts(buf, " anchored");
    if (node->vector.smoothed)
        qf_strbuf_puts(buf, " smoothed");
    print_shift(buf, &node->vector.shift);
}

void pq_print_subquery_suffix(struct qf_strbuf *buf, const struct pq_expr *node)
{
    qf_strbuf_putc(buf, '[');
    print_duration(buf, node->subquery.range_ms, node->subquery.range_expr);
    qf_strbuf_putc(buf, ':');
    if (node->subquery.step_ms || node->subquery.step_expr)
        print_duration(buf, node->subquery.step_ms, node->subquery.step_expr);
    qf_strbuf_putc(buf, ']');
    print_shift(buf, &node->subquery.shift);
}

void pq_print_aggregation(struct qf_strbuf *buf, const struct pq_expr *node)
{
    qf_strbuf_puts(buf, pq_agg_text(node->aggregate.op));
    if (!node->aggregate.without && node->aggregate.grouping_count == 0)
        return;
    qf_strbuf_puts(buf, node->aggregate.without ? " without " : " by ");
    print_names(buf, node->aggregate.grouping, node->aggregate.grouping_count);
    qf_strbuf_putc(buf, ' ');
}

static void print_fill(struct qf_strbuf *buf, const char *word, double value)
{
    struct pq_expr number = { .kind = PQ_NUMBER, .number = { value, false } };

    qf_strbuf_printf(buf, " %s (", word);
    print_number(buf, &number);
    qf_strbuf_putc(buf, ')');
}

static void print_matching(struct qf_strbuf *buf, const struct pq_matching *matching)
{
    bool grouped = matching->card == PQ_CARD_MANY_TO_ONE || matching->card == PQ_CARD_ONE_TO_MANY;
    bool left = matching->has_fill_left, right = matching->has_fill_right;

    if (matching->label_count || matching->on || grouped) {
        qf_strbuf_puts(buf, matching->on ? " on " : " ignoring ");
        print_names(buf, matching->labels, matching->label_count);
    }
    if (grouped) {
        qf_strbuf_puts(buf,
                       matching->card == PQ_CARD_MANY_TO_ONE ? " group_left " : " group_right ");
        print_names(buf, matching->include, matching->include_count);
    }
    if (left && right && matching->fill_left == matching->fill_right) {
        print_fill(buf, "fill", matching->fill_left);
        return;
    }
    if (left)
        print_fill(buf, "fill_left", matching->fill_left);
    if (right)
        print_fill(buf, "fill_right", matching->fill_right);
}

void pq_print_operator(struct qf_strbuf *buf, const struct pq_expr *node)
{
    qf_strbuf_puts(buf, pq_op_text(node->binary.op));
    if (node->binary.return_bool)
        qf_strbuf_puts(buf, " bool");
    if (node->binary.matching)
        print_matching(buf, node->binary.matching);
}

static void print_call(struct qf_strbuf *buf, const struct pq_expr *node)
{
    qf_strbuf_printf(buf, "%s(", node->call.function->name);
    for (size_t i = 0; i < node->call.arg_count && !buf->overflowed; i++) {
        if (i)
            qf_strbuf_puts(buf, ", ");
        pq_print(buf, node->call.args[i]);
    }
    qf_strbuf_putc(buf, ')');
}

static void print_aggregate(struct qf_strbuf *buf, const struct pq_expr *node)
{
    pq_print_aggregation(buf, node);
    qf_strbuf_putc(buf, '(');
    if (node->aggregate.param) {
        pq_print(buf, node->aggregate.param);
        qf_strbuf_puts(buf, ", ");
    }
    pq_print(buf, node->aggregate.expr);
    qf_strbuf_putc(buf, ')');
}

static void print_duration_expr(struct qf_strbuf *buf, const struct pq_expr *node)
{
    enum pq_op op = node->duration.op;
    const struct pq_expr *lhs = node->duration.lhs, *rhs = node->duration.rhs;

    if (node->duration.wrapped)
        qf_strbuf_putc(buf, '(');
    if (op == PQ_OP_STEP || op == PQ_OP_RANGE) {
        qf_strbuf_printf(buf, "%s()", pq_op_text(op));
    } else if (op == PQ_OP_MIN_OF || op == PQ_OP_MAX_OF) {
        qf_strbuf_printf(buf, "%s(", pq_op_text(op));
        pq_print(buf, lhs);
        qf_strbuf_puts(buf, ", ");
        pq_print(buf, rhs);
        qf_strbuf_putc(buf, ')');
    } else {
        if (lhs) {
            pq_print(buf, lhs);
            qf_strbuf_printf(buf, " %s ", pq_op_text(op));
        } else if (op == PQ_OP_SUB) {
            qf_strbuf_putc(buf, '-');
        }
        pq_print(buf, rhs);
    }
    if (node->duration.wrapped)
        qf_strbuf_putc(buf, ')');
}

bool pq_print_base(struct qf_strbuf *buf, const struct pq_expr *node)
{
    const struct pq_expr *lhs = node->binary.lhs;

    if (node->binary.op != PQ_OP_POW || lhs->kind != PQ_NUMBER || !isinf(lhs->number.value))
        return false;
    qf_strbuf_puts(buf, "Inf");
    return true;
}

static void print_binary(struct qf_strbuf *buf, const struct pq_expr *node)
{
    if (!pq_print_base(buf, node))
        pq_print(buf, node->binary.lhs);
    qf_strbuf_putc(buf, ' ');
    pq_print_operator(buf, node);
    qf_strbuf_putc(buf, ' ');
    pq_print(buf, node->binary.rhs);
}

void pq_print(struct qf_strbuf *buf, const struct pq_expr *node)
{
    if (buf->overflowed)
        return;
    switch (node->kind) {
    case PQ_NUMBER:
        print_number(buf, node);
        break;
    case PQ_STRING:
        print_quoted(buf, node->string.value);
        break;
    case PQ_VECTOR_SELECTOR:
        print_selector(buf, node, NULL);
        break;
    case PQ_MATRIX_SELECTOR:
        print_selector(buf, node->matrix.selector, node);
        break;
    case PQ_SUBQUERY:
        pq_print(buf, node->subquery.expr);
        pq_print_subquery_suffix(buf, node);
        break;
    case PQ_CALL:
        print_call(buf, node);
        break;
    case PQ_AGGREGATE:
        print_aggregate(buf, node);
        break;
    case PQ_BINARY:
        print_binary(buf, node);
        break;
    case PQ_UNARY:
        qf_strbuf_puts(buf, pq_op_text(node->unary.op));
        pq_print(buf, node->unary.expr);
        break;
    case PQ_PAREN:
        qf_strbuf_putc(buf, '(');
        pq_print(buf, node->paren.expr);
        qf_strbuf_putc(buf, ')');
        break;
    case PQ_DURATION_EXPR:
        print_duration_expr(buf, node);
        break;
    }
}
