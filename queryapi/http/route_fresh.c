/* route_fresh.c - metadata of metrics and exemplars, which ingest nodes keep: passed on to them. Without
 * ingest nodes there are none. */
#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/vec.h"
#include "promql/parse.h"
#include "queryapi/encode/error.h"
#include "queryapi/http/params.h"
#include "queryapi/http/routes_int.h"

#define EXEMPLARS_MEMORY_MAX ((size_t)128 << 20)
/* What ingest nodes answer begins so; so does ours, but for the status. */
#define DATA "{\"data\":"

/* --- passing on --- */

static void relayed(struct qa_question *question)
{
    struct qh_stream *stream = question->ctx;
    struct qf_str answer = qf_strbuf_view(&question->answer);
    struct qf_strbuf body = QF_STRBUF_INIT;

    if (question->rc == QF_OK && qf_str_starts(answer, QF_STR(DATA))) {
        qf_strbuf_puts(&body, "{\"status\":\"success\",");
        qf_strbuf_str(&body, qf_str_sub(answer, 1, answer.len));
        qh_stream_answer(stream, 200, "application/json", qf_strbuf_view(&body));
    } else if (question->rc == QF_OK) {
        qa_answer_error(stream, QA_FORMAT_JSON, QF_EPROTO, "an ingest node's answer has no data");
    } else {
        qa_answer_error(stream, QA_FORMAT_JSON, question->rc, question->reason);
    }
    qf_strbuf_done(&body);
    (void)qh_stream_drop(stream);
    (void)qa_question_free(question);
}

/* Have @body answered by an ingest node; it is taken. */
static void pass_on(struct qh_visit *visit, const char *path, struct qf_strbuf *body)
{
    struct qa_question *question = qf_xcalloc(1, sizeof(*question));

    *question = (struct qa_question){ .tenant = qf_xmemdup0(visit->tenant.data, visit->tenant.len),
                                      .path = path,
                                      .body = *body,
                                      .done = relayed,
                                      .ctx = qh_stream_ref(visit->stream) };
    *body = (struct qf_strbuf)QF_STRBUF_INIT;
    if (qa_asker_submit(qa_routes_of(visit)->env->asker, question))
        return;
    qa_answer_error(visit->stream, QA_FORMAT_JSON, QF_EBUSY, "too many questions at once");
    (void)qh_stream_drop(visit->stream);
    (void)qa_question_free(question);
}

/* --- metadata --- */

static void handle_metadata(struct qh_visit *visit)
{
    static const char *const limits[] = { "limit", "limit_per_metric" };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    qf_strbuf_puts(&body, "{\"tenant\":");
    qf_strbuf_json(&body, visit->tenant);
    qf_strbuf_puts(&body, ",\"metric\":");
    qf_strbuf_json(&body, qh_visit_param(visit, "metric"));
    for (size_t i = 0; i < QF_COUNT_OF(limits); i++) {
        struct qf_str text = qh_visit_param(visit, limits[i]);
        int64_t number = 0;

        if (text.len && !qf_parse_i64(text, &number)) {
            (void)qf_err_set(&err, QF_EINVAL, "%s must be a number", limits[i]);
            visit->route->fail(visit, &err);
            return;
        }
        qf_strbuf_printf(&body, ",\"%s\":", limits[i]);
        qf_strbuf_i64(&body, QF_MAX(number, (int64_t)0));
    }
    qf_strbuf_putc(&body, '}');
    if (qa_routes_of(visit)->env->asker)
        pass_on(visit, "/v1/heads/metadata", &body);
    else
        qh_visit_json(visit, 200, QF_STR("{\"status\":\"success\",\"data\":{}}"));
}

/* --- exemplars --- */

struct exemplar_ask {
    qf_time_ms start, end;
    struct qf_strbuf matches; /* "SELECTOR","SELECTOR"... */
};

static void add_selector(const struct pq_expr *selector, struct qf_strbuf *matches)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    pq_print_matchers(&text, selector->vector.matchers, selector->vector.matcher_count);
    if (matches->len)
        qf_strbuf_putc(matches, ',');
    qf_strbuf_json(matches, qf_strbuf_view(&text));
}

static void find_selectors(const struct pq_expr *node, struct qf_strbuf *matches)
{
    switch (node->kind) {
    case PQ_VECTOR_SELECTOR:
        add_selector(node, matches);
        break;
    case PQ_MATRIX_SELECTOR:
        add_selector(node->matrix.selector, matches);
        break;
    case PQ_SUBQUERY:
        find_selectors(node->subquery.expr, matches);
        break;
    case PQ_CALL:
        for (size_t i = 0; i < node->call.arg_count; i++)
            find_selectors(node->call.args[i], matches);
        break;
    case PQ_AGGREGATE:
        find_selectors(node->aggregate.expr, matches);
        if (node->aggregate.param)
            find_selectors(node->aggregate.param, matches);
        break;
    case PQ_BINARY:
        find_selectors(node->binary.lhs, matches);
        find_selectors(node->binary.rhs, matches);
        break;
    case PQ_UNARY:
        find_selectors(node->unary.expr, matches);
        break;
    case PQ_PAREN:
        find_selectors(node->paren.expr, matches);
        break;
    case PQ_NUMBER:
    case PQ_STRING:
    case PQ_DURATION_EXPR:
        break;
    }
}

static qf_rc read_exemplars(struct qh_visit *visit, struct qf_arena *arena,
                            struct exemplar_ask *ask, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct qf_str query = qh_visit_param(visit, "query");
    struct qf_err cause = { 0 };
    struct pq_expr *expr;
    qf_rc rc = qa_param_time_optional("start", qh_visit_param(visit, "start"), &ask->start, err);

    if (rc == QF_OK)
        rc = qa_param_time_optional("end", qh_visit_param(visit, "end"), &ask->end, err);
    if (rc == QF_OK && ask->end < ask->start)
        rc = qf_err_set(err, QF_EINVAL, "end timestamp must not be before start timestamp");
    if (rc == QF_OK)
        rc = qa_check_text(query, err);
    if (rc)
        return rc;
    rc = pq_parse(arena, query, &qa_routes_of(visit)->env->features.parse, &expr, &cause);
    if (rc == QF_OK) {
        find_selectors(expr, &ask->matches);
        return QF_OK;
    }
    pq_parse_error_print(&text, query, &cause);
    return qf_err_set(err, rc, "%s", rc == QF_EPARSE ? qf_strbuf_cstr(&text) : cause.msg);
}

static void ask_exemplars(struct qh_visit *visit, const struct exemplar_ask *ask)
{
    struct qf_strbuf body = QF_STRBUF_INIT;

    qf_strbuf_puts(&body, "{\"tenant\":");
    qf_strbuf_json(&body, visit->tenant);
    qf_strbuf_puts(&body, ",\"min_ts\":");
    qf_strbuf_i64(&body, ask->start);
    qf_strbuf_puts(&body, ",\"max_ts\":");
    qf_strbuf_i64(&body, ask->end);
    qf_strbuf_puts(&body, ",\"match\":[");
    qf_strbuf_str(&body, qf_strbuf_view(&ask->matches));
    qf_strbuf_puts(&body, "]}");
    pass_on(visit, "/v1/heads/exemplars", &body);
}

static void handle_exemplars(struct qh_visit *visit)
{
    const struct qa_query_env *env = qa_routes_of(visit)->env;
    struct qf_purse purse = { .limit = QF_MIN(env->memory_bytes_max, EXEMPLARS_MEMORY_MAX),
                              .parent = env->purse };
    struct qf_arena *arena = qf_arena_new_from(&purse);
    struct exemplar_ask ask = { .start = INT64_MIN, .end = INT64_MAX };
    struct qf_err err = { 0 };

    if (read_exemplars(visit, arena, &ask, &err) != QF_OK) {
        if (err.rc == QF_ELIMIT && qf_purse_empty_ancestor(&purse)) {
            err = (struct qf_err){ 0 };
            (void)qf_err_set(&err, QF_EUNAVAILABLE, "other queries use all memory: try again");
        }
        visit->route->fail(visit, &err);
    } else if (!ask.matches.len) {
        qh_stream_answer(visit->stream, 204, NULL, QF_STR(""));
    } else if (env->asker) {
        ask_exemplars(visit, &ask);
    } else {
        qh_visit_json(visit, 200, QF_STR("{\"status\":\"success\",\"data\":[]}"));
    }
    qf_strbuf_done(&ask.matches);
    (void)qf_arena_free(arena);
}

static const struct qh_route routes[] = {
    { "/api/v1/metadata", QH_GET, false, handle_metadata, qa_fail_json },
    { "/api/v1/query_exemplars", QH_GET_POST, false, handle_exemplars, qa_fail_json },
};

const struct qh_routes qa_fresh_routes = { routes, QF_COUNT_OF(routes) };
