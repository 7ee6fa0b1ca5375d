/* route_operate.c - metrics, probes, and what is going on. */
#include "queryapi/encode/error.h"
#include "queryapi/http/params.h"
#include "queryapi/http/routes_int.h"

/* Queries that are shown to somebody who names no limit. */
#define QUERIES_SHOWN 100

static void handle_metrics(struct qh_visit *visit)
{
    qh_visit_metrics(visit, qa_routes_of(visit)->metrics->registry);
}

static void handle_live(struct qh_visit *visit)
{
    qh_visit_text(visit, 200, "Promfabric is Healthy.\n");
}

static void handle_ready(struct qh_visit *visit)
{
    const struct qa_tenants *tenants = qa_routes_of(visit)->env->tenants;

    if (atomic_load(&qa_routes_of(visit)->ready))
        qh_visit_text(visit, 200, "Promfabric is Ready.\n");
    else
        qh_visit_text(visit, 503,
                      tenants && !qa_tenants_known(tenants)
                          ? "Service Unavailable\nmissing: ingest nodes: none has said yet what "
                            "tenants may have\n"
                          : "Service Unavailable\n");
}

/* The tenant whose queries the request may see; empty: all of them. */
static struct qf_str sight(const struct qh_visit *visit)
{
    return visit->caller.sees_all ? QF_STR("") : visit->tenant;
}

static bool is_set(struct qf_str value)
{
    return qf_str_is(value, "1") || qf_str_is(value, "true");
}

/* As many as the request's limit says, or @standard; once, or again and again. */
static void inspect(struct qh_visit *visit, enum qa_inspect what, struct qf_str tenant,
                    uint64_t standard)
{
    struct qf_str text = qh_visit_param(visit, "limit");
    struct qf_err err = { 0 };
    uint64_t limit = 0;

    if (text.len && qa_param_limit(text, &limit, &err) != QF_OK) {
        visit->route->fail(visit, &err);
        return;
    }
    qh_stream_allow(visit->stream, visit->request->coding);
    limit = limit ? limit : standard;
    if (what != QA_INSPECT_QUARANTINE && is_set(qh_visit_param(visit, "watch")))
        qa_coord_watch(qa_routes_of(visit)->coord, what, tenant, limit, visit->stream);
    else
        qa_coord_inspect(qa_routes_of(visit)->coord, what, tenant, limit, visit->stream);
}

/* What is no tenant's business: false after an answer that says so. */
static bool is_operator(struct qh_visit *visit, const char *what)
{
    struct qf_err err = { 0 };

    if (visit->caller.sees_all)
        return true;
    (void)qf_err_set(&err, QF_EDENIED, "%s to operators: a key for all tenants", what);
    visit->route->fail(visit, &err);
    return false;
}

/* They have addresses and names. */
static void handle_workers(struct qh_visit *visit)
{
    if (!is_operator(visit, "workers are shown"))
        return;
    inspect(visit, QA_INSPECT_WORKERS, QF_STR(""), QA_INSPECT_MAX);
}

static void answer_nodes(void *ctx, struct qf_str nodes)
{
    struct qh_stream *stream = ctx;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;

    qf_strbuf_puts(&body, "{\"status\":\"success\",\"data\":");
    qf_strbuf_str(&body, nodes);
    qf_strbuf_putc(&body, '}');
    if (nodes.len)
        qh_stream_answer(stream, 200, "application/json", qf_strbuf_view(&body));
    else
        qa_answer_error(stream, QA_FORMAT_JSON, QF_EBUSY, "too many such requests at once");
    (void)qh_stream_drop(stream);
}

static void handle_ingest(struct qh_visit *visit)
{
    struct qa_asker *asker = qa_routes_of(visit)->env->asker;
    struct qh_stream *stream;

    if (!is_operator(visit, "ingest nodes are shown"))
        return;
    stream = qh_stream_ref(visit->stream);
    if (!asker)
        answer_nodes(stream, QF_STR("[]"));
    else if (!qa_asker_roll(asker, answer_nodes, stream))
        answer_nodes(stream, QF_STR(""));
}

static void handle_quarantine(struct qh_visit *visit)
{
    if (is_operator(visit, "the quarantine is shown"))
        inspect(visit, QA_INSPECT_QUARANTINE, QF_STR(""), QA_INSPECT_MAX);
}

static void handle_compaction(struct qh_visit *visit)
{
    if (is_operator(visit, "compaction is shown"))
        qa_coord_inspect(qa_routes_of(visit)->coord, QA_INSPECT_COMPACTION, QF_STR(""), 0,
                         visit->stream);
}

static void handle_lift(struct qh_visit *visit)
{
    if (is_operator(visit, "lifting a quarantine is left"))
        qa_coord_lift(qa_routes_of(visit)->coord, visit->rest, visit->stream);
}

/* Those that run, or with state=finished the last that are over; who watches gets both. */
static void handle_queries(struct qh_visit *visit)
{
    struct qf_str state = qh_visit_param(visit, "state");
    bool finished = qf_str_is(state, "finished");
    struct qf_err err = { 0 };

    if (state.len && !finished && !qf_str_is(state, "running")) {
        (void)qf_err_set(&err, QF_EINVAL,
                         "invalid parameter \"state\": expected running or finished");
        visit->route->fail(visit, &err);
        return;
    }
    if (finished && is_set(qh_visit_param(visit, "watch")))
        finished = false;
    inspect(visit, finished ? QA_INSPECT_FINISHED : QA_INSPECT_QUERIES, sight(visit),
            QUERIES_SHOWN);
}

static void handle_cancel(struct qh_visit *visit)
{
    qa_coord_cancel(qa_routes_of(visit)->coord, visit->rest, sight(visit), visit->stream);
}

static void handle_scaling(struct qh_visit *visit)
{
    qa_coord_inspect(qa_routes_of(visit)->coord, QA_INSPECT_SCALING, QF_STR(""), 0, visit->stream);
}

static const struct qh_route routes[] = {
    { "/api/v1/workers", QH_METHOD_GET, false, handle_workers, qa_fail_json },
    { "/api/v1/ingest", QH_METHOD_GET, false, handle_ingest, qa_fail_json },
    { "/api/v1/quarantine", QH_METHOD_GET, false, handle_quarantine, qa_fail_json },
    { "/api/v1/quarantine/*", QH_METHOD_DELETE, false, handle_lift, qa_fail_json },
    { "/api/v1/compaction", QH_METHOD_GET, false, handle_compaction, qa_fail_json },
    { "/api/v1/queries", QH_METHOD_GET, false, handle_queries, qa_fail_json },
    { "/api/v1/queries/*", QH_METHOD_DELETE, false, handle_cancel, qa_fail_json },
    { "/monitor/scaling", QH_METHOD_GET, true, handle_scaling, qa_fail_json },
    { "/metrics", QH_GET, true, handle_metrics, qa_fail_json },
    { "/livez", QH_GET, true, handle_live, qa_fail_json },
    { "/-/healthy", QH_GET, true, handle_live, qa_fail_json },
    { "/readyz", QH_GET, true, handle_ready, qa_fail_json },
    { "/-/ready", QH_GET, true, handle_ready, qa_fail_json },
};
const struct qh_routes qa_operate_routes = { routes, QF_COUNT_OF(routes) };
