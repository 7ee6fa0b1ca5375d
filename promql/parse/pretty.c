/* pretty.c - trees as indented text: what is too long for a line is split at its operator or
 * parentheses, two blanks deeper each level. */
#include "base/pure/macros.h"
#include "promql/functions.h"
#include "promql/parse.h"
#include "promql/parse/print.h"

struct pretty {
    struct qf_strbuf *buf;
    struct qf_strbuf line; /* scratch: a node on one line, cut behind @columns */
    size_t columns;
};

static void print_node(struct pretty *pretty, const struct pq_expr *node, size_t level,
                       bool indented);

void pq_pretty(struct qf_strbuf *buf, const struct pq_expr *node, size_t columns)
{
    struct pretty pretty = { .buf = buf, .line = { .limit = columns + 1 }, .columns = columns };

    print_node(&pretty, node, 0, false);
    qf_strbuf_done(&pretty.line);
}

static void indent(struct pretty *pretty, size_t level)
{
    for (size_t i = 0; i < level; i++)
        qf_strbuf_puts(pretty->buf, "  ");
}

static bool too_long(struct pretty *pretty, const struct pq_expr *node)
{
    qf_strbuf_reset(&pretty->line);
    pq_print(&pretty->line, node);
    return pretty->line.overflowed || pretty->line.len > pretty->columns;
}

/* "(", @first if not NULL and the rest, each on its own lines, ")". */
static void print_block(struct pretty *pretty, const struct pq_expr *first,
                        struct pq_expr *const *rest, size_t count, size_t level)
{
    qf_strbuf_puts(pretty->buf, "(\n");
    if (first) {
        print_node(pretty, first, level + 1, false);
        qf_strbuf_puts(pretty->buf, ",\n");
    }
    for (size_t i = 0; i < count; i++) {
        if (i)
            qf_strbuf_puts(pretty->buf, ",\n");
        print_node(pretty, rest[i], level + 1, false);
    }
    qf_strbuf_putc(pretty->buf, '\n');
    indent(pretty, level);
    qf_strbuf_putc(pretty->buf, ')');
}

static void print_left(struct pretty *pretty, const struct pq_expr *node, size_t level,
                       bool indented)
{
    struct qf_strbuf base = QF_STRBUF_INIT;

    if (pq_print_base(&base, node)) {
        if (!indented)
            indent(pretty, level);
        qf_strbuf_str(pretty->buf, qf_strbuf_view(&base));
    } else {
        print_node(pretty, node->binary.lhs, level, indented);
    }
    qf_strbuf_done(&base);
}

static void print_split(struct pretty *pretty, const struct pq_expr *node, size_t level,
                        bool indented)
{
    if (node->kind == PQ_BINARY) { /* its sides indent themselves */
        print_left(pretty, node, level + 1, indented);
        qf_strbuf_putc(pretty->buf, '\n');
        indent(pretty, level);
        pq_print_operator(pretty->buf, node);
        qf_strbuf_putc(pretty->buf, '\n');
        print_node(pretty, node->binary.rhs, level + 1, false);
        return;
    }
    if (!indented)
        indent(pretty, level);
    if (node->kind == PQ_AGGREGATE) {
        pq_print_aggregation(pretty->buf, node);
        print_block(pretty, node->aggregate.param, &node->aggregate.expr, 1, level);
    } else if (node->kind == PQ_CALL) {
        qf_strbuf_puts(pretty->buf, node->call.function->name);
        print_block(pretty, NULL, node->call.args, node->call.arg_count, level);
    } else {
        print_block(pretty, NULL, &node->paren.expr, 1, level);
    }
}

/* @indented: the blanks of this level, or something in their place, are written already. */
static void print_node(struct pretty *pretty, const struct pq_expr *node, size_t level,
                       bool indented)
{
    bool splits = node->kind == PQ_AGGREGATE || node->kind == PQ_BINARY || node->kind == PQ_PAREN ||
                  (node->kind == PQ_CALL && node->call.arg_count > 0);

    if (pretty->buf->overflowed)
        return;
    if (node->kind == PQ_UNARY) {
        if (!indented)
            indent(pretty, level);
        qf_strbuf_puts(pretty->buf, pq_op_text(node->unary.op));
        print_node(pretty, node->unary.expr, level, true);
    } else if (node->kind == PQ_SUBQUERY && too_long(pretty, node)) {
        print_node(pretty, node->subquery.expr, level, indented);
        pq_print_subquery_suffix(pretty->buf, node);
    } else if (splits && too_long(pretty, node)) {
        print_split(pretty, node, level, indented);
    } else {
        /* Prometheus leaves the indentation out before a subquery that fits. */
        if (!indented && node->kind != PQ_SUBQUERY)
            indent(pretty, level);
        pq_print(pretty->buf, node);
    }
}
