/* route_language.c - what needs no data: the language itself, and what Prometheus has and we do not.
 */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/sys/pool.h"
#include "promql/parse.h"
#include "queryapi/encode/error.h"
#include "queryapi/http/params.h"
#include "queryapi/http/routes_int.h"

/* Indented, a query of a megabyte is hundreds: what is printed has a limit, and its memory is taken
 * before. It is held up to three times: printed, quoted, in its envelope. */
#define PRINTED_BYTES_MAX ((size_t)8 << 20)
#define LANGUAGE_MEMORY_MAX ((size_t)128 << 20)

/* A megabyte of text takes a processor a tenth of a second, for which every other connection of an HTTP
 * thread would wait: longer ones than this are parsed and printed on the pool, so many at once. */
#define SHORT_BYTES ((size_t)16 << 10)
#define LONG_AT_ONCE 8

typedef void print_fn(struct qf_strbuf *buf, const struct pq_expr *expr);

/* A query to parse and print. Its memory is paid from what all queries may use together: many at once
 * find no room rather than take it. */
struct job {
    const struct qa_query_env *env;
    print_fn *print;
    struct qf_str text;
    enum qh_coding coding;
    struct qh_stream *stream;
    struct qf_purse purse;
    struct qf_arena *arena;
    atomic_uint *running; /* to be counted down at its end; or NULL */
};

static struct job *job_new(const struct qh_visit *visit, print_fn *print)
{
    const struct qa_query_env *env = qa_routes_of(visit)->env;
    struct job *job = qf_xcalloc(1, sizeof(*job));

    *job = (struct job){ .env = env,
                         .print = print,
                         .text = qh_visit_param(visit, "query"),
                         .coding = visit->request->coding,
                         .stream = qh_stream_ref(visit->stream),
                         .purse = { .limit = QF_MIN(env->memory_bytes_max, LANGUAGE_MEMORY_MAX),
                                    .parent = env->purse } };
    job->arena = qf_arena_new_from(&job->purse);
    return job;
}

static void job_free(struct job *job)
{
    (void)qf_arena_free(job->arena);
    (void)qh_stream_drop(job->stream);
    if (job->running)
        atomic_fetch_sub(job->running, 1);
    free(job);
}

/* Say what went wrong; that it was others who had the memory, if so. */
static void job_fail(struct job *job, struct qf_err *err)
{
    if (err->rc == QF_ELIMIT && qf_purse_empty_ancestor(&job->purse)) {
        *err = (struct qf_err){ 0 };
        (void)qf_err_set(err, QF_EUNAVAILABLE, "other queries use all memory: try again");
    }
    qa_answer_error(job->stream, QA_FORMAT_JSON, err->rc, err->msg);
}

static void print_pretty(struct qf_strbuf *buf, const struct pq_expr *expr)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = { .limit = PRINTED_BYTES_MAX };

    pq_pretty(&text, expr, 100);
    qf_strbuf_json(buf, qf_strbuf_view(&text));
    buf->overflowed |= text.overflowed;
}

/* Parse the query and print it into @body. */
static qf_rc print_query(struct job *job, struct qf_strbuf *body, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = { .limit = PRINTED_BYTES_MAX };
    struct qf_err cause = { 0 };
    struct pq_expr *expr;
    qf_rc rc = qa_check_text(job->text, err);

    if (rc != QF_OK)
        return rc;
    rc = pq_parse(job->arena, job->text, &job->env->features.parse, &expr, &cause);
    if (rc == QF_EPARSE) {
        pq_parse_error_print(&text, job->text, &cause);
        return qf_err_set(err, rc, "invalid parameter \"query\": %s", qf_strbuf_cstr(&text));
    }
    if (rc != QF_OK)
        return qf_err_set(err, rc, "%s", cause.msg);
    if (!qf_arena_charge(job->arena, 3 * PRINTED_BYTES_MAX))
        return qf_err_set(err, QF_ELIMIT, "the query needs more memory than its limit");
    job->print(&text, expr);
    if (text.overflowed)
        return qf_err_set(err, QF_ELIMIT, "the answer would be longer than %zu bytes",
                          PRINTED_BYTES_MAX);
    qf_strbuf_puts(body, "{\"status\":\"success\",\"data\":");
    qf_strbuf_str(body, qf_strbuf_view(&text));
    qf_strbuf_putc(body, '}');
    return QF_OK;
}

static void job_run(void *arg)
{
    struct job *job = arg;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    if (qh_stream_gone(job->stream)) {
        job_free(job);
        return;
    }
    if (print_query(job, &body, &err) == QF_OK) {
        qh_stream_allow(job->stream, job->coding);
        qh_stream_answer(job->stream, 200, "application/json", qf_strbuf_view(&body));
    } else {
        job_fail(job, &err);
    }
    job_free(job);
}

/* To the pool, with a text of its own: the request may be over sooner. */
static qf_rc job_send(struct job *job, atomic_uint *running, struct qf_err *err)
{
    job->text = qf_arena_str(job->arena, job->text);
    if (!job->text.data)
        return qf_err_set(err, QF_ELIMIT, "the query needs more memory than its limit");
    if (atomic_fetch_add(running, 1) >= LONG_AT_ONCE) {
        atomic_fetch_sub(running, 1);
        return qf_err_set(err, QF_EBUSY, "too many long queries are printed at once: try again");
    }
    job->running = running;
    if (!qf_pool_submit(job->env->helpers, job_run, job))
        return qf_err_set(err, QF_EBUSY, "too many queries at once: try again");
    return QF_OK;
}

/* format_query and parse_query: parse, and print in one form or the other. */
static void handle_parsed(struct qh_visit *visit, print_fn *print)
{
    struct job *job = job_new(visit, print);
    struct qf_err err = { 0 };

    if (job->text.len <= SHORT_BYTES || !job->env->helpers) {
        job_run(job);
    } else if (job_send(job, &qa_routes_of(visit)->long_texts, &err) != QF_OK) {
        job_fail(job, &err);
        job_free(job);
    }
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
