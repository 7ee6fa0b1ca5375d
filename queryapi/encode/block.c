/* block.c - snappy, there and back. */
#include "queryapi/encode/block.h"

#include <assert.h>
#include <snappy-c.h>

/* A block cannot hold more than this per byte: an element of three bytes copies 64. */
#define RATIO_MAX 22

qf_rc qa_block_unpack(struct qf_arena *arena, struct qf_str block, size_t bytes_max,
                      struct qf_str *ret_bytes, struct qf_err *err)
{
    size_t length = 0;
    char *bytes;

    if (!block.len || snappy_uncompressed_length(block.data, block.len, &length) != SNAPPY_OK ||
        length / RATIO_MAX > block.len)
        return qf_err_set(err, QF_EINVAL, "snappy: corrupt input");
    if (length > bytes_max)
        return qf_err_set(err, QF_ELIMIT, "the request has more than %zu bytes", bytes_max);
    bytes = qf_arena_alloc(arena, length + 1);
    if (!bytes)
        return qf_err_set(err, QF_ELIMIT, "the request is too large");
    if (snappy_uncompress(block.data, block.len, bytes, &length) != SNAPPY_OK)
        return qf_err_set(err, QF_EINVAL, "snappy: corrupt input");
    *ret_bytes = (struct qf_str){ bytes, length };
    return QF_OK;
}

void qa_block_pack(struct qf_strbuf *buf, struct qf_str bytes)
{
    size_t length = snappy_max_compressed_length(bytes.len);
    snappy_status status;

    (void)qf_strbuf_reserve(buf, length);
    status =
        snappy_compress(bytes.data ? bytes.data : "", bytes.len, buf->data + buf->len, &length);
    assert(status == SNAPPY_OK); /* there is room, and nothing else can fail */
    buf->len += length;
}
