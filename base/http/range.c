/* range.c - the Range header of HTTP. */
#include "base/http/range.h"

#include "base/pure/number.h"

enum qh_range qh_range_parse(struct qf_str text, uint64_t size, uint64_t *ret_offset,
                             uint64_t *ret_length)
{
    struct qf_str first, last;
    const char *dash;
    uint64_t from = 0, to = 0;

    if (!qf_str_starts(text, QF_STR("bytes=")))
        return QH_RANGE_WHOLE;
    text = qf_str_trim(qf_str_sub(text, 6, text.len));
    dash = text.len ? memchr(text.data, '-', text.len) : NULL;
    if (!dash)
        return QH_RANGE_WHOLE;
    first = qf_str_sub(text, 0, (size_t)(dash - text.data));
    last = qf_str_sub(text, first.len + 1, text.len);
    if ((first.len && !qf_parse_u64(first, &from)) || (last.len && !qf_parse_u64(last, &to)))
        return QH_RANGE_WHOLE;
    if (!first.len) { /* the last `to` bytes */
        if (!last.len)
            return QH_RANGE_WHOLE;
        if (to == 0 || size == 0)
            return QH_RANGE_UNSATISFIABLE;
        *ret_length = QF_MIN(to, size);
        *ret_offset = size - *ret_length;
        return QH_RANGE_PART;
    }
    if (last.len && to < from)
        return QH_RANGE_WHOLE;
    if (from >= size)
        return QH_RANGE_UNSATISFIABLE;
    if (!last.len || to >= size)
        to = size - 1;
    *ret_offset = from;
    *ret_length = to - from + 1;
    return QH_RANGE_PART;
}
