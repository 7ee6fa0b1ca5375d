/* keep_client.h - talk to keepers (ring/wire/keeper.h). Calls block; any thread.
 *
 * Errors, beside those of http.h; the message names the keeper:
 *   QF_ENOTFOUND     it has no such blob or document
 *   QF_EGONE         it knows a later epoch of the slot: `answer->epoch`
 *   QF_EUNAVAILABLE  it cannot be reached, is busy, or its disk is new and was not told the epochs (`answer->told`)
 *   QF_ENOSPC        it has no room
 *   QF_ECORRUPT      what came, or what it holds, does not have the checksum
 *   QF_EEXIST        a document is not what the put says that it replaces
 *   QF_EDENIED, QF_EAUTH, QF_EPROTO */
#ifndef SEGMENTS_STORE_KEEP_CLIENT_H
#define SEGMENTS_STORE_KEEP_CLIENT_H

#include "base/pure/strbuf.h"
#include "ring/wire/keeper.h"
#include "segments/store/call.h"

struct sg_keep_client;

struct sg_keep_client_options {
    const char
        *key_file;       /* a line with the key that keepers and ingest nodes ask for; NULL: none */
    const char *ca_file; /* who signs their certificates (PEM); NULL: the system's authorities */
    const char *cert_file, *cert_key_file; /* shown to those that ask for one (PEM); NULL: none */
    int64_t connect_timeout_ms;            /* 0: 2 s */
    int64_t stall_timeout_ms;              /* 0: 20 s */
};

/* NULL and @err: the key, the certificate or its key cannot be read; QF_EINVAL: only one of the latter is named. */
struct sg_keep_client *sg_keep_client_new(const struct sg_keep_client_options *options,
                                          struct qf_err *err);
/* Accepts NULL, returns NULL. */
struct sg_keep_client *sg_keep_client_free(struct sg_keep_client *client);

/* What a keeper says of itself with every answer. Zero: it did not answer. */
struct sg_keep_answer {
    int status; /* of HTTP */
    uint64_t incarnation;
    bool told;
    uint64_t epoch; /* that it knows of the slot, if it refused an older one */
    struct rg_sum sum;
    uint64_t size; /* of a blob: HEAD */
    bool fresh;    /* PUT of a blob: it was not there */
};

/* XXH3-128 of @bytes. QF_EIO: the file cannot be read. */
QF_MUST_CHECK qf_rc sg_keep_sum(const struct sg_store_bytes *bytes, struct rg_sum *ret_sum,
                                struct qf_err *err);

/* Put a blob: @query has name, slot and epoch, and the sum of @bytes. The keeper at @url ("http://host:port") has it,
 * durably, once this is QF_OK. */
QF_MUST_CHECK qf_rc sg_keep_put(struct sg_keep_client *client, const char *url,
                                const struct rg_keep_query *query,
                                const struct sg_store_bytes *bytes,
                                const struct sg_store_limit *limit,
                                struct sg_keep_answer *ret_answer, struct qf_err *err);

/* Where the bytes of a blob go. */
struct sg_keep_range {
    uint64_t offset, len; /* len 0: all of it, and the checksum is verified */
    char *buf;            /* or: */
    int fd;               /* -1: the buffer; else written from file_offset on */
    uint64_t file_offset;
    uint64_t bytes_max; /* of all of it; more: QF_ELIMIT */
};
/* Get a blob, or a part; *ret_len is less than range->len where the blob ends. */
QF_MUST_CHECK qf_rc sg_keep_get(struct sg_keep_client *client, const char *url,
                                const struct rg_keep_query *query,
                                const struct sg_keep_range *range,
                                const struct sg_store_limit *limit, uint64_t *ret_len,
                                struct sg_keep_answer *ret_answer, struct qf_err *err);

/* Anything else: @method of @path with @query and @body (empty: none). @ret_body may be NULL. */
QF_MUST_CHECK qf_rc sg_keep_ask(struct sg_keep_client *client, const char *url, const char *method,
                                const char *path, const struct rg_keep_query *query,
                                struct qf_str body, const struct sg_store_limit *limit,
                                struct qf_strbuf *ret_body, struct sg_keep_answer *ret_answer,
                                struct qf_err *err);

/* GET of @url, any path and query of a keeper or an ingest node, with the key. @body_max: of the answer. */
QF_MUST_CHECK qf_rc sg_keep_fetch(struct sg_keep_client *client, const char *url, size_t body_max,
                                  const struct sg_store_limit *limit, struct qf_strbuf *ret_body,
                                  struct qf_err *err);
/* POST likewise. An answer of 4xx or 5xx is an error with what the server said. */
QF_MUST_CHECK qf_rc sg_keep_post(struct sg_keep_client *client, const char *url, struct qf_str body,
                                 size_t body_max, const struct sg_store_limit *limit,
                                 struct qf_strbuf *ret_body, struct qf_err *err);

#endif
