/* lex_values.c - the values of a series description: 1 2+3x4 _ stale {{schema:1 sum:2}}x3.
 *
 * Blanks are tokens here, since "1 -1" are two values and "1-1x2" is one item. */
#include "promql/parse/words.h"
#include "promql/testing/series.h"

static struct pq_token lex_value(struct pq_lexer *lexer);
static struct pq_token lex_in_histogram(struct pq_lexer *lexer);
static struct pq_token lex_in_buckets(struct pq_lexer *lexer);
static struct pq_token lex_after_histogram(struct pq_lexer *lexer);

struct pq_token pq_lex_series_value(struct pq_lexer *lexer)
{
    switch (lexer->mode) {
    case PQ_LEX_HISTOGRAM:
        return lex_in_histogram(lexer);
    case PQ_LEX_BUCKETS:
        return lex_in_buckets(lexer);
    case PQ_LEX_AFTER_HISTOGRAM:
        return lex_after_histogram(lexer);
    case PQ_LEX_STATEMENT:
    case PQ_LEX_VALUES:
        break;
    }
    return lex_value(lexer);
}

/* One token for any run of blanks; its text is the first of them. */
static struct pq_token lex_space(struct pq_lexer *lexer)
{
    struct pq_token token = pq_lex_emit(lexer, PQ_T_SPACE);

    while (pq_is_space(pq_lex_peek(lexer)))
        lexer->pos++;
    return token;
}

static struct pq_token lex_number(struct pq_lexer *lexer)
{
    if (pq_lex_scan_number(lexer))
        return pq_lex_emit(lexer, PQ_T_NUMBER);
    return pq_lex_fail(lexer, "bad number or duration syntax: \"%.*s\"",
                       QF_STR_ARG(qf_str_sub(lexer->text, lexer->start, lexer->pos)));
}

static struct pq_token lex_value(struct pq_lexer *lexer)
{
    int32_t c = pq_lex_rune(lexer);

    if (pq_is_space(c))
        return lex_space(lexer);
    if (pq_is_digit(c) || (c == '.' && pq_is_digit(pq_lex_peek(lexer)))) {
        lexer->pos--;
        return lex_number(lexer);
    }
    switch (c) {
    case PQ_RUNE_EOF:
        return pq_lex_emit(lexer, PQ_T_EOF);
    case '+':
        return pq_lex_emit(lexer, PQ_T_ADD);
    case '-':
        return pq_lex_emit(lexer, PQ_T_SUB);
    case 'x':
        return pq_lex_emit(lexer, PQ_T_TIMES);
    case '_':
        return pq_lex_emit(lexer, PQ_T_BLANK);
    case '{':
        if (pq_lex_peek(lexer) != '{')
            break;
        lexer->pos++;
        lexer->mode = PQ_LEX_HISTOGRAM;
        return pq_lex_emit(lexer, PQ_T_OPEN_HIST);
    default:
        break;
    }
    if (pq_is_alpha(c)) {
        lexer->pos--;
        return pq_lex_word(lexer);
    }
    return pq_lex_fail_rune(lexer, "unexpected character in series sequence:", c);
}

/* A key with its colon, a hint, or inf and nan. */
static struct pq_token lex_histogram_word(struct pq_lexer *lexer)
{
    struct qf_str word;
    enum pq_token_type type;

    while (pq_is_alpha(pq_lex_peek(lexer)))
        lexer->pos++;
    word = qf_str_sub(lexer->text, lexer->start, lexer->pos);
    type = pq_word_among(word, PQ_T_SUM_DESC, PQ_T_COUNTER_RESET_HINT_DESC);
    if (type != PQ_T_IDENTIFIER) {
        if (pq_lex_peek(lexer) != ':')
            return pq_lex_fail(lexer, "missing `:` for histogram descriptor");
        return pq_lex_emit(lexer, type);
    }
    type = pq_word_find(word);
    if (type == PQ_T_NUMBER)
        return pq_lex_emit(lexer, type);
    type = pq_word_among(word, PQ_T_UNKNOWN_COUNTER_RESET, PQ_T_GAUGE_TYPE);
    if (type != PQ_T_IDENTIFIER)
        return pq_lex_emit(lexer, type);
    return pq_lex_fail(lexer, "bad histogram descriptor found: \"%.*s\"", QF_STR_ARG(word));
}

static struct pq_token lex_histogram_end(struct pq_lexer *lexer)
{
    int next;

    lexer->pos++;
    next = pq_lex_peek(lexer);
    lexer->mode =
        next == 'x' || next == '+' || next == '-' ? PQ_LEX_AFTER_HISTOGRAM : PQ_LEX_VALUES;
    return pq_lex_emit(lexer, PQ_T_CLOSE_HIST);
}

static struct pq_token lex_in_histogram(struct pq_lexer *lexer)
{
    int32_t c = pq_lex_rune(lexer);

    if (pq_is_space(c))
        return lex_space(lexer);
    if (pq_is_alpha(c))
        return lex_histogram_word(lexer);
    if (pq_is_digit(c)) {
        lexer->pos--;
        return lex_number(lexer);
    }
    switch (c) {
    case ':':
        return pq_lex_emit(lexer, PQ_T_COLON);
    case '-':
        return pq_lex_emit(lexer, PQ_T_SUB);
    case '[':
        lexer->mode = PQ_LEX_BUCKETS;
        return pq_lex_emit(lexer, PQ_T_LEFT_BRACKET);
    case '}':
        if (pq_lex_peek(lexer) == '}')
            return lex_histogram_end(lexer);
        break;
    default:
        break;
    }
    return pq_lex_fail_rune(lexer, "histogram description incomplete unexpected:", c);
}

static struct pq_token lex_in_buckets(struct pq_lexer *lexer)
{
    int32_t c = pq_lex_rune(lexer);

    if (pq_is_space(c))
        return lex_space(lexer);
    if (pq_is_digit(c)) {
        lexer->pos--;
        return lex_number(lexer);
    }
    if (pq_is_alpha(c)) {
        while (pq_is_alpha(pq_lex_peek(lexer)))
            lexer->pos++;
        if (pq_word_find(qf_str_sub(lexer->text, lexer->start, lexer->pos)) == PQ_T_NUMBER)
            return pq_lex_emit(lexer, PQ_T_NUMBER);
    }
    if (c == '-')
        return pq_lex_emit(lexer, PQ_T_SUB);
    if (c == ']') {
        lexer->mode = PQ_LEX_HISTOGRAM;
        return pq_lex_emit(lexer, PQ_T_RIGHT_BRACKET);
    }
    return pq_lex_fail_rune(lexer, "invalid character in buckets description:", c);
}

static struct pq_token lex_after_histogram(struct pq_lexer *lexer)
{
    int32_t c = pq_lex_rune(lexer);

    lexer->mode = PQ_LEX_VALUES;
    if (c == 'x')
        return pq_lex_emit(lexer, PQ_T_TIMES);
    return pq_lex_emit(lexer, c == '+' ? PQ_T_ADD : PQ_T_SUB);
}
