/* routes.c - from a request to an ask, and what the handlers share. */
#include "ingest/http/routes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/utf8.h"
#include "base/sys/clock.h"
#include "ingest/http/routes_int.h"

static const struct qh_routes *const families[] = {
    &in_head_routes,       &in_extra_routes,       &in_write_routes,    &in_queue_routes,
    &in_admin_routes,      &in_operate_routes,     &in_peer_routes,     &in_watch_routes,
    &in_ha_routes,         &in_node_routes,        &in_below_routes,    &in_ring_routes,
    &in_manifest_routes,   &in_whole_queue_routes, &in_state_routes,    &in_state_rule_routes,
    &in_state_look_routes, &in_state_info_routes,  &in_document_routes, &in_tenant_routes,
};

/* A request whose ask is with the node. */
struct visitor {
    struct in_routes *routes;
    struct qh_stream *stream;
    struct qn_ask *ask;
    int64_t began_ns;
};

void in_fail_as(struct qh_stream *stream, const struct qf_err *err, int status)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;

    qf_strbuf_puts(&body, "{\"error\":");
    qf_strbuf_json(&body, qf_str_from(qf_rc_name(err->rc)));
    qf_strbuf_puts(&body, ",\"message\":");
    qf_strbuf_json(&body, qf_str_from(err->msg));
    qf_strbuf_puts(&body, "}\n");
    if (qf_rc_retryable(err->rc))
        qh_stream_header(stream, "Retry-After", "1");
    qh_stream_answer(stream, status, "application/json", qf_strbuf_view(&body));
}

void in_fail_to(struct qh_stream *stream, const struct qf_err *err)
{
    in_fail_as(stream, err, qf_rc_http_status(err->rc));
}

void in_fail(struct qh_visit *visit, const struct qf_err *err)
{
    in_fail_to(visit->stream, err);
}

static bool refuse(struct qh_visit *visit, const char *name, const char *what)
{
    struct qf_err err = { 0 };

    (void)qf_err_set(&err, QF_EINVAL, "invalid parameter \"%s\": %s", name, what);
    in_fail(visit, &err);
    return false;
}

bool in_param_u64(struct qh_visit *visit, const char *name, uint64_t standard, uint64_t max,
                  uint64_t *ret_value)
{
    struct qf_str text = qh_visit_param(visit, name);
    uint64_t value = 0;

    *ret_value = standard;
    if (!text.len)
        return true;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || value > (UINT64_MAX - 9) / 10)
            return refuse(visit, name, "expected a number");
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (value > max)
        return refuse(visit, name, "the number is too large");
    *ret_value = value;
    return true;
}

bool in_param_text(struct qh_visit *visit, const char *name, char *out, size_t size)
{
    struct qf_str text = qh_visit_param(visit, name);

    out[0] = 0;
    if (text.len >= size)
        return refuse(visit, name, "too long");
    if (!qf_utf8_valid(text))
        return refuse(visit, name, "not valid UTF-8");
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 127)
            return refuse(visit, name, "has control characters");
    if (text.len)
        memcpy(out, text.data, text.len);
    out[text.len] = 0;
    return true;
}

bool in_param_duration(struct qh_visit *visit, const char *name, int64_t standard_ms,
                       int64_t *ret_ms)
{
    struct qf_str text = qh_visit_param(visit, name);

    *ret_ms = standard_ms;
    if (!text.len || qf_duration_parse(text, ret_ms) == QF_DURATION_OK)
        return true;
    return refuse(visit, name, "expected a duration as 7d or 30m");
}

bool in_param_level(struct qh_visit *visit, bool *ret_set, enum qc_level *ret_level)
{
    struct qf_str text = qh_visit_param(visit, "level");

    *ret_set = text.len > 0;
    *ret_level = QC_LEVEL_QUORUM;
    if (text.len && !qn_level_parse(text, ret_level))
        return refuse(visit, "level", "expected one, quorum or all");
    return true;
}

struct qn_ask *in_visit_ask(struct qh_visit *visit, enum qn_verb verb, struct qf_str queue)
{
    struct qf_err err = { 0 };
    struct qn_ask *ask;

    if (verb != QN_LIST && !qn_name_valid(queue)) {
        (void)qf_err_set(&err, QF_EINVAL,
                         "not the name of a queue: 1 to 40 of a-z, 0-9, '-', '_' and '.', "
                         "beginning with a letter or digit");
        in_fail(visit, &err);
        return NULL;
    }
    ask = qn_ask_new(verb, queue);
    memcpy(ask->tenant, visit->caller.tenant, sizeof(ask->tenant));
    ask->operates = visit->caller.sees_all;
    return ask;
}

static void encode(void *arg)
{
    struct visitor *visitor = arg;

    in_answer(visitor->ask, visitor->stream);
    (void)qh_stream_drop(visitor->stream);
    free(visitor);
}

/* On the node's thread: records are turned into JSON elsewhere. */
static void answered(void *ctx, struct qn_ask *ask)
{
    struct visitor *visitor = ctx;

    visitor->ask = ask;
    qf_metric_observe(visitor->routes->metrics->request_seconds,
                      (double)(qf_clock_mono_ns() - visitor->began_ns) / 1e9);
    if (ask->answer.records.count && qf_pool_submit(visitor->routes->pool, encode, visitor))
        return;
    if (ask->answer.records.count > 16) { /* the pool is full: do not hold up the node */
        ask->answer.records.count = 0;
        (void)qf_err_set(&ask->answer.err, QF_EBUSY, "too many reads are under way: try again");
        ask->answer.unknown = ask->verb == QN_TAKE;
    }
    encode(visitor);
}

void in_visit_submit(struct qh_visit *visit, struct qn_ask *ask)
{
    struct in_routes *routes = in_routes_of(visit);
    struct visitor *visitor;
    struct qf_err err = { 0 };

    if (atomic_load(&routes->draining)) {
        qh_stream_header(visit->stream, "Connection", "close");
        (void)qf_err_set(&err, QF_EUNAVAILABLE, "this node is stopping: ask another one");
        in_fail(visit, &err);
        (void)qn_ask_free(ask);
        return;
    }
    visitor = qf_xcalloc(1, sizeof(*visitor));
    *visitor = (struct visitor){ .routes = routes,
                                 .stream = qh_stream_ref(visit->stream),
                                 .began_ns = qf_clock_mono_ns() };
    ask->done = answered;
    ask->ctx = visitor;
    if (qn_ask(routes->node, ask))
        return;
    (void)qf_err_set(&err, QF_EBUSY, "too many requests are under way: try again");
    in_fail(visit, &err);
    (void)qn_ask_free(ask);
    (void)qh_stream_drop(visitor->stream);
    free(visitor);
}

static struct qh_router router_of(struct in_routes *of)
{
    return (struct qh_router){ .families = families,
                               .family_count = QF_COUNT_OF(families),
                               .tenants = of->tenants,
                               .cors_expose = "",
                               .role = of };
}

bool in_routes_admit(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    const struct qh_router router = router_of(ctx);

    return qh_router_admit(&router, request, stream);
}

void in_routes_handle(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    const struct qh_router router = router_of(ctx);

    qh_router_handle(&router, request, stream);
}

void in_routes_finished(void *ctx, struct qh_request *request, const struct qh_outcome *outcome)
{
    const struct in_routes *of = ctx;
    int status = outcome->status;

    (void)request;
    if (status)
        qf_metric_add(of->metrics->requests, status >= 500 ? 2 : status >= 400 ? 1 : 0, 1);
}
