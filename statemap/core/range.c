/* range.c - which of several ranges answers. */
#include "statemap/core/range.h"

bool sm_range_better(const struct sm_row *row, const struct sm_row *other)
{
    uint64_t width = sm_range_width(row->from, row->to);
    uint64_t other_width = sm_range_width(other->from, other->to);

    if (width != other_width)
        return width < other_width;
    if (row->time != other->time)
        return row->time > other->time;
    if (row->load != other->load)
        return row->load > other->load;
    return row->from > other->from;
}

bool sm_range_contends(const struct sm_row *a, const struct sm_row *b)
{
    return a->from != b->from && a->from <= b->to && b->from <= a->to &&
           sm_range_width(a->from, a->to) == sm_range_width(b->from, b->to);
}
