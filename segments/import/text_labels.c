/* text_labels.c - the labels of a line: quoted texts, escapes, braces. */
#include <math.h>
#include <string.h>

#include "base/pure/number.h"
#include "base/pure/utf8.h"
#include "segments/import/text_int.h"

#define LABELS_MAX 256

static bool hex(struct qf_str s, size_t digits, uint32_t *ret_value)
{
    uint32_t value = 0;

    if (s.len < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        char c = s.data[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;

        if (digit == 16)
            return false;
        value = value << 4 | digit;
    }
    *ret_value = value;
    return true;
}

/* One escape of a Go string, @s behind the backslash. Returns the bytes used, 0 if malformed. */
static size_t unescape_go(struct qf_str s, char *out, size_t *len)
{
    static const char names[] = "abfnrtv\\\"", meanings[] = "\a\b\f\n\r\t\v\\\"";
    const char *found = s.len && s.data[0] ? strchr(names, s.data[0]) : NULL;
    uint32_t rune;
    size_t digits;

    if (found) {
        out[(*len)++] = meanings[found - names];
        return 1;
    }
    if (s.len == 0)
        return 0;
    digits = s.data[0] == 'x' ? 2 : s.data[0] == 'u' ? 4 : s.data[0] == 'U' ? 8 : 0;
    if (digits == 0 || !hex(qf_str_sub(s, 1, s.len), digits, &rune))
        return 0;
    if (digits == 2)
        out[(*len)++] = (char)rune;
    else
        *len += qf_utf8_encode(rune, out + *len);
    return 1 + digits;
}

/* The exposition formats know three escapes; a backslash before anything else stays. */
static size_t unescape_text(struct qf_str s, char *out, size_t *len)
{
    char c = s.len ? s.data[0] : 0;

    if (c != 'n' && c != '\\' && c != '"') {
        out[(*len)++] = '\\';
        return SIZE_MAX; /* nothing used */
    }
    out[(*len)++] = c == 'n' ? '\n' : c;
    return 1;
}

/* A quoted string at the start of @rest, unescaped into @arena; false if malformed. No escape is
 * shorter than what it stands for. */
bool text_quoted(struct qf_arena *arena, bool go, struct qf_str *rest, struct qf_str *ret_text)
{
    char *out;
    size_t len = 0, i = 1, end = 1;

    if (!rest->len || rest->data[0] != '"')
        return false;
    while (end < rest->len && rest->data[end] != '"')
        end += rest->data[end] == '\\' ? 2 : 1;
    if (end >= rest->len)
        return false;
    out = qf_arena_alloc(arena, end + 1);
    if (!out)
        return false;
    while (i < end) {
        struct qf_str behind = qf_str_sub(*rest, i + 1, end);
        size_t used;

        if (rest->data[i] != '\\') {
            out[len++] = rest->data[i++];
            continue;
        }
        used = go ? unescape_go(behind, out, &len) : unescape_text(behind, out, &len);
        if (used == 0)
            return false;
        i += used == SIZE_MAX ? 1 : 1 + used;
    }
    *ret_text = (struct qf_str){ out, len };
    *rest = qf_str_sub(*rest, end + 1, rest->len);
    return qf_utf8_valid(*ret_text);
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':';
}

/* "1" -> "1.0", "1e5" -> "100000.0", "+Inf" stays: Prometheus 3 writes bounds as OpenMetrics does,
 * so that one bucket is one series whoever exposed it. */
static struct qf_str normalize_float(struct qf_arena *arena, struct qf_str text)
{
    char out[QF_DOUBLE_TEXT_MAX];
    double value;
    size_t len;

    if (!qf_parse_double(text, &value))
        return text;
    len = qf_double_g(value, out);
    if (!isfinite(value) || memchr(out, '.', len) || memchr(out, 'e', len))
        return qf_arena_str(arena, (struct qf_str){ out, len });
    return qf_str_from(qf_arena_printf(arena, "%.*s.0", (int)len, out));
}

struct labels_builder {
    struct qf_arena *arena;
    bool go;
    char normalize;
    struct qf_label items[LABELS_MAX];
    size_t count;
};

static const char *push(struct labels_builder *b, struct qf_str name, struct qf_str value)
{
    if (name.len == 0)
        return "a label without a name";
    if (b->count == LABELS_MAX)
        return "too many labels";
    for (size_t i = 0; i < b->count; i++)
        if (qf_str_eq(b->items[i].name, name))
            return "a label occurs twice";
    if ((b->normalize == 'h' && qf_str_is(name, "le")) ||
        (b->normalize == 's' && qf_str_is(name, "quantile")))
        value = normalize_float(b->arena, value);
    b->items[b->count++] = (struct qf_label){ name, value };
    return NULL;
}

/* One label, or a quoted metric name, at the start of @rest. */
static const char *parse_label(struct labels_builder *b, struct qf_str *rest)
{
    struct qf_str name, value;

    if (rest->len && rest->data[0] == '"') {
        if (!text_quoted(b->arena, b->go, rest, &name))
            return "a quoted name is malformed";
        *rest = text_skip(*rest);
        if (!rest->len || rest->data[0] != '=')
            return push(b, QF_STR(QF_METRIC_NAME), name);
    } else {
        size_t len = 0;

        while (len < rest->len && name_char(rest->data[len]))
            len++;
        name = qf_arena_str(b->arena, qf_str_sub(*rest, 0, len));
        if (!qf_label_name_plain(name))
            return "a label name is malformed";
        *rest = text_skip(qf_str_sub(*rest, len, rest->len));
    }
    if (!rest->len || rest->data[0] != '=')
        return "a label without '='";
    *rest = text_skip(qf_str_sub(*rest, 1, rest->len));
    if (!text_quoted(b->arena, b->go, rest, &value))
        return "a label value is malformed";
    return push(b, name, value);
}

/* Up to the closing brace, which is left in @rest. */
static const char *parse_braces(struct labels_builder *b, struct qf_str *rest)
{
    *rest = text_skip(*rest);
    while (rest->len && rest->data[0] != '}') {
        const char *what = parse_label(b, rest);

        if (what)
            return what;
        *rest = text_skip(*rest);
        if (rest->len && rest->data[0] == ',')
            *rest = text_skip(qf_str_sub(*rest, 1, rest->len));
        else if (!rest->len || rest->data[0] != '}')
            return "labels are not separated by commas";
    }
    return NULL;
}

const char *text_label_set(struct qf_arena *arena, bool go, struct qf_str *rest,
                           struct qf_labels *ret_labels)
{
    struct labels_builder b = { .arena = arena, .go = go, .normalize = '-' };
    struct qf_str inside = qf_str_sub(*rest, 1, rest->len);
    const char *what = parse_braces(&b, &inside);

    if (what)
        return what;
    if (!inside.len)
        return "the label braces do not close";
    *rest = text_skip(qf_str_sub(inside, 1, inside.len));
    return qf_labels_copy(arena, qf_labels_normalize(b.items, b.count), ret_labels)
               ? NULL
               : "too many labels";
}

const char *text_labels(const struct text_state *state, const struct text_sample *sample,
                        struct qf_arena *arena, struct qf_labels *ret_labels)
{
    struct labels_builder b = { .arena = arena,
                                .go = state->format == SG_IMPORT_TSDB_DUMP,
                                .normalize = sample->normalize };
    struct qf_str rest = sample->series;
    struct qf_labels sorted;
    size_t len = 0;
    const char *what = NULL;

    while (len < rest.len && rest.data[len] != '{' && !text_blank(rest.data[len]))
        len++;
    if (len > 0) {
        struct qf_str name = qf_arena_str(arena, qf_str_sub(rest, 0, len));

        if (!qf_metric_name_plain(name))
            return "the metric name is malformed";
        what = push(&b, QF_STR(QF_METRIC_NAME), name);
    }
    rest = text_skip(qf_str_sub(rest, len, rest.len));
    if (!what && rest.len) {
        rest = qf_str_sub(rest, 1, rest.len);
        what = parse_braces(&b, &rest);
    }
    if (what)
        return what;
    sorted = qf_labels_normalize(b.items, b.count);
    if (sorted.count == 0)
        return "a sample without a name or labels";
    return qf_labels_copy(arena, sorted, ret_labels) ? NULL : "too many labels";
}
