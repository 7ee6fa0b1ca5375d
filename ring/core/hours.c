/* hours.c - the pace of migrations by the hour. */
#include "ring/core/hours.h"

#include "base/pure/number.h"

#define HOUR_MS (INT64_C(3600) * 1000)

/* The text up to @end, which is taken off @text; all of it if there is none. */
static struct qf_str take(struct qf_str *text, char end)
{
    size_t at = 0;
    struct qf_str part;

    while (at < text->len && text->data[at] != end)
        at++;
    part = qf_str_sub(*text, 0, at);
    *text = qf_str_sub(*text, at + (at < text->len), text->len);
    return part;
}

static bool parse_hour(struct qf_str text, uint64_t *ret_hour)
{
    return text.len <= 2 && qf_parse_u64(text, ret_hour) && *ret_hour <= RG_HOURS;
}

/* "FROM-TO=RATE" */
static bool parse_range(struct qf_str text, struct rg_hours *hours)
{
    struct qf_str from_text = take(&text, '-'), to_text = take(&text, '=');
    struct rg_hour hour = { .said = true, .off = qf_str_is(text, "off") };
    uint64_t from, to;

    if (!parse_hour(from_text, &from) || !parse_hour(to_text, &to) || from == to ||
        from == RG_HOURS || (!hour.off && !qf_parse_bytes(text, &hour.rate)))
        return false;
    if (to < from)
        to += RG_HOURS;
    for (; from < to; from++)
        hours->of[from % RG_HOURS] = hour;
    return true;
}

qf_rc rg_hours_parse(struct qf_str text, struct rg_hours *ret_hours, struct qf_err *err)
{
    struct rg_hours hours = { 0 };
    bool ends = !text.len || text.data[text.len - 1] != ','; /* "1MiB," */
    bool ok = ends && qf_parse_bytes(take(&text, ','), &hours.rate);

    while (ok && text.len)
        ok = parse_range(take(&text, ','), &hours);
    if (!ok)
        return qf_err_set(err, QF_EINVAL,
                          "expected a size, then hours with another: 64MiB,8-20=8MiB,12-13=off");
    *ret_hours = hours;
    return QF_OK;
}

static const struct rg_hour *at(const struct rg_hours *hours, int64_t wall_ms)
{
    return &hours->of[(uint64_t)(wall_ms / HOUR_MS) % RG_HOURS];
}

bool rg_hours_off(const struct rg_hours *hours, int64_t wall_ms)
{
    return at(hours, wall_ms)->off;
}

uint64_t rg_hours_rate(const struct rg_hours *hours, int64_t wall_ms)
{
    const struct rg_hour *hour = at(hours, wall_ms);

    return hour->said && !hour->off ? hour->rate : hours->rate;
}
