/* duration.c - durations and times as text. */
#include "base/pure/duration.h"

#include <string.h>

#include "base/pure/macros.h"

static const struct unit {
    const char *name;
    int64_t ms;
    bool exact; /* printed only when it divides the whole duration */
} units[] = {
    { "y", INT64_C(365) * 24 * 3600 * 1000, true },
    { "w", INT64_C(7) * 24 * 3600 * 1000, true },
    { "d", INT64_C(24) * 3600 * 1000, false },
    { "h", INT64_C(3600) * 1000, false },
    { "m", INT64_C(60) * 1000, false },
    { "s", 1000, false },
    { "ms", 1, false },
};

/* The unit that starts at @s, "ms" before "m"; -1 if none. */
static int unit_at(struct qf_str s)
{
    int best = -1;

    for (size_t i = 0; i < QF_COUNT_OF(units); i++) {
        struct qf_str name = qf_str_from(units[i].name);

        if (qf_str_starts(s, name) && (best < 0 || name.len > strlen(units[best].name)))
            best = (int)i;
    }
    return best;
}

enum qf_duration_status qf_duration_parse(struct qf_str s, int64_t *ret_ms)
{
    const int64_t max_ms = INT64_MAX / 1000000; /* Go counts nanoseconds */
    int64_t total = 0;
    int last_unit = -1;
    bool overflow = false;

    if (s.len == 1 && s.data[0] == '0') {
        *ret_ms = 0;
        return QF_DURATION_OK;
    }
    if (s.len == 0)
        return QF_DURATION_BAD;
    while (s.len) {
        int64_t number = 0, part;
        size_t digits = 0;
        int unit;

        for (; digits < s.len && s.data[digits] >= '0' && s.data[digits] <= '9'; digits++)
            if (__builtin_mul_overflow(number, 10, &number) ||
                __builtin_add_overflow(number, s.data[digits] - '0', &number))
                overflow = true;
        s = qf_str_sub(s, digits, s.len);
        unit = unit_at(s);
        if (digits == 0 || unit <= last_unit)
            return QF_DURATION_BAD;
        last_unit = unit;
        s = qf_str_sub(s, strlen(units[unit].name), s.len);
        if (__builtin_mul_overflow(number, units[unit].ms, &part) ||
            __builtin_add_overflow(total, part, &total) || total > max_ms)
            overflow = true;
    }
    if (overflow)
        return QF_DURATION_OVERFLOW;
    *ret_ms = total;
    return QF_DURATION_OK;
}

void qf_duration_print(struct qf_strbuf *buf, int64_t ms)
{
    uint64_t left = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;

    if (ms == 0) {
        qf_strbuf_puts(buf, "0s");
        return;
    }
    if (ms < 0)
        qf_strbuf_putc(buf, '-');
    for (size_t i = 0; i < QF_COUNT_OF(units); i++) {
        uint64_t unit = (uint64_t)units[i].ms;

        if (left < unit || (units[i].exact && left % unit != 0))
            continue;
        qf_strbuf_u64(buf, left / unit);
        qf_strbuf_puts(buf, units[i].name);
        left %= unit;
    }
}

/* Howard Hinnant's well-known arithmetic: eras of 400 years that begin on March 1st. */
int64_t qf_civil_to_days(int64_t year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = qf_floor_div(y, 400);
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

    return era * 146097 + doe - 719468;
}

struct qf_civil qf_civil_from_seconds(int64_t unix_seconds)
{
    int64_t days = qf_floor_div(unix_seconds, 86400);
    int64_t second = qf_floor_mod(unix_seconds, 86400);
    int64_t shifted = days + 719468;
    int64_t era = qf_floor_div(shifted, 146097);
    int64_t doe = shifted - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    struct qf_civil c = { 0 };

    c.day = (int)(doy - (153 * mp + 2) / 5 + 1);
    c.month = (int)(mp < 10 ? mp + 3 : mp - 9);
    c.year = yoe + era * 400 + (c.month <= 2);
    c.hour = (int)(second / 3600);
    c.minute = (int)(second / 60 % 60);
    c.second = (int)(second % 60);
    c.weekday = (int)qf_floor_mod(days + 4, 7);
    c.yearday = (int)(days - qf_civil_to_days(c.year, 1, 1) + 1);
    return c;
}

int qf_civil_days_in_month(int64_t year, int month)
{
    int64_t next =
        month == 12 ? qf_civil_to_days(year + 1, 1, 1) : qf_civil_to_days(year, month + 1, 1);

    return (int)(next - qf_civil_to_days(year, month, 1));
}

/* Exactly @count digits at the front of @s; -1 otherwise. Moves @s on. */
static int digits(struct qf_str *s, size_t count)
{
    int value = 0;

    if (s->len < count)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (s->data[i] < '0' || s->data[i] > '9')
            return -1;
        value = value * 10 + (s->data[i] - '0');
    }
    *s = qf_str_sub(*s, count, s->len);
    return value;
}

static bool eat(struct qf_str *s, const char *any_of)
{
    if (s->len == 0 || !s->data[0] || !strchr(any_of, s->data[0]))
        return false;
    *s = qf_str_sub(*s, 1, s->len);
    return true;
}

static bool parse_fraction(struct qf_str *s, int *ret_ms)
{
    int ms = 0, scale = 100;
    size_t count = 0;

    for (; count < s->len && s->data[count] >= '0' && s->data[count] <= '9'; count++) {
        ms += (s->data[count] - '0') * scale;
        scale /= 10;
    }
    *s = qf_str_sub(*s, count, s->len);
    *ret_ms = ms;
    return count > 0;
}

static bool parse_offset(struct qf_str *s, int *ret_minutes)
{
    bool minus = s->len && s->data[0] == '-';
    int hours, minutes;

    *ret_minutes = 0;
    if (eat(s, "Zz"))
        return true;
    if (!eat(s, "+-") || (hours = digits(s, 2)) < 0 || !eat(s, ":") || (minutes = digits(s, 2)) < 0)
        return false;
    if (hours > 23 || minutes > 59)
        return false;
    *ret_minutes = (hours * 60 + minutes) * (minus ? -1 : 1);
    return true;
}

bool qf_time_parse_rfc3339(struct qf_str s, qf_time_ms *ret_time)
{
    int year, month, day, hour, minute, second, ms = 0, offset;

    if ((year = digits(&s, 4)) < 0 || !eat(&s, "-") || (month = digits(&s, 2)) < 0 ||
        !eat(&s, "-") || (day = digits(&s, 2)) < 0 || !eat(&s, "Tt") ||
        (hour = digits(&s, 2)) < 0 || !eat(&s, ":") || (minute = digits(&s, 2)) < 0 ||
        !eat(&s, ":") || (second = digits(&s, 2)) < 0)
        return false;
    if (eat(&s, ".") && !parse_fraction(&s, &ms))
        return false;
    if (!parse_offset(&s, &offset) || s.len)
        return false;
    if (month < 1 || month > 12 || day < 1 || day > qf_civil_days_in_month(year, month) ||
        hour > 23 || minute > 59 || second > 59)
        return false;
    *ret_time = ((qf_civil_to_days(year, month, day) * 24 + hour) * 60 + minute - offset) * 60000 +
                second * 1000 + ms;
    return true;
}

void qf_time_print_rfc3339(struct qf_strbuf *buf, qf_time_ms time)
{
    struct qf_civil c = qf_civil_from_seconds(qf_floor_div(time, 1000));
    int ms = (int)qf_floor_mod(time, 1000);

    qf_strbuf_printf(buf, "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)c.year, c.month, c.day,
                     c.hour, c.minute, c.second);
    if (ms)
        qf_strbuf_printf(buf, ".%03d", ms);
    qf_strbuf_putc(buf, 'Z');
}
