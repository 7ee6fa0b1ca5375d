/* request.h - one HTTP request, read whole: what routes decide on. */
#ifndef QUERYAPI_HTTP_REQUEST_H
#define QUERYAPI_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/arena.h"
#include "base/pure/slice.h"

enum qa_method {
    QA_METHOD_GET = 1,
    QA_METHOD_POST = 2,
    QA_METHOD_HEAD = 4,
    QA_METHOD_OPTIONS = 8,
    QA_METHOD_DELETE = 16,
    QA_METHOD_OTHER = 32,
};

struct qa_param {
    struct qf_str name, value;
};

/* Parameters in the order in which they count: those of the body before those of the URL. */
struct qa_params {
    struct qa_param *items;
    size_t count, capacity;
};

struct qa_request {
    struct qf_arena *arena; /* everything below lives here */
    enum qa_method method;
    struct qf_str path; /* decoded, without the query string */
    struct qa_params params;
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
static inline bool qa_request_has_form(const struct qa_request *request)
{
    return qf_str_is(request->content_type, "application/x-www-form-urlencoded") &&
           !qf_str_starts(qf_str_trim(request->body), QF_STR("{"));
}

#endif
