/* request.c - what headers say of a request. */
#include "base/http/request.h"

#include <strings.h>

#include "base/http/multipart.h"
#include "base/http/params.h"

struct qf_str qh_request_header(const struct qh_request *request, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < request->headers.count; i++) {
        const struct qh_param *header = &request->headers.items[i];

        if (header->name.len == len && strncasecmp(header->name.data, name, len) == 0)
            return header->value;
    }
    return QF_STR("");
}

/* "text/html; charset=x" -> "text/html", in lower case. */
static struct qf_str media_type(struct qf_arena *arena, struct qf_str value)
{
    const char *semicolon = memchr(value.data, ';', value.len);
    char *copy;

    if (semicolon)
        value = qf_str_sub(value, 0, (size_t)(semicolon - value.data));
    value = qf_str_trim(value);
    copy = qf_arena_cstr(arena, value);
    for (size_t i = 0; copy && i < value.len; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] + 'a' - 'A');
    return copy ? (struct qf_str){ copy, value.len } : QF_STR("");
}

void qh_request_read_headers(struct qh_request *request)
{
    struct qf_str accept = qh_request_header(request, "Accept-Encoding");

    request->content_type = media_type(request->arena, qh_request_header(request, "Content-Type"));
    request->coding = qh_coding_choose(accept);
}

/* Methods whose bodies mean something. */
static bool has_body(const struct qh_request *request)
{
    return request->method == QH_METHOD_POST || request->method == QH_METHOD_PUT;
}

bool qh_request_has_form(const struct qh_request *request)
{
    return has_body(request) &&
           qf_str_is(request->content_type, "application/x-www-form-urlencoded") &&
           !qf_str_starts(qf_str_trim(request->body), QF_STR("{"));
}

bool qh_request_has_multipart(const struct qh_request *request)
{
    return has_body(request) && qf_str_is(request->content_type, "multipart/form-data");
}

qf_rc qh_request_read_params(struct qh_request *request, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    if (qh_request_has_form(request))
        rc = qh_params_add_form(request->arena, &request->params, request->body, err);
    if (rc == QF_OK)
        rc = qh_params_add_form(request->arena, &request->params, request->query, err);
    if (rc == QF_OK && qh_request_has_multipart(request))
        rc =
            qh_params_add_multipart(request->arena, &request->params,
                                    qh_request_header(request, "Content-Type"), request->body, err);
    return rc;
}
