/* route_language.c - what needs no data: the language itself, and what Prometheus has and we do not.
 */
#include "base/pure/number.h"
#include "promql/parse.h"
#include "queryapi/http/params.h"
#include "queryapi/http/routes_int.h"

/* Indented, a query of a megabyte is hundreds: what is printed has a limit, and its memory is taken
 * before. It is held up to three times: printed, quoted, in its envelope. */
#define PRINTED_BYTES_MAX ((size_t)8 << 20)
#define LANGUAGE_MEMORY_MAX ((size_t)128 << 20)

/* What one request may use, paid from what all queries may use together: many at once find no room
 * rather than take it. */
static struct qf_purse purse_of(const struct qh_visit *visit)
{
    const struct qa_query_env *env = qa_routes_of(visit)->env;

    return (struct qf_purse){ .limit = QF_MIN(env->memory_bytes_max, LANGUAGE_MEMORY_MAX),
                              .parent = env->purse };
}

/* Say what went wrong; that it was others who had the memory, if so. */
static void fail(struct qh_visit *visit, const struct qf_purse *purse, struct qf_err *err)
{
    if (err->rc == QF_ELIMIT && qf_purse_empty_ancestor(purse))
        (void)qf_err_set(err, QF_EUNAVAILABLE, "other queries use all memory: try again");
    visit->route->fail(visit, err);
}

static void print_pretty(struct qf_strbuf *buf, const struct pq_expr *expr)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = { .limit = PRINTED_BYTES_MAX };

    pq_pretty(&text, expr, 100);
    qf_strbuf_json(buf, qf_strbuf_view(&text));
    buf->overflowed |= text.overflowed;
}

/* Parse the query and print it into @body. */
static qf_rc print_query(struct qh_visit *visit, struct qf_arena *arena,
                         void (*print)(struct qf_strbuf *, const struct pq_expr *),
                         struct qf_strbuf *body, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = { .limit = PRINTED_BYTES_MAX };
    struct qf_str query = qh_visit_param(visit, "query");
    struct qf_err cause = { 0 };
    struct pq_expr *expr;
    qf_rc rc = qa_check_text(query, err);

    if (rc != QF_OK)
        return rc;
    rc = pq_parse(arena, query, &qa_routes_of(visit)->env->features.parse, &expr, &cause);
    if (rc == QF_EPARSE) {
        pq_parse_error_print(&text, query, &cause);
        return qf_err_set(err, rc, "invalid parameter \"query\": %s", qf_strbuf_cstr(&text));
    }
    if (rc != QF_OK)
        return qf_err_set(err, rc, "%s", cause.msg);
    if (!qf_arena_charge(arena, 3 * PRINTED_BYTES_MAX))
        return qf_err_set(err, QF_ELIMIT, "the query needs more memory than its limit");
    print(&text, expr);
    if (text.overflowed)
        return qf_err_set(err, QF_ELIMIT, "the answer would be longer than %zu bytes",
                          PRINTED_BYTES_MAX);
    qf_strbuf_puts(body, "{\"status\":\"success\",\"data\":");
    qf_strbuf_str(body, qf_strbuf_view(&text));
    qf_strbuf_putc(body, '}');
    return QF_OK;
}

/* format_query and parse_query: parse, and print in one form or the other. */
static void handle_parsed(struct qh_visit *visit,
                          void (*print)(struct qf_strbuf *, const struct pq_expr *))
{
    struct qf_purse purse = purse_of(visit);
    struct qf_arena *arena = qf_arena_new_from(&purse);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    if (print_query(visit, arena, print, &body, &err) == QF_OK)
        qh_visit_json(visit, 200, qf_strbuf_view(&body));
    else
        fail(visit, &purse, &err);
    (void)qf_arena_free(arena);
}

static void handle_format_query(struct qh_visit *visit)
{
    handle_parsed(visit, print_pretty);
}

static void handle_parse_query(struct qh_visit *visit)
{
    handle_parsed(visit, pq_ast_json);
}

static const struct qh_route routes[] = {
    { "/api/v1/format_query", QH_GET_POST, false, handle_format_query, qa_fail_json },
    { "/api/v1/parse_query", QH_GET_POST, false, handle_parse_query, qa_fail_json },
};
const struct qh_routes qa_language_routes = { routes, QF_COUNT_OF(routes) };
