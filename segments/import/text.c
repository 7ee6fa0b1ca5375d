/* text.c - lines of OpenMetrics, Prometheus text and `promtool tsdb dump`. */
#include "segments/import/text.h"

#include <math.h>

#include "base/pure/number.h"
#include "segments/import/text_int.h"

/* Seconds since 1970 stay below this for 3,000 years; milliseconds are above it since 1973. */
#define SECONDS_MAX 1e11

static enum text_line malformed(const char *what, const char **ret_what)
{
    *ret_what = what;
    return TEXT_MALFORMED;
}

static enum text_line parse_comment(struct text_state *state, struct qf_str line,
                                    struct text_sample *ret_sample, const char **ret_what)
{
    struct qf_str rest = text_skip(qf_str_sub(line, 1, line.len));
    struct qf_str keyword = text_word(&rest);
    struct text_sample sample = { 0 };
    const char *what;

    if (qf_str_is(keyword, "EOF") && rest.len == 0) {
        state->ended = true;
        return TEXT_NOTHING;
    }
    what = text_metadata_parse(keyword, rest, &sample.metadata);
    if (what)
        return malformed(what, ret_what);
    if (sample.metadata.says == TEXT_SAYS_NOTHING)
        return TEXT_NOTHING;
    if (sample.metadata.says == TEXT_SAYS_TYPE) {
        state->histogram = sample.metadata.type == QF_METRIC_HISTOGRAM;
        state->summary = sample.metadata.type == QF_METRIC_SUMMARY;
    }
    *ret_sample = sample;
    return TEXT_METADATA;
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

    while (i < line.len && line.data[i] != '{' && !text_blank(line.data[i]))
        i++;
    if (i == line.len)
        return i;
    if (line.data[i] != '{') {
        struct qf_str rest = text_skip(qf_str_sub(line, i, line.len));

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

const char *text_timestamp(struct text_state *state, struct qf_str series, struct qf_str text,
                           int64_t *ret_ts)
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
const char *text_value(struct qf_str text, double *ret_value)
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

/* A composite value at the start of @rest, taken off it; empty if there is none or it does not
 * close. */
static struct qf_str composite(struct qf_str *rest)
{
    const char *end = rest->len && rest->data[0] == '{' ? memchr(rest->data, '}', rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->data) + 1 : 0;
    struct qf_str found = qf_str_sub(*rest, 0, len);

    if (len < rest->len && !text_blank(rest->data[len]))
        return (struct qf_str){ rest->data, 0 };
    *rest = text_skip(qf_str_sub(*rest, len, rest->len));
    return found;
}

/* What may follow the timestamp: "st@" with a start timestamp, then an exemplar. */
static const char *parse_rest(struct text_state *state, struct qf_str rest,
                              struct text_sample *sample)
{
    const char *what = NULL;

    if (qf_str_starts(rest, QF_STR("st@"))) {
        struct qf_str start = text_word(&rest);

        what = text_timestamp(state, sample->series, qf_str_sub(start, 3, start.len),
                              &sample->start_ts);
    }
    if (!what && rest.len && rest.data[0] != '#')
        what = "something follows the timestamp";
    return what ? what : text_exemplar_find(state, rest, sample);
}

/* The part of a line behind the series. */
static const char *parse_sample(struct text_state *state, struct qf_str rest,
                                struct text_sample *sample)
{
    struct qf_str value = { "0", 1 }, ts, ts_rest;
    const char *what;

    if (rest.len && rest.data[0] == '{') {
        sample->histogram = composite(&rest);
        if (!sample->histogram.len)
            return "the braces of the value do not close";
    } else {
        value = text_word(&rest);
    }
    ts_rest = rest;
    ts = text_word(&rest);
    if (value.len == 0)
        return "no value";
    what = text_value(value, &sample->value);
    if (state->timeless && (ts.len == 0 || ts.data[0] == '#')) {
        sample->timeless = true;
        sample->ts = state->now_ms;
        return what ? what : text_exemplar_find(state, ts_rest, sample);
    }
    if (ts.len == 0 || ts.data[0] == '#' || qf_str_starts(ts, QF_STR("st@")))
        return TEXT_NO_TIME;
    if (!what)
        what = text_timestamp(state, sample->series, ts, &sample->ts);
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
    line = text_skip(line);
    if (line.len == 0)
        return TEXT_NOTHING;
    if (state->ended)
        return malformed("something follows # EOF", ret_what);
    if (line.data[0] == '#')
        return parse_comment(state, line, ret_sample, ret_what);
    len = series_length(line);
    if (len == 0)
        return malformed("the label braces do not close", ret_what);
    sample.series = qf_str_sub(line, 0, len);
    what = parse_sample(state, text_skip(qf_str_sub(line, len, line.len)), &sample);
    if (what)
        return malformed(what, ret_what);
    if (state->format != SG_IMPORT_TSDB_DUMP)
        sample.normalize = state->histogram ? 'h' : state->summary ? 's' : '-';
    *ret_sample = sample;
    return TEXT_SAMPLE;
}
