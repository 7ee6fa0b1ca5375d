/* histogram_literal.c - histogram literals: {{schema:1 sum:0.3 count:3 buckets:[5 10 7] offset:-3}}.
 */
#include "base/pure/macros.h"
#include "promql/testing/series_int.h"

struct numbers {
    double *items;
    size_t count;
};

struct literal {
    struct pq_histogram *histogram;
    struct numbers buckets, negative_buckets, custom_values;
    int32_t offset, negative_offset;
    uint64_t seen; /* one bit per key */
};

static bool parse_field(struct pq_parser *p, struct literal *literal);
static bool finish(struct pq_parser *p, struct literal *literal);

struct pq_histogram *pq_parse_histogram(struct pq_parser *p)
{
    struct literal literal = { .histogram = QF_ARENA_NEW(p->arena, struct pq_histogram) };
    struct pq_context outer = p->context;
    bool space;

    if (!literal.histogram) {
        pq_parser_out_of_memory(p);
        return NULL;
    }
    space = pq_parser_accept(p, PQ_T_SPACE);
    if (pq_parser_accept(p, PQ_T_CLOSE_HIST))
        return literal.histogram;
    if (space) {
        pq_parser_unexpected(p);
        return NULL;
    }
    for (;;) {
        if (!parse_field(p, &literal))
            return NULL;
        p->context = (struct pq_context){ "histogram description",
                                          "histogram description key, e.g. buckets:[5 10 7]" };
        space = pq_parser_accept(p, PQ_T_SPACE);
        if (pq_parser_accept(p, PQ_T_CLOSE_HIST))
            break;
        if (!space) {
            pq_parser_unexpected(p);
            return NULL;
        }
    }
    p->context = outer;
    return finish(p, &literal) ? literal.histogram : NULL;
}

static bool parse_int(struct pq_parser *p, int32_t *ret_value)
{
    bool minus = pq_parser_accept(p, PQ_T_SUB);
    uint64_t value;

    if (!pq_parse_uint(p, &value))
        return false;
    if (value > INT32_MAX) {
        pq_parser_fail(p, p->last, "number out of range in histogram");
        return false;
    }
    *ret_value = minus ? -(int32_t)value : (int32_t)value;
    return true;
}

static bool parse_numbers(struct pq_parser *p, struct numbers *numbers)
{
    double *number;

    if (!pq_parser_expect(p, PQ_T_LEFT_BRACKET))
        return false;
    for (;;) {
        number = pq_parser_push(p, (void **)&numbers->items, &numbers->count, sizeof(*number));
        if (!number || !pq_parse_signed(p, number))
            return false;
        if (pq_parser_accept(p, PQ_T_RIGHT_BRACKET))
            return true;
        if (!pq_parser_expect(p, PQ_T_SPACE))
            return false;
        if (pq_parser_accept(p, PQ_T_RIGHT_BRACKET))
            return true;
    }
}

static bool parse_hint(struct pq_parser *p, struct pq_histogram *histogram)
{
    enum pq_token_type next = pq_parser_peek(p);

    if (next == PQ_T_UNKNOWN_COUNTER_RESET) {
        histogram->reset_hint = PQ_RESET_UNKNOWN;
    } else if (next == PQ_T_COUNTER_RESET) {
        histogram->reset_hint = PQ_RESET_YES;
    } else if (next == PQ_T_NOT_COUNTER_RESET) {
        histogram->reset_hint = PQ_RESET_NO;
    } else if (next == PQ_T_GAUGE_TYPE) {
        histogram->reset_hint = PQ_RESET_GAUGE;
    } else {
        pq_parser_unexpected(p);
        return false;
    }
    histogram->reset_hint_given = true;
    (void)pq_parser_next(p);
    return true;
}

static bool parse_field_value(struct pq_parser *p, struct literal *literal,
                              enum pq_token_type field)
{
    struct pq_histogram *histogram = literal->histogram;

    if (field == PQ_T_SCHEMA_DESC)
        return parse_int(p, &histogram->schema);
    if (field == PQ_T_SUM_DESC)
        return pq_parse_signed(p, &histogram->sum);
    if (field == PQ_T_COUNT_DESC)
        return pq_parse_signed(p, &histogram->count);
    if (field == PQ_T_ZERO_BUCKET_DESC)
        return pq_parse_signed(p, &histogram->zero_count);
    if (field == PQ_T_ZERO_BUCKET_WIDTH_DESC)
        return pq_parse_signed(p, &histogram->zero_threshold);
    if (field == PQ_T_OFFSET_DESC)
        return parse_int(p, &literal->offset);
    if (field == PQ_T_NEGATIVE_OFFSET_DESC)
        return parse_int(p, &literal->negative_offset);
    if (field == PQ_T_BUCKETS_DESC)
        return parse_numbers(p, &literal->buckets);
    if (field == PQ_T_NEGATIVE_BUCKETS_DESC)
        return parse_numbers(p, &literal->negative_buckets);
    if (field == PQ_T_CUSTOM_VALUES_DESC)
        return parse_numbers(p, &literal->custom_values);
    return field == PQ_T_COUNTER_RESET_HINT_DESC && parse_hint(p, histogram);
}

static bool parse_field(struct pq_parser *p, struct literal *literal)
{
    enum pq_token_type field = pq_parser_peek(p);
    struct pq_token token;
    uint64_t bit;

    if (field < PQ_T_SUM_DESC || field > PQ_T_COUNTER_RESET_HINT_DESC) {
        pq_parser_unexpected(p);
        return false;
    }
    token = pq_parser_next(p);
    bit = UINT64_C(1) << (field - PQ_T_SUM_DESC);
    if (!pq_parser_expect(p, PQ_T_COLON) || !parse_field_value(p, literal, field))
        return false;
    if (literal->seen & bit) /* Prometheus has no position for this one */
        pq_parser_fail(p, (struct pq_pos){ 0, 0 }, "duplicate key %s in histogram",
                       pq_parser_quote(p, pq_parser_text(p, token.pos)));
    literal->seen |= bit;
    return !p->failed;
}

/* All buckets of one side are one span. */
static bool set_span(struct pq_parser *p, int32_t offset, size_t count,
                     const struct pq_span **ret_spans, size_t *ret_count)
{
    struct pq_span *span;

    if (count == 0)
        return true;
    span = QF_ARENA_NEW(p->arena, struct pq_span);
    if (!span) {
        pq_parser_out_of_memory(p);
        return false;
    }
    *span = (struct pq_span){ offset, (uint32_t)count };
    *ret_spans = span;
    *ret_count = 1;
    return true;
}

static bool finish(struct pq_parser *p, struct literal *literal)
{
    struct pq_histogram *histogram = literal->histogram;

    histogram->positive_buckets = literal->buckets.items;
    histogram->positive_bucket_count = literal->buckets.count;
    histogram->negative_buckets = literal->negative_buckets.items;
    histogram->negative_bucket_count = literal->negative_buckets.count;
    histogram->custom_values = literal->custom_values.items;
    histogram->custom_value_count = literal->custom_values.count;
    return set_span(p, literal->offset, literal->buckets.count, &histogram->positive_spans,
                    &histogram->positive_span_count) &&
           set_span(p, literal->negative_offset, literal->negative_buckets.count,
                    &histogram->negative_spans, &histogram->negative_span_count);
}
