/* request.h - one HTTP request, read whole: what routes decide on. */
#ifndef BASE_HTTP_REQUEST_H
#define BASE_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/http/coding.h"
#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"

enum qh_method {
    QH_METHOD_GET = 1,
    QH_METHOD_POST = 2,
    QH_METHOD_HEAD = 4,
    QH_METHOD_OPTIONS = 8,
    QH_METHOD_DELETE = 16,
    QH_METHOD_OTHER = 32,
    QH_METHOD_PUT = 64,
};

struct qh_param {
    struct qf_str name, value;
};

/* Names and values; parameters in the order in which they count: those of the body before those of
 * the URL. */
struct qh_params {
    struct qh_param *items;
    size_t count, capacity;
};

struct qh_request {
    struct qf_arena *arena; /* everything below lives here */
    enum qh_method method;
    struct qf_str path;  /* decoded, without the query string */
    struct qf_str query; /* what stands behind '?', as it came */
    struct qh_params params;
    struct qf_str body;
    struct qh_params headers;   /* in the order in which they came */
    struct qf_str content_type; /* without its parameters, lower case */
    enum qh_coding coding;      /* that the client wants answers in */
    /* The client showed a certificate of qh_listener_options.tls_client_ca_file, or none is asked
     * for. */
    bool peer_verified;
    void *note; /* of whoever handles it, until it is told that the exchange is over */
};

/* The value of the header @name, in any case; empty if there is none. */
struct qf_str qh_request_header(const struct qh_request *request, const char *name);
/* Fill what is made from headers: content_type and coding. */
void qh_request_read_headers(struct qh_request *request);

/* The body holds form parameters; those of GET and DELETE have no meaning. `curl -d '{...}'` calls
 * JSON a form too, and no parameter of ours starts with a brace. */
bool qh_request_has_form(const struct qh_request *request);
/* The same in the coding of file uploads. */
bool qh_request_has_multipart(const struct qh_request *request);
/* Fill params: those of a form in the body come first, then the URL's, then those of a body in the
 * coding of file uploads. QF_ELIMIT: too many, or the budget is spent. */
QF_MUST_CHECK qf_rc qh_request_read_params(struct qh_request *request, struct qf_err *err);

#endif
