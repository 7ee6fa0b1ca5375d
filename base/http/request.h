/* request.h - one HTTP request, read whole: what routes decide on. */
#ifndef BASE_HTTP_REQUEST_H
#define BASE_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/arena.h"
#include "base/pure/slice.h"

enum qh_method {
    QH_METHOD_GET = 1,
    QH_METHOD_POST = 2,
    QH_METHOD_HEAD = 4,
    QH_METHOD_OPTIONS = 8,
    QH_METHOD_DELETE = 16,
    QH_METHOD_OTHER = 32,
};

struct qh_param {
    struct qf_str name, value;
};

/* Parameters in the order in which they count: those of the body before those of the URL. */
struct qh_params {
    struct qh_param *items;
    size_t count, capacity;
};

struct qh_request {
    struct qf_arena *arena; /* everything below lives here */
    enum qh_method method;
    struct qf_str path; /* decoded, without the query string */
    struct qh_params params;
    struct qf_str body;
    struct qf_str content_type;  /* without its parameters, lower case */
    struct qf_str tenant_header; /* X-Scope-OrgID */
    struct qf_str authorization;
    struct qf_str origin;
    struct qf_str traceparent;
    bool accepts_gzip;
};

/* The body holds form parameters. `curl -d '{...}'` calls JSON a form too, and no parameter of ours
 * starts with a brace. */
static inline bool qh_request_has_form(const struct qh_request *request)
{
    return qf_str_is(request->content_type, "application/x-www-form-urlencoded") &&
           !qf_str_starts(qf_str_trim(request->body), QF_STR("{"));
}

#endif
