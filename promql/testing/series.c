/* series.c - series descriptions of test scripts: metric{labels} 1 2+3x4 _x2 stale {{...}}.
 */
#include "base/pure/macros.h"
#include "base/pure/number.h"
#include "promql/testing/series_int.h"

struct sequence {
    struct pq_sequence_value *values;
    size_t count, capacity;
};

static bool parse_metric(struct pq_parser *p, struct qf_labels *ret_labels);
static bool parse_values(struct pq_parser *p, struct sequence *sequence);
static bool parse_item(struct pq_parser *p, struct sequence *sequence);

qf_rc pq_parse_series(struct qf_arena *arena, struct qf_str text, struct qf_labels *ret_labels,
                      struct pq_sequence_value **ret_values, size_t *ret_count, struct qf_err *err)
{
    struct sequence sequence = { NULL, 0, 0 };
    struct qf_labels labels = { NULL, 0 };
    struct pq_parser p;
    qf_rc rc;

    pq_parser_init(&p, arena, text, NULL, pq_lex_series_value);
    if (!p.failed && parse_metric(&p, &labels))
        (void)parse_values(&p, &sequence);
    rc = pq_parser_finish(&p, err);
    if (rc != QF_OK)
        return rc;
    *ret_labels = labels;
    *ret_values = sequence.values;
    *ret_count = sequence.count;
    return QF_OK;
}

/* name="value", "name"="value" or "metric name". */
static bool parse_label(struct pq_parser *p, struct qf_label *label)
{
    enum pq_token_type type = pq_parser_peek(p);
    struct pq_token token;

    p->context.expected = "identifier or \"}\"";
    if (type != PQ_T_IDENTIFIER && type != PQ_T_STRING) {
        pq_parser_unexpected(p);
        return false;
    }
    token = pq_parser_next(p);
    label->name =
        type == PQ_T_STRING ? pq_parser_string(p, token.pos) : pq_parser_text(p, token.pos);
    if (type == PQ_T_STRING && pq_parser_peek(p) != PQ_T_EQL) {
        label->value = label->name;
        label->name = QF_STR(QF_METRIC_NAME);
        return !p->failed;
    }
    p->context.expected = "\"=\"";
    if (!pq_parser_expect(p, PQ_T_EQL))
        return false;
    p->context.expected = "string";
    if (!pq_parser_expect(p, PQ_T_STRING))
        return false;
    label->value = pq_parser_string(p, p->last);
    return !p->failed;
}

static bool parse_label_set(struct pq_parser *p, struct qf_label **labels, size_t *count)
{
    struct pq_context outer = pq_parser_context(p, "label set", "");

    (void)pq_parser_next(p);
    while (pq_parser_peek(p) != PQ_T_RIGHT_BRACE) {
        struct qf_label *label = pq_parser_push(p, (void **)labels, count, sizeof(*label));

        if (!label || !parse_label(p, label))
            return false;
        p->context.expected = "\",\" or \"}\"";
        if (!pq_parser_accept(p, PQ_T_COMMA) && pq_parser_peek(p) != PQ_T_RIGHT_BRACE) {
            pq_parser_unexpected(p);
            return false;
        }
    }
    (void)pq_parser_next(p);
    p->context = outer;
    return true;
}

/* A name given before the braces wins over one inside. */
static bool parse_metric(struct pq_parser *p, struct qf_labels *ret_labels)
{
    enum pq_token_type type = pq_parser_peek(p);
    struct qf_label *labels = NULL, *label;
    struct qf_str name = { NULL, 0 };
    size_t count = 0;

    if (type == PQ_T_IDENTIFIER || type == PQ_T_METRIC_IDENTIFIER || type == PQ_T_LAND ||
        type == PQ_T_LOR || type == PQ_T_LUNLESS || pq_token_is_keyword(type) ||
        pq_token_is_aggregator(type))
        name = pq_parser_text(p, pq_parser_next(p).pos);
    if (pq_parser_peek(p) == PQ_T_LEFT_BRACE && !parse_label_set(p, &labels, &count))
        return false;
    if (name.len) {
        label = pq_parser_push(p, (void **)&labels, &count, sizeof(*label));
        if (!label)
            return false;
        *label = (struct qf_label){ QF_STR(QF_METRIC_NAME), name };
    }
    if (p->failed)
        return false;
    *ret_labels = qf_labels_normalize(labels, count);
    return true;
}

static bool parse_values(struct pq_parser *p, struct sequence *sequence)
{
    (void)pq_parser_context(p, "series values", "");
    while (pq_parser_peek(p) != PQ_T_EOF) {
        if (!pq_parser_expect(p, PQ_T_SPACE))
            return false;
        if (pq_parser_peek(p) != PQ_T_EOF && !parse_item(p, sequence))
            return false;
    }
    return true;
}

static bool push(struct pq_parser *p, struct sequence *sequence, struct pq_sequence_value value)
{
    if (sequence->count == PQ_SEQUENCE_MAX) {
        pq_parser_fail(p, p->last, "series has more than %zu values", PQ_SEQUENCE_MAX);
        p->error.rc = QF_ELIMIT;
        return false;
    }
    if (sequence->count == sequence->capacity) {
        size_t capacity = sequence->capacity ? sequence->capacity * 2 : 16;
        void *grown = qf_arena_grow(p->arena, sequence->values, sequence->capacity, capacity,
                                    sizeof(*sequence->values));

        if (!grown) {
            pq_parser_out_of_memory(p);
            return false;
        }
        sequence->values = grown;
        sequence->capacity = capacity;
    }
    sequence->values[sequence->count++] = value;
    return true;
}

bool pq_parse_uint(struct pq_parser *p, uint64_t *ret_value)
{
    struct qf_str text;

    if (!pq_parser_expect(p, PQ_T_NUMBER))
        return false;
    text = pq_parser_text(p, p->last);
    if (!qf_parse_u64(text, ret_value))
        pq_parser_fail(p, p->last,
                       "invalid repetition in series values: strconv.ParseUint: parsing %s: "
                       "invalid syntax",
                       pq_parser_quote(p, text));
    return !p->failed;
}

bool pq_parse_signed(struct pq_parser *p, double *ret_value)
{
    double sign = 1;

    if (pq_parser_accept(p, PQ_T_SUB))
        sign = -1;
    else
        (void)pq_parser_accept(p, PQ_T_ADD);
    if (!pq_parser_expect(p, PQ_T_NUMBER))
        return false;
    *ret_value = sign * pq_parser_number(p, p->last);
    return !p->failed;
}

/* _ or _xN: exactly N slots without a value. */
static bool parse_blank(struct pq_parser *p, struct sequence *sequence)
{
    uint64_t times = 1;

    (void)pq_parser_next(p);
    if (pq_parser_accept(p, PQ_T_TIMES) && !pq_parse_uint(p, &times))
        return false;
    for (uint64_t i = 0; i < times; i++)
        if (!push(p, sequence, (struct pq_sequence_value){ .omitted = true }))
            return false;
    return !p->failed;
}

static bool parse_value(struct pq_parser *p, double *ret_value)
{
    if (pq_parser_peek(p) != PQ_T_IDENTIFIER)
        return pq_parse_signed(p, ret_value);
    if (!qf_str_is(pq_parser_text(p, p->token.pos), "stale")) {
        p->context.expected = "number or \"stale\"";
        pq_parser_unexpected(p);
        return false;
    }
    (void)pq_parser_next(p);
    *ret_value = qf_double_from_bits(QF_STALE_NAN_BITS);
    return true;
}

/* v, vxN, v+dxN: N further values, each by adding once more, so that roundings add up. */
static bool parse_float(struct pq_parser *p, struct sequence *sequence)
{
    double value, step = 0;
    uint64_t times = 0;
    bool stepped, stale;
    enum pq_token_type type;

    if (!parse_value(p, &value))
        return false;
    stale = qf_is_stale(value);
    type = pq_parser_peek(p);
    stepped = type == PQ_T_ADD || type == PQ_T_SUB;
    if (stepped && !pq_parse_signed(p, &step))
        return false;
    if (stepped ? !pq_parser_expect(p, PQ_T_TIMES) : !pq_parser_accept(p, PQ_T_TIMES))
        return !p->failed && push(p, sequence, (struct pq_sequence_value){ .value = value });
    if (!pq_parse_uint(p, &times))
        return false;
    for (uint64_t i = 0;; i++) {
        if (!push(p, sequence, (struct pq_sequence_value){ .value = value }))
            return false;
        if (i == times)
            return true;
        if (stepped && !stale)
            value += step;
    }
}

/* H, HxN, H+HxN, H-HxN */
static bool parse_histograms(struct pq_parser *p, struct sequence *sequence)
{
    struct pq_histogram *value, *step = NULL;
    double factor = 1;
    uint64_t times = 0;
    enum pq_token_type type;

    (void)pq_parser_next(p);
    value = pq_parse_histogram(p);
    if (!value)
        return false;
    type = pq_parser_peek(p);
    if (type == PQ_T_ADD || type == PQ_T_SUB) {
        (void)pq_parser_next(p);
        factor = type == PQ_T_ADD ? 1 : -1;
        if (!pq_parser_expect(p, PQ_T_OPEN_HIST) || !(step = pq_parse_histogram(p)))
            return false;
        value->reset_hint_given = step->reset_hint_given;
    }
    if (step ? !pq_parser_expect(p, PQ_T_TIMES) : !pq_parser_accept(p, PQ_T_TIMES))
        return !p->failed && push(p, sequence, (struct pq_sequence_value){ .histogram = value });
    if (!pq_parse_uint(p, &times))
        return false;
    for (uint64_t i = 0;; i++) {
        if (!push(p, sequence, (struct pq_sequence_value){ .histogram = value }))
            return false;
        if (i == times)
            return true;
        if (step && !(value = pq_literal_combine(p, value, step, factor)))
            return false;
    }
}

static bool parse_item(struct pq_parser *p, struct sequence *sequence)
{
    enum pq_token_type next = pq_parser_peek(p);

    if (next == PQ_T_BLANK)
        return parse_blank(p, sequence);
    if (next == PQ_T_OPEN_HIST)
        return parse_histograms(p, sequence);
    if (next == PQ_T_IDENTIFIER || next == PQ_T_NUMBER || next == PQ_T_ADD || next == PQ_T_SUB)
        return parse_float(p, sequence);
    pq_parser_unexpected(p);
    return false;
}
