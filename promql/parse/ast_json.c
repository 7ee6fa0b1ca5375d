/* ast_json.c - trees as the JSON of /api/v1/parse_query. Keys are sorted, as Prometheus's are. */
#include "base/pure/macros.h"
#include "base/pure/number.h"
#include "promql/functions.h"
#include "promql/parse.h"

static void put_node(struct qf_strbuf *buf, const struct pq_expr *node);

void pq_ast_json(struct qf_strbuf *buf, const struct pq_expr *node)
{
    put_node(buf, node);
}

static void put_bool(struct qf_strbuf *buf, const char *key, bool value)
{
    qf_strbuf_printf(buf, "\"%s\":%s", key, value ? "true" : "false");
}

static void put_child(struct qf_strbuf *buf, const char *key, const struct pq_expr *node)
{
    qf_strbuf_printf(buf, "\"%s\":", key);
    put_node(buf, node);
}

static void put_text(struct qf_strbuf *buf, const char *key, struct qf_str text)
{
    qf_strbuf_printf(buf, "\"%s\":", key);
    qf_strbuf_json(buf, text);
}

static void put_names(struct qf_strbuf *buf, const char *key, const struct qf_str *names,
                      size_t count)
{
    qf_strbuf_printf(buf, "\"%s\":[", key);
    for (size_t i = 0; i < count; i++) {
        if (i)
            qf_strbuf_putc(buf, ',');
        qf_strbuf_json(buf, names[i]);
    }
    qf_strbuf_putc(buf, ']');
}

static void put_matchers(struct qf_strbuf *buf, const struct pq_expr *node)
{
    static const char *const types[] = { "=", "!=", "=~", "!~" };

    qf_strbuf_puts(buf, "\"matchers\":[");
    for (size_t i = 0; i < node->vector.matcher_count; i++) {
        const struct pq_matcher *matcher = &node->vector.matchers[i];

        qf_strbuf_puts(buf, i ? ",{" : "{");
        put_text(buf, "name", matcher->name);
        qf_strbuf_printf(buf, ",\"type\":\"%s\",", types[matcher->type]);
        put_text(buf, "value", matcher->value);
        qf_strbuf_putc(buf, '}');
    }
    qf_strbuf_putc(buf, ']');
}

/* "offset": ms, and the expression it is to be computed from if there is one. */
static void put_duration(struct qf_strbuf *buf, const char *key, int64_t ms,
                         const struct pq_expr *expr)
{
    qf_strbuf_printf(buf, "\"%s\":%lld", key, (long long)ms);
    if (expr) {
        qf_strbuf_printf(buf, ",\"%sExpr\":", key);
        put_node(buf, expr);
    }
}

static void put_start_or_end(struct qf_strbuf *buf, const struct pq_time_shift *shift)
{
    qf_strbuf_printf(buf, "\"startOrEnd\":%s",
                     shift->at == PQ_AT_START ? "\"start\""
                     : shift->at == PQ_AT_END ? "\"end\""
                                              : "null");
}

static void put_timestamp(struct qf_strbuf *buf, const struct pq_time_shift *shift)
{
    if (shift->at == PQ_AT_TIME)
        qf_strbuf_printf(buf, "\"timestamp\":%lld", (long long)shift->at_ms);
    else
        qf_strbuf_puts(buf, "\"timestamp\":null");
}

/* A selector, as part of the range selector @matrix if that is not NULL. */
static void put_selector(struct qf_strbuf *buf, const struct pq_expr *node,
                         const struct pq_expr *matrix)
{
    const struct pq_time_shift *shift = &node->vector.shift;

    put_bool(buf, "anchored", node->vector.anchored);
    qf_strbuf_putc(buf, ',');
    put_matchers(buf, node);
    qf_strbuf_putc(buf, ',');
    put_text(buf, "name", node->vector.name);
    qf_strbuf_putc(buf, ',');
    put_duration(buf, "offset", shift->offset_ms, shift->offset_expr);
    qf_strbuf_putc(buf, ',');
    if (matrix) {
        put_duration(buf, "range", matrix->matrix.range_ms, matrix->matrix.range_expr);
        qf_strbuf_putc(buf, ',');
    }
    put_bool(buf, "smoothed", node->vector.smoothed);
    qf_strbuf_putc(buf, ',');
    put_start_or_end(buf, shift);
    qf_strbuf_putc(buf, ',');
    put_timestamp(buf, shift);
    qf_strbuf_printf(buf, ",\"type\":\"%s\"", matrix ? "matrixSelector" : "vectorSelector");
}

static void put_subquery(struct qf_strbuf *buf, const struct pq_expr *node)
{
    const struct pq_time_shift *shift = &node->subquery.shift;

    put_child(buf, "expr", node->subquery.expr);
    qf_strbuf_putc(buf, ',');
    put_duration(buf, "offset", shift->offset_ms, shift->offset_expr);
    qf_strbuf_putc(buf, ',');
    put_duration(buf, "range", node->subquery.range_ms, node->subquery.range_expr);
    qf_strbuf_putc(buf, ',');
    put_start_or_end(buf, shift);
    qf_strbuf_putc(buf, ',');
    put_duration(buf, "step", node->subquery.step_ms, node->subquery.step_expr);
    qf_strbuf_putc(buf, ',');
    put_timestamp(buf, shift);
    qf_strbuf_puts(buf, ",\"type\":\"subquery\"");
}

static const char *type_name(enum pq_type type)
{
    static const char *const names[] = { "none", "scalar", "vector", "matrix", "string" };

    return names[type];
}

/* Prometheus lists the optional argument once, however often it may come. */
static void put_function(struct qf_strbuf *buf, const struct pq_function *function)
{
    size_t types =
        function->variadic > 0 ? pq_function_args_min(function) + 1 : function->arg_count;

    qf_strbuf_puts(buf, "\"func\":{\"argTypes\":[");
    for (size_t i = 0; i < types; i++)
        qf_strbuf_printf(buf, "%s\"%s\"", i ? "," : "", type_name(function->arg_types[i]));
    qf_strbuf_printf(buf, "],\"name\":\"%s\",\"returnType\":\"%s\",\"variadic\":%d}",
                     function->name, type_name(function->return_type), function->variadic);
}

static void put_call(struct qf_strbuf *buf, const struct pq_expr *node)
{
    qf_strbuf_puts(buf, "\"args\":[");
    for (size_t i = 0; i < node->call.arg_count; i++) {
        if (i)
            qf_strbuf_putc(buf, ',');
        put_node(buf, node->call.args[i]);
    }
    qf_strbuf_puts(buf, "],");
    put_function(buf, node->call.function);
    qf_strbuf_puts(buf, ",\"type\":\"call\"");
}

static void put_aggregate(struct qf_strbuf *buf, const struct pq_expr *node)
{
    put_child(buf, "expr", node->aggregate.expr);
    qf_strbuf_putc(buf, ',');
    put_names(buf, "grouping", node->aggregate.grouping, node->aggregate.grouping_count);
    qf_strbuf_printf(buf, ",\"op\":\"%s\",", pq_agg_text(node->aggregate.op));
    put_child(buf, "param", node->aggregate.param);
    qf_strbuf_puts(buf, ",\"type\":\"aggregation\",");
    put_bool(buf, "without", node->aggregate.without);
}

static void put_fill(struct qf_strbuf *buf, const char *key, bool given, double value)
{
    char text[QF_DOUBLE_TEXT_MAX];

    qf_strbuf_printf(buf, "\"%s\":", key);
    if (!given) {
        qf_strbuf_puts(buf, "null");
        return;
    }
    (void)qf_double_f(value, text);
    qf_strbuf_printf(buf, "\"%s\"", text);
}

static void put_matching(struct qf_strbuf *buf, const struct pq_matching *matching)
{
    static const char *const cards[] = { "one-to-one", "many-to-one", "one-to-many",
                                         "many-to-many" };

    if (!matching) {
        qf_strbuf_puts(buf, "\"matching\":null");
        return;
    }
    qf_strbuf_printf(buf, "\"matching\":{\"card\":\"%s\",\"fillValues\":{", cards[matching->card]);
    put_fill(buf, "lhs", matching->has_fill_left, matching->fill_left);
    qf_strbuf_putc(buf, ',');
    put_fill(buf, "rhs", matching->has_fill_right, matching->fill_right);
    qf_strbuf_puts(buf, "},");
    put_names(buf, "include", matching->include, matching->include_count);
    qf_strbuf_putc(buf, ',');
    put_names(buf, "labels", matching->labels, matching->label_count);
    qf_strbuf_putc(buf, ',');
    put_bool(buf, "on", matching->on);
    qf_strbuf_putc(buf, '}');
}

static void put_binary(struct qf_strbuf *buf, const struct pq_expr *node)
{
    put_bool(buf, "bool", node->binary.return_bool);
    qf_strbuf_putc(buf, ',');
    put_child(buf, "lhs", node->binary.lhs);
    qf_strbuf_putc(buf, ',');
    put_matching(buf, node->binary.matching);
    qf_strbuf_printf(buf, ",\"op\":\"%s\",", pq_op_text(node->binary.op));
    put_child(buf, "rhs", node->binary.rhs);
    qf_strbuf_puts(buf, ",\"type\":\"binaryExpr\"");
}

static void put_duration_expr(struct qf_strbuf *buf, const struct pq_expr *node)
{
    put_child(buf, "lhs", node->duration.lhs);
    qf_strbuf_printf(buf, ",\"op\":\"%s\",", pq_op_text(node->duration.op));
    put_child(buf, "rhs", node->duration.rhs);
    qf_strbuf_puts(buf, ",\"type\":\"durationExpr\",");
    put_bool(buf, "wrapped", node->duration.wrapped);
}

static void put_number(struct qf_strbuf *buf, const struct pq_expr *node)
{
    char text[QF_DOUBLE_TEXT_MAX];

    (void)qf_double_f(node->number.value, text);
    qf_strbuf_printf(buf, "\"type\":\"numberLiteral\",\"val\":\"%s\"", text);
}

static void put_node(struct qf_strbuf *buf, const struct pq_expr *node)
{
    if (buf->overflowed)
        return;
    if (!node) {
        qf_strbuf_puts(buf, "null");
        return;
    }
    qf_strbuf_putc(buf, '{');
    switch (node->kind) {
    case PQ_NUMBER:
        put_number(buf, node);
        break;
    case PQ_STRING:
        qf_strbuf_puts(buf, "\"type\":\"stringLiteral\",");
        put_text(buf, "val", node->string.value);
        break;
    case PQ_VECTOR_SELECTOR:
        put_selector(buf, node, NULL);
        break;
    case PQ_MATRIX_SELECTOR:
        put_selector(buf, node->matrix.selector, node);
        break;
    case PQ_SUBQUERY:
        put_subquery(buf, node);
        break;
    case PQ_CALL:
        put_call(buf, node);
        break;
    case PQ_AGGREGATE:
        put_aggregate(buf, node);
        break;
    case PQ_BINARY:
        put_binary(buf, node);
        break;
    case PQ_UNARY:
        put_child(buf, "expr", node->unary.expr);
        qf_strbuf_printf(buf, ",\"op\":\"%s\",\"type\":\"unaryExpr\"", pq_op_text(node->unary.op));
        break;
    case PQ_PAREN:
        put_child(buf, "expr", node->paren.expr);
        qf_strbuf_puts(buf, ",\"type\":\"parenExpr\"");
        break;
    case PQ_DURATION_EXPR:
        put_duration_expr(buf, node);
        break;
    }
    qf_strbuf_putc(buf, '}');
}
