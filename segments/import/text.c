/* text.c - lines of OpenMetrics, Prometheus text and `promtool tsdb dump`. */
#include "segments/import/text.h"

#include <math.h>

#include "base/pure/number.h"
#include "base/pure/utf8.h"

/* Seconds since 1970 stay below this for 3,000 years; milliseconds are above it since 1973. */
#define SECONDS_MAX 1e11
#define LABELS_MAX 256

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct qf_str skip_blanks(struct qf_str s)
{
    while (s.len && blank(s.data[0]))
        s = qf_str_sub(s, 1, s.len);
    return s;
}

/* The text up to the next blank, taken off @rest. */
static struct qf_str word(struct qf_str *rest)
{
    size_t len = 0;
    struct qf_str found;

    while (len < rest->len && !blank(rest->data[len]))
        len++;
    found = qf_str_sub(*rest, 0, len);
    *rest = skip_blanks(qf_str_sub(*rest, len, rest->len));
    return found;
}

static enum text_line parse_comment(struct text_state *state, struct qf_str line)
{
    struct qf_str rest = skip_blanks(qf_str_sub(line, 1, line.len));
    struct qf_str keyword = word(&rest);

    if (qf_str_is(keyword, "EOF") && rest.len == 0) {
        state->ended = true;
    } else if (qf_str_is(keyword, "TYPE")) {
        (void)word(&rest);
        rest = qf_str_trim(rest);
        state->histogram = qf_str_is(rest, "histogram");
        state->summary = qf_str_is(rest, "summary");
    }
    return TEXT_NOTHING;
}

/* "{count:" rather than "{job=": a value, not labels. */
static bool begins_composite(struct qf_str s)
{
    size_t i = 1;

    while (i < s.len && ((s.data[i] >= 'a' && s.data[i] <= 'z') || s.data[i] == '_'))
        i++;
    return i > 1 && i < s.len && s.data[i] == ':';
}

/* The length of the series part: a name, or braces, or both. 0 if braces or quotes do not close. */
static size_t series_length(struct qf_str line)
{
    size_t i = 0;
    bool quoted = false;

    while (i < line.len && line.data[i] != '{' && !blank(line.data[i]))
        i++;
    if (i == line.len)
        return i;
    if (line.data[i] != '{') {
        struct qf_str rest = skip_blanks(qf_str_sub(line, i, line.len));

        if (!rest.len || rest.data[0] != '{' || begins_composite(rest))
            return i;
        i = (size_t)(rest.data - line.data); /* blanks between name and braces */
    }
    for (; i < line.len; i++) {
        char c = line.data[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == '}')
            return i + 1;
    }
    return 0;
}

static bool has_fraction(struct qf_str s)
{
    return memchr(s.data, '.', s.len) || memchr(s.data, 'e', s.len) || memchr(s.data, 'E', s.len);
}

static enum sg_import_format guess(struct qf_str series, struct qf_str ts)
{
    double number;

    if (series.data[0] == '{' && memmem(series.data, series.len, "__name__=", 9))
        return SG_IMPORT_TSDB_DUMP;
    if (has_fraction(ts))
        return SG_IMPORT_OPENMETRICS;
    if (qf_parse_double(ts, &number) && fabs(number) < SECONDS_MAX)
        return SG_IMPORT_OPENMETRICS;
    return SG_IMPORT_PROMETHEUS;
}

/* "123", "-123.5", "1.5e9". What lies below a millisecond is cut off, after the multiplication: so
 * does Prometheus, and the same file must give the same timestamps here and there. */
static const char *parse_seconds(struct qf_str text, int64_t *ret_ts)
{
    double seconds;

    if (!qf_parse_double(text, &seconds) || isnan(seconds))
        return "the timestamp is not a number";
    if (fabs(seconds) > SECONDS_MAX)
        return "the timestamp is not in seconds";
    *ret_ts = (int64_t)(seconds * 1000);
    return NULL;
}

static const char *parse_timestamp(struct text_state *state, struct qf_str series,
                                   struct qf_str text, int64_t *ret_ts)
{
    if (state->format == SG_IMPORT_AUTO)
        state->format = guess(series, text);
    if (state->format == SG_IMPORT_OPENMETRICS)
        return parse_seconds(text, ret_ts);
    return qf_parse_i64(text, ret_ts) ? NULL
                                      : "the timestamp is not a whole number of milliseconds";
}

/* Go's syntax of numbers, as far as it occurs: no hexadecimal, no digit separators. No format can
 * write a stale marker, so it has a name here. */
static const char *parse_value(struct qf_str text, double *ret_value)
{
    if (qf_str_is(text, "StaleNaN")) {
        *ret_value = qf_double_from_bits(QF_STALE_NAN_BITS);
        return NULL;
    }
    if (text.len == 0 || memchr(text.data, 'x', text.len) || memchr(text.data, 'X', text.len) ||
        !qf_parse_double(text, ret_value))
        return "the value is not a number";
    if (isnan(*ret_value))
        *ret_value = qf_double_from_bits(QF_NORMAL_NAN_BITS);
    return NULL;
}

static enum text_line malformed(const char *what, const char **ret_what)
{
    *ret_what = what;
    return TEXT_MALFORMED;
}

/* A composite value at the start of @rest, taken off it; empty if there is none or it does not
 * close. */
static struct qf_str composite(struct qf_str *rest)
{
    const char *end = rest->len && rest->data[0] == '{' ? memchr(rest->data, '}', rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->data) + 1 : 0;
    struct qf_str found = qf_str_sub(*rest, 0, len);

    if (len < rest->len && !blank(rest->data[len]))
        return (struct qf_str){ rest->data, 0 };
    *rest = skip_blanks(qf_str_sub(*rest, len, rest->len));
    return found;
}

/* What may follow the timestamp: "st@" with a start timestamp, then an exemplar. */
static const char *parse_rest(struct text_state *state, struct qf_str rest,
                              struct text_sample *sample)
{
    const char *what = NULL;

    if (qf_str_starts(rest, QF_STR("st@"))) {
        struct qf_str start = word(&rest);

        what = parse_timestamp(state, sample->series, qf_str_sub(start, 3, start.len),
                               &sample->start_ts);
    }
    if (!what && rest.len && rest.data[0] != '#')
        what = "something follows the timestamp";
    return what;
}

/* The part of a line behind the series. */
static const char *parse_sample(struct text_state *state, struct qf_str rest,
                                struct text_sample *sample)
{
    struct qf_str value = { "0", 1 }, ts;
    const char *what;

    if (rest.len && rest.data[0] == '{') {
        sample->histogram = composite(&rest);
        if (!sample->histogram.len)
            return "the braces of the value do not close";
    } else {
        value = word(&rest);
    }
    ts = word(&rest);
    if (value.len == 0)
        return "no value";
    what = parse_value(value, &sample->value);
    if (state->timeless && (ts.len == 0 || ts.data[0] == '#')) {
        sample->timeless = true;
        sample->ts = state->now_ms;
        return what;
    }
    if (ts.len == 0 || ts.data[0] == '#' || qf_str_starts(ts, QF_STR("st@")))
        return TEXT_NO_TIME;
    if (!what)
        what = parse_timestamp(state, sample->series, ts, &sample->ts);
    if (!what && sample->histogram.len && state->format == SG_IMPORT_TSDB_DUMP)
        what = "a dump does not say what buckets a native histogram has";
    return what ? what : parse_rest(state, rest, sample);
}

enum text_line text_parse_line(struct text_state *state, struct qf_str line,
                               struct text_sample *ret_sample, const char **ret_what)
{
    struct text_sample sample = { .normalize = '-' };
    const char *what;
    size_t len;

    if (line.len && line.data[line.len - 1] == '\r')
        line.len--;
    line = skip_blanks(line);
    if (line.len == 0)
        return TEXT_NOTHING;
    if (state->ended)
        return malformed("something follows # EOF", ret_what);
    if (line.data[0] == '#')
        return parse_comment(state, line);
    len = series_length(line);
    if (len == 0)
        return malformed("the label braces do not close", ret_what);
    sample.series = qf_str_sub(line, 0, len);
    what = parse_sample(state, skip_blanks(qf_str_sub(line, len, line.len)), &sample);
    if (what)
        return malformed(what, ret_what);
    if (state->format != SG_IMPORT_TSDB_DUMP)
        sample.normalize = state->histogram ? 'h' : state->summary ? 's' : '-';
    *ret_sample = sample;
    return TEXT_SAMPLE;
}

/* -- Labels ----------------------------------------------------------------------------------- */

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
static bool quoted(struct qf_arena *arena, bool go, struct qf_str *rest, struct qf_str *ret_text)
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
        if (!quoted(b->arena, b->go, rest, &name))
            return "a quoted name is malformed";
        *rest = skip_blanks(*rest);
        if (!rest->len || rest->data[0] != '=')
            return push(b, QF_STR(QF_METRIC_NAME), name);
    } else {
        size_t len = 0;

        while (len < rest->len && name_char(rest->data[len]))
            len++;
        name = qf_arena_str(b->arena, qf_str_sub(*rest, 0, len));
        if (!qf_label_name_plain(name))
            return "a label name is malformed";
        *rest = skip_blanks(qf_str_sub(*rest, len, rest->len));
    }
    if (!rest->len || rest->data[0] != '=')
        return "a label without '='";
    *rest = skip_blanks(qf_str_sub(*rest, 1, rest->len));
    if (!quoted(b->arena, b->go, rest, &value))
        return "a label value is malformed";
    return push(b, name, value);
}

static const char *parse_braces(struct labels_builder *b, struct qf_str rest)
{
    rest = skip_blanks(rest);
    while (rest.len && rest.data[0] != '}') {
        const char *what = parse_label(b, &rest);

        if (what)
            return what;
        rest = skip_blanks(rest);
        if (rest.len && rest.data[0] == ',')
            rest = skip_blanks(qf_str_sub(rest, 1, rest.len));
        else if (!rest.len || rest.data[0] != '}')
            return "labels are not separated by commas";
    }
    return NULL;
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

    while (len < rest.len && rest.data[len] != '{' && !blank(rest.data[len]))
        len++;
    if (len > 0) {
        struct qf_str name = qf_arena_str(arena, qf_str_sub(rest, 0, len));

        if (!qf_metric_name_plain(name))
            return "the metric name is malformed";
        what = push(&b, QF_STR(QF_METRIC_NAME), name);
    }
    rest = skip_blanks(qf_str_sub(rest, len, rest.len));
    if (!what && rest.len)
        what = parse_braces(&b, qf_str_sub(rest, 1, rest.len));
    if (what)
        return what;
    sorted = qf_labels_normalize(b.items, b.count);
    if (sorted.count == 0)
        return "a sample without a name or labels";
    return qf_labels_copy(arena, sorted, ret_labels) ? NULL : "too many labels";
}
