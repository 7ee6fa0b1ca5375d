/* influx.c - InfluxDB's line protocol as a request. */
#include "ingest/core/influx.h"

#include <stdio.h>
#include <string.h>

#include "base/pure/number.h"

/* What a message shows of a line. */
#define SHOWN_MAX 120

struct reading {
    enum in_influx_precision precision;
    int64_t now_ms;
    struct qf_arena *arena;
    struct in_request *request;
    size_t capacity; /* of series */
    bool timeless;
};

bool in_influx_precision_parse(struct qf_str text, enum in_influx_precision *ret_precision)
{
    static const struct {
        const char *name;
        enum in_influx_precision precision;
    } names[] = { { "", IN_INFLUX_NS },   { "ns", IN_INFLUX_NS }, { "n", IN_INFLUX_NS },
                  { "us", IN_INFLUX_US }, { "u", IN_INFLUX_US },  { "ms", IN_INFLUX_MS },
                  { "s", IN_INFLUX_S },   { "m", IN_INFLUX_M },   { "h", IN_INFLUX_H } };

    for (size_t i = 0; i < QF_COUNT_OF(names); i++) {
        if (!qf_str_is(text, names[i].name))
            continue;
        *ret_precision = names[i].precision;
        return true;
    }
    return false;
}

/* --- words --- */

/* The bytes of *@rest up to the first of @ends that is not escaped; *@rest goes on there. */
static struct qf_str take_word(struct qf_str *rest, const char *ends)
{
    struct qf_str word = *rest;
    size_t at = 0;

    while (at < rest->len && !strchr(ends, rest->data[at]))
        at += rest->data[at] == '\\' && at + 1 < rest->len ? 2 : 1;
    at = QF_MIN(at, rest->len);
    word.len = at;
    *rest = qf_str_sub(*rest, at, rest->len);
    return word;
}

/* A '\' before one of these is not part of the word; any other is. */
static struct qf_str unescape(struct qf_arena *arena, struct qf_str word)
{
    char *out;
    size_t len = 0;

    if (!word.len || !memchr(word.data, '\\', word.len))
        return word;
    out = qf_arena_alloc(arena, word.len);
    for (size_t i = 0; out && i < word.len; i++) {
        if (word.data[i] == '\\' && i + 1 < word.len && strchr(",= \\", word.data[i + 1]))
            i++;
        out[len++] = word.data[i];
    }
    return (struct qf_str){ out ? out : "", len };
}

static bool starts_with(struct qf_str text, char c)
{
    return text.len && text.data[0] == c;
}

/* --- values --- */

enum value { VALUE_NUMBER, VALUE_TEXT, VALUE_BAD };

static bool is_truth(struct qf_str word, double *ret_value)
{
    static const char *const yes[] = { "t", "T", "true", "True", "TRUE" };
    static const char *const no[] = { "f", "F", "false", "False", "FALSE" };

    for (size_t i = 0; i < QF_COUNT_OF(yes); i++) {
        if (!qf_str_is(word, yes[i]) && !qf_str_is(word, no[i]))
            continue;
        *ret_value = qf_str_is(word, yes[i]);
        return true;
    }
    return false;
}

static enum value read_number(struct qf_str word, double *ret_value)
{
    bool whole = word.len > 1 && (word.data[word.len - 1] == 'i' || word.data[word.len - 1] == 'u');

    if (is_truth(word, ret_value))
        return VALUE_NUMBER;
    word.len -= whole;
    for (size_t i = 0; i < word.len; i++)
        if (!strchr(whole ? "+-0123456789" : "+-0123456789.eE", word.data[i]))
            return VALUE_BAD;
    return qf_parse_double(word, ret_value) ? VALUE_NUMBER : VALUE_BAD;
}

/* Pass over a text; *@rest begins with its '"'. */
static enum value read_text(struct qf_str *rest)
{
    for (size_t i = 1; i < rest->len; i++) {
        if (rest->data[i] == '\\') {
            i++;
        } else if (rest->data[i] == '"') {
            *rest = qf_str_sub(*rest, i + 1, rest->len);
            return VALUE_TEXT;
        }
    }
    return VALUE_BAD;
}

static enum value read_value(struct qf_str *rest, double *ret_value)
{
    return starts_with(*rest, '"') ? read_text(rest)
                                   : read_number(take_word(rest, ", "), ret_value);
}

/* --- times --- */

static bool read_time(const struct reading *reading, struct qf_str word, int64_t *ret_ts)
{
    static const int64_t per_ms[] = { 1000000, 1000, 1 };
    static const int64_t ms_per[] = { 1000, 60000, 3600000 };
    enum in_influx_precision precision = reading->precision;
    bool negative = starts_with(word, '-');
    uint64_t number;
    int64_t value;

    if (!qf_parse_u64(negative ? qf_str_sub(word, 1, word.len) : word, &number) ||
        number > INT64_MAX)
        return false;
    value = negative ? -(int64_t)number : (int64_t)number;
    if (precision <= IN_INFLUX_MS) {
        *ret_ts = value / per_ms[precision] - (value % per_ms[precision] < 0);
        return true;
    }
    return !__builtin_mul_overflow(value, ms_per[precision - IN_INFLUX_S], ret_ts);
}

/* --- lines --- */

/* A line as it was read: its tags, and its series, which all have the same. */
struct line {
    struct qf_str measurement;
    struct qf_label *tags;
    size_t tag_count;
    size_t first; /* of its series in the request */
};

static const char *read_tags(struct reading *reading, struct qf_str *rest, struct line *line)
{
    size_t most = 0;

    for (size_t i = 0; i < rest->len; i++)
        most += rest->data[i] == '=';
    line->measurement = unescape(reading->arena, take_word(rest, ", "));
    line->tags = QF_ARENA_ARRAY(reading->arena, struct qf_label, most + 1);
    if (!line->measurement.len)
        return "it has no measurement";
    while (line->tags && starts_with(*rest, ',')) {
        struct qf_label *tag = &line->tags[line->tag_count];

        *rest = qf_str_sub(*rest, 1, rest->len);
        tag->name = unescape(reading->arena, take_word(rest, "=, "));
        if (!starts_with(*rest, '='))
            return "a tag has no value";
        *rest = qf_str_sub(*rest, 1, rest->len);
        tag->value = unescape(reading->arena, take_word(rest, ", "));
        line->tag_count++;
    }
    return NULL;
}

/* Room for one more series. */
static struct in_series *grow(struct reading *reading)
{
    struct in_request *request = reading->request;

    if (request->series_count == reading->capacity) {
        size_t wanted = reading->capacity ? 2 * reading->capacity : 64;
        struct in_series *series = qf_arena_grow(reading->arena, request->series, reading->capacity,
                                                 wanted, sizeof(*request->series));

        if (!series)
            return NULL;
        request->series = series;
        reading->capacity = wanted;
    }
    return &request->series[request->series_count];
}

static void add_series(struct reading *reading, const struct line *line, struct qf_str field,
                       double value)
{
    struct in_series *series = grow(reading);
    struct qf_label *labels = QF_ARENA_ARRAY(reading->arena, struct qf_label, line->tag_count + 1);
    struct in_sample *sample = QF_ARENA_NEW(reading->arena, struct in_sample);
    char *name = qf_arena_printf(reading->arena, "%.*s_%.*s", QF_STR_ARG(line->measurement),
                                 QF_STR_ARG(field));

    if (!series || !labels || !sample || !name)
        return;
    if (line->tag_count)
        memcpy(labels, line->tags, line->tag_count * sizeof(*labels));
    labels[line->tag_count] = (struct qf_label){ QF_STR(QF_METRIC_NAME), qf_str_from(name) };
    sample->value = value;
    *series = (struct in_series){
        .labels = labels, .label_count = line->tag_count + 1, .samples = sample, .sample_count = 1
    };
    reading->request->series_count++;
}

static const char *read_fields(struct reading *reading, struct qf_str *rest, struct line *line)
{
    do {
        struct qf_str field;
        double value;

        *rest = qf_str_sub(*rest, 1, rest->len); /* ' ' or ',' */
        field = unescape(reading->arena, take_word(rest, "=, "));
        if (!field.len || !starts_with(*rest, '='))
            return "a field has no name or no value";
        *rest = qf_str_sub(*rest, 1, rest->len);
        switch (read_value(rest, &value)) {
        case VALUE_NUMBER:
            add_series(reading, line, field, value);
            break;
        case VALUE_TEXT:
            break;
        case VALUE_BAD:
            return "the value of a field is no number, truth value or text";
        }
    } while (starts_with(*rest, ','));
    return NULL;
}

static const char *read_end(struct reading *reading, struct qf_str rest, const struct line *line)
{
    int64_t ts = reading->now_ms;

    rest = qf_str_trim(rest);
    if (rest.len && !read_time(reading, rest, &ts))
        return "its time is no whole number";
    reading->timeless |= !rest.len && reading->request->series_count > line->first;
    for (size_t i = line->first; i < reading->request->series_count; i++)
        reading->request->series[i].samples[0].ts = ts;
    return NULL;
}

/* What is wrong with the line, or NULL; then nothing of it is in the request. */
static const char *read_line(struct reading *reading, struct qf_str rest)
{
    struct line line = { .first = reading->request->series_count };
    const char *what = read_tags(reading, &rest, &line);

    if (!what && !starts_with(rest, ' '))
        what = "it has no fields";
    if (!what)
        what = read_fields(reading, &rest, &line);
    if (!what && rest.len && !starts_with(rest, ' '))
        what = "something follows the value of a field";
    if (!what)
        what = read_end(reading, rest, &line);
    if (what)
        reading->request->series_count = line.first;
    return what;
}

static void refuse(struct in_request *request, struct qf_str line, size_t number, const char *what)
{
    char shown[SHOWN_MAX + 1];
    size_t len = QF_MIN(line.len, (size_t)SHOWN_MAX);

    request->refused.samples++;
    if (request->first[0])
        return;
    for (size_t i = 0; i < len; i++)
        shown[i] = line.data[i] >= ' ' && line.data[i] < 0x7f ? line.data[i] : '?';
    shown[len] = 0;
    (void)snprintf(request->first, sizeof(request->first), "line %zu: %s: %s", number, what, shown);
}

qf_rc in_influx_decode(struct qf_str text, enum in_influx_precision precision, int64_t now_ms,
                       struct qf_arena *arena, struct in_request *ret_request, bool *ret_timeless,
                       struct qf_err *err)
{
    struct reading reading = {
        .precision = precision, .now_ms = now_ms, .arena = arena, .request = ret_request
    };

    *ret_request = (struct in_request){ 0 };
    for (size_t number = 1; text.len && !qf_arena_failed(arena); number++) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;
        struct qf_str line = qf_str_trim(qf_str_sub(text, 0, len));
        const char *what = line.len && line.data[0] != '#' ? read_line(&reading, line) : NULL;

        if (what)
            refuse(ret_request, line, number, what);
        text = qf_str_sub(text, len + 1, text.len);
    }
    *ret_timeless = reading.timeless;
    if (qf_arena_failed(arena))
        return qf_err_set(err, QF_ELIMIT, "the request needs more memory than it may have");
    return QF_OK;
}
