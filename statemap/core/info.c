/* info.c - a map's rows as info series. */
#include "statemap/core/info.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/number.h"
#include "base/pure/utf8.h"
#include "statemap/core/bytes.h"

bool sm_info_member(struct qf_str name)
{
    return name.len && !qf_str_starts(name, QF_STR("__")) && !qf_str_is(name, SM_INFO_KEY) &&
           qf_utf8_valid(name);
}

struct qf_labels sm_info_labels(struct qf_str metric, struct qf_str key, struct qf_label *members,
                                size_t count)
{
    members[count] = (struct qf_label){ QF_STR(SM_INFO_KEY), key };
    members[count + 1] = (struct qf_label){ QF_STR(QF_METRIC_NAME), metric };
    return qf_labels_normalize(members, count + 2);
}

struct sm_info_span sm_info_span(enum sm_kind kind, const struct sm_row *row,
                                 const struct sm_row *next)
{
    if (kind == SM_SESSION)
        return (struct sm_info_span){ row->time, row->end };
    if (!sm_kind_timed(kind))
        return (struct sm_info_span){ INT64_MIN, INT64_MAX };
    return (struct sm_info_span){ row->time, next ? next->time : INT64_MAX };
}

static int by_start(const void *a, const void *b)
{
    const struct sm_info_span *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

size_t sm_info_join(struct sm_info_span *spans, size_t count)
{
    size_t kept = 0;

    if (count > 1)
        qsort(spans, count, sizeof(*spans), by_start);
    for (size_t i = 0; i < count; i++) {
        if (kept && spans[i].start <= spans[kept - 1].end) {
            if (spans[i].end > spans[kept - 1].end)
                spans[kept - 1].end = spans[i].end;
        } else {
            spans[kept++] = spans[i];
        }
    }
    return kept;
}

/* What is scraped of a span: every @interval from @first to @last, unless that is before it; and whether the marker at its
 * end is seen. */
struct scrapes {
    int64_t first, last;
    bool any, marker;
};

/* The remainder that is never negative. */
static int64_t behind_multiple(int64_t time, int64_t interval)
{
    int64_t rest = time % interval;

    return rest < 0 ? rest + interval : rest;
}

static struct scrapes scrapes_of(struct sm_info_span span, int64_t interval, int64_t min_ts,
                                 int64_t max_ts)
{
    struct scrapes s = { .first = span.start > min_ts ? span.start : min_ts, .last = max_ts };
    int64_t rest = behind_multiple(s.first, interval);

    s.marker = span.end != INT64_MAX && span.end >= min_ts && span.end <= max_ts;
    if (span.end != INT64_MAX && span.end <= s.last)
        s.last = sm_minus(span.end, 1);
    if (rest && s.first > INT64_MAX - (interval - rest)) /* there is no later multiple */
        return s;
    s.first += rest ? interval - rest : 0;
    s.any = s.first <= s.last && span.start < span.end;
    return s;
}

static uint64_t scrape_count(struct scrapes s, int64_t interval)
{
    uint64_t steps;

    if (!s.any)
        return 0;
    steps = (sm_ordered(s.last) - sm_ordered(s.first)) / (uint64_t)interval;
    return steps < UINT32_MAX ? steps + 1 : UINT32_MAX;
}

uint64_t sm_info_count(const struct sm_info_span *spans, size_t count, int64_t interval_ms,
                       int64_t min_ts, int64_t max_ts)
{
    uint64_t total = 0;

    assert(interval_ms > 0);
    for (size_t i = 0; i < count && total <= UINT32_MAX; i++) {
        struct scrapes s = scrapes_of(spans[i], interval_ms, min_ts, max_ts);
        uint64_t more = scrape_count(s, interval_ms);

        total += more + s.marker;
    }
    return total < UINT32_MAX ? total : UINT32_MAX;
}

void sm_info_fill(const struct sm_info_span *spans, size_t count, int64_t interval_ms,
                  int64_t min_ts, int64_t max_ts, int64_t *ts, double *values, bool *ret_stale)
{
    size_t at = 0;

    *ret_stale = false;
    for (size_t i = 0; i < count; i++) {
        struct scrapes s = scrapes_of(spans[i], interval_ms, min_ts, max_ts);
        uint64_t more = scrape_count(s, interval_ms);

        for (uint64_t k = 0; k < more; k++, at++) {
            ts[at] = s.first + (int64_t)k * interval_ms;
            values[at] = 1;
        }
        if (!s.marker)
            continue;
        *ret_stale = true;
        ts[at] = spans[i].end;
        values[at++] = qf_double_from_bits(QF_STALE_NAN_BITS);
    }
}
