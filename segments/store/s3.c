/* s3.c - reading, looking at and deleting objects of an S3 bucket. */
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/base64.h"
#include "base/pure/hex.h"
#include "base/pure/number.h"
#include "segments/store/digest.h"
#include "segments/store/s3_int.h"

static void s3_close(struct sg_store *base)
{
    struct s3_store *store = (struct s3_store *)base;

    (void)credentials_source_free(store->credentials);
    (void)http_client_free(store->http);
    free(store->bucket);
    free(store->key_prefix);
    free(store->root);
    free(store->region);
    free(store->sign);
    free(store);
}

static qf_rc content_length(const struct http_response *response, struct qf_str name,
                            uint64_t *ret_len, struct qf_err *err)
{
    if (!qf_parse_u64(http_header(response, "content-length"), ret_len))
        return qf_err_set(err, QF_EPROTO, "%.*s: the server does not tell its length",
                          QF_STR_ARG(name));
    return QF_OK;
}

qf_rc s3_stat(struct sg_store *base, struct qf_str name, const struct sg_store_limit *limit,
              struct sg_store_info *ret_info, struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct s3_request request = { .method = "HEAD", .name = name, .what = "look at" };
    struct sg_store_info info = { 0 };
    struct qf_str modified;
    char date[64];
    qf_rc rc = s3_perform((struct s3_store *)base, &request, limit, &response, err);

    if (!rc)
        rc = content_length(&response, name, &info.size, err);
    if (rc)
        return rc;
    modified = http_header(&response, "last-modified");
    (void)snprintf(date, sizeof(date), "%.*s", QF_STR_ARG(modified));
    info.mtime_ms = date[0] ? (int64_t)curl_getdate(date, NULL) * 1000 : 0;
    if (info.mtime_ms < 0)
        info.mtime_ms = 0;
    (void)snprintf(info.etag, sizeof(info.etag), "%.*s",
                   QF_STR_ARG(s3_etag(http_header(&response, "etag"))));
    *ret_info = info;
    return QF_OK;
}

/* --- ranges --- */

struct range_read {
    struct s3_store *store;
    struct qf_str name;
    char *buf; /* NULL: the file @fd, at the same place */
    int fd;
    const char *etag; /* that it must have; NULL or empty: any */
    size_t capacity, len;
    bool suffix;
    uint64_t offset;   /* asked for; of a suffix: answered */
    uint64_t size;     /* of the whole object */
    struct qf_err err; /* of the sink */
};

/* The object may have been replaced since the caller heard of it. A server that says no ETag says
 * nothing about that. */
static qf_rc check_etag(struct qf_str name, const char *want, const struct http_response *response,
                        struct qf_err *err)
{
    struct qf_str etag = s3_etag(http_header(response, "etag"));

    if (!want || !*want || !etag.len || qf_str_is(etag, want))
        return QF_OK;
    return qf_err_set(err, QF_ENOTFOUND, "%.*s is another object now: its ETag was %s, is %.*s",
                      QF_STR_ARG(name), want, QF_STR_ARG(etag));
}

/* Put bytes to @at of a copy. */
static qf_rc write_copy(struct qf_str name, int fd, const void *data, size_t len, uint64_t at,
                        struct qf_err *err)
{
    int error = sg_store_pwrite_all(fd, data, len, at);

    if (!error)
        return QF_OK;
    return qf_err_set(err, sg_store_rc_from_errno(error), "%.*s: cannot write a copy of it: %s",
                      QF_STR_ARG(name), strerror(error));
}

static bool range_sink(void *ctx, const struct http_response *response, const void *data,
                       size_t len)
{
    struct range_read *read = ctx;

    if (read->len == 0 && check_etag(read->name, read->etag, response, &read->err))
        return false;
    if (len > read->capacity - read->len)
        return false;
    if (read->buf)
        memcpy(read->buf + read->len, data, len);
    else if (write_copy(read->name, read->fd, data, len, read->offset + read->len, &read->err))
        return false;
    read->len += len;
    return true;
}

static void range_restart(void *ctx)
{
    struct range_read *read = ctx;

    read->len = 0;
}

/* "bytes 0-9/100" */
static bool parse_content_range(struct qf_str text, uint64_t *ret_first, uint64_t *ret_last,
                                uint64_t *ret_size)
{
    const char *dash = text.len ? memchr(text.data, '-', text.len) : NULL;
    const char *slash = text.len ? memchr(text.data, '/', text.len) : NULL;

    return qf_str_starts(text, QF_STR("bytes ")) && dash && slash && dash < slash &&
           qf_parse_u64(qf_str_sub(text, 6, (size_t)(dash - text.data)), ret_first) &&
           qf_parse_u64(
               qf_str_sub(text, (size_t)(dash - text.data) + 1, (size_t)(slash - text.data)),
               ret_last) &&
           qf_parse_u64(qf_str_sub(text, (size_t)(slash - text.data) + 1, text.len), ret_size);
}

/* The answer must be the very range that was asked for, cut only by the end of the object. */
static qf_rc range_check(void *ctx, const struct http_response *response, struct qf_err *err)
{
    struct range_read *read = ctx;
    uint64_t first = 0, last = 0, size = 0, want_first, want_last;
    struct qf_str range = http_header(response, "content-range");

    if (response->status == 200 && (read->suffix || read->offset == 0)) {
        /* A server may send all of an object that is no longer than the range. */
        first = 0;
        size = read->len;
        last = size - 1;
    } else if (response->status != 206 || !parse_content_range(range, &first, &last, &size)) {
        return qf_err_set(err, QF_EPROTO, "%.*s: the server ignores ranges",
                          QF_STR_ARG(read->name));
    }
    want_first = !read->suffix ? read->offset : size > read->capacity ? size - read->capacity : 0;
    want_last = size - want_first > read->capacity ? want_first + read->capacity - 1 : size - 1;
    if (first != want_first || last != want_last || read->len != last - first + 1)
        return qf_err_set(err, QF_ECORRUPT,
                          "%.*s: %zu bytes came as range \"%.*s\", not those asked for",
                          QF_STR_ARG(read->name), read->len, QF_STR_ARG(range));
    read->size = size;
    return QF_OK;
}

static qf_rc read_range(struct range_read *read, const char *header,
                        const struct sg_store_limit *limit, struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct s3_request request = {
        .method = "GET",
        .name = read->name,
        .headers = { header },
        .header_count = 1,
        .sink = range_sink,
        .sink_ctx = read,
        .restart = range_restart,
        .check = range_check,
        .what = "read",
    };
    struct qf_err why = { 0 };
    qf_rc rc = s3_perform(read->store, &request, limit, &response, &why);

    if (read->err.rc)
        return qf_err_set(err, read->err.rc, "%s", read->err.msg);
    if (rc == QF_EIO && !why.msg[0]) /* the sink refused */
        return qf_err_set(err, QF_EPROTO, "%.*s: the server sends more than the range asked for",
                          QF_STR_ARG(read->name));
    if (rc)
        return qf_err_set(err, rc, "%s", why.msg);
    if (response.status == 416) {
        /* Nothing there: an empty object, or an offset at or beyond the end. */
        read->len = 0;
        read->size = 0;
    }
    atomic_fetch_add_explicit(&read->store->base.bytes_read, read->len, memory_order_relaxed);
    return QF_OK;
}

static qf_rc s3_read(struct sg_store *base, struct qf_str name, uint64_t offset, void *buf,
                     size_t len, const struct sg_store_limit *limit, size_t *ret_len,
                     struct qf_err *err)
{
    struct range_read read = { .store = (struct s3_store *)base,
                               .name = name,
                               .buf = buf,
                               .capacity = len,
                               .offset = offset };
    char header[80];
    qf_rc rc;

    (void)snprintf(header, sizeof(header), "Range: bytes=%llu-%llu", (unsigned long long)offset,
                   (unsigned long long)(offset + len - 1));
    rc = read_range(&read, header, limit, err);
    if (!rc)
        *ret_len = read.len;
    return rc;
}

static qf_rc s3_read_tail(struct sg_store *base, struct qf_str name, void *buf, size_t len,
                          const struct sg_store_limit *limit, size_t *ret_len, uint64_t *ret_size,
                          struct qf_err *err)
{
    struct range_read read = {
        .store = (struct s3_store *)base, .name = name, .buf = buf, .capacity = len, .suffix = true
    };
    char header[64];
    qf_rc rc;

    (void)snprintf(header, sizeof(header), "Range: bytes=-%zu", len);
    rc = read_range(&read, header, limit, err);
    if (!rc) {
        *ret_len = read.len;
        *ret_size = read.size;
    }
    return rc;
}

static qf_rc s3_read_part(struct sg_store *base, struct qf_str name,
                          const struct sg_store_part *part, const struct sg_store_sink *sink,
                          const struct sg_store_limit *limit, struct qf_err *err)
{
    struct range_read read = { .store = (struct s3_store *)base,
                               .name = name,
                               .fd = sink->fd,
                               .etag = sink->etag,
                               .capacity = part->len,
                               .offset = part->offset };
    char header[80];
    qf_rc rc;

    (void)snprintf(header, sizeof(header), "Range: bytes=%llu-%llu",
                   (unsigned long long)part->offset,
                   (unsigned long long)(part->offset + part->len - 1));
    rc = read_range(&read, header, limit, err);
    if (!rc && read.size != part->object_size)
        return qf_err_set(err, QF_ENOTFOUND, "%.*s has %llu bytes, not %llu", QF_STR_ARG(name),
                          (unsigned long long)read.size, (unsigned long long)part->object_size);
    return rc;
}

/* --- whole objects, verified --- */

struct whole_read {
    struct s3_store *store;
    struct qf_str name;
    const struct sg_store_sink *sink;
    uint64_t len;
    struct digest *digest; /* NULL: nothing to compare with */
    enum digest_kind kind;
    char want[2 * DIGEST_BYTES_MAX + 1]; /* hex */
    bool started;
    struct qf_err err; /* of the sink */
};

static void whole_restart(void *ctx)
{
    struct whole_read *read = ctx;

    read->len = 0;
    read->started = false;
    read->digest = digest_free(read->digest);
}

static bool is_hex(struct qf_str text, size_t len)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return text.len == len;
}

/* Which checksum the headers offer: our own, Amazon's of the whole object, or the MD5 that the ETag
 * of an object is which went up in one piece and is not encrypted with a key of its own. */
static void choose_digest(struct whole_read *read, const struct http_response *response)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf hex = QF_STRBUF_INIT, raw = QF_STRBUF_INIT;
    struct qf_str ours = http_header(response, S3_SHA256_HEADER);
    struct qf_str amazons = http_header(response, "x-amz-checksum-sha256");
    struct qf_str etag = s3_etag(http_header(response, "etag"));
    struct qf_str encryption = http_header(response, "x-amz-server-side-encryption");
    struct qf_str key = http_header(response, "x-amz-server-side-encryption-customer-algorithm");

    read->started = true;
    if (is_hex(ours, 64)) {
        qf_strbuf_str(&hex, ours);
        read->kind = DIGEST_SHA256;
    } else if (amazons.len && qf_base64_decode(&raw, amazons) && raw.len == 32) {
        qf_strbuf_hex(&hex, raw.data, raw.len);
        read->kind = DIGEST_SHA256;
    } else if (is_hex(etag, 32) && !read->store->opaque_etags && !key.len &&
               (!encryption.len || qf_str_is(encryption, "AES256"))) {
        qf_strbuf_str(&hex, etag);
        read->kind = DIGEST_MD5;
    } else {
        return;
    }
    (void)snprintf(read->want, sizeof(read->want), "%s", qf_strbuf_cstr(&hex));
    read->digest = digest_new(read->kind);
}

static void begin_whole(struct whole_read *read, const struct http_response *response)
{
    choose_digest(read, response);
    (void)check_etag(read->name, read->sink->etag, response, &read->err);
}

static bool whole_sink(void *ctx, const struct http_response *response, const void *data,
                       size_t len)
{
    struct whole_read *read = ctx;

    if (!read->started)
        begin_whole(read, response);
    if (read->err.rc)
        return false;
    if (len > read->sink->capacity - read->len) {
        (void)qf_err_set(&read->err, QF_ELIMIT, "%.*s has more than the expected %zu bytes",
                         QF_STR_ARG(read->name), read->sink->capacity);
    } else if (read->sink->fd >= 0) {
        (void)write_copy(read->name, read->sink->fd, data, len, read->len, &read->err);
    } else {
        memcpy(read->sink->buf + read->len, data, len);
    }
    if (read->err.rc)
        return false;
    if (read->digest)
        digest_add(read->digest, data, len);
    read->len += len;
    return true;
}

static qf_rc whole_check(void *ctx, const struct http_response *response, struct qf_err *err)
{
    struct whole_read *read = ctx;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf hex = QF_STRBUF_INIT;
    unsigned char bytes[DIGEST_BYTES_MAX];
    uint64_t promised;

    if (!read->started)
        begin_whole(read, response); /* an empty object */
    if (content_length(response, read->name, &promised, NULL) == QF_OK && promised != read->len)
        return qf_err_set(err, QF_ECORRUPT, "%.*s: %llu of %llu bytes came", QF_STR_ARG(read->name),
                          (unsigned long long)read->len, (unsigned long long)promised);
    if (!read->digest)
        return QF_OK;
    qf_strbuf_hex(&hex, bytes, digest_finish(read->digest, bytes));
    if (strcmp(qf_strbuf_cstr(&hex), read->want) != 0)
        return qf_err_set(err, QF_ECORRUPT, "%.*s: wrong checksum: %s is %s, promised was %s",
                          QF_STR_ARG(read->name), read->kind == DIGEST_MD5 ? "MD5" : "SHA-256",
                          qf_strbuf_cstr(&hex), read->want);
    return QF_OK;
}

static qf_rc s3_read_whole(struct sg_store *base, struct qf_str name,
                           const struct sg_store_sink *sink, const struct sg_store_limit *limit,
                           uint64_t *ret_size, struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct whole_read read = { .store = (struct s3_store *)base, .name = name, .sink = sink };
    struct s3_request request = {
        .method = "GET",
        .name = name,
        .headers = { "x-amz-checksum-mode: ENABLED" },
        .header_count = 1,
        .sink = whole_sink,
        .sink_ctx = &read,
        .restart = whole_restart,
        .check = whole_check,
        .what = "read",
    };
    struct qf_err why = { 0 };
    qf_rc rc = s3_perform(read.store, &request, limit, &response, &why);

    read.digest = digest_free(read.digest);
    if (read.err.rc)
        return qf_err_set(err, read.err.rc, "%s", read.err.msg);
    if (rc)
        return qf_err_set(err, rc, "%s", why.msg);
    if (sink->fd >= 0 && ftruncate(sink->fd, (off_t)read.len))
        return qf_err_set(err, sg_store_rc_from_errno(errno), "%.*s: cannot cut a copy of it: %s",
                          QF_STR_ARG(name), strerror(errno));
    atomic_fetch_add_explicit(&base->bytes_read, read.len, memory_order_relaxed);
    *ret_size = read.len;
    return QF_OK;
}

static qf_rc s3_remove(struct sg_store *base, struct qf_str name,
                       const struct sg_store_limit *limit, struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct s3_request request = { .method = "DELETE", .name = name, .what = "delete" };
    struct qf_err why = { 0 };
    qf_rc rc = s3_perform((struct s3_store *)base, &request, limit, &response, &why);

    /* Amazon answers 204 for an object that is not there, others 404; both are fine. A missing
     * bucket is an error. */
    if (rc == QF_ENOTFOUND && !s3_bucket_missing(&response))
        return QF_OK;
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

const struct sg_store_ops s3_ops = {
    .list = s3_list,
    .folders = s3_folders,
    .stat = s3_stat,
    .read = s3_read,
    .read_tail = s3_read_tail,
    .read_whole = s3_read_whole,
    .read_part = s3_read_part,
    .put = s3_put,
    .put_new = s3_put_new,
    .clock = s3_clock,
    .remove = s3_remove,
    .sweep = s3_sweep,
    .close = s3_close,
    .has_tokens = false,
};
