/* lex.c - the tokens of expressions. */
#include "promql/parse/lex.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/pure/macros.h"
#include "base/pure/utf8.h"
#include "promql/parse/words.h"

static struct pq_token lex_statement(struct pq_lexer *lexer);
static struct pq_token lex_in_braces(struct pq_lexer *lexer);
static struct pq_token lex_in_brackets(struct pq_lexer *lexer);
static struct pq_token lex_bracket_rest(struct pq_lexer *lexer, int32_t c);
static struct pq_token lex_comment(struct pq_lexer *lexer);
static struct pq_token lex_equals(struct pq_lexer *lexer);
static struct pq_token lex_bang(struct pq_lexer *lexer);
static struct pq_token lex_order(struct pq_lexer *lexer, int32_t c);
static struct pq_token lex_paren(struct pq_lexer *lexer, int32_t c);
static struct pq_token lex_number_or_duration(struct pq_lexer *lexer);

void pq_lex_init(struct pq_lexer *lexer, struct qf_str text, pq_lex_values_fn *values)
{
    *lexer = (struct pq_lexer){ .text = text, .values = values };
}

struct pq_token pq_lex_next(struct pq_lexer *lexer)
{
    lexer->start = lexer->pos;
    if (lexer->mode != PQ_LEX_STATEMENT && !lexer->brace_open)
        return lexer->values(lexer);
    while (pq_is_space(pq_lex_peek(lexer)))
        lexer->pos++;
    lexer->start = lexer->pos;
    if (pq_lex_peek(lexer) == '#')
        return lex_comment(lexer);
    if (lexer->brace_open)
        return lex_in_braces(lexer);
    return lexer->bracket_open && lexer->expects_duration ? lex_in_brackets(lexer)
                                                          : lex_statement(lexer);
}

static bool starts_number(const struct pq_lexer *lexer, int32_t c)
{
    return pq_is_digit(c) || (c == '.' && pq_is_digit(pq_lex_peek(lexer)));
}

/* The one-character operators, or PQ_T_EOF. */
static enum pq_token_type arithmetic(int32_t c)
{
    switch (c) {
    case '+':
        return PQ_T_ADD;
    case '-':
        return PQ_T_SUB;
    case '*':
        return PQ_T_MUL;
    case '/':
        return PQ_T_DIV;
    case '%':
        return PQ_T_MOD;
    case '^':
        return PQ_T_POW;
    default:
        return PQ_T_EOF;
    }
}

static struct pq_token lex_end(struct pq_lexer *lexer)
{
    if (lexer->paren_depth != 0)
        return pq_lex_fail(lexer, "unclosed left parenthesis");
    if (lexer->bracket_open)
        return pq_lex_fail(lexer, "unclosed left bracket");
    return pq_lex_emit(lexer, PQ_T_EOF);
}

static struct pq_token lex_statement(struct pq_lexer *lexer)
{
    int32_t c = pq_lex_rune(lexer);

    if (pq_is_alpha(c) || c == ':') {
        if (lexer->bracket_open)
            return lex_bracket_rest(lexer, c);
        lexer->pos--;
        return pq_lex_word(lexer);
    }
    if (starts_number(lexer, c)) {
        lexer->pos--;
        return lex_number_or_duration(lexer);
    }
    if (arithmetic(c) != PQ_T_EOF)
        return pq_lex_emit(lexer, arithmetic(c));
    switch (c) {
    case PQ_RUNE_EOF:
        return lex_end(lexer);
    case ',':
        return pq_lex_emit(lexer, PQ_T_COMMA);
    case '@':
        return pq_lex_emit(lexer, PQ_T_AT);
    case '=':
        return lex_equals(lexer);
    case '!':
        return lex_bang(lexer);
    case '<':
    case '>':
        return lex_order(lexer, c);
    case '"':
    case '\'':
    case '`':
        return pq_lex_string(lexer, (char)c);
    case '(':
    case ')':
        return lex_paren(lexer, c);
    case '{':
        lexer->brace_open = true;
        return pq_lex_emit(lexer, PQ_T_LEFT_BRACE);
    case '[':
        if (lexer->bracket_open)
            return pq_lex_fail_rune(lexer, "unexpected left bracket", c);
        lexer->bracket_open = lexer->expects_duration = true;
        lexer->got_colon = lexer->got_duration = false;
        return pq_lex_emit(lexer, PQ_T_LEFT_BRACKET);
    case ']':
        if (!lexer->bracket_open)
            return pq_lex_fail_rune(lexer, "unexpected right bracket", c);
        lexer->bracket_open = false;
        return pq_lex_emit(lexer, PQ_T_RIGHT_BRACKET);
    default:
        return pq_lex_fail_rune(lexer, "unexpected character:", c);
    }
}

static struct pq_token lex_comment(struct pq_lexer *lexer)
{
    while (lexer->pos < lexer->text.len && lexer->text.data[lexer->pos] != '\n' &&
           lexer->text.data[lexer->pos] != '\r')
        lexer->pos++;
    return pq_lex_emit(lexer, PQ_T_COMMENT);
}

static struct pq_token lex_equals(struct pq_lexer *lexer)
{
    if (pq_lex_peek(lexer) == '=') {
        lexer->pos++;
        return pq_lex_emit(lexer, PQ_T_EQLC);
    }
    if (pq_lex_peek(lexer) == '~')
        return pq_lex_fail_rune(lexer, "unexpected character after '=':", '~');
    return pq_lex_emit(lexer, PQ_T_EQL);
}

static struct pq_token lex_bang(struct pq_lexer *lexer)
{
    int32_t c = pq_lex_rune(lexer);

    if (c == '=')
        return pq_lex_emit(lexer, PQ_T_NEQ);
    return pq_lex_fail_rune(lexer, "unexpected character after '!':", c);
}

static struct pq_token lex_order(struct pq_lexer *lexer, int32_t c)
{
    int next = pq_lex_peek(lexer);

    if (next == '=' || next == '/')
        lexer->pos++;
    if (next == '=')
        return pq_lex_emit(lexer, c == '<' ? PQ_T_LTE : PQ_T_GTE);
    if (next == '/')
        return pq_lex_emit(lexer, c == '<' ? PQ_T_TRIM_UPPER : PQ_T_TRIM_LOWER);
    return pq_lex_emit(lexer, c == '<' ? PQ_T_LSS : PQ_T_GTR);
}

static struct pq_token lex_paren(struct pq_lexer *lexer, int32_t c)
{
    if (c == '(') {
        lexer->paren_depth++;
        return pq_lex_emit(lexer, PQ_T_LEFT_PAREN);
    }
    if (--lexer->paren_depth < 0) {
        lexer->start = lexer->pos; /* Prometheus points behind this one */
        return pq_lex_fail_rune(lexer, "unexpected right parenthesis", c);
    }
    return pq_lex_emit(lexer, PQ_T_RIGHT_PAREN);
}

static struct pq_token lex_brace_bang(struct pq_lexer *lexer)
{
    int32_t c = pq_lex_rune(lexer);

    if (c == '~')
        return pq_lex_emit(lexer, PQ_T_NEQ_REGEX);
    if (c == '=')
        return pq_lex_emit(lexer, PQ_T_NEQ);
    return pq_lex_fail_rune(lexer, "unexpected character after '!' inside braces:", c);
}

static struct pq_token lex_in_braces(struct pq_lexer *lexer)
{
    int32_t c = pq_lex_rune(lexer);

    if (pq_is_alpha(c)) {
        while (pq_is_alnum(pq_lex_peek(lexer)))
            lexer->pos++;
        return pq_lex_emit(lexer, PQ_T_IDENTIFIER);
    }
    switch (c) {
    case PQ_RUNE_EOF:
        return pq_lex_fail(lexer, "unexpected end of input inside braces");
    case ',':
        return pq_lex_emit(lexer, PQ_T_COMMA);
    case '"':
    case '\'':
    case '`':
        return pq_lex_string(lexer, (char)c);
    case '=':
        if (pq_lex_peek(lexer) != '~')
            return pq_lex_emit(lexer, PQ_T_EQL);
        lexer->pos++;
        return pq_lex_emit(lexer, PQ_T_EQL_REGEX);
    case '!':
        return lex_brace_bang(lexer);
    case '{':
        return pq_lex_fail_rune(lexer, "unexpected left brace", c);
    case '}':
        lexer->brace_open = false;
        if (lexer->values)
            lexer->mode = PQ_LEX_VALUES;
        return pq_lex_emit(lexer, PQ_T_RIGHT_BRACE);
    default:
        return pq_lex_fail_rune(lexer, "unexpected character inside braces:", c);
    }
}

/* The few words of duration expressions. */
static struct pq_token lex_bracket_word(struct pq_lexer *lexer, int32_t first)
{
    enum pq_token_type type;

    while (pq_is_alpha(pq_lex_peek(lexer)))
        lexer->pos++;
    type = pq_word_find(qf_str_sub(lexer->text, lexer->start, lexer->pos));
    if (type == PQ_T_STEP || type == PQ_T_RANGE || type == PQ_T_MIN_OF || type == PQ_T_MAX_OF) {
        lexer->got_duration = true;
        return pq_lex_emit(lexer, type);
    }
    return pq_lex_fail(lexer, "unexpected character: '%c', expected ':'", (char)first);
}

/* A word or a colon behind the first number inside brackets. */
static struct pq_token lex_bracket_rest(struct pq_lexer *lexer, int32_t c)
{
    if (c != ':')
        return lex_bracket_word(lexer, c);
    if (lexer->got_colon)
        return pq_lex_fail_rune(lexer, "unexpected colon", c);
    lexer->got_colon = true;
    return pq_lex_emit(lexer, PQ_T_COLON);
}

static struct pq_token fail_behind(struct pq_lexer *lexer, const char *what)
{
    lexer->start = lexer->pos;
    return pq_lex_fail(lexer, "%s", what);
}

static struct pq_token lex_bracket_colon(struct pq_lexer *lexer)
{
    if (!lexer->got_duration)
        return fail_behind(lexer, "unexpected colon before duration in duration expression");
    if (lexer->got_colon)
        return fail_behind(lexer, "unexpected repeated colon in duration expression");
    lexer->got_colon = true;
    return pq_lex_emit(lexer, PQ_T_COLON);
}

/* A range or subquery up to its first number: what follows that is lexed like any statement. */
static struct pq_token lex_in_brackets(struct pq_lexer *lexer)
{
    int32_t c = pq_lex_rune(lexer);

    if (starts_number(lexer, c)) {
        lexer->pos--;
        lexer->got_duration = true;
        lexer->expects_duration = false;
        return lex_number_or_duration(lexer);
    }
    if (c > 0 && c < 0x80 && strchr("sSmMrR", c))
        return lex_bracket_word(lexer, c);
    if (arithmetic(c) != PQ_T_EOF)
        return pq_lex_emit(lexer, arithmetic(c));
    switch (c) {
    case PQ_RUNE_EOF:
        return pq_lex_fail(lexer, "unexpected end of input in duration expression");
    case ',':
        return pq_lex_emit(lexer, PQ_T_COMMA);
    case ':':
        return lex_bracket_colon(lexer);
    case '(':
    case ')':
        return lex_paren(lexer, c);
    case ']':
        lexer->bracket_open = false;
        return pq_lex_emit(lexer, PQ_T_RIGHT_BRACKET);
    default:
        return pq_lex_fail_rune(lexer, "unexpected character in duration expression:", c);
    }
}

static bool accept(struct pq_lexer *lexer, const char *any_of)
{
    int c = pq_lex_peek(lexer);

    if (c <= 0 || !strchr(any_of, c))
        return false;
    lexer->pos++;
    return true;
}

/* Behind the digits of a duration: a unit, then any number of digits with a unit. Wrong units such
 * as "hs" pass here and are named when the duration is read. */
static bool scan_duration_rest(struct pq_lexer *lexer)
{
    if (!accept(lexer, "smhdwy"))
        return false;
    accept(lexer, "s");
    while (accept(lexer, "0123456789")) {
        while (accept(lexer, "0123456789"))
            ;
        if (!accept(lexer, "smhdw"))
            return false;
        accept(lexer, "s");
    }
    return true;
}

static struct pq_token lex_number_or_duration(struct pq_lexer *lexer)
{
    struct qf_str text;
    struct qf_strbuf quoted = QF_STRBUF_INIT;
    struct pq_token token;

    if (pq_lex_scan_number(lexer))
        return pq_lex_emit(lexer, PQ_T_NUMBER);
    if (scan_duration_rest(lexer)) {
        if (!pq_is_alnum(pq_lex_peek(lexer)))
            return pq_lex_emit(lexer, PQ_T_DURATION);
        lexer->pos++;
    }
    text = qf_str_sub(lexer->text, lexer->start, lexer->pos);
    qf_strbuf_quote(&quoted, text);
    token = pq_lex_fail(lexer, "bad number or duration syntax: %s", qf_strbuf_cstr(&quoted));
    qf_strbuf_done(&quoted);
    return token;
}

int32_t pq_lex_rune(struct pq_lexer *lexer)
{
    uint32_t rune;
    size_t len;

    if (lexer->pos >= lexer->text.len)
        return PQ_RUNE_EOF;
    len = qf_utf8_decode(qf_str_sub(lexer->text, lexer->pos, lexer->text.len), &rune);
    lexer->pos += len ? len : 1;
    return len ? (int32_t)rune : 0xfffd;
}

int pq_lex_peek(const struct pq_lexer *lexer)
{
    return lexer->pos < lexer->text.len ? (unsigned char)lexer->text.data[lexer->pos] : PQ_RUNE_EOF;
}

struct pq_token pq_lex_emit(struct pq_lexer *lexer, enum pq_token_type type)
{
    return (struct pq_token){ type, { (uint32_t)lexer->start, (uint32_t)lexer->pos } };
}

/* An error concerns everything from its token on. */
struct pq_token pq_lex_fail(struct pq_lexer *lexer, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(lexer->error, sizeof(lexer->error), fmt, args);
    va_end(args);
    return (struct pq_token){ PQ_T_ERROR, { (uint32_t)lexer->start, (uint32_t)lexer->text.len } };
}

struct pq_token pq_lex_fail_rune(struct pq_lexer *lexer, const char *what, int32_t rune)
{
    char raw[4];
    size_t len = qf_utf8_encode(rune < 0 ? 0xfffd : (uint32_t)rune, raw);
    struct qf_strbuf quoted = QF_STRBUF_INIT;
    struct qf_str inner;
    struct pq_token token;

    qf_strbuf_quote(&quoted, (struct qf_str){ raw, len });
    inner = qf_str_sub(qf_strbuf_view(&quoted), 1, quoted.len - 1);
    if (rune == '\'')
        inner = QF_STR("\\'");
    else if (rune == '"')
        inner = QF_STR("\"");
    token = pq_lex_fail(lexer, "%s '%.*s'", what, QF_STR_ARG(inner));
    qf_strbuf_done(&quoted);
    return token;
}
