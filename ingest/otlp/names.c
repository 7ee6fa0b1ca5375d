/* names.c - names of metrics and attributes as names of Prometheus. */
#include "ingest/otlp/names.h"

#include "base/pure/macros.h"
#include "base/pure/strbuf.h"

struct word {
    struct qf_str symbol, text;
};
#define WORD(symbol, text)                                                                         \
    {                                                                                              \
        QF_STR_INIT(symbol), QF_STR_INIT(text)                                                     \
    }

/* Units of UCUM as Prometheus spells them. Others stand as they are. */
static const struct word units[] = {
    WORD("d", "days"),
    WORD("h", "hours"),
    WORD("min", "minutes"),
    WORD("s", "seconds"),
    WORD("ms", "milliseconds"),
    WORD("us", "microseconds"),
    WORD("ns", "nanoseconds"),
    WORD("By", "bytes"),
    WORD("KiBy", "kibibytes"),
    WORD("MiBy", "mebibytes"),
    WORD("GiBy", "gibibytes"),
    WORD("TiBy", "tibibytes"),
    WORD("KBy", "kilobytes"),
    WORD("MBy", "megabytes"),
    WORD("GBy", "gigabytes"),
    WORD("TBy", "terabytes"),
    WORD("m", "meters"),
    WORD("V", "volts"),
    WORD("A", "amperes"),
    WORD("J", "joules"),
    WORD("W", "watts"),
    WORD("g", "grams"),
    WORD("Cel", "celsius"),
    WORD("Hz", "hertz"),
    WORD("1", ""),
    WORD("%", "percent"),
};
static const struct word per_units[] = {
    WORD("s", "second"), WORD("m", "minute"), WORD("h", "hour"), WORD("d", "day"),
    WORD("w", "week"),   WORD("mo", "month"), WORD("y", "year"),
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool in_metric_name(char c)
{
    return is_letter(c) || is_digit(c) || c == ':';
}

/* Names are made of letters, digits, '_' and ':' by then: no NUL. */
static struct qf_str with_prefix(struct qf_arena *arena, const char *prefix, struct qf_strbuf *buf)
{
    const char *text = qf_arena_printf(arena, "%s%s", prefix, qf_strbuf_cstr(buf));

    return (struct qf_str){ text, text ? strlen(text) : 0 };
}

/* --- units --- */

static struct qf_str find_word(const struct word *words, size_t count, struct qf_str symbol)
{
    for (size_t i = 0; i < count; i++)
        if (qf_str_eq(words[i].symbol, symbol))
            return words[i].text;
    return symbol;
}

static bool has_brace(struct qf_str text)
{
    return text.len && (memchr(text.data, '{', text.len) || memchr(text.data, '}', text.len));
}

/* One side of the '/' of a unit as a word: empty for what has none. */
static void put_unit(struct qf_strbuf *buf, const struct word *words, size_t count,
                     struct qf_str symbol)
{
    struct qf_str text;
    bool gap = false;

    symbol = qf_str_trim(symbol);
    if (has_brace(symbol))
        return;
    text = find_word(words, count, symbol);
    for (size_t i = 0; i < text.len; i++) {
        if (!in_metric_name(text.data[i])) {
            gap = true;
            continue;
        }
        if (gap && buf->len)
            qf_strbuf_putc(buf, '_');
        gap = false;
        qf_strbuf_putc(buf, text.data[i]);
    }
}

/* --- metrics --- */

/* The next word of a name; false at the end. */
static bool next_token(struct qf_str *rest, struct qf_str *ret_token)
{
    size_t start = 0, end;

    while (start < rest->len && !in_metric_name(rest->data[start]))
        start++;
    for (end = start; end < rest->len && in_metric_name(rest->data[end]);)
        end++;
    *ret_token = qf_str_sub(*rest, start, end);
    *rest = qf_str_sub(*rest, end, rest->len);
    return ret_token->len > 0;
}

static bool has_token(struct qf_str name, struct qf_str wanted)
{
    struct qf_str token;

    while (next_token(&name, &token))
        if (qf_str_eq(token, wanted))
            return true;
    return false;
}

static void put_token(struct qf_strbuf *buf, struct qf_str token)
{
    if (!token.len)
        return;
    if (buf->len)
        qf_strbuf_putc(buf, '_');
    qf_strbuf_str(buf, token);
}

/* The words of @name, but @left_out: that one comes last. */
static void put_name(struct qf_strbuf *buf, struct qf_str name, struct qf_str left_out)
{
    struct qf_str token;

    while (next_token(&name, &token))
        if (!left_out.len || !qf_str_eq(token, left_out))
            put_token(buf, token);
}

static void put_units(struct qf_strbuf *buf, struct qf_str name, struct qf_str unit,
                      struct qf_str left_out)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf word = QF_STRBUF_INIT;
    const char *slash = unit.len ? memchr(unit.data, '/', unit.len) : NULL;
    size_t at = slash ? (size_t)(slash - unit.data) : unit.len;

    put_unit(&word, units, QF_COUNT_OF(units), qf_str_sub(unit, 0, at));
    if (!has_token(name, qf_strbuf_view(&word)) && !qf_str_eq(qf_strbuf_view(&word), left_out))
        put_token(buf, qf_strbuf_view(&word));
    qf_strbuf_reset(&word);
    put_unit(&word, per_units, QF_COUNT_OF(per_units), qf_str_sub(unit, at + 1, unit.len));
    if (!word.len || has_token(name, qf_strbuf_view(&word)))
        return;
    put_token(buf, QF_STR("per"));
    put_token(buf, qf_strbuf_view(&word));
}

struct qf_str in_otlp_metric_name(struct qf_arena *arena, struct qf_str name, struct qf_str unit,
                                  enum in_otlp_kind kind)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    bool is_ratio = kind == IN_OTLP_GAUGE && qf_str_is(unit, "1");
    struct qf_str last = kind == IN_OTLP_COUNTER ? QF_STR("total")
                         : is_ratio              ? QF_STR("ratio")
                                                 : QF_STR("");

    put_name(&buf, name, last);
    put_units(&buf, name, unit, last);
    put_token(&buf, last);
    if (buf.len && is_digit(buf.data[0]))
        return with_prefix(arena, "_", &buf);
    return with_prefix(arena, "", &buf);
}

/* --- attributes --- */

static bool in_label_name(char c)
{
    return is_letter(c) || is_digit(c) || c == '_';
}

/* One '_' for each character, not for each of its bytes. */
static void put_label_name(struct qf_strbuf *buf, struct qf_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (in_label_name(key.data[i]))
            qf_strbuf_putc(buf, key.data[i]);
        else if (((unsigned char)key.data[i] & 0xc0) != 0x80)
            qf_strbuf_putc(buf, '_');
}

struct qf_str in_otlp_label_name(struct qf_arena *arena, struct qf_str key)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    size_t plain = 0;

    while (plain < key.len && in_label_name(key.data[plain]))
        plain++;
    if (plain == key.len && (!key.len || is_letter(key.data[0])))
        return key;
    put_label_name(&buf, key);
    if (buf.len && is_digit(buf.data[0]))
        return with_prefix(arena, "key_", &buf);
    if (buf.len && buf.data[0] == '_' && (buf.len == 1 || buf.data[1] != '_'))
        return with_prefix(arena, "key", &buf);
    return with_prefix(arena, "", &buf);
}
