/* filter.c - which rows somebody who browses a map wants to see. */
#include "statemap/core/filter.h"

qf_rc sm_filter_check(const struct sm_filter *filter, enum sm_kind kind, struct qf_err *err)
{
    bool timed = sm_kind_timed(kind) || kind == SM_SESSION;

    if (!sm_kind_keyed(kind) && (filter->key.len || filter->prefix.len))
        return qf_err_set(err, QF_EINVAL, "rows of a map of kind %s have ranges, not keys",
                          sm_kind_name(kind));
    if (!sm_kind_ranged(kind) && filter->has_number)
        return qf_err_set(err, QF_EINVAL, "rows of a map of kind %s have keys, not ranges",
                          sm_kind_name(kind));
    if (!timed && (filter->has_since || filter->has_until))
        return qf_err_set(err, QF_EINVAL, "rows of a map of kind %s have no times",
                          sm_kind_name(kind));
    return QF_OK;
}

bool sm_filter_passes(const struct sm_filter *filter, enum sm_kind kind, const struct sm_row *row)
{
    int64_t last = kind == SM_SESSION ? row->end - 1 : row->time;

    if (filter->key.len && !qf_str_eq(row->key, filter->key))
        return false;
    if (filter->prefix.len && !qf_str_starts(row->key, filter->prefix))
        return false;
    if (filter->has_number && (filter->number < row->from || filter->number > row->to))
        return false;
    if (filter->has_since && last < filter->since)
        return false;
    return !filter->has_until || row->time < filter->until;
}
