/* info.h - a map's rows as info series: which labels they have, and which samples. Pure.
 *
 * A row is a series from a moment on to another one: state always, temporal state from its effective time to that of the key's
 * next row, a session from its start to its end. Its series is NAME{key="KEY", ...}: a JSON object gives one label for each
 * member, any other value the label `value`, a session none. It is defined as scraped: a 1 at each multiple of the map's interval
 * in [start, end), and a stale marker at the end.
 *
 * Rows that say the same series and overlap or touch are one span, so that neither confirmations nor their condensation are
 * seen. */
#ifndef STATEMAP_CORE_INFO_H
#define STATEMAP_CORE_INFO_H

#include "base/pure/labels.h"
#include "statemap/core/row.h"

#define SM_INFO_KEY "key"
#define SM_INFO_VALUE "value"

/* Whether the member @name of a value can be a label: not an empty name, not one that is not UTF-8, not one of the names
 * that begin with "__", and not `key`, which is the row's. Others are left out. */
bool sm_info_member(struct qf_str name);

/* The labels of a row of the map called @metric. @members, each of which can be a label, has room for two more and is sorted in
 * place; members with an empty value are no labels, as everywhere in PromQL. The result borrows all of it. */
struct qf_labels sm_info_labels(struct qf_str metric, struct qf_str key, struct qf_label *members,
                                size_t count);

/* [start, end): INT64_MIN: since ever; INT64_MAX: for ever. */
struct sm_info_span {
    int64_t start, end;
};

/* When @row is in force. @next is the row behind it, of the same key, or NULL. */
struct sm_info_span sm_info_span(enum sm_kind kind, const struct sm_row *row,
                                 const struct sm_row *next);

/* Whether a span has samples in [@min_ts, @max_ts], or is needed to tell which others have. */
static inline bool sm_info_concerns(struct sm_info_span span, int64_t min_ts, int64_t max_ts)
{
    return span.start <= max_ts && span.end >= min_ts;
}

/* Sort @spans and make one of those that overlap or touch; how many are left. */
size_t sm_info_join(struct sm_info_span *spans, size_t count);

/* How many samples joined spans have in [@min_ts, @max_ts]. More than UINT32_MAX are told as that. */
uint64_t sm_info_count(const struct sm_info_span *spans, size_t count, int64_t interval_ms,
                       int64_t min_ts, int64_t max_ts);
/* The samples, as many as sm_info_count() says, which is less than UINT32_MAX, ascending; *ret_stale: there are stale markers among them. */
void sm_info_fill(const struct sm_info_span *spans, size_t count, int64_t interval_ms,
                  int64_t min_ts, int64_t max_ts, int64_t *ts, double *values, bool *ret_stale);

#endif
