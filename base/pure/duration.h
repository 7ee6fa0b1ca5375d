/* duration.h - durations and times as PromQL and the HTTP API write them. All in milliseconds. */
#ifndef BASE_PURE_DURATION_H
#define BASE_PURE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

typedef int64_t qf_time_ms;
#define QF_TIME_NEVER INT64_MAX

enum qf_duration_status { QF_DURATION_OK, QF_DURATION_BAD, QF_DURATION_OVERFLOW };

/* "1h30m", "10s53ms": units y w d h m s ms in that order, each at most once, unsigned integers;
 * y = 365d, w = 7d, d = 24h. "0" is allowed, other bare numbers and "" are not. Overflow: the sum
 * does not fit Go's time.Duration (nanoseconds in int64, 292 years). */
enum qf_duration_status qf_duration_parse(struct qf_str s, int64_t *ret_ms);

/* The same form: 5400000 -> "1h30m". Zero is "0s". Years and weeks are used only when they divide
 * the whole duration, as Prometheus prints them; negative durations get a '-'. */
void qf_duration_print(struct qf_strbuf *buf, int64_t ms);

/* RFC 3339 with optional fraction (cut to ms) and offset "Z" or "+hh:mm". */
bool qf_time_parse_rfc3339(struct qf_str s, qf_time_ms *ret_time);
/* "2026-01-31T23:59:58.123Z"; the fraction only when it is not zero. */
void qf_time_print_rfc3339(struct qf_strbuf *buf, qf_time_ms time);

/* Proleptic Gregorian calendar, UTC, any int64 day number. */
struct qf_civil {
    int64_t year;
    int month, day;           /* 1..12, 1..31 */
    int hour, minute, second; /* of the day */
    int weekday;              /* 0 = Sunday */
    int yearday;              /* 1..366 */
};
struct qf_civil qf_civil_from_seconds(int64_t unix_seconds);
int64_t qf_civil_to_days(int64_t year, int month, int day);
int qf_civil_days_in_month(int64_t year, int month);

/* Division and remainder that round towards minus infinity; @b > 0. */
static inline int64_t qf_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}
static inline int64_t qf_floor_mod(int64_t a, int64_t b)
{
    return a % b + (a % b < 0 ? b : 0);
}

#endif
