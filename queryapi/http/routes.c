/* routes.c - from a request to an answer or a query. */
#include "queryapi/http/routes.h"

#include <inttypes.h>

#include "base/http/params.h"
#include "base/pure/number.h"
#include "base/pure/utf8.h"
#include "base/sys/clock.h"
#include "promql/parse.h"
#include "queryapi/http/params.h"
#include "queryapi/http/prom_json.h"

#define MATCHES_MAX 64

/* One request being routed. */
struct visit {
    struct qa_routes *routes;
    struct qh_request *request;
    struct qh_stream *stream;
    struct qf_str tenant;
    struct qf_str rest; /* what stands for '*' in the route's path */
};

struct route {
    const char *path; /* '*' stands for one or more characters */
    unsigned methods;
    bool open; /* needs no tenant and no key */
    enum qa_query_kind kind;
    void (*handle)(struct visit *visit);
};

static void answer_json(struct visit *visit, int status, struct qf_str body)
{
    qh_stream_allow_gzip(visit->stream, visit->request->accepts_gzip);
    qh_stream_answer(visit->stream, status, "application/json", body);
}

static void answer_text(struct visit *visit, int status, const char *text)
{
    qh_stream_answer(visit->stream, status, "text/plain; charset=utf-8", qf_str_from(text));
}

static void fail(struct visit *visit, enum qa_query_kind kind, const struct qf_err *err)
{
    qa_answer_error(visit->stream, kind, err->rc, err->msg);
}

static struct qf_str param(const struct visit *visit, const char *name)
{
    return qh_params_get(&visit->request->params, name);
}

/* --- queries --- */

static void submit(struct visit *visit, struct qa_query *query)
{
    struct qf_err err = { 0 };

    if (qf_arena_failed(query->arena)) {
        if (qa_query_no_memory(query, &err) != QF_OK)
            fail(visit, query->ask.kind, &err);
        qf_metric_inc(visit->routes->metrics->queries_refused);
        (void)qa_query_free(query);
        return;
    }
    if (query->ask.kind != QA_QUERY_EVENTS)
        qh_stream_allow_gzip(visit->stream, visit->request->accepts_gzip);
    qa_coord_submit(visit->routes->coord, query);
}

/* A query whose strings are copies in its own arena: the request may be gone before it. */
static struct qa_query *new_query(struct visit *visit, enum qa_query_kind kind, struct qf_str text)
{
    struct qa_query *query = qa_query_new(visit->routes->env, visit->stream);
    struct qf_str traceparent = qh_request_header(visit->request, "traceparent");

    query->ask.kind = kind;
    query->ask.tenant = qf_arena_str(query->arena, visit->tenant);
    query->ask.text = qf_arena_str(query->arena, text);
    if (pb_traceparent_valid(traceparent))
        query->traceparent = qf_arena_str(query->arena, traceparent);
    return query;
}

/* timeout, limit, lookback_delta, stats: the same for both query endpoints. */
static qf_rc read_common(struct visit *visit, struct qa_ask *ask, struct qf_err *err)
{
    struct qf_str timeout = param(visit, "timeout"), limit = param(visit, "limit"),
                  lookback = param(visit, "lookback_delta");
    qf_rc rc = QF_OK;

    if (limit.len)
        rc = qa_param_limit(limit, &ask->limit, err);
    if (rc == QF_OK && timeout.len)
        rc = qa_param_duration("timeout", timeout, &ask->timeout_ms, err);
    if (rc == QF_OK && lookback.len)
        rc = qa_param_duration("lookback_delta", lookback, &ask->lookback_ms, err);
    if (rc == QF_OK && (ask->timeout_ms < 0 || ask->lookback_ms < 0))
        rc = qf_err_set(err, QF_EINVAL, "timeout and lookback_delta must not be negative");
    ask->stats = param(visit, "stats").len > 0;
    return rc;
}

static qf_rc check_text(struct qf_str text, struct qf_err *err)
{
    if (!qf_utf8_valid(text))
        return qf_err_set(err, QF_EINVAL,
                          "invalid parameter \"query\": the text is not valid UTF-8");
    return QF_OK;
}

static void handle_query(struct visit *visit)
{
    struct qa_ask ask = { .start_ms = qf_clock_wall_ms() };
    struct qf_str time = param(visit, "time"), text = param(visit, "query");
    struct qf_err err = { 0 };
    struct qa_query *query;
    qf_rc rc = read_common(visit, &ask, &err);

    if (rc == QF_OK)
        rc = qa_param_time_optional("time", time, &ask.start_ms, &err);
    if (rc == QF_OK)
        rc = check_text(text, &err);
    if (rc) {
        fail(visit, QA_QUERY_INSTANT, &err);
        return;
    }
    query = new_query(visit, QA_QUERY_INSTANT, text);
    ask.kind = QA_QUERY_INSTANT;
    ask.end_ms = ask.start_ms;
    ask.tenant = query->ask.tenant;
    ask.text = query->ask.text;
    query->ask = ask;
    submit(visit, query);
}

/* end >= start, a positive step, not too many points. */
static qf_rc check_range(const struct visit *visit, const struct qa_ask *ask, struct qf_err *err)
{
    uint64_t points_max = visit->routes->points_max;
    char most[24];

    if (ask->end_ms < ask->start_ms)
        return qf_err_set(err, QF_EINVAL,
                          "invalid parameter \"end\": end timestamp must not be before start time");
    if (ask->step_ms <= 0)
        return qf_err_set(err, QF_EINVAL,
                          "invalid parameter \"step\": zero or negative query resolution step "
                          "widths are not accepted. Try a positive integer");
    if (((uint64_t)ask->end_ms - (uint64_t)ask->start_ms) / (uint64_t)ask->step_ms > points_max) {
        (void)snprintf(most, sizeof(most), "%" PRIu64, points_max);
        return qf_err_set(err, QF_EINVAL,
                          "exceeded maximum resolution of %s points per timeseries. Try "
                          "decreasing the query resolution (?step=XX)",
                          points_max == 11000 ? "11,000" : most); /* Prometheus's words */
    }
    return QF_OK;
}

static void handle_query_range(struct visit *visit)
{
    struct qf_str text = param(visit, "query");
    struct qa_ask ask = { 0 };
    struct qf_err err = { 0 };
    struct qa_query *query;
    qf_rc rc = qa_param_time("start", param(visit, "start"), &ask.start_ms, &err);

    if (rc == QF_OK)
        rc = qa_param_time("end", param(visit, "end"), &ask.end_ms, &err);
    if (rc == QF_OK)
        rc = qa_param_duration("step", param(visit, "step"), &ask.step_ms, &err);
    if (rc == QF_OK)
        rc = check_range(visit, &ask, &err);
    if (rc == QF_OK)
        rc = read_common(visit, &ask, &err);
    if (rc == QF_OK)
        rc = check_text(text, &err);
    if (rc) {
        fail(visit, QA_QUERY_RANGE, &err);
        return;
    }
    query = new_query(visit, QA_QUERY_RANGE, text);
    ask.kind = QA_QUERY_RANGE;
    ask.tenant = query->ask.tenant;
    ask.text = query->ask.text;
    query->ask = ask;
    submit(visit, query);
}

/* s, e and step of the event stream. */
static qf_rc read_events_range(struct visit *visit, struct qa_ask *ask, struct qf_err *err)
{
    struct qf_str start = param(visit, "s"), end = param(visit, "e"), step = param(visit, "step");
    qf_time_ms now = qf_clock_wall_ms();
    qf_rc rc =
        qa_param_when("e", end.len ? end : QF_STR("now"), now, QF_TIME_NEVER, &ask->end_ms, err);

    if (rc == QF_OK)
        rc = qa_param_when("s", start.len ? start : QF_STR("e-1h"), now, ask->end_ms,
                           &ask->start_ms, err);
    if (rc)
        return rc;
    ask->step_ms = qa_default_step((int64_t)((uint64_t)ask->end_ms - (uint64_t)ask->start_ms));
    if (step.len)
        rc = qa_param_duration("step", step, &ask->step_ms, err);
    return rc ? rc : check_range(visit, ask, err);
}

static void handle_events(struct visit *visit)
{
    struct qh_request *request = visit->request;
    struct qa_ask ask = { .kind = QA_QUERY_EVENTS };
    struct qf_err err = { 0 };
    struct qa_query *query;
    qf_rc rc = QF_OK;

    if (request->method == QH_METHOD_POST && !qh_request_has_form(request))
        rc = qh_params_add_json(request->arena, &request->params, request->body, &err);
    if (rc == QF_OK)
        rc = read_events_range(visit, &ask, &err);
    if (rc == QF_OK)
        rc = read_common(visit, &ask, &err);
    if (rc == QF_OK)
        rc = check_text(param(visit, "q"), &err);
    if (rc == QF_OK && param(visit, "q").len == 0)
        rc = qf_err_set(&err, QF_EINVAL, "\"q\", the query, is missing");
    if (rc) {
        fail(visit, QA_QUERY_EVENTS, &err);
        return;
    }
    query = new_query(visit, QA_QUERY_EVENTS, param(visit, "q"));
    ask.progress =
        qf_str_is(param(visit, "progress"), "true") || qf_str_is(param(visit, "progress"), "1");
    ask.tenant = query->ask.tenant;
    ask.text = query->ask.text;
    query->ask = ask;
    submit(visit, query);
}

/* --- series and labels --- */

/* match[], start, end and limit. Without start and end all times count. */
static qf_rc read_matches(struct visit *visit, struct qa_query *query, struct qf_err *err)
{
    const struct qh_params *params = &visit->request->params;
    struct qf_str start = param(visit, "start"), end = param(visit, "end"),
                  limit = param(visit, "limit");
    struct qf_str *matches = QF_ARENA_ARRAY(query->arena, struct qf_str, MATCHES_MAX);
    qf_rc rc = QF_OK;

    query->ask.start_ms = INT64_MIN / 4; /* far beyond any sample, far from any overflow */
    query->ask.end_ms = INT64_MAX / 4;
    query->ask.matches = matches;
    if (!matches)
        return qa_query_no_memory(query, err);
    for (size_t i = 0; i < params->count; i++) {
        if (!qf_str_is(params->items[i].name, "match[]"))
            continue;
        if (query->ask.match_count == MATCHES_MAX)
            return qf_err_set(err, QF_EINVAL, "more than %d match[] parameters", MATCHES_MAX);
        matches[query->ask.match_count++] = qf_arena_str(query->arena, params->items[i].value);
    }
    rc = qa_param_time_optional("start", start, &query->ask.start_ms, err);
    if (rc == QF_OK)
        rc = qa_param_time_optional("end", end, &query->ask.end_ms, err);
    if (rc == QF_OK && limit.len)
        rc = qa_param_limit(limit, &query->ask.limit, err);
    return rc;
}

static void submit_matches(struct visit *visit, struct qa_query *query, qf_rc rc,
                           const struct qf_err *err)
{
    struct qf_str *all;

    if (rc) {
        fail(visit, query->ask.kind, err);
        (void)qa_query_free(query);
        return;
    }
    if (query->ask.match_count == 0) { /* every series has a name or some other label */
        all = QF_ARENA_NEW(query->arena, struct qf_str);
        if (all)
            *all = QF_STR("{__name__=~\".+\"}");
        query->ask.matches = all;
        query->ask.match_count = all ? 1 : 0;
    }
    if (query->ask.match_count)
        query->ask.text = query->ask.matches[0];
    submit(visit, query);
}

static void handle_series(struct visit *visit)
{
    struct qa_query *query = new_query(visit, QA_QUERY_SERIES, QF_STR(""));
    struct qf_err err = { 0 };
    qf_rc rc = read_matches(visit, query, &err);

    if (rc == QF_OK && query->ask.match_count == 0)
        rc = qf_err_set(&err, QF_EINVAL, "no match[] parameter provided");
    submit_matches(visit, query, rc, &err);
}

static void handle_labels(struct visit *visit)
{
    struct qa_query *query = new_query(visit, QA_QUERY_LABELS, QF_STR(""));
    struct qf_err err = { 0 };

    submit_matches(visit, query, read_matches(visit, query, &err), &err);
}

static void handle_label_values(struct visit *visit)
{
    struct qa_query *query = new_query(visit, QA_QUERY_LABEL_VALUES, QF_STR(""));
    struct qf_err err = { 0 };
    qf_rc rc = read_matches(visit, query, &err);

    query->ask.label =
        qf_arena_str(query->arena, qa_unescape_name(visit->request->arena, visit->rest));
    if (rc == QF_OK && (query->ask.label.len == 0 || !qf_utf8_valid(query->ask.label)))
        rc = qf_err_set(&err, QF_EINVAL, "invalid label name: \"%.*s\"",
                        QF_STR_ARG(qf_str_sub(visit->rest, 0, 100)));
    submit_matches(visit, query, rc, &err);
}

/* --- what needs no data --- */

static void handle_metadata(struct visit *visit)
{
    static const char *const limits[] = { "limit", "limit_per_metric" };
    struct qf_err err = { 0 };
    int64_t number;

    for (size_t i = 0; i < QF_COUNT_OF(limits); i++) {
        struct qf_str text = param(visit, limits[i]);

        if (text.len == 0 || qf_parse_i64(text, &number))
            continue;
        if (qf_err_set(&err, QF_EINVAL, "%s must be a number", limits[i]) != QF_OK)
            fail(visit, QA_QUERY_INSTANT, &err);
        return;
    }
    /* Segments keep no metadata of metrics. */
    answer_json(visit, 200, QF_STR("{\"status\":\"success\",\"data\":{}}"));
}

static bool has_selector(const struct pq_expr *node)
{
    switch (node->kind) {
    case PQ_VECTOR_SELECTOR:
    case PQ_MATRIX_SELECTOR:
        return true;
    case PQ_SUBQUERY:
        return has_selector(node->subquery.expr);
    case PQ_CALL:
        for (size_t i = 0; i < node->call.arg_count; i++)
            if (has_selector(node->call.args[i]))
                return true;
        return false;
    case PQ_AGGREGATE:
        return has_selector(node->aggregate.expr) ||
               (node->aggregate.param && has_selector(node->aggregate.param));
    case PQ_BINARY:
        return has_selector(node->binary.lhs) || has_selector(node->binary.rhs);
    case PQ_UNARY:
        return has_selector(node->unary.expr);
    case PQ_PAREN:
        return has_selector(node->paren.expr);
    case PQ_NUMBER:
    case PQ_STRING:
    case PQ_DURATION_EXPR:
        break;
    }
    return false;
}

/* Segments keep no exemplars either, but what was asked must make sense. */
static qf_rc check_exemplars(struct visit *visit, struct qf_arena *arena, bool *ret_selector,
                             struct qf_err *err)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    qf_time_ms start = INT64_MIN, end = INT64_MAX;
    struct qf_err cause = { 0 };
    struct pq_expr *expr;
    qf_rc rc = qa_param_time_optional("start", param(visit, "start"), &start, err);

    if (rc == QF_OK)
        rc = qa_param_time_optional("end", param(visit, "end"), &end, err);
    if (rc == QF_OK && end < start)
        rc = qf_err_set(err, QF_EINVAL, "end timestamp must not be before start timestamp");
    if (rc == QF_OK)
        rc = check_text(param(visit, "query"), err);
    if (rc)
        return rc;
    rc = pq_parse(arena, param(visit, "query"), &visit->routes->env->features.parse, &expr, &cause);
    if (rc == QF_OK) {
        *ret_selector = has_selector(expr);
        return QF_OK;
    }
    pq_parse_error_print(&text, param(visit, "query"), &cause);
    (void)qf_err_set(err, rc, "%s", rc == QF_EPARSE ? qf_strbuf_cstr(&text) : cause.msg);
    qf_strbuf_done(&text);
    return rc;
}

static void handle_exemplars(struct visit *visit)
{
    struct qf_arena *arena = qf_arena_new(visit->routes->env->memory_bytes_max);
    struct qf_err err = { 0 };
    bool selector = false;

    if (check_exemplars(visit, arena, &selector, &err) != QF_OK)
        fail(visit, QA_QUERY_INSTANT, &err);
    else if (selector)
        answer_json(visit, 200, QF_STR("{\"status\":\"success\",\"data\":[]}"));
    else
        qh_stream_answer(visit->stream, 204, "application/json", QF_STR(""));
    (void)qf_arena_free(arena);
}

static void handle_rules(struct visit *visit)
{
    answer_json(visit, 200, QF_STR("{\"status\":\"success\",\"data\":{\"groups\":[]}}"));
}

static void handle_alerts(struct visit *visit)
{
    answer_json(visit, 200, QF_STR("{\"status\":\"success\",\"data\":{\"alerts\":[]}}"));
}

static void handle_buildinfo(struct visit *visit)
{
    answer_json(visit, 200,
                QF_STR("{\"status\":\"success\",\"data\":{\"version\":\"3.14.0\",\"revision\":"
                       "\"promfabric-" PROMFABRIC_VERSION "\",\"branch\":\"\",\"buildUser\":\"\","
                       "\"buildDate\":\"\",\"goVersion\":\"\"}}"));
}

/* format_query and parse_query: parse, and print in one form or the other. */
static void handle_parsed(struct visit *visit,
                          void (*print)(struct qf_strbuf *, const struct pq_expr *))
{
    struct qf_arena *arena = qf_arena_new(visit->routes->env->memory_bytes_max);
    struct qf_strbuf text = QF_STRBUF_INIT, body = QF_STRBUF_INIT;
    struct qf_str query = param(visit, "query");
    struct qf_err err = { 0 }, framed = { 0 };
    struct pq_expr *expr;
    qf_rc rc = check_text(query, &framed);

    if (rc == QF_OK)
        rc = pq_parse(arena, query, &visit->routes->env->features.parse, &expr, &err);
    if (rc == QF_OK) {
        print(&text, expr);
        qf_strbuf_puts(&body, "{\"status\":\"success\",\"data\":");
        qf_strbuf_str(&body, qf_strbuf_view(&text));
        qf_strbuf_putc(&body, '}');
        answer_json(visit, 200, qf_strbuf_view(&body));
    } else {
        if (rc == QF_EPARSE) {
            pq_parse_error_print(&text, query, &err);
            (void)qf_err_set(&framed, rc, "invalid parameter \"query\": %s", qf_strbuf_cstr(&text));
        } else {
            (void)qf_err_set(&framed, rc, "%s", err.msg);
        }
        fail(visit, QA_QUERY_INSTANT, &framed);
    }
    qf_strbuf_done(&text);
    qf_strbuf_done(&body);
    (void)qf_arena_free(arena);
}

static void print_pretty(struct qf_strbuf *buf, const struct pq_expr *expr)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    pq_pretty(&text, expr, 100);
    qf_strbuf_json(buf, qf_strbuf_view(&text));
    qf_strbuf_done(&text);
}

static void handle_format_query(struct visit *visit)
{
    handle_parsed(visit, print_pretty);
}

static void handle_parse_query(struct visit *visit)
{
    handle_parsed(visit, pq_ast_json);
}

/* --- operating --- */

static void handle_metrics(struct visit *visit)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_metrics_print(visit->routes->metrics->registry, &text);
    qh_stream_allow_gzip(visit->stream, visit->request->accepts_gzip);
    qh_stream_answer(visit->stream, 200, "text/plain; version=0.0.4; charset=utf-8",
                     qf_strbuf_view(&text));
    qf_strbuf_done(&text);
}

static void handle_live(struct visit *visit)
{
    answer_text(visit, 200, "Promfabric is Healthy.\n");
}

static void handle_ready(struct visit *visit)
{
    if (atomic_load(&visit->routes->ready))
        answer_text(visit, 200, "Promfabric is Ready.\n");
    else
        answer_text(visit, 503, "Service Unavailable\n");
}

/* The tenant whose queries the request may see; empty: all of them. */
static struct qf_str sight(const struct visit *visit)
{
    return qh_tenants_confine(visit->routes->tenants, visit->request) ? visit->tenant : QF_STR("");
}

static void handle_workers(struct visit *visit)
{
    qa_coord_inspect(visit->routes->coord, QA_INSPECT_WORKERS, QF_STR(""), visit->stream);
}

static void handle_queries(struct visit *visit)
{
    qa_coord_inspect(visit->routes->coord, QA_INSPECT_QUERIES, sight(visit), visit->stream);
}

static void handle_cancel(struct visit *visit)
{
    qa_coord_cancel(visit->routes->coord, visit->rest, sight(visit), visit->stream);
}

static void handle_scaling(struct visit *visit)
{
    qa_coord_inspect(visit->routes->coord, QA_INSPECT_SCALING, QF_STR(""), visit->stream);
}

#define GET (QH_METHOD_GET | QH_METHOD_HEAD)
#define GET_POST (QH_METHOD_GET | QH_METHOD_POST)

static const struct route routes[] = {
    { "/api/v1/metrics/query", GET_POST, false, QA_QUERY_EVENTS, handle_events },
    { "/api/v1/query", GET_POST, false, QA_QUERY_INSTANT, handle_query },
    { "/api/v1/query_range", GET_POST, false, QA_QUERY_RANGE, handle_query_range },
    { "/api/v1/series", GET_POST, false, QA_QUERY_SERIES, handle_series },
    { "/api/v1/labels", GET_POST, false, QA_QUERY_LABELS, handle_labels },
    { "/api/v1/label/*/values", QH_METHOD_GET, false, QA_QUERY_LABEL_VALUES, handle_label_values },
    { "/api/v1/metadata", GET, false, QA_QUERY_INSTANT, handle_metadata },
    { "/api/v1/query_exemplars", GET_POST, false, QA_QUERY_INSTANT, handle_exemplars },
    { "/api/v1/rules", GET, false, QA_QUERY_INSTANT, handle_rules },
    { "/api/v1/alerts", GET, false, QA_QUERY_INSTANT, handle_alerts },
    { "/api/v1/format_query", GET_POST, false, QA_QUERY_INSTANT, handle_format_query },
    { "/api/v1/parse_query", GET_POST, false, QA_QUERY_INSTANT, handle_parse_query },
    { "/api/v1/status/buildinfo", GET, false, QA_QUERY_INSTANT, handle_buildinfo },
    { "/api/v1/workers", QH_METHOD_GET, false, QA_QUERY_INSTANT, handle_workers },
    { "/api/v1/queries", QH_METHOD_GET, false, QA_QUERY_INSTANT, handle_queries },
    { "/api/v1/queries/*", QH_METHOD_DELETE, false, QA_QUERY_INSTANT, handle_cancel },
    { "/monitor/scaling", QH_METHOD_GET, true, QA_QUERY_INSTANT, handle_scaling },
    { "/metrics", GET, true, QA_QUERY_INSTANT, handle_metrics },
    { "/livez", GET, true, QA_QUERY_INSTANT, handle_live },
    { "/-/healthy", GET, true, QA_QUERY_INSTANT, handle_live },
    { "/readyz", GET, true, QA_QUERY_INSTANT, handle_ready },
    { "/-/ready", GET, true, QA_QUERY_INSTANT, handle_ready },
};

static bool path_matches(const char *pattern, struct qf_str path, struct qf_str *ret_rest)
{
    const char *star = strchr(pattern, '*');
    struct qf_str before, after;

    if (!star)
        return qf_str_is(path, pattern);
    before = (struct qf_str){ pattern, (size_t)(star - pattern) };
    after = qf_str_from(star + 1);
    if (path.len <= before.len + after.len || !qf_str_starts(path, before) ||
        !qf_str_ends(path, after))
        return false;
    *ret_rest = qf_str_sub(path, before.len, path.len - after.len);
    return true;
}

static void add_cors(struct visit *visit)
{
    const char *allowed = visit->routes->cors_origin;
    struct qf_str origin = qh_request_header(visit->request, "Origin");

    if (!allowed || origin.len == 0)
        return;
    if (strcmp(allowed, "*") != 0 && !qf_str_is(origin, allowed))
        return;
    qh_stream_header(visit->stream, "Access-Control-Allow-Origin", allowed);
    qh_stream_header(visit->stream, "Access-Control-Allow-Headers",
                     "Accept, Authorization, Content-Type, Origin, X-Scope-OrgID");
    qh_stream_header(visit->stream, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    qh_stream_header(visit->stream, "Access-Control-Expose-Headers", "Date, X-Query-Id");
    if (strcmp(allowed, "*") != 0)
        qh_stream_header(visit->stream, "Vary", "Origin");
}

static void refuse_method(struct visit *visit, const struct route *route)
{
    char allow[64];

    (void)snprintf(allow, sizeof(allow), "%s%s%sOPTIONS",
                   route->methods & QH_METHOD_GET ? "GET, " : "",
                   route->methods & QH_METHOD_POST ? "POST, " : "",
                   route->methods & QH_METHOD_DELETE ? "DELETE, " : "");
    qh_stream_header(visit->stream, "Allow", allow);
    answer_text(visit, 405, "Method Not Allowed\n");
}

void qa_routes_handle(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    struct visit visit = { .routes = ctx, .request = request, .stream = stream };
    const struct route *wrong_method = NULL;

    add_cors(&visit);
    if (request->method == QH_METHOD_OPTIONS) {
        qh_stream_answer(stream, 204, "text/plain", QF_STR(""));
        return;
    }
    for (size_t i = 0; i < QF_COUNT_OF(routes); i++) {
        const struct route *route = &routes[i];
        struct qf_err err = { 0 };

        if (!path_matches(route->path, request->path, &visit.rest))
            continue;
        if (!(route->methods & (unsigned)request->method)) {
            wrong_method = route;
            continue;
        }
        if (!route->open &&
            qh_tenants_of(visit.routes->tenants, request, &visit.tenant, &err) != QF_OK) {
            if (err.rc == QF_EAUTH)
                qh_stream_header(stream, "WWW-Authenticate", "Bearer");
            fail(&visit, route->kind, &err);
            return;
        }
        route->handle(&visit);
        return;
    }
    if (wrong_method)
        refuse_method(&visit, wrong_method);
    else
        answer_text(&visit, 404, "404 page not found\n");
}

void qa_routes_finished(void *ctx, struct qh_request *request, const struct qh_outcome *outcome)
{
    const struct qa_routes *of = ctx;
    int status = outcome->status;

    (void)request;
    if (status)
        qf_metric_add(of->metrics->requests, status >= 500 ? 2 : status >= 400 ? 1 : 0, 1);
}
