/* parse_labels.c - label matchers in braces and lists of label names in parentheses. */
#include "promql/parse/parser.h"
#include "promql/parse/pattern.h"

static bool parse_matcher(struct pq_parser *p, struct pq_matcher *matcher);

bool pq_parse_matchers(struct pq_parser *p, struct pq_matcher **matchers, size_t *count)
{
    struct pq_context outer = pq_parser_context(p, "label matching", "identifier or \"}\"");

    (void)pq_parser_next(p); /* the brace */
    while (pq_parser_peek(p) != PQ_T_RIGHT_BRACE) {
        struct pq_matcher *matcher = pq_parser_push(p, (void **)matchers, count, sizeof(*matcher));

        p->context.expected = "identifier or \"}\"";
        if (!matcher || !parse_matcher(p, matcher))
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

static bool match_operator(enum pq_token_type type, enum pq_match_type *ret_type)
{
    if (type == PQ_T_EQL)
        *ret_type = PQ_MATCH_EQUAL;
    else if (type == PQ_T_NEQ)
        *ret_type = PQ_MATCH_NOT_EQUAL;
    else if (type == PQ_T_EQL_REGEX)
        *ret_type = PQ_MATCH_REGEX;
    else if (type == PQ_T_NEQ_REGEX)
        *ret_type = PQ_MATCH_NOT_REGEX;
    else
        return false;
    return true;
}

/* RE2's words for what is wrong with a pattern, in those of Go's regexp. */
static void print_regex_error(char *out, size_t size, struct qf_str msg)
{
    static const char *const words[][2] = {
        { "invalid escape sequence", "invalid escape sequence" },
        { "invalid character class range", "invalid character class range" },
        { "invalid character class", "invalid character class" },
        { "missing ]", "missing closing ]" },
        { "missing )", "missing closing )" },
        { "unexpected )", "unexpected )" },
        { "trailing \\", "trailing backslash at end of expression" },
        { "no argument for repetition operator", "missing argument to repetition operator" },
        { "invalid repetition size", "invalid repeat count" },
        { "bad repetition operator", "invalid nested repetition operator" },
        { "invalid perl operator", "invalid or unsupported Perl syntax" },
        { "invalid UTF-8", "invalid UTF-8" },
        { "invalid named capture group", "invalid named capture" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(words); i++) {
        struct qf_str known = qf_str_from(words[i][0]);
        const char *colon;

        if (!qf_str_starts(msg, known))
            continue;
        colon = memchr(msg.data, ':', msg.len);
        if (colon && colon + 2 <= msg.data + msg.len)
            (void)snprintf(out, size, "error parsing regexp: %s: `%.*s`", words[i][1],
                           (int)(msg.data + msg.len - colon - 2), colon + 2);
        else
            (void)snprintf(out, size, "error parsing regexp: %s: ``", words[i][1]);
        return;
    }
    (void)snprintf(out, size, "error parsing regexp: %.*s", QF_STR_ARG(msg));
}

static bool compile(struct pq_parser *p, struct pq_matcher *matcher, struct pq_pos pos)
{
    const atomic_bool *canceled = p->options.canceled;
    char msg[400], text[500];
    struct qf_regex *regex;
    qf_rc rc;

    if (matcher->type != PQ_MATCH_REGEX && matcher->type != PQ_MATCH_NOT_REGEX)
        return true;
    if (canceled && atomic_load_explicit(canceled, memory_order_relaxed)) {
        pq_parser_fail(p, pos, "query was canceled");
        p->error.rc = QF_ECANCELED;
        return false;
    }
    rc = pq_pattern_compile(p->arena, matcher->value, &regex, msg, sizeof(msg));
    if (rc == QF_OK)
        matcher->regex = regex;
    if (rc == QF_ELIMIT)
        pq_parser_out_of_memory(p);
    if (rc == QF_EPARSE) {
        print_regex_error(text, sizeof(text), qf_str_from(msg));
        pq_parser_fail(p, pos, "%s", text);
    }
    return rc == QF_OK;
}

/* name OP "value", "name" OP "value", or "metric name". */
static bool parse_matcher(struct pq_parser *p, struct pq_matcher *matcher)
{
    enum pq_token_type type = pq_parser_peek(p);
    struct pq_token name;

    *matcher = (struct pq_matcher){ PQ_MATCH_EQUAL, { NULL, 0 }, { NULL, 0 }, NULL };
    if (type != PQ_T_IDENTIFIER && type != PQ_T_STRING) {
        pq_parser_unexpected(p);
        return false;
    }
    name = pq_parser_next(p);
    matcher->name =
        type == PQ_T_STRING ? pq_parser_string(p, name.pos) : pq_parser_text(p, name.pos);
    if (!match_operator(pq_parser_peek(p), &matcher->type)) {
        if (type == PQ_T_STRING) {
            matcher->value = matcher->name;
            matcher->name = QF_STR(QF_METRIC_NAME);
            return !p->failed;
        }
        p->context.expected = "label matching operator";
        pq_parser_unexpected(p);
        return false;
    }
    (void)pq_parser_next(p);
    p->context.expected = "string";
    if (!pq_parser_expect(p, PQ_T_STRING))
        return false;
    matcher->value = pq_parser_string(p, p->last);
    return !p->failed && compile(p, matcher, (struct pq_pos){ name.pos.start, p->last.end });
}

/* Any word will do as the name of a label, or a string. */
static bool parse_label(struct pq_parser *p, struct qf_str *ret_label)
{
    enum pq_token_type type = pq_parser_peek(p);
    struct pq_token token;

    if (type != PQ_T_IDENTIFIER && type != PQ_T_METRIC_IDENTIFIER && type != PQ_T_STRING &&
        type != PQ_T_LAND && type != PQ_T_LOR && type != PQ_T_LUNLESS && type != PQ_T_ATAN2 &&
        !pq_token_is_keyword(type) && !pq_token_is_aggregator(type)) {
        p->context.expected = "label";
        pq_parser_unexpected(p);
        return false;
    }
    token = pq_parser_next(p);
    *ret_label =
        type == PQ_T_STRING ? pq_parser_string(p, token.pos) : pq_parser_text(p, token.pos);
    if (ret_label->len == 0)
        pq_parser_fail(p, token.pos, "invalid label name for grouping: %s",
                       pq_parser_quote(p, pq_parser_text(p, token.pos)));
    return !p->failed;
}

bool pq_parse_grouping(struct pq_parser *p, const struct qf_str **ret_labels, size_t *ret_count)
{
    struct pq_context outer = pq_parser_context(p, "grouping opts", "\"(\"");
    struct qf_str *labels = NULL, *label;
    size_t count = 0;

    if (!pq_parser_expect(p, PQ_T_LEFT_PAREN))
        return false;
    while (pq_parser_peek(p) != PQ_T_RIGHT_PAREN) {
        label = pq_parser_push(p, (void **)&labels, &count, sizeof(*label));
        if (!label || !parse_label(p, label))
            return false;
        p->context.expected = "\",\" or \")\"";
        if (!pq_parser_accept(p, PQ_T_COMMA) && pq_parser_peek(p) != PQ_T_RIGHT_PAREN) {
            pq_parser_unexpected(p);
            return false;
        }
    }
    (void)pq_parser_next(p);
    p->context = outer;
    *ret_labels = labels;
    *ret_count = count;
    return true;
}
