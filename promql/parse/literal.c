/* literal.c - the values of number, duration and string tokens. */
#include <math.h>
#include <stdlib.h>

#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/pure/utf8.h"
#include "promql/parse/parser.h"

const char *pq_parser_quote(struct pq_parser *p, struct qf_str text)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    const char *quoted;

    qf_strbuf_quote(&buf, text);
    quoted = qf_arena_cstr(p->arena, qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
    if (!quoted)
        pq_parser_out_of_memory(p);
    return quoted ? quoted : "";
}

/* An underscore may stand between digits or behind 0x. */
static bool underscores_fit(struct qf_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        bool before = i > 0 && (pq_is_alnum(s.data[i - 1]) && s.data[i - 1] != '_');
        bool after = i + 1 < s.len && pq_is_alnum(s.data[i + 1]) && s.data[i + 1] != '_';

        if (s.data[i] == '_' && !(before && after))
            return false;
    }
    return true;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Go's ParseInt with base 0: 0x hexadecimal, a leading 0 octal. */
static bool parse_integer(struct qf_str s, double *ret_value)
{
    int64_t value = 0;
    int base = 10;
    size_t i = 0;

    if (s.len > 2 && s.data[0] == '0' && (s.data[1] | 0x20) == 'x')
        base = 16, i = 2;
    else if (s.len > 1 && s.data[0] == '0')
        base = 8, i = 1;
    if (i == s.len)
        return false;
    for (; i < s.len; i++)
        if (digit(s.data[i]) >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit(s.data[i]), &value))
            return false;
    *ret_value = (double)value;
    return true;
}

enum number_status { NUMBER_OK, NUMBER_SYNTAX, NUMBER_RANGE };

static enum number_status parse_number(struct qf_str s, char *scratch, double *ret_value)
{
    struct qf_str plain = { scratch, 0 };
    bool hex = s.len > 1 && (s.data[1] | 0x20) == 'x';

    if (!underscores_fit(s))
        return NUMBER_SYNTAX;
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] != '_')
            scratch[plain.len++] = s.data[i];
    if (parse_integer(plain, ret_value))
        return NUMBER_OK;
    if (hex || !qf_parse_double(plain, ret_value))
        return NUMBER_SYNTAX;
    return isinf(*ret_value) && (plain.data[0] | 0x20) != 'i' ? NUMBER_RANGE : NUMBER_OK;
}

double pq_parser_number(struct pq_parser *p, struct pq_pos pos)
{
    struct qf_str text = pq_parser_text(p, pos);
    char small[64];
    char *scratch = text.len <= sizeof(small) ? small : qf_arena_alloc(p->arena, text.len);
    double value = 0;
    enum number_status status;

    if (!scratch) {
        pq_parser_out_of_memory(p);
        return 0;
    }
    status = parse_number(text, scratch, &value);
    if (status != NUMBER_OK)
        pq_parser_fail(p, pos, "error parsing number: strconv.ParseFloat: parsing %s: %s",
                       pq_parser_quote(p, text),
                       status == NUMBER_RANGE ? "value out of range" : "invalid syntax");
    return value;
}

/* The first run of letters in a duration that is no unit; empty if all are. */
static struct qf_str unknown_unit(struct qf_str s)
{
    static const char *const units[] = { "ms", "s", "m", "h", "d", "w", "y" };

    for (size_t i = 0; i < s.len;) {
        size_t start;
        bool known = false;

        while (i < s.len && pq_is_digit(s.data[i]))
            i++;
        for (start = i; i < s.len && !pq_is_digit(s.data[i]);)
            i++;
        for (size_t unit = 0; unit < QF_COUNT_OF(units); unit++)
            known = known || qf_str_is(qf_str_sub(s, start, i), units[unit]);
        if (!known)
            return qf_str_sub(s, start, i);
    }
    return (struct qf_str){ NULL, 0 };
}

double pq_parser_duration(struct pq_parser *p, struct pq_pos pos)
{
    struct qf_str text = pq_parser_text(p, pos), unit;
    int64_t ms = 0;

    switch (qf_duration_parse(text, &ms)) {
    case QF_DURATION_OK:
        break;
    case QF_DURATION_OVERFLOW:
        pq_parser_fail(p, pos, "duration out of range");
        break;
    case QF_DURATION_BAD:
        unit = unknown_unit(text);
        if (unit.len)
            pq_parser_fail(p, pos, "unknown unit %s in duration %s", pq_parser_quote(p, unit),
                           pq_parser_quote(p, text));
        else
            pq_parser_fail(p, pos, "not a valid duration string: %s", pq_parser_quote(p, text));
        break;
    }
    /* Go's Seconds() adds whole seconds and the rest, which rounds as this does. */
    return (double)(ms / 1000) + (double)(ms % 1000 * 1000000) / 1e9;
}

/* The character behind a backslash, which the lexer has checked; moves @i past it. */
static size_t unescape(struct qf_str s, size_t *i, char *out)
{
    static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
    char c = s.data[(*i)++];
    const char *letter = strchr(letters, c);
    size_t count = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t x = 0;

    if (letter && c) {
        *out = values[letter - letters];
        return 1;
    }
    if (c >= '0' && c <= '7') {
        *out = (char)((digit(c) * 8 + digit(s.data[*i])) * 8 + digit(s.data[*i + 1]));
        *i += 2;
        return 1;
    }
    if (!count) {
        *out = c;
        return 1;
    }
    for (size_t end = *i + count; *i < end; (*i)++)
        x = x * 16 + (uint32_t)digit(s.data[*i]);
    if (count > 2)
        return qf_utf8_encode(x, out);
    *out = (char)x;
    return 1;
}

struct qf_str pq_parser_string(struct pq_parser *p, struct pq_pos pos)
{
    struct qf_str s = pq_parser_text(p, (struct pq_pos){ pos.start + 1, pos.end - 1 });
    bool raw = p->lex.text.data[pos.start] == '`';
    size_t len = 0;
    char *out;

    if (raw || s.len == 0 || !memchr(s.data, '\\', s.len))
        return s;
    out = qf_arena_alloc(p->arena, s.len + 1); /* an escape is never shorter than what it means */
    if (!out) {
        pq_parser_out_of_memory(p);
        return (struct qf_str){ NULL, 0 };
    }
    for (size_t i = 0; i < s.len;) {
        if (s.data[i] != '\\') {
            out[len++] = s.data[i++];
            continue;
        }
        i++;
        len += unescape(s, &i, out + len);
    }
    out[len] = '\0';
    return (struct qf_str){ out, len };
}
