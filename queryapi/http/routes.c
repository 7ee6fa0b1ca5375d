/* routes.c - from a request to an answer or a query: the families, and what their handlers share. */
#include "queryapi/http/routes.h"

#include "base/pure/utf8.h"
#include "queryapi/http/host.h"
#include "queryapi/http/routes_int.h"

static const struct qh_routes *const families[] = {
    &qa_query_routes, &qa_explain_routes, &qa_series_routes, &qa_language_routes, &qa_about_routes,
    &qa_fresh_routes, &qa_operate_routes, &qa_page_routes,   &qa_samples_routes,
};

void qa_fail_json(struct qh_visit *visit, const struct qf_err *err)
{
    qa_answer_error(visit->stream, QA_FORMAT_JSON, err->rc, err->msg);
}

void qa_fail_events(struct qh_visit *visit, const struct qf_err *err)
{
    qa_answer_error(visit->stream, QA_FORMAT_EVENTS, err->rc, err->msg);
}

qf_rc qa_check_text(struct qf_str text, struct qf_err *err)
{
    if (!qf_utf8_valid(text))
        return qf_err_set(err, QF_EINVAL,
                          "invalid parameter \"query\": the text is not valid UTF-8");
    return QF_OK;
}

qf_rc qa_check_short(size_t len, struct qf_err *err)
{
    if (len > QA_TEXT_AT_ONCE_MAX)
        return qf_err_set(err, QF_ELIMIT, "longer than the limit of %zu bytes for this endpoint",
                          QA_TEXT_AT_ONCE_MAX);
    return QF_OK;
}

struct qa_ask qa_visit_ask(const struct qh_visit *visit, enum qa_query_kind kind)
{
    struct qa_ask ask = { .kind = kind, .tenant = visit->tenant };
    struct qf_str traceparent = qh_request_header(visit->request, "traceparent");

    if (pb_traceparent_valid(traceparent))
        ask.traceparent = traceparent;
    return ask;
}

bool qa_visit_settled(struct qh_visit *visit)
{
    const struct qa_routes *routes = qa_routes_of(visit);
    struct qf_err err = { 0 };

    if (!routes->env->tenants || qa_tenants_known(routes->env->tenants))
        return true;
    (void)qf_err_set(&err, QF_EUNAVAILABLE,
                     "what tenants may have is not known: no ingest node has answered since this "
                     "API started");
    qf_metric_inc(routes->metrics->settings_unknown);
    visit->route->fail(visit, &err);
    return false;
}

void qa_visit_submit(struct qh_visit *visit, const struct qa_ask *ask, qf_rc rc,
                     const struct qf_err *err)
{
    struct qa_routes *routes = qa_routes_of(visit);
    struct qf_err no_memory = { 0 };
    struct qa_query *query;

    if (rc) {
        visit->route->fail(visit, err);
        return;
    }
    if (!qa_visit_settled(visit))
        return;
    query = qa_query_new(routes->env, ask, visit->stream);
    if (visit->request->note)
        query->audit = qa_audit_hold(visit->request->note);
    if (qf_arena_failed(query->arena)) {
        if (qa_query_no_memory(query, &no_memory) != QF_OK)
            visit->route->fail(visit, &no_memory);
        qf_metric_inc(routes->metrics->queries_refused);
        (void)qa_query_free(query);
        return;
    }
    if (ask->kind != QA_QUERY_READ) /* which is compressed already */
        qh_stream_allow(visit->stream, visit->request->coding);
    qa_coord_submit(routes->coord, query);
}

static const char *method_name(enum qh_method method)
{
    switch (method) {
    case QH_METHOD_GET:
        return "GET";
    case QH_METHOD_POST:
        return "POST";
    case QH_METHOD_HEAD:
        return "HEAD";
    case QH_METHOD_OPTIONS:
        return "OPTIONS";
    case QH_METHOD_DELETE:
        return "DELETE";
    case QH_METHOD_PUT:
        return "PUT";
    case QH_METHOD_OTHER:
        break;
    }
    return "OTHER";
}

/* The request's entry in the audit log, made with the first look at it. */
static void begin_audit(struct qa_routes *of, struct qh_request *request)
{
    if (of->audit && !request->note)
        request->note = qa_audit_new(of->audit, method_name(request->method), request->path);
}

/* Who asks is known. */
static void note_caller(struct qh_visit *visit)
{
    struct qa_audit_entry *entry = visit->request->note;

    if (!entry)
        return;
    memcpy(entry->tenant, visit->caller.tenant, sizeof(entry->tenant));
    memcpy(entry->key, visit->caller.key_name, sizeof(entry->key));
}

static struct qh_router router_of(struct qa_routes *of)
{
    return (struct qh_router){ .families = families,
                               .admitted = note_caller,
                               .family_count = QF_COUNT_OF(families),
                               .tenants = of->tenants,
                               .cleans_paths = true,
                               .cors_origin = of->cors_origin,
                               .cors_expose = "X-Query-Id",
                               .role = of };
}

/* A page of another site made the browser ask: it could not read the answer, but have us work. Links
 * to our own page come from other sites too, and those are welcome. */
static bool is_foreign(const struct qa_routes *of, const struct qh_request *request)
{
    return !of->cors_origin && qf_str_starts(request->path, QF_STR("/api/")) &&
           qf_str_is(qh_request_header(request, "Sec-Fetch-Site"), "cross-site");
}

/* Somebody's name that points here: see host.h. */
static bool has_our_name(const struct qa_routes *of, const struct qh_request *request)
{
    return !of->check_host ||
           qa_host_is_ours(qh_request_header(request, "Host"), of->hosts, of->host_count);
}

bool qa_routes_admit(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    const struct qh_router router = router_of(ctx);

    begin_audit(ctx, request);
    if (!has_our_name(ctx, request)) {
        qa_answer_error(stream, QA_FORMAT_JSON, QF_EDENIED,
                        "on the loopback this API answers to addresses and localhost; --http-host "
                        "adds names");
        return false;
    }
    if (is_foreign(ctx, request)) {
        qa_answer_error(stream, QA_FORMAT_JSON, QF_EDENIED,
                        "pages of other sites may not ask; see --cors-origin");
        return false;
    }
    return qh_router_admit(&router, request, stream);
}

void qa_routes_handle(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    const struct qh_router router = router_of(ctx);

    qh_router_handle(&router, request, stream);
}

void qa_routes_finished(void *ctx, struct qh_request *request, const struct qh_outcome *outcome)
{
    struct qa_routes *of = ctx;
    struct qa_audit_entry *entry;
    int status = outcome->status;

    begin_audit(of, request); /* one whose headers were not even read */
    entry = request->note;
    if (entry) {
        entry->status = status;
        entry->complete = outcome->complete;
        request->note = qa_audit_drop(entry);
    }
    if (status)
        qf_metric_add(of->metrics->requests, status >= 500 ? 2 : status >= 400 ? 1 : 0, 1);
}
