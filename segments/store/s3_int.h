/* s3_int.h - what the files of the S3 store share. */
#ifndef SEGMENTS_STORE_S3_INT_H
#define SEGMENTS_STORE_S3_INT_H

#include "base/pure/strbuf.h"
#include "segments/store/credentials.h"
#include "segments/store/http.h"
#include "segments/store/store_int.h"

/* Our own checksum of a whole object: S3's ETag is none for objects that went up in parts. */
#define S3_SHA256_HEADER "x-amz-meta-promfabric-sha256"

struct s3_store {
    struct sg_store base;
    char *bucket;
    char *key_prefix; /* "" or "some/prefix/" */
    char *root;       /* URL of the bucket with a trailing '/' */
    char *region;
    char *sign; /* libcurl's "aws:amz:region:s3" */
    bool anonymous, opaque_etags;
    unsigned attempts_max;
    int64_t backoff_min_ms, backoff_max_ms;
    uint64_t part_bytes;
    struct http_client *http;
    struct credentials_source *credentials;
};

extern const struct sg_store_ops s3_ops;

/* One kind of request; see s3_perform(). */
struct s3_request {
    const char *method;
    struct qf_str name; /* of the object; empty: the bucket */
    const char *query;  /* sorted by parameter and encoded, without '?'; NULL: none */
    const char *headers[8];
    size_t header_count;
    const struct sg_store_bytes *body;
    uint64_t body_offset, body_len;
    const char *body_sha256; /* hex; NULL: there is no body */
    bool (*sink)(void *ctx, const struct http_response *response, const void *data, size_t len);
    void *sink_ctx;
    /* Called before each attempt, so that a sink starts afresh. May be NULL. */
    void (*restart)(void *ctx);
    /* Looks at a 2xx answer once it is complete; QF_ECORRUPT is retried. May be NULL. */
    qf_rc (*check)(void *ctx, const struct http_response *response, struct qf_err *err);
    size_t body_max;
    const char *what; /* "read", "list": for messages */
};

/* Sign and send, again after a pause for what may pass (5xx, broken connections, wrong checksums,
 * expired keys), until a 2xx answer, which is QF_OK; or 416 for a request with a range. Other
 * statuses are the errors that store.h lists. */
QF_MUST_CHECK qf_rc s3_perform(struct s3_store *store, const struct s3_request *request,
                               const struct sg_store_limit *limit, struct http_response *response,
                               struct qf_err *err);

/* Does the answer say that there is no such bucket, in place of no such object? */
bool s3_bucket_missing(const struct http_response *response);

/* Append with everything escaped but unreserved characters, and '/' too unless @path. */
void s3_escape(struct qf_strbuf *buf, struct qf_str text, bool path);
/* Append decoded; false on a bad escape. */
bool s3_unescape(struct qf_strbuf *buf, struct qf_str text, bool plus_is_space);

/* An ETag without its quotes. */
struct qf_str s3_etag(struct qf_str text);

qf_rc s3_list(struct sg_store *base, struct qf_str prefix, struct qf_str start_after,
              const struct sg_store_limit *limit, sg_store_list_fn *fn, void *ctx,
              struct qf_err *err);
qf_rc s3_folders(struct sg_store *base, struct qf_str prefix, const struct sg_store_limit *limit,
                 sg_store_folder_fn *fn, void *ctx, struct qf_err *err);
qf_rc s3_sweep(struct sg_store *base, int64_t age_ms, bool dry_run,
               const struct sg_store_limit *limit, size_t *ret_removed, struct qf_err *err);
qf_rc s3_put(struct sg_store *base, struct qf_str name, const struct sg_store_bytes *bytes,
             const struct sg_store_limit *limit, struct qf_err *err);
qf_rc s3_put_new(struct sg_store *base, struct qf_str name, const struct sg_store_bytes *bytes,
                 const struct sg_store_limit *limit, struct qf_err *err);
qf_rc s3_clock(struct sg_store *base, const struct sg_store_limit *limit, int64_t *ret_ms,
               struct qf_err *err);
qf_rc s3_stat(struct sg_store *base, struct qf_str name, const struct sg_store_limit *limit,
              struct sg_store_info *ret_info, struct qf_err *err);

/* Forget an unfinished upload. */
QF_MUST_CHECK qf_rc s3_abort_upload(struct s3_store *store, struct qf_str name,
                                    struct qf_str upload_id, const struct sg_store_limit *limit,
                                    struct qf_err *err);

#endif
