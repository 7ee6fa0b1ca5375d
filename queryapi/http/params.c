/* params.c - the times, durations and numbers that parameters of queries hold. */
#include "queryapi/http/params.h"

#include <math.h>
#include <stdio.h>

#include "base/pure/number.h"
#include "base/pure/utf8.h"

/* Times beyond these would overflow somewhere: they are years -290 million and +292 million. */
#define TIME_SECONDS_MAX 9.2e15

/* Go's durations are nanoseconds in 63 bits. */
#define DURATION_SECONDS_MAX 9223372036.854775807

/* Milliseconds of a number of seconds, rounded; false if it is out of range. */
static bool seconds_to_ms(double seconds, int64_t *ret_ms)
{
    if (!(seconds > -TIME_SECONDS_MAX && seconds < TIME_SECONDS_MAX))
        return false;
    *ret_ms = (int64_t)floor(seconds) * 1000 + (int64_t)round((seconds - floor(seconds)) * 1000);
    return true;
}

/* The first and the last time there is in Prometheus, as it writes them. Ours end before that. */
static bool parse_extreme(struct qf_str text, qf_time_ms *ret_ms)
{
    bool first = qf_str_is(text, "-292273086-05-16T16:47:06Z");

    if (!first && !qf_str_is(text, "292277025-08-18T07:12:54.999999999Z"))
        return false;
    *ret_ms = first ? -QA_TIME_FAR : QA_TIME_FAR;
    return true;
}

/* Go reads no hexadecimal number without an exponent. */
static bool parse_number(struct qf_str text, double *ret_number)
{
    for (size_t i = 0; i < text.len; i++)
        if ((text.data[i] | 32) == 'x')
            return false;
    return qf_parse_double(text, ret_number);
}

qf_rc qa_param_time(const char *name, struct qf_str text, qf_time_ms *ret_ms, struct qf_err *err)
{
    double seconds;

    if (parse_number(text, &seconds) && seconds_to_ms(seconds, ret_ms))
        return QF_OK;
    if (qf_time_parse_rfc3339(text, ret_ms) || parse_extreme(text, ret_ms))
        return QF_OK;
    return qf_err_set(err, QF_EINVAL,
                      "invalid parameter \"%s\": cannot parse \"%.*s\" to a valid timestamp", name,
                      QF_STR_ARG(qf_str_sub(text, 0, 100)));
}

qf_rc qa_param_time_optional(const char *name, struct qf_str text, qf_time_ms *ret_ms,
                             struct qf_err *err)
{
    if (text.len == 0 || qa_param_time(name, text, ret_ms, NULL) == QF_OK)
        return QF_OK;
    return qf_err_set(
        err, QF_EINVAL,
        "invalid parameter \"%s\": invalid time value for '%s': cannot parse \"%.*s\" "
        "to a valid timestamp",
        name, name, QF_STR_ARG(qf_str_sub(text, 0, 100)));
}

/* @where begins the text of errors. */
static qf_rc parse_duration(const char *where, struct qf_str text, int64_t *ret_ms,
                            struct qf_err *err)
{
    double seconds;

    if (parse_number(text, &seconds)) {
        if (isnan(seconds) || fabs(seconds) <= DURATION_SECONDS_MAX) {
            *ret_ms = isnan(seconds) ? 0 : (int64_t)round(seconds * 1000);
            if (seconds > 0 && *ret_ms == 0)
                *ret_ms = 1; /* the least there is, and not nothing */
            return QF_OK;
        }
        return qf_err_set(err, QF_EINVAL,
                          "%scannot parse \"%.*s\" to a valid duration. It overflows int64", where,
                          QF_STR_ARG(qf_str_sub(text, 0, 100)));
    }
    if (qf_duration_parse(text, ret_ms) == QF_DURATION_OK)
        return QF_OK;
    return qf_err_set(err, QF_EINVAL, "%scannot parse \"%.*s\" to a valid duration", where,
                      QF_STR_ARG(qf_str_sub(text, 0, 100)));
}

qf_rc qa_param_duration(const char *name, struct qf_str text, int64_t *ret_ms, struct qf_err *err)
{
    char where[100];

    (void)snprintf(where, sizeof(where), "invalid parameter \"%s\": ", name);
    return parse_duration(where, text, ret_ms, err);
}

qf_rc qa_param_lookback(struct qf_str text, int64_t *ret_ms, struct qf_err *err)
{
    qf_rc rc = parse_duration("error parsing lookback delta duration: ", text, ret_ms, err);

    if (rc == QF_OK && *ret_ms < 0)
        *ret_ms = 0;
    return rc;
}

static bool is_whole(struct qf_str text)
{
    size_t i = text.len && (text.data[0] == '-' || text.data[0] == '+');
    size_t digits = text.len - i;

    for (; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return digits > 0;
}

qf_rc qa_param_limit(struct qf_str text, uint64_t *ret_limit, struct qf_err *err)
{
    int64_t number;

    if (!qf_parse_i64(text, &number))
        return qf_err_set(err, QF_EINVAL,
                          "invalid parameter \"limit\": strconv.Atoi: parsing \"%.*s\": %s",
                          QF_STR_ARG(qf_str_sub(text, 0, 100)),
                          is_whole(text) ? "value out of range" : "invalid syntax");
    if (number < 0)
        return qf_err_set(err, QF_EINVAL,
                          "invalid parameter \"limit\": limit must be non-negative");
    *ret_limit = (uint64_t)number;
    return QF_OK;
}

/* "now-1h", "e-1h" and "-1h": the part behind the word, subtracted from @base. */
static bool parse_before(struct qf_str text, const char *word, qf_time_ms base, qf_time_ms *ret_ms)
{
    size_t len = strlen(word);
    int64_t back;

    if (!qf_str_starts(text, qf_str_from(word)))
        return false;
    if (text.len == len) {
        *ret_ms = base;
        return true;
    }
    if (text.data[len] != '-' ||
        qf_duration_parse(qf_str_sub(text, len + 1, text.len), &back) != QF_DURATION_OK)
        return false;
    *ret_ms = base - back;
    return true;
}

qf_rc qa_param_when(const char *name, struct qf_str text, qf_time_ms now, qf_time_ms end,
                    qf_time_ms *ret_ms, struct qf_err *err)
{
    double number;

    text = qf_str_trim(text);
    if (qf_parse_double(text, &number)) {
        if (fabs(number) >= 1e11) /* year 5138 in seconds, 1973 in milliseconds */
            number /= 1000;
        if (seconds_to_ms(number, ret_ms))
            return QF_OK;
    } else if (qf_time_parse_rfc3339(text, ret_ms) || parse_before(text, "now", now, ret_ms) ||
               (text.len && parse_before(text, "", now, ret_ms))) {
        return QF_OK;
    } else if (end != QF_TIME_NEVER && parse_before(text, "e", end, ret_ms)) {
        return QF_OK;
    }
    return qf_err_set(err, QF_EINVAL,
                      "cannot parse \"%s\": \"%.*s\" is not a time. Times are now, -30m, now-30m, "
                      "%s2026-01-31T12:00:00Z or Unix seconds",
                      name, QF_STR_ARG(qf_str_sub(text, 0, 50)),
                      end == QF_TIME_NEVER ? "" : "e-30m (before the end), ");
}

int64_t qa_default_step(int64_t range_ms)
{
    const int64_t minute = 60 * 1000, hour = 60 * minute;

    if (range_ms <= 65 * minute)
        return 10 * 1000;
    if (range_ms <= 12 * hour)
        return minute;
    if (range_ms <= 24 * hour)
        return 5 * minute;
    if (range_ms <= 72 * hour)
        return 20 * minute;
    return hour;
}

struct qf_str qa_unescape_name(struct qf_arena *arena, struct qf_str name)
{
    char *out;
    size_t len = 0;

    if (!qf_str_starts(name, QF_STR("U__")))
        return name;
    out = qf_arena_alloc(arena, name.len + 1);
    for (size_t i = 3; out && i < name.len; i++) {
        uint32_t rune = 0;
        size_t at = i + 1;

        if (name.data[i] != '_') {
            out[len++] = name.data[i];
            continue;
        }
        if (at < name.len && name.data[at] == '_') { /* "__" is a '_' */
            out[len++] = '_';
            i = at;
            continue;
        }
        while (at < name.len && at - i <= 6 && qf_hex_digit(name.data[at]) >= 0)
            rune = rune * 16 + (uint32_t)qf_hex_digit(name.data[at++]);
        if (at == i + 1 || at >= name.len || name.data[at] != '_' || rune > 0x10ffff)
            return name;
        /* At least 3 characters of input, _x_, per character written; longer runes have more. */
        len += qf_utf8_encode(rune, out + len);
        i = at;
    }
    return out ? (struct qf_str){ out, len } : name;
}
