/* range.c - the Range header of HTTP. */
#include <string.h>

#include "base/pure/number.h"
#include "queryworker/artifact/serve.h"

enum qw_range qw_range_parse(const char *header, uint64_t size, uint64_t *ret_offset,
                             uint64_t *ret_length)
{
    struct qf_str text = header ? qf_str_from(header) : QF_STR("");
    struct qf_str first, last;
    const char *dash;
    uint64_t from = 0, to = 0;

    if (!qf_str_starts(text, QF_STR("bytes=")))
        return QW_RANGE_WHOLE;
    text = qf_str_trim(qf_str_sub(text, 6, text.len));
    dash = text.len ? memchr(text.data, '-', text.len) : NULL;
    if (!dash)
        return QW_RANGE_WHOLE;
    first = qf_str_sub(text, 0, (size_t)(dash - text.data));
    last = qf_str_sub(text, first.len + 1, text.len);
    if ((first.len && !qf_parse_u64(first, &from)) || (last.len && !qf_parse_u64(last, &to)))
        return QW_RANGE_WHOLE;
    if (!first.len) { /* the last `to` bytes */
        if (!last.len)
            return QW_RANGE_WHOLE;
        if (to == 0 || size == 0)
            return QW_RANGE_UNSATISFIABLE;
        *ret_length = QF_MIN(to, size);
        *ret_offset = size - *ret_length;
        return QW_RANGE_PART;
    }
    if (last.len && to < from)
        return QW_RANGE_WHOLE;
    if (from >= size)
        return QW_RANGE_UNSATISFIABLE;
    if (!last.len || to >= size)
        to = size - 1;
    *ret_offset = from;
    *ret_length = to - from + 1;
    return QW_RANGE_PART;
}
