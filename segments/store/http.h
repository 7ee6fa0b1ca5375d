/* http.h - one HTTP exchange at a time through libcurl, over connections that are kept and shared.
 *
 * Knows nothing of S3 but how libcurl signs. Any number of threads may use one client. */
#ifndef SEGMENTS_STORE_HTTP_H
#define SEGMENTS_STORE_HTTP_H

#include "base/pure/strbuf.h"
#include "segments/store/call.h"

struct http_client;
struct qf_tls_files;

struct http_options {
    int64_t connect_timeout_ms, stall_timeout_ms;
    const char *ca_file; /* NULL: the system's certificates */
    struct qf_tls_files
        *identity; /* certificate and key to show to servers that ask, borrowed; NULL: none */
};

struct http_client *http_client_new(const struct http_options *options);
struct http_client *http_client_free(struct http_client *client); /* Accepts NULL, returns NULL. */

struct http_response {
    long status;
    struct qf_strbuf headers; /* lines "name: value\n", names in lower case */
    struct qf_strbuf body;    /* unless a sink took it */
    uint64_t body_bytes;      /* received, wherever they went */
};

void http_response_done(struct http_response *response);
/* The value of a header, or an empty string; @name in lower case. */
struct qf_str http_header(const struct http_response *response, const char *name);

#define HTTP_HEADERS_MAX 16

struct http_request {
    const char *method; /* GET HEAD PUT POST DELETE */
    const char *url;
    const char *headers[HTTP_HEADERS_MAX]; /* "Name: value"; all are signed */
    size_t header_count;

    const char *sign; /* "aws:amz:region:service"; NULL: no signature */
    const char *access_key, *secret_key;

    const struct sg_store_bytes *body; /* NULL: none */
    uint64_t body_offset, body_len;    /* the part of it to send */

    /* Takes the body of a 2xx answer piece by piece, once the headers are complete; false ends the
     * exchange with QF_EIO and the sink fills its own error. NULL: collected in response->body. */
    bool (*sink)(void *ctx, const struct http_response *response, const void *data, size_t len);
    void *sink_ctx;
    size_t body_max; /* what is collected at most; 0: 64 KiB */

    bool no_proxy; /* for addresses inside this machine or pod */
};

/* Send @request and wait for the whole answer, whatever its status. @response is emptied first.
 *
 * QF_EUNAVAILABLE  the connection could not be made, broke or stalled: another try may succeed
 * QF_EIO           another try will not: a certificate nobody vouches for, a sink that refused
 * QF_ELIMIT        more than body_max
 * QF_ECANCELED, QF_ETIMEOUT  @limit ended it */
QF_MUST_CHECK qf_rc http_perform(struct http_client *client, const struct http_request *request,
                                 const struct sg_store_limit *limit, struct http_response *response,
                                 struct qf_err *err);

#endif
