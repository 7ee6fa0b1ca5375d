/* s3_put.c - one PUT, or parts that become an object at once when the last is there.
 *
 * Every request carries the SHA-256 of its body, which the signature covers, and its MD5; the
 * SHA-256 of the whole object is kept with it for readers. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/base64.h"
#include "base/pure/hex.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "segments/store/digest.h"
#include "segments/store/s3_int.h"
#include "segments/store/xml.h"

#define CHUNK_BYTES ((size_t)1 << 18)
#define PARTS_MAX 10000  /* S3's own */
#define PARTS_WORTH_IT 4 /* smaller objects go up in one request */
#define PART_ALIGN (UINT64_C(1) << 20)
#define PUT_BYTES_MAX (UINT64_C(5) << 30) /* S3's limit for one request */
#define ABORT_TIMEOUT_MS 10000

/* Checksums of a range of the bytes to put. */
struct sums {
    char sha256[65]; /* hex */
    char md5[33];    /* hex */
    char md5_header[64];
};

static qf_rc add_range(const struct sg_store_bytes *bytes, uint64_t offset, uint64_t len,
                       struct digest *sha256, struct digest *md5, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *chunk = bytes->data ? NULL : qf_xmalloc(CHUNK_BYTES);

    while (len) {
        size_t want = len < CHUNK_BYTES ? (size_t)len : CHUNK_BYTES;
        const char *data = bytes->data ? bytes->data + offset : chunk;
        ssize_t got = (ssize_t)want;

        if (chunk)
            got = pread(bytes->fd, chunk, want, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return qf_err_set(err, sg_store_rc_from_errno(errno), "cannot read what to put: %s",
                              strerror(errno));
        if (got == 0)
            return qf_err_set(err, QF_EIO, "the file to put ends at byte %llu of %llu",
                              (unsigned long long)offset, (unsigned long long)bytes->size);
        digest_add(sha256, data, (size_t)got);
        if (md5)
            digest_add(md5, data, (size_t)got);
        offset += (uint64_t)got;
        len -= (uint64_t)got;
    }
    return QF_OK;
}

static void finish_hex(struct digest *digest, char *out, size_t size, struct qf_strbuf *base64)
{
    unsigned char raw[DIGEST_BYTES_MAX];
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf hex = QF_STRBUF_INIT;
    size_t len = digest_finish(digest, raw);

    qf_strbuf_hex(&hex, raw, len);
    (void)snprintf(out, size, "%s", qf_strbuf_cstr(&hex));
    if (base64)
        qf_base64_encode(base64, (struct qf_str){ (const char *)raw, len });
}

static qf_rc sum_range(struct qf_str name, const struct sg_store_bytes *bytes, uint64_t offset,
                       uint64_t len, struct sums *ret, struct qf_err *err)
{
    QF_CLEANUP(digest_freep) struct digest *sha256 = digest_new(DIGEST_SHA256);
    QF_CLEANUP(digest_freep) struct digest *md5 = digest_new(DIGEST_MD5);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf base64 = QF_STRBUF_INIT;
    qf_rc rc = add_range(bytes, offset, len, sha256, md5, err);

    if (rc)
        return qf_err_prefix(err, rc, "%.*s", QF_STR_ARG(name));
    finish_hex(sha256, ret->sha256, sizeof(ret->sha256), NULL);
    finish_hex(md5, ret->md5, sizeof(ret->md5), &base64);
    (void)snprintf(ret->md5_header, sizeof(ret->md5_header), "Content-MD5: %s",
                   qf_strbuf_cstr(&base64));
    return QF_OK;
}

/* The ETag of an object put in one piece is its MD5, unless the URL says that the server has
 * others. */
static qf_rc check_etag(const struct s3_store *store, struct qf_str name, const struct sums *sums,
                        const struct http_response *response, struct qf_err *err)
{
    struct qf_str etag = s3_etag(http_header(response, "etag"));
    struct qf_str encryption = http_header(response, "x-amz-server-side-encryption");

    if (store->opaque_etags || etag.len != 32 ||
        (encryption.len && !qf_str_is(encryption, "AES256")) || qf_str_is(etag, sums->md5))
        return QF_OK;
    return qf_err_set(err, QF_ECORRUPT, "%.*s: the server has MD5 %.*s, sent was %s",
                      QF_STR_ARG(name), QF_STR_ARG(etag), sums->md5);
}

/* @condition: a header more, or NULL. */
static qf_rc put_whole(struct s3_store *store, struct qf_str name, const char *condition,
                       const struct sg_store_bytes *bytes, const struct sg_store_limit *limit,
                       struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct sums sums;
    char meta[sizeof(S3_SHA256_HEADER) + 70];
    struct s3_request request = {
        .method = "PUT",
        .name = name,
        .body = bytes,
        .body_len = bytes->size,
        .body_sha256 = sums.sha256,
        .headers = { sums.md5_header, meta, "Content-Type: application/vnd.apache.parquet",
                     condition },
        .header_count = condition ? 4 : 3,
        .what = "put",
    };
    qf_rc rc = sum_range(name, bytes, 0, bytes->size, &sums, err);

    (void)snprintf(meta, sizeof(meta), S3_SHA256_HEADER ": %s", rc ? "" : sums.sha256);
    if (!rc)
        rc = s3_perform(store, &request, limit, &response, err);
    if (rc && condition && response.status == 501)
        return qf_err_set(err, QF_EUNSUPPORTED, "%s: the server has no conditional PUT",
                          store->base.url);
    return rc ? rc : check_etag(store, name, &sums, &response, err);
}

/* --- parts --- */

struct upload {
    struct s3_store *store;
    struct qf_str name;
    const struct sg_store_bytes *bytes;
    const struct sg_store_limit *limit;
    uint64_t part_bytes;
    char sha256[65];        /* of the whole object */
    struct qf_strbuf id;    /* escaped for a query */
    struct qf_strbuf parts; /* the body of the last request */
};

static qf_rc on_upload_id(void *ctx, const struct xml_element *element, struct qf_err *err)
{
    struct qf_strbuf *id = ctx;

    (void)err;
    if (qf_str_is(element->name, "UploadId"))
        s3_escape(id, element->text, false);
    return QF_OK;
}

static qf_rc begin_upload(struct upload *upload, struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    char meta[sizeof(S3_SHA256_HEADER) + 70];
    struct s3_request request = {
        .method = "POST",
        .name = upload->name,
        .query = "uploads=",
        .headers = { meta, "Content-Type: application/vnd.apache.parquet" },
        .header_count = 2,
        .what = "begin the upload of",
    };
    qf_rc rc;

    (void)snprintf(meta, sizeof(meta), S3_SHA256_HEADER ": %s", upload->sha256);
    rc = s3_perform(upload->store, &request, upload->limit, &response, err);
    if (!rc)
        rc = xml_parse(qf_strbuf_view(&response.body), on_upload_id, &upload->id, err);
    if (!rc && !upload->id.len)
        rc = qf_err_set(err, QF_EPROTO, "%.*s: an upload began without an id",
                        QF_STR_ARG(upload->name));
    return rc;
}

static qf_rc put_part(struct upload *upload, unsigned number, struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf query = QF_STRBUF_INIT;
    struct sums sums;
    uint64_t offset = (number - 1) * upload->part_bytes;
    uint64_t left = upload->bytes->size - offset;
    struct s3_request request = {
        .method = "PUT",
        .name = upload->name,
        .body = upload->bytes,
        .body_offset = offset,
        .body_len = left < upload->part_bytes ? left : upload->part_bytes,
        .body_sha256 = sums.sha256,
        .headers = { sums.md5_header },
        .header_count = 1,
        .what = "put a part of",
    };
    struct qf_str etag;
    qf_rc rc = sum_range(upload->name, upload->bytes, offset, request.body_len, &sums, err);

    qf_strbuf_printf(&query, "partNumber=%u&uploadId=%s", number, qf_strbuf_cstr(&upload->id));
    request.query = qf_strbuf_cstr(&query);
    if (!rc)
        rc = s3_perform(upload->store, &request, upload->limit, &response, err);
    if (!rc)
        rc = check_etag(upload->store, upload->name, &sums, &response, err);
    if (rc)
        return rc;
    etag = s3_etag(http_header(&response, "etag"));
    if (!etag.len || memchr(etag.data, '<', etag.len) || memchr(etag.data, '&', etag.len))
        return qf_err_set(err, QF_EPROTO, "%.*s: part %u has no ETag", QF_STR_ARG(upload->name),
                          number);
    qf_strbuf_printf(&upload->parts,
                     "<Part><PartNumber>%u</PartNumber><ETag>\"%.*s\"</ETag></Part>", number,
                     QF_STR_ARG(etag));
    return QF_OK;
}

static qf_rc on_complete_element(void *ctx, const struct xml_element *element, struct qf_err *err)
{
    bool *complete = ctx;

    (void)err;
    if (element->depth == 0)
        *complete = qf_str_is(element->name, "CompleteMultipartUploadResult");
    return QF_OK;
}

/* The status line comes before the parts are joined, so a 200 may yet hold an error. Such ones are
 * worth another try. */
static qf_rc check_complete(void *ctx, const struct http_response *response, struct qf_err *err)
{
    const struct upload *upload = ctx;
    bool complete = false;

    if (xml_parse(qf_strbuf_view(&response->body), on_complete_element, &complete, NULL) ||
        !complete)
        return qf_err_set(err, QF_EIO, "%.*s: the parts were not joined: %.300s",
                          QF_STR_ARG(upload->name), qf_strbuf_cstr(&response->body));
    return QF_OK;
}

/* True if the object is there as it should be: an answer that got lost may have been "done". */
static bool arrived(const struct upload *upload)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct s3_request request = { .method = "HEAD", .name = upload->name, .what = "look at" };

    return s3_perform(upload->store, &request, upload->limit, &response, NULL) == QF_OK &&
           qf_str_is(http_header(&response, S3_SHA256_HEADER), upload->sha256);
}

static qf_rc complete_upload(struct upload *upload, struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf query = QF_STRBUF_INIT, body = QF_STRBUF_INIT;
    struct sg_store_bytes bytes = { .fd = -1 };
    struct sums sums;
    struct s3_request request = {
        .method = "POST",
        .name = upload->name,
        .body = &bytes,
        .body_sha256 = sums.sha256,
        .headers = { "Content-Type: application/xml" },
        .header_count = 1,
        .sink_ctx = upload,
        .check = check_complete,
        .what = "join the parts of",
    };
    struct qf_err why = { 0 };
    qf_rc rc;

    qf_strbuf_printf(&query, "uploadId=%s", qf_strbuf_cstr(&upload->id));
    qf_strbuf_puts(&body, "<CompleteMultipartUpload "
                          "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    qf_strbuf_str(&body, qf_strbuf_view(&upload->parts));
    qf_strbuf_puts(&body, "</CompleteMultipartUpload>");
    bytes.data = body.data;
    bytes.size = request.body_len = body.len;
    request.query = qf_strbuf_cstr(&query);
    rc = sum_range(upload->name, &bytes, 0, bytes.size, &sums, err);
    if (!rc)
        rc = s3_perform(upload->store, &request, upload->limit, &response, &why);
    if (rc == QF_ENOTFOUND && arrived(upload))
        return QF_OK;
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

qf_rc s3_abort_upload(struct s3_store *store, struct qf_str name, struct qf_str upload_id,
                      const struct sg_store_limit *limit, struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf query = QF_STRBUF_INIT;
    struct s3_request request = { .method = "DELETE", .name = name, .what = "abort the upload of" };
    struct qf_err why = { 0 };
    qf_rc rc;

    qf_strbuf_puts(&query, "uploadId=");
    s3_escape(&query, upload_id, false);
    request.query = qf_strbuf_cstr(&query);
    rc = s3_perform(store, &request, limit, &response, &why);
    if (rc == QF_ENOTFOUND)
        return QF_OK; /* It ended meanwhile. */
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

static void give_up_upload(struct upload *upload)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf id = QF_STRBUF_INIT;
    /* Not the caller's limit: an upload that was canceled must not leave parts behind. */
    struct sg_store_limit limit = { .deadline_ms = qf_clock_mono_ms() + ABORT_TIMEOUT_MS };

    if (upload->id.len && s3_unescape(&id, qf_strbuf_view(&upload->id), false))
        (void)!s3_abort_upload(upload->store, upload->name, qf_strbuf_view(&id), &limit, NULL);
}

static uint64_t choose_part_bytes(const struct s3_store *store, uint64_t size)
{
    uint64_t least = (size + PARTS_MAX - 1) / PARTS_MAX;

    if (least <= store->part_bytes)
        return store->part_bytes;
    return (least + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

static qf_rc put_parts(struct s3_store *store, struct qf_str name,
                       const struct sg_store_bytes *bytes, const struct sg_store_limit *limit,
                       struct qf_err *err)
{
    struct upload upload = { .store = store,
                             .name = name,
                             .bytes = bytes,
                             .limit = limit,
                             .part_bytes = choose_part_bytes(store, bytes->size) };
    QF_CLEANUP(digest_freep) struct digest *sha256 = digest_new(DIGEST_SHA256);
    uint64_t count = (bytes->size + upload.part_bytes - 1) / upload.part_bytes;
    qf_rc rc = add_range(bytes, 0, bytes->size, sha256, NULL, err);

    finish_hex(sha256, upload.sha256, sizeof(upload.sha256), NULL);
    if (!rc)
        rc = begin_upload(&upload, err);
    for (unsigned number = 1; !rc && number <= count; number++)
        rc = put_part(&upload, number, err);
    if (!rc)
        rc = complete_upload(&upload, err);
    if (rc)
        give_up_upload(&upload);
    qf_strbuf_done(&upload.id);
    qf_strbuf_done(&upload.parts);
    return rc;
}

qf_rc s3_put(struct sg_store *base, struct qf_str name, const struct sg_store_bytes *bytes,
             const struct sg_store_limit *limit, struct qf_err *err)
{
    struct s3_store *store = (struct s3_store *)base;

    if (bytes->size > PARTS_WORTH_IT * store->part_bytes || bytes->size > PUT_BYTES_MAX)
        return put_parts(store, name, bytes, limit, err);
    return put_whole(store, name, NULL, bytes, limit, err);
}

qf_rc s3_put_new(struct sg_store *base, struct qf_str name, const struct sg_store_bytes *bytes,
                 const struct sg_store_limit *limit, struct qf_err *err)
{
    return put_whole((struct s3_store *)base, name, "If-None-Match: *", bytes, limit, err);
}
