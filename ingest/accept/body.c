/* body.c - bodies of requests, decompressed. */
#include "ingest/accept/body.h"

#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "base/pure/alloc.h"

/* A block of snappy cannot hold more than this per byte: an element of three bytes copies 64. */
#define SNAPPY_RATIO 22
#define GZIP_STEP ((size_t)64 << 10)
/* How far back a zstd frame may refer, as a power of two: the memory that it takes to read it. What senders
 * use at their highest levels. */
#define ZSTD_WINDOW_LOG_MAX 25

uint64_t in_body_length(enum in_body_coding coding, struct qf_str body)
{
    size_t length;

    if (coding == IN_BODY_PLAIN)
        return body.len;
    if (coding == IN_BODY_SNAPPY &&
        snappy_uncompressed_length(body.data, body.len, &length) == SNAPPY_OK)
        return length;
    if (coding == IN_BODY_ZSTD) {
        unsigned long long said = ZSTD_getFrameContentSize(body.data, body.len);

        return said == ZSTD_CONTENTSIZE_UNKNOWN || said == ZSTD_CONTENTSIZE_ERROR ? 0 : said;
    }
    return 0;
}

static qf_rc too_long(size_t bytes_max, struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "the body has more than %zu bytes: split the request",
                      bytes_max);
}

static qf_rc decode_snappy(struct qf_str body, size_t bytes_max, struct qf_strbuf *buf,
                           struct qf_err *err)
{
    size_t length;

    if (!body.len || snappy_uncompressed_length(body.data, body.len, &length) != SNAPPY_OK)
        return qf_err_set(err, QF_EPARSE, "the body is no snappy block");
    if (length > bytes_max)
        return too_long(bytes_max, err);
    if (length / SNAPPY_RATIO > body.len)
        return qf_err_set(err, QF_EPARSE,
                          "the body says that it is longer than a snappy block of its size can be");
    (void)qf_strbuf_reserve(buf, length);
    if (snappy_uncompress(body.data, body.len, buf->data + buf->len, &length) != SNAPPY_OK)
        return qf_err_set(err, QF_EPARSE, "the body is no snappy block");
    buf->len += length;
    return QF_OK;
}

/* One member after the other, until nothing is left. */
static qf_rc inflate_all(z_stream *stream, size_t bytes_max, struct qf_strbuf *buf,
                         struct qf_err *err)
{
    int status = Z_OK;

    while (stream->avail_in || status == Z_OK) {
        if (status == Z_STREAM_END && inflateReset(stream) != Z_OK)
            return qf_err_set(err, QF_EINTERNAL, "zlib");
        (void)qf_strbuf_reserve(buf, GZIP_STEP);
        stream->next_out = (unsigned char *)buf->data + buf->len;
        stream->avail_out = GZIP_STEP;
        status = inflate(stream, Z_NO_FLUSH);
        buf->len += GZIP_STEP - stream->avail_out;
        if (buf->len > bytes_max)
            return too_long(bytes_max, err);
        if (status == Z_BUF_ERROR && !stream->avail_in)
            return qf_err_set(err, QF_EPARSE, "the body ends within its gzip member");
        if (status != Z_OK && status != Z_STREAM_END)
            return qf_err_set(err, QF_EPARSE, "the body is not gzip");
    }
    return QF_OK;
}

static qf_rc decode_gzip(struct qf_str body, size_t bytes_max, struct qf_strbuf *buf,
                         struct qf_err *err)
{
    z_stream stream = { .next_in = (unsigned char *)(uintptr_t)body.data,
                        .avail_in = (unsigned)body.len };
    qf_rc rc;

    if (inflateInit2(&stream, 15 + 16) != Z_OK)
        return qf_err_set(err, QF_EINTERNAL, "zlib");
    rc = inflate_all(&stream, bytes_max, buf, err);
    (void)inflateEnd(&stream);
    return rc;
}

/* One frame after the other, until nothing is left. */
static qf_rc decompress_all(ZSTD_DCtx *ctx, struct qf_str body, size_t bytes_max,
                            struct qf_strbuf *buf, struct qf_err *err)
{
    ZSTD_inBuffer in = { body.data, body.len, 0 };
    size_t left = 1, step = ZSTD_DStreamOutSize();

    while (in.pos < in.size || left) {
        ZSTD_outBuffer out = { .size = step };

        (void)qf_strbuf_reserve(buf, step);
        out.dst = buf->data + buf->len;
        left = ZSTD_decompressStream(ctx, &out, &in);
        if (ZSTD_isError(left))
            return qf_err_set(err, QF_EPARSE, "the body is not zstd: %s", ZSTD_getErrorName(left));
        buf->len += out.pos;
        if (buf->len > bytes_max)
            return too_long(bytes_max, err);
        if (left && in.pos == in.size && out.pos < out.size)
            return qf_err_set(err, QF_EPARSE, "the body ends within its zstd frame");
    }
    return QF_OK;
}

static qf_rc decode_zstd(struct qf_str body, size_t bytes_max, struct qf_strbuf *buf,
                         struct qf_err *err)
{
    ZSTD_DCtx *ctx = ZSTD_createDCtx();
    qf_rc rc = QF_EINTERNAL;

    if (ctx && !ZSTD_isError(ZSTD_DCtx_setParameter(ctx, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX)))
        rc = decompress_all(ctx, body, bytes_max, buf, err);
    else
        (void)qf_err_set(err, rc, "zstd");
    (void)ZSTD_freeDCtx(ctx);
    return rc;
}

qf_rc in_body_decode(enum in_body_coding coding, struct qf_str body, size_t bytes_max,
                     struct qf_strbuf *buf, struct qf_err *err)
{
    switch (coding) {
    case IN_BODY_SNAPPY:
        return decode_snappy(body, bytes_max, buf, err);
    case IN_BODY_GZIP:
        return decode_gzip(body, bytes_max, buf, err);
    case IN_BODY_ZSTD:
        return decode_zstd(body, bytes_max, buf, err);
    case IN_BODY_PLAIN:
        break;
    }
    if (body.len > bytes_max)
        return too_long(bytes_max, err);
    qf_strbuf_str(buf, body);
    return QF_OK;
}
