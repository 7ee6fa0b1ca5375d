/* compare.c - hold syntax trees against what Prometheus built for the same text. */
#include "tests/conformance/parse/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/pure/number.h"
#include "promql/functions.h"

static bool differ(struct mismatch *mismatch, const char *fmt, ...) QF_PRINTF(2, 3);

static bool differ(struct mismatch *mismatch, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(mismatch->text, sizeof(mismatch->text), fmt, args);
    va_end(args);
    return false;
}

struct qf_str json_bytes(struct qf_arena *arena, const json_t *value)
{
    const char *hex = json_string_value(json_object_get(value, "_hex"));
    char *bytes;
    size_t len;

    if (!hex)
        return (struct qf_str){ json_string_value(value) ? json_string_value(value) : "",
                                json_string_length(value) };
    len = strlen(hex) / 2;
    bytes = qf_arena_alloc(arena, len + 1);
    for (size_t i = 0; i < len; i++) {
        unsigned byte;

        (void)sscanf(hex + 2 * i, "%2x", &byte);
        bytes[i] = (char)byte;
    }
    bytes[len] = '\0';
    return (struct qf_str){ bytes, len };
}

double json_double(const json_t *value)
{
    double number = 0;

    if (json_is_string(value)) {
        (void)qf_parse_double(qf_str_from(json_string_value(value)), &number);
        return number;
    }
    return json_number_value(value);
}

static bool same_double(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_text(struct qf_str got, const json_t *want)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    bool same = qf_str_eq(got, json_bytes(arena, want));

    (void)qf_arena_free(arena);
    return same;
}

static bool compare_pos(struct pq_pos pos, const json_t *node, struct mismatch *mismatch)
{
    const json_t *range = json_object_get(node, "PosRange");
    json_int_t start = json_integer_value(json_object_get(range, "Start"));
    json_int_t end = json_integer_value(json_object_get(range, "End"));

    if (range && (pos.start != start || pos.end != end))
        return differ(mismatch, "position [%u,%u), want [%lld,%lld)", pos.start, pos.end, start,
                      end);
    end = json_integer_value(json_object_get(node, "EndPos"));
    if (json_object_get(node, "EndPos") && pos.end != end)
        return differ(mismatch, "end %u, want %lld", pos.end, end);
    start = json_integer_value(json_object_get(node, "StartPos"));
    if (json_object_get(node, "StartPos") && pos.start != start)
        return differ(mismatch, "start %u, want %lld", pos.start, start);
    return true;
}

static bool compare_names(const struct qf_str *names, size_t count, const json_t *want,
                          struct mismatch *mismatch)
{
    if (count != json_array_size(want))
        return differ(mismatch, "%zu names, want %zu", count, json_array_size(want));
    for (size_t i = 0; i < count; i++)
        if (!same_text(names[i], json_array_get(want, i)))
            return differ(mismatch, "name %.*s", QF_STR_ARG(names[i]));
    return true;
}

static bool compare_matchers(const struct pq_matcher *matchers, size_t count, const json_t *want,
                             struct mismatch *mismatch)
{
    static const char *const types[] = { "=", "!=", "=~", "!~" };

    if (count != json_array_size(want))
        return differ(mismatch, "%zu matchers, want %zu", count, json_array_size(want));
    for (size_t i = 0; i < count; i++) {
        const json_t *matcher = json_array_get(want, i);

        if (!same_text(matchers[i].name, json_object_get(matcher, "name")) ||
            !same_text(matchers[i].value, json_object_get(matcher, "value")) ||
            strcmp(types[matchers[i].type], json_string_value(json_object_get(matcher, "op"))) != 0)
            return differ(mismatch, "matcher %zu is %.*s%s%.*s", i, QF_STR_ARG(matchers[i].name),
                          types[matchers[i].type], QF_STR_ARG(matchers[i].value));
    }
    return true;
}

static bool compare_duration(int64_t ms, const struct pq_expr *expr, const json_t *want,
                             const char *name, struct mismatch *mismatch)
{
    char expr_name[40];
    const json_t *want_expr;

    (void)snprintf(expr_name, sizeof(expr_name), "%sExpr", name);
    want_expr = json_object_get(want, expr_name);
    if (json_integer_value(json_object_get(want, name)) != ms * 1000000)
        return differ(mismatch, "%s is %lld ms", name, (long long)ms);
    if (!expr != !want_expr)
        return differ(mismatch, "%s expression", name);
    return !expr || compare_node(expr, want_expr, mismatch);
}

static bool compare_shift(const struct pq_time_shift *shift, const json_t *want,
                          struct mismatch *mismatch)
{
    const char *at = json_string_value(json_object_get(want, "StartOrEnd"));
    const json_t *timestamp = json_object_get(want, "Timestamp");
    enum pq_at_kind kind = timestamp                        ? PQ_AT_TIME
                           : at && strcmp(at, "START") == 0 ? PQ_AT_START
                           : at                             ? PQ_AT_END
                                                            : PQ_AT_NONE;

    if (shift->at != kind || shift->at_ms != json_integer_value(timestamp))
        return differ(mismatch, "@ kind %d at %lld", (int)shift->at, (long long)shift->at_ms);
    return compare_duration(shift->offset_ms, shift->offset_expr, want, "OriginalOffset", mismatch);
}

static bool compare_vector(const struct pq_expr *node, const json_t *want,
                           struct mismatch *mismatch)
{
    if (!same_text(node->vector.name, json_object_get(want, "Name")))
        return differ(mismatch, "name %.*s", QF_STR_ARG(node->vector.name));
    if (node->vector.bypass_empty_check !=
            json_is_true(json_object_get(want, "BypassEmptyMatcherCheck")) ||
        node->vector.anchored != json_is_true(json_object_get(want, "Anchored")) ||
        node->vector.smoothed != json_is_true(json_object_get(want, "Smoothed")))
        return differ(mismatch, "flags of %.*s", QF_STR_ARG(node->vector.name));
    return compare_matchers(node->vector.matchers, node->vector.matcher_count,
                            json_object_get(want, "LabelMatchers"), mismatch) &&
           compare_shift(&node->vector.shift, want, mismatch);
}

static bool compare_call(const struct pq_expr *node, const json_t *want, struct mismatch *mismatch)
{
    const json_t *args = json_object_get(want, "Args");

    if (!same_text(qf_str_from(node->call.function->name), json_object_get(want, "Func")) ||
        node->call.arg_count != json_array_size(args))
        return differ(mismatch, "call of %s with %zu arguments", node->call.function->name,
                      node->call.arg_count);
    for (size_t i = 0; i < node->call.arg_count; i++)
        if (!compare_node(node->call.args[i], json_array_get(args, i), mismatch))
            return false;
    return true;
}

/* Prometheus names operators by their token; aggregations are the upper-case word. */
static bool compare_op(enum pq_op op, const json_t *want, struct mismatch *mismatch)
{
    static const char *const names[] = {
        [PQ_OP_ADD] = "ADD",        [PQ_OP_SUB] = "SUB",       [PQ_OP_MUL] = "MUL",
        [PQ_OP_DIV] = "DIV",        [PQ_OP_MOD] = "MOD",       [PQ_OP_POW] = "POW",
        [PQ_OP_ATAN2] = "ATAN2",    [PQ_OP_EQLC] = "EQLC",     [PQ_OP_NEQ] = "NEQ",
        [PQ_OP_LTE] = "LTE",        [PQ_OP_LSS] = "LSS",       [PQ_OP_GTE] = "GTE",
        [PQ_OP_GTR] = "GTR",        [PQ_OP_AND] = "LAND",      [PQ_OP_OR] = "LOR",
        [PQ_OP_UNLESS] = "LUNLESS", [PQ_OP_STEP] = "STEP",     [PQ_OP_RANGE] = "RANGE",
        [PQ_OP_MIN_OF] = "MIN_OF",  [PQ_OP_MAX_OF] = "MAX_OF",
    };

    if (!names[op] || !same_text(qf_str_from(names[op]), json_object_get(want, "Op")))
        return differ(mismatch, "operator %s", pq_op_text(op));
    return true;
}

static bool compare_aggregate(const struct pq_expr *node, const json_t *want,
                              struct mismatch *mismatch)
{
    const char *op = json_string_value(json_object_get(want, "Op"));
    const json_t *param = json_object_get(want, "Param");

    if (!op || strcasecmp(op, pq_agg_text(node->aggregate.op)) != 0)
        return differ(mismatch, "aggregation %s", pq_agg_text(node->aggregate.op));
    if (!param != !node->aggregate.param ||
        node->aggregate.without != json_is_true(json_object_get(want, "Without")))
        return differ(mismatch, "parameter or without");
    return (!param || compare_node(node->aggregate.param, param, mismatch)) &&
           compare_node(node->aggregate.expr, json_object_get(want, "Expr"), mismatch) &&
           compare_names(node->aggregate.grouping, node->aggregate.grouping_count,
                         json_object_get(want, "Grouping"), mismatch);
}

static bool compare_matching(const struct pq_matching *matching, const json_t *want,
                             struct mismatch *mismatch)
{
    static const char *const cards[] = { "CardOneToOne", "CardManyToOne", "CardOneToMany",
                                         "CardManyToMany" };
    const char *card = json_string_value(json_object_get(want, "Card"));

    if (!matching != !want)
        return differ(mismatch, "vector matching");
    if (!matching)
        return true;
    if (strcmp(cards[matching->card], card ? card : "CardOneToOne") != 0 ||
        matching->on != json_is_true(json_object_get(want, "On")))
        return differ(mismatch, "cardinality %s", cards[matching->card]);
    return compare_names(matching->labels, matching->label_count,
                         json_object_get(want, "MatchingLabels"), mismatch) &&
           compare_names(matching->include, matching->include_count,
                         json_object_get(want, "Include"), mismatch);
}

static bool compare_binary(const struct pq_expr *node, const json_t *want,
                           struct mismatch *mismatch)
{
    if (node->binary.return_bool != json_is_true(json_object_get(want, "ReturnBool")))
        return differ(mismatch, "bool");
    return compare_op(node->binary.op, want, mismatch) &&
           compare_node(node->binary.lhs, json_object_get(want, "LHS"), mismatch) &&
           compare_node(node->binary.rhs, json_object_get(want, "RHS"), mismatch) &&
           compare_matching(node->binary.matching, json_object_get(want, "VectorMatching"),
                            mismatch);
}

static bool compare_duration_expr(const struct pq_expr *node, const json_t *want,
                                  struct mismatch *mismatch)
{
    const json_t *lhs = json_object_get(want, "LHS"), *rhs = json_object_get(want, "RHS");

    lhs = json_is_null(lhs) ? NULL : lhs;
    if (!lhs != !node->duration.lhs || !rhs != !node->duration.rhs ||
        node->duration.wrapped != json_is_true(json_object_get(want, "Wrapped")))
        return differ(mismatch, "sides of a duration expression");
    return compare_op(node->duration.op, want, mismatch) &&
           (!lhs || compare_node(node->duration.lhs, lhs, mismatch)) &&
           (!rhs || compare_node(node->duration.rhs, rhs, mismatch));
}

static bool compare_number(const struct pq_expr *node, const json_t *want,
                           struct mismatch *mismatch)
{
    if (!same_double(node->number.value, json_double(json_object_get(want, "Val"))) ||
        node->number.is_duration != json_is_true(json_object_get(want, "Duration")))
        return differ(mismatch, "number %g", node->number.value);
    return true;
}

static const char *const kinds[] = {
    [PQ_NUMBER] = "NumberLiteral",
    [PQ_STRING] = "StringLiteral",
    [PQ_VECTOR_SELECTOR] = "VectorSelector",
    [PQ_MATRIX_SELECTOR] = "MatrixSelector",
    [PQ_SUBQUERY] = "SubqueryExpr",
    [PQ_CALL] = "Call",
    [PQ_AGGREGATE] = "AggregateExpr",
    [PQ_BINARY] = "BinaryExpr",
    [PQ_UNARY] = "UnaryExpr",
    [PQ_PAREN] = "ParenExpr",
    [PQ_DURATION_EXPR] = "DurationExpr",
};

bool compare_node(const struct pq_expr *node, const json_t *want, struct mismatch *mismatch)
{
    const char *type = json_string_value(json_object_get(want, "_type"));

    if (!type || strcmp(type, kinds[node->kind]) != 0)
        return differ(mismatch, "a %s, want a %s", kinds[node->kind], type ? type : "?");
    if (!compare_pos(node->pos, want, mismatch))
        return false;
    switch (node->kind) {
    case PQ_NUMBER:
        return compare_number(node, want, mismatch);
    case PQ_STRING:
        return same_text(node->string.value, json_object_get(want, "Val")) ||
               differ(mismatch, "string %.*s", QF_STR_ARG(node->string.value));
    case PQ_VECTOR_SELECTOR:
        return compare_vector(node, want, mismatch);
    case PQ_MATRIX_SELECTOR:
        return compare_node(node->matrix.selector, json_object_get(want, "VectorSelector"),
                            mismatch) &&
               compare_duration(node->matrix.range_ms, node->matrix.range_expr, want, "Range",
                                mismatch);
    case PQ_SUBQUERY:
        return compare_node(node->subquery.expr, json_object_get(want, "Expr"), mismatch) &&
               compare_duration(node->subquery.range_ms, node->subquery.range_expr, want, "Range",
                                mismatch) &&
               compare_duration(node->subquery.step_ms, node->subquery.step_expr, want, "Step",
                                mismatch) &&
               compare_shift(&node->subquery.shift, want, mismatch);
    case PQ_CALL:
        return compare_call(node, want, mismatch);
    case PQ_AGGREGATE:
        return compare_aggregate(node, want, mismatch);
    case PQ_BINARY:
        return compare_binary(node, want, mismatch);
    case PQ_UNARY:
        return compare_op(node->unary.op, want, mismatch) &&
               compare_node(node->unary.expr, json_object_get(want, "Expr"), mismatch);
    case PQ_PAREN:
        return compare_node(node->paren.expr, json_object_get(want, "Expr"), mismatch);
    case PQ_DURATION_EXPR:
        return compare_duration_expr(node, want, mismatch);
    }
    return false;
}

static bool compare_doubles(const double *got, size_t count, const json_t *want, const char *name,
                            struct mismatch *mismatch)
{
    if (count != json_array_size(want))
        return differ(mismatch, "%zu %s, want %zu", count, name, json_array_size(want));
    for (size_t i = 0; i < count; i++)
        if (!same_double(got[i], json_double(json_array_get(want, i))))
            return differ(mismatch, "%s[%zu] is %g", name, i, got[i]);
    return true;
}

static bool compare_spans(const struct pq_span *got, size_t count, const json_t *want,
                          const char *name, struct mismatch *mismatch)
{
    if (count != json_array_size(want))
        return differ(mismatch, "%zu %s, want %zu", count, name, json_array_size(want));
    for (size_t i = 0; i < count; i++) {
        const json_t *span = json_array_get(want, i);

        if (got[i].offset != json_integer_value(json_object_get(span, "Offset")) ||
            got[i].length != json_integer_value(json_object_get(span, "Length")))
            return differ(mismatch, "%s[%zu] is %d+%u", name, i, got[i].offset, got[i].length);
    }
    return true;
}

bool compare_histogram(const struct pq_histogram *histogram, const json_t *want,
                       struct mismatch *mismatch)
{
    static const char *const hints[] = { "histogram.UnknownCounterReset", "histogram.CounterReset",
                                         "histogram.NotCounterReset", "histogram.GaugeType" };
    const char *hint = json_string_value(json_object_get(want, "CounterResetHint"));

    if (!histogram)
        return differ(mismatch, "not a histogram");
    if (strcmp(hints[histogram->reset_hint], hint ? hint : hints[0]) != 0)
        return differ(mismatch, "hint %d", (int)histogram->reset_hint);
    if (histogram->schema != json_integer_value(json_object_get(want, "Schema")) ||
        !same_double(histogram->sum, json_double(json_object_get(want, "Sum"))) ||
        !same_double(histogram->count, json_double(json_object_get(want, "Count"))) ||
        !same_double(histogram->zero_count, json_double(json_object_get(want, "ZeroCount"))) ||
        !same_double(histogram->zero_threshold,
                     json_double(json_object_get(want, "ZeroThreshold"))))
        return differ(mismatch, "schema %d sum %g count %g zero %g threshold %g", histogram->schema,
                      histogram->sum, histogram->count, histogram->zero_count,
                      histogram->zero_threshold);
    return compare_doubles(histogram->positive_buckets, histogram->positive_bucket_count,
                           json_object_get(want, "PositiveBuckets"), "buckets", mismatch) &&
           compare_doubles(histogram->negative_buckets, histogram->negative_bucket_count,
                           json_object_get(want, "NegativeBuckets"), "n_buckets", mismatch) &&
           compare_doubles(histogram->custom_values, histogram->custom_value_count,
                           json_object_get(want, "CustomValues"), "custom_values", mismatch) &&
           compare_spans(histogram->positive_spans, histogram->positive_span_count,
                         json_object_get(want, "PositiveSpans"), "spans", mismatch) &&
           compare_spans(histogram->negative_spans, histogram->negative_span_count,
                         json_object_get(want, "NegativeSpans"), "n_spans", mismatch);
}

bool compare_labels(struct qf_labels labels, const json_t *want, struct mismatch *mismatch)
{
    if (labels.count != json_array_size(want))
        return differ(mismatch, "%zu labels, want %zu", labels.count, json_array_size(want));
    for (size_t i = 0; i < labels.count; i++) {
        const json_t *pair = json_array_get(want, i);

        if (!same_text(labels.items[i].name, json_array_get(pair, 0)) ||
            !same_text(labels.items[i].value, json_array_get(pair, 1)))
            return differ(mismatch, "label %.*s=%.*s", QF_STR_ARG(labels.items[i].name),
                          QF_STR_ARG(labels.items[i].value));
    }
    return true;
}
