/* range.c - the Range header of HTTP. */
#include "base/http/range.h"

#include <stdio.h>

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

static void send_unsatisfiable(struct qh_stream *stream, uint64_t size)
{
    char range[64];

    (void)snprintf(range, sizeof(range), "bytes */%llu", (unsigned long long)size);
    qh_stream_header(stream, "Content-Range", range);
    qh_stream_answer(stream, 416, NULL, QF_STR(""));
}

uint64_t qh_range_send(struct qh_stream *stream, struct qf_str header, const char *content_type,
                       const struct qh_body *body, uint64_t size)
{
    uint64_t offset = 0, length = size;
    enum qh_range range = qh_range_parse(header, size, &offset, &length);
    struct qh_body part = *body;
    char text[96];

    if (range == QH_RANGE_UNSATISFIABLE) {
        qh_body_done(&part);
        send_unsatisfiable(stream, size);
        return 0;
    }
    qh_stream_header(stream, "Accept-Ranges", "bytes");
    if (range == QH_RANGE_PART) {
        (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)offset,
                       (unsigned long long)(offset + length - 1), (unsigned long long)size);
        qh_stream_header(stream, "Content-Range", text);
    }
    part.offset = offset;
    part.length = length;
    if (part.fd < 0)
        part.bytes = qf_str_sub(part.bytes, offset, offset + length);
    qh_stream_send(stream, range == QH_RANGE_PART ? 206 : 200, content_type, &part);
    return length;
}
