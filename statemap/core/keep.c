/* keep.c - which rows condensation and retention let go of. */
#include "statemap/core/keep.h"

enum sm_fate sm_rows_fate(const struct sm_row *former, const struct sm_row *latter, bool contested,
                          struct sm_cutoffs cutoffs)
{
    if (cutoffs.retain != INT64_MIN && latter->time <= cutoffs.retain)
        return SM_DROP_FORMER;
    if (cutoffs.condense != INT64_MIN && latter->time <= cutoffs.condense && !contested &&
        sm_value_same(former->value, latter->value))
        return SM_DROP_LATTER;
    return SM_KEEP_BOTH;
}

bool sm_span_join(struct sm_span *span, const struct sm_row *row)
{
    if (row->time > span->end)
        return false;
    if (row->end > span->end)
        span->end = row->end;
    return true;
}

bool sm_span_retired(const struct sm_span *span, struct sm_cutoffs cutoffs)
{
    return cutoffs.retain != INT64_MIN && span->end <= cutoffs.retain;
}

bool sm_session_condensable(const struct sm_row *row, struct sm_cutoffs cutoffs)
{
    return cutoffs.condense != INT64_MIN && row->end <= cutoffs.condense;
}
