/* route_documents.c - small values under a key of the tenant's choice.
 *
 *     POST   /v1/key-value?key=&level=&context=   the body is the value
 *     DELETE /v1/key-value?key=&level=&context=
 *     GET    /v1/key-value?key=&level=
 *
 * `level`: one, quorum or all; if absent that of the tenant's settings, else quorum. `context`: what an answer said, for a write that replaces what was read. An
 * Idempotency-Key lets a write be sent again. */
#include "ingest/docs/documents.h"
#include "ingest/http/routes_int.h"
#include "ring/coord/tenants.h"

#define KEY_BYTES_MAX 256

static bool refuse(struct qh_visit *visit, int status, qf_rc rc, const char *why)
{
    struct qf_err err = { 0 };

    (void)qf_err_set(&err, rc, "%s", why);
    qf_metric_add(in_routes_of(visit)->metrics->documents_requests, IN_DOCUMENT_REFUSED, 1);
    in_fail_as(visit->stream, &err, status);
    return false;
}

static bool read_level(struct qh_visit *visit, enum rg_level *ret_level)
{
    struct qf_str text = qh_visit_param(visit, "level");

    *ret_level = RG_LEVEL_QUORUM;
    if (!text.len)
        *ret_level = rg_tenants_level(in_routes_of(visit)->settings, visit->tenant);
    else if (qf_str_is(text, "one"))
        *ret_level = RG_LEVEL_ONE;
    else if (qf_str_is(text, "all"))
        *ret_level = RG_LEVEL_ALL;
    else if (!qf_str_is(text, "quorum"))
        return refuse(visit, 400, QF_EINVAL,
                      "invalid parameter \"level\": expected one, quorum or all");
    return true;
}

static bool read_context(struct qh_visit *visit, struct in_document_ask *ask)
{
    struct qf_str text = qh_visit_param(visit, "context");

    if (!text.len || rg_context_parse(text, &ask->context) == QF_OK)
        return true;
    return refuse(visit, 400, QF_EINVAL,
                  "invalid parameter \"context\": expected what an answer said");
}

static bool read_write(struct qh_visit *visit, struct in_document_ask *ask)
{
    ask->repeat_key = qh_request_header(visit->request, "Idempotency-Key");
    if (ask->repeat_key.len > KEY_BYTES_MAX)
        return refuse(visit, 400, QF_EINVAL, "the Idempotency-Key is longer than 256 bytes");
    if (ask->verb == IN_DOCUMENT_PUT)
        ask->value = visit->request->body;
    if (ask->value.len > RG_VALUE_BYTES_MAX)
        return refuse(visit, 413, QF_ELIMIT, "a value has at most 65536 bytes");
    return read_context(visit, ask);
}

static void handle(struct qh_visit *visit, enum in_document_verb verb)
{
    struct in_routes *routes = in_routes_of(visit);
    struct in_document_ask ask = { .verb = verb,
                                   .tenant = visit->tenant,
                                   .operates = visit->caller.sees_all };
    char key[RG_DOC_KEY_MAX + 1];

    if (!in_param_text(visit, "key", key, sizeof(key)) || !read_level(visit, &ask.level) ||
        (verb != IN_DOCUMENT_GET && !read_write(visit, &ask)))
        return;
    ask.key = qf_str_from(key);
    if (!ask.key.len)
        (void)refuse(visit, 400, QF_EINVAL, "\"key\", 1 to 512 bytes of text, is needed");
    else if (atomic_load(&routes->draining))
        (void)refuse(visit, 503, QF_EUNAVAILABLE, "this node is stopping: ask another one");
    else if (!in_documents_submit(routes->documents, &ask, visit->stream))
        (void)refuse(visit, 429, QF_EBUSY, "too many requests are under way: try again");
}

static void handle_get(struct qh_visit *visit)
{
    handle(visit, IN_DOCUMENT_GET);
}

static void handle_put(struct qh_visit *visit)
{
    handle(visit, IN_DOCUMENT_PUT);
}

static void handle_delete(struct qh_visit *visit)
{
    handle(visit, IN_DOCUMENT_DELETE);
}

static const struct qh_route routes[] = {
    { "/v1/key-value", QH_METHOD_GET, false, handle_get, in_fail },
    { "/v1/key-value", QH_METHOD_POST, false, handle_put, in_fail },
    { "/v1/key-value", QH_METHOD_DELETE, false, handle_delete, in_fail },
};
const struct qh_routes in_document_routes = { routes, QF_COUNT_OF(routes) };
