/* route_fresh.c - metadata of metrics and exemplars: what ingest nodes have of them is asked first, then what the store
 * has is added (annex/annex.h). */
#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "promql/parse.h"
#include "queryapi/annex/annex.h"
#include "queryapi/encode/error.h"
#include "queryapi/http/params.h"
#include "queryapi/http/routes_int.h"

/* --- asking --- */

static void refuse(struct qa_annex_ask *ask, qf_rc rc, const char *message)
{
    qa_answer_error(ask->stream, QA_FORMAT_JSON, rc, message);
    (void)qa_annex_ask_free(ask);
}

static void submit(struct qa_annex_ask *ask)
{
    if (!qa_annex_submit(ask))
        refuse(ask, QF_EBUSY, "too many questions at once");
}

/* On the asker's thread. */
static void heads_answered(struct qa_question *question)
{
    struct qa_annex_ask *ask = question->ctx;

    if (question->rc == QF_OK) {
        ask->heads = question->answer;
        question->answer = (struct qf_strbuf)QF_STRBUF_INIT;
        submit(ask);
    } else {
        refuse(ask, question->rc, question->reason);
    }
    (void)qa_question_free(question);
}

/* Have @ask answered, with what ingest nodes say to @body at @path; that is taken. */
static void ask_all(struct qh_visit *visit, struct qa_annex_ask *ask, const char *path,
                    struct qf_strbuf *body)
{
    struct qa_asker *asker = qa_routes_of(visit)->env->asker;
    struct qa_question *question;

    if (!asker) {
        submit(ask);
        return;
    }
    question = qf_xcalloc(1, sizeof(*question));
    *question = (struct qa_question){ .tenant = qf_xmemdup0(visit->tenant.data, visit->tenant.len),
                                      .path = path,
                                      .body = *body,
                                      .done = heads_answered,
                                      .ctx = ask };
    *body = (struct qf_strbuf)QF_STRBUF_INIT;
    if (qa_asker_submit(asker, question))
        return;
    refuse(ask, QF_EBUSY, "too many questions at once");
    (void)qa_question_free(question);
}

/* What is behind the tenant's retention does not exist. */
static int64_t oldest_of(const struct qa_query_env *env, struct qf_str tenant)
{
    struct qf_limits limits;

    if (!env->tenants)
        return INT64_MIN;
    limits = qa_tenants_limits(env->tenants, tenant);
    return qf_limits_oldest(&limits, qf_clock_wall_ms());
}

static struct qa_annex_ask *new_ask(struct qh_visit *visit, enum sg_annex_kind kind)
{
    const struct qa_query_env *env = qa_routes_of(visit)->env;
    struct qa_annex_ask *ask = qa_annex_ask_new(env->annex, kind, visit->stream, visit->tenant);

    ask->min_ts = oldest_of(env, visit->tenant);
    if (kind == SG_ANNEX_METADATA && ask->min_ts > INT64_MIN + SG_ANNEX_TOLD_MS)
        ask->min_ts -= SG_ANNEX_TOLD_MS;
    return ask;
}

/* --- metadata --- */

static void handle_metadata(struct qh_visit *visit)
{
    static const char *const limits[] = { "limit", "limit_per_metric" };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct qf_str metric = qh_visit_param(visit, "metric");
    struct qa_annex_ask *ask;
    struct qf_err err = { 0 };
    int64_t numbers[QF_COUNT_OF(limits)] = { 0 };

    for (size_t i = 0; i < QF_COUNT_OF(limits); i++) {
        struct qf_str text = qh_visit_param(visit, limits[i]);

        if (text.len && !qf_parse_i64(text, &numbers[i])) {
            (void)qf_err_set(&err, QF_EINVAL, "%s must be a number", limits[i]);
            visit->route->fail(visit, &err);
            return;
        }
    }
    if (!qa_visit_settled(visit))
        return;
    qf_strbuf_puts(&body, "{\"tenant\":");
    qf_strbuf_json(&body, visit->tenant);
    qf_strbuf_puts(&body, ",\"metric\":");
    qf_strbuf_json(&body, metric);
    qf_strbuf_putc(&body, '}');
    ask = new_ask(visit, SG_ANNEX_METADATA);
    ask->metric = qf_arena_str(ask->arena, metric);
    ask->limit = (uint64_t)QF_MAX(numbers[0], (int64_t)0); /* of a metric there is one */
    ask_all(visit, ask, "/v1/heads/metadata", &body);
}

/* --- exemplars --- */

/* One too many is counted and not kept. */
static void add_selector(const struct pq_expr *selector, struct qa_annex_ask *ask)
{
    if (ask->selector_count < QA_ANNEX_SELECTORS_MAX) {
        ask->matchers[ask->selector_count] = selector->vector.matchers;
        ask->matcher_counts[ask->selector_count] = selector->vector.matcher_count;
    }
    ask->selector_count++;
}

static void find_selectors(const struct pq_expr *node, struct qa_annex_ask *ask)
{
    switch (node->kind) {
    case PQ_VECTOR_SELECTOR:
        add_selector(node, ask);
        break;
    case PQ_MATRIX_SELECTOR:
        add_selector(node->matrix.selector, ask);
        break;
    case PQ_SUBQUERY:
        find_selectors(node->subquery.expr, ask);
        break;
    case PQ_CALL:
        for (size_t i = 0; i < node->call.arg_count; i++)
            find_selectors(node->call.args[i], ask);
        break;
    case PQ_AGGREGATE:
        find_selectors(node->aggregate.expr, ask);
        if (node->aggregate.param)
            find_selectors(node->aggregate.param, ask);
        break;
    case PQ_BINARY:
        find_selectors(node->binary.lhs, ask);
        find_selectors(node->binary.rhs, ask);
        break;
    case PQ_UNARY:
        find_selectors(node->unary.expr, ask);
        break;
    case PQ_PAREN:
        find_selectors(node->paren.expr, ask);
        break;
    case PQ_NUMBER:
    case PQ_STRING:
    case PQ_DURATION_EXPR:
        break;
    }
}

static qf_rc read_exemplars(struct qh_visit *visit, struct qa_annex_ask *ask, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct qf_str query = qh_visit_param(visit, "query");
    qf_time_ms start = INT64_MIN, end = INT64_MAX;
    struct qf_err cause = { 0 };
    struct pq_expr *expr;
    qf_rc rc = qa_param_time_optional("start", qh_visit_param(visit, "start"), &start, err);

    if (rc == QF_OK)
        rc = qa_param_time_optional("end", qh_visit_param(visit, "end"), &end, err);
    if (rc == QF_OK && end < start)
        rc = qf_err_set(err, QF_EINVAL, "end timestamp must not be before start timestamp");
    if (rc == QF_OK)
        rc = qa_check_text(query, err);
    if (rc == QF_OK)
        rc = qa_check_short(query.len, err);
    if (rc)
        return rc;
    ask->min_ts = QF_MAX(ask->min_ts, start);
    ask->max_ts = end;
    query = qf_arena_str(ask->arena, query);
    rc = query.data
             ? pq_parse(ask->arena, query, &qa_routes_of(visit)->env->features.parse, &expr, &cause)
             : qf_err_set(&cause, QF_ELIMIT, "the query needs more memory than it may have");
    if (rc == QF_OK) {
        find_selectors(expr, ask);
        return ask->selector_count <= QA_ANNEX_SELECTORS_MAX
                   ? QF_OK
                   : qf_err_set(err, QF_EINVAL, "more than %d selectors", QA_ANNEX_SELECTORS_MAX);
    }
    pq_parse_error_print(&text, query, &cause);
    return qf_err_set(err, rc, "%s", rc == QF_EPARSE ? qf_strbuf_cstr(&text) : cause.msg);
}

static void ask_exemplars(struct qh_visit *visit, struct qa_annex_ask *ask)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;

    qf_strbuf_puts(&body, "{\"tenant\":");
    qf_strbuf_json(&body, visit->tenant);
    qf_strbuf_puts(&body, ",\"min_ts\":");
    qf_strbuf_i64(&body, ask->min_ts);
    qf_strbuf_puts(&body, ",\"max_ts\":");
    qf_strbuf_i64(&body, ask->max_ts);
    qf_strbuf_puts(&body, ",\"match\":[");
    for (size_t i = 0; i < ask->selector_count; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

        pq_print_matchers(&text, ask->matchers[i], ask->matcher_counts[i]);
        qf_strbuf_puts(&body, i ? "," : "");
        qf_strbuf_json(&body, qf_strbuf_view(&text));
    }
    qf_strbuf_puts(&body, "]}");
    ask_all(visit, ask, "/v1/heads/exemplars", &body);
}

static void handle_exemplars(struct qh_visit *visit)
{
    struct qa_annex_ask *ask;
    struct qf_err err = { 0 };

    if (!qa_visit_settled(visit))
        return;
    ask = new_ask(visit, SG_ANNEX_EXEMPLARS);
    if (read_exemplars(visit, ask, &err) != QF_OK) {
        if (err.rc == QF_ELIMIT && qf_purse_empty_ancestor(&ask->purse)) {
            err = (struct qf_err){ 0 };
            (void)qf_err_set(&err, QF_EUNAVAILABLE, "other queries use all memory: try again");
        }
        visit->route->fail(visit, &err);
    } else if (!ask->selector_count) {
        qh_stream_answer(visit->stream, 204, NULL, QF_STR(""));
    } else {
        ask_exemplars(visit, ask);
        return;
    }
    (void)qa_annex_ask_free(ask);
}

static const struct qh_route routes[] = {
    { "/api/v1/metadata", QH_GET, false, handle_metadata, qa_fail_json },
    { "/api/v1/query_exemplars", QH_GET_POST, false, handle_exemplars, qa_fail_json },
};

const struct qh_routes qa_fresh_routes = { routes, QF_COUNT_OF(routes) };
