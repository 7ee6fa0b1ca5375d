/* lex_literal.c - numbers, strings and words. */
#include <stdio.h>
#include <string.h>

#include "base/pure/utf8.h"
#include "promql/parse/lex.h"
#include "promql/parse/words.h"

static bool is(const struct pq_lexer *lexer, const char *any_of)
{
    int c = pq_lex_peek(lexer);

    return c > 0 && strchr(any_of, c) != NULL;
}

static bool accept(struct pq_lexer *lexer, const char *any_of)
{
    if (!is(lexer, any_of))
        return false;
    lexer->pos++;
    return true;
}

struct number_scan {
    const char *digits;
    bool hex, dot, exponent;
};

/* One character, or run of digits, of a number. False: it cannot stand there. */
static bool scan_number_part(struct pq_lexer *lexer, struct number_scan *scan)
{
    if (is(lexer, ".")) {
        lexer->pos++;
        if (scan->dot || accept(lexer, "_.") || scan->hex)
            return false;
        scan->dot = true;
        return true;
    }
    if (is(lexer, "eE")) {
        lexer->pos++;
        if (scan->exponent)
            return false;
        scan->exponent = true;
        accept(lexer, "+-");
        return !accept(lexer, "._eE") && pq_lex_peek(lexer) != PQ_RUNE_EOF;
    }
    if (accept(lexer, "_"))
        return !accept(lexer, "._eE") && pq_lex_peek(lexer) != PQ_RUNE_EOF;
    while (accept(lexer, scan->digits))
        ;
    return true;
}

/* Reads what may be a number; the lexer stands behind what was read also when it is none, since
 * that part is quoted in the message and a duration may go on from there. */
bool pq_lex_scan_number(struct pq_lexer *lexer)
{
    struct number_scan scan = { .digits = "0123456789" };
    size_t before = lexer->pos;
    int next;

    /* "1x3" repeats in a series description, so there are no hexadecimal numbers. */
    if (!lexer->values && accept(lexer, "0") && accept(lexer, "xX")) {
        accept(lexer, "_");
        scan.digits = "0123456789abcdefABCDEF";
        scan.hex = true;
    }
    accept(lexer, ".");
    accept(lexer, scan.digits);
    while (is(lexer, scan.digits) || is(lexer, "._eE"))
        if (!scan_number_part(lexer, &scan))
            return false;
    if (lexer->pos == before)
        return false;
    next = pq_lex_peek(lexer);
    return (lexer->values && next == 'x') || !pq_is_alnum(next);
}

struct pq_token pq_lex_word(struct pq_lexer *lexer)
{
    bool colon = false;
    struct qf_str word;
    enum pq_token_type type;

    while (pq_is_alnum(pq_lex_peek(lexer)) || pq_lex_peek(lexer) == ':') {
        colon = colon || pq_lex_peek(lexer) == ':';
        lexer->pos++;
    }
    if (lexer->values && pq_lex_peek(lexer) != '{')
        lexer->mode = PQ_LEX_VALUES;
    word = qf_str_sub(lexer->text, lexer->start, lexer->pos);
    type = colon ? PQ_T_METRIC_IDENTIFIER : pq_word_find(word);
    return pq_lex_emit(lexer, type);
}

static int digit_value(int32_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 16;
}

/* "U+0063 'c'", as Go's %#U. */
static void print_rune(int32_t rune, char *out, size_t size)
{
    char raw[5] = { 0 };

    if (qf_utf8_printable((uint32_t)rune)) {
        (void)qf_utf8_encode((uint32_t)rune, raw);
        (void)snprintf(out, size, "U+%04X '%s'", (unsigned)rune, raw);
    } else {
        (void)snprintf(out, size, "U+%04X", (unsigned)rune);
    }
}

static bool fail_rune(struct pq_lexer *lexer, const char *before, int32_t rune, const char *after)
{
    char text[32];

    if (rune == PQ_RUNE_EOF) {
        (void)pq_lex_fail(lexer, "escape sequence not terminated");
    } else {
        print_rune(rune, text, sizeof(text));
        (void)pq_lex_fail(lexer, "%s %s%s", before, text, after);
    }
    return false;
}

/* Digits of \377, \xff, \u00ff or \U000000ff; @c is the first. */
static bool lex_escape_digits(struct pq_lexer *lexer, int32_t c, int count, int base, uint32_t max)
{
    uint32_t x = 0;

    for (; count > 0; count--) {
        int d = digit_value(c);

        if (d >= base)
            return fail_rune(lexer, "illegal character", c, " in escape sequence");
        x = x * (uint32_t)base + (uint32_t)d;
        if (count > 1)
            c = pq_lex_rune(lexer);
    }
    if (x > max || (x >= 0xd800 && x < 0xe000)) {
        (void)pq_lex_fail(lexer, "escape sequence is an invalid Unicode code point");
        return false;
    }
    return true;
}

static bool lex_escape(struct pq_lexer *lexer, char quote)
{
    int32_t c = pq_lex_rune(lexer);

    if (c == quote || (c > 0 && c < 0x80 && strchr("abfnrtv\\", c)))
        return true;
    if (c >= '0' && c <= '7')
        return lex_escape_digits(lexer, c, 3, 8, 255);
    if (c == 'x')
        return lex_escape_digits(lexer, pq_lex_rune(lexer), 2, 16, 255);
    if (c == 'u')
        return lex_escape_digits(lexer, pq_lex_rune(lexer), 4, 16, 0x10ffff);
    if (c == 'U')
        return lex_escape_digits(lexer, pq_lex_rune(lexer), 8, 16, 0x10ffff);
    return fail_rune(lexer, "unknown escape sequence", c, "");
}

struct pq_token pq_lex_string(struct pq_lexer *lexer, char quote)
{
    bool raw = quote == '`';

    for (;;) {
        int32_t c = pq_lex_rune(lexer);

        if (c == quote)
            return pq_lex_emit(lexer, PQ_T_STRING);
        if (c == PQ_RUNE_EOF || (c == '\n' && !raw))
            return pq_lex_fail(lexer,
                               raw ? "unterminated raw string" : "unterminated quoted string");
        if (c == 0xfffd)
            return pq_lex_fail(lexer, "invalid UTF-8 rune");
        if (c == '\\' && !raw && !lex_escape(lexer, quote))
            return (struct pq_token){ PQ_T_ERROR,
                                      { (uint32_t)lexer->start, (uint32_t)lexer->text.len } };
    }
}
