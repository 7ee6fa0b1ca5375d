/* query.c - life of one query, and how it fails. */
#include "queryapi/query/query.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queryapi/http/prom_json.h"
#include "queryapi/query/query_int.h"

const char *qa_query_kind_name(enum qa_query_kind kind)
{
    static const char *const names[] = { "events", "query",  "query_range",
                                         "series", "labels", "label_values" };

    return kind < QF_COUNT_OF(names) ? names[kind] : "?";
}

bool qa_features_enable(struct qa_features *features, const char *name)
{
    const struct {
        const char *name;
        bool *flag;
    } known[] = {
        { "promql-experimental-functions", &features->parse.experimental_functions },
        { "promql-extended-range-selectors", &features->parse.extended_range_selectors },
        { "promql-binop-fill-modifiers", &features->parse.fill_modifiers },
        { "promql-delayed-name-removal", &features->delayed_name_removal },
        { "use-start-timestamps", &features->start_timestamps },
    };

    for (size_t i = 0; i < QF_COUNT_OF(known); i++) {
        if (strcmp(name, known[i].name) == 0) {
            *known[i].flag = true;
            return true;
        }
    }
    return false;
}

struct qa_query *qa_query_new(const struct qa_query_env *env, struct qh_stream *stream)
{
    struct qa_query *query = qf_xcalloc(1, sizeof(*query));

    query->env = env;
    query->purse.limit = env->memory_bytes_max;
    query->purse.parent = env->purse;
    query->arena = qf_arena_new_from(&query->purse);
    query->stream = qh_stream_ref(stream);
    query->timings.submitted_ns = qf_clock_mono_ns();
    atomic_init(&query->canceled, false);
    return query;
}

void qa_query_reset(struct qa_query *query)
{
    qa_answer_done(query);
    for (size_t i = 0; i < query->part_count; i++)
        (void)pq_eval_free(query->parts[i].eval);
    for (size_t i = 0; i < query->work_count; i++)
        qa_artifact_done(&query->works[i].artifact);
    query->works = NULL;
    query->parts = NULL;
    query->work_count = query->part_count = query->segment_count = 0;
    query->snapshot = catalog_snapshot_drop(query->snapshot);
}

struct qa_query *qa_query_free(struct qa_query *query)
{
    if (!query)
        return NULL;
    qa_query_reset(query);
    (void)qh_stream_drop(query->stream);
    (void)qf_arena_free(query->arena);
    free(query);
    return NULL;
}

const char *qa_query_cancel_text(const struct qa_query *query)
{
    return query->cancel_rc == QF_EUNAVAILABLE ? "the server is shutting down"
                                               : qf_rc_text(query->cancel_rc);
}

qf_rc qa_query_no_memory(const struct qa_query *query, struct qf_err *err)
{
    if (qf_purse_parent_empty(&query->purse))
        return qf_err_set(err, QF_EUNAVAILABLE,
                          "the queries of this server use all the memory they may have together "
                          "(--queries-memory); try again later");
    return qf_err_set(err, QF_ELIMIT, "the query needs more memory than it may have");
}

void qa_query_turn(struct qa_query *query, enum qa_turn turn)
{
    qf_rc rc;

    query->next = QA_NEXT_OVER;
    if (atomic_load(&query->canceled))
        rc = query->cancel_rc;
    else
        rc = turn == QA_TURN_PLAN ? qa_query_plan(query, &query->err)
                                  : qa_query_answer(query, &query->err);
    if (rc == QF_ECANCELED && atomic_load(&query->canceled))
        rc = query->cancel_rc; /* a deadline is a way to be canceled */
    if (rc == QF_ELIMIT && qf_purse_parent_empty(&query->purse)) {
        query->err = (struct qf_err){ 0 }; /* the first message would stay */
        rc = qa_query_no_memory(query, &query->err);
    }
    if (rc != QF_OK) {
        const char *text =
            atomic_load(&query->canceled) ? qa_query_cancel_text(query) : qf_rc_text(rc);

        qa_query_fail(query, rc, query->err.rc == rc ? query->err.msg : text);
        query->next = QA_NEXT_OVER;
    }
}

/* Prometheus's words where it has some. */
static const char *message_for(qf_rc rc, const char *message)
{
    if (rc == QF_ETIMEOUT)
        return "query timed out in query execution";
    if (rc == QF_ECANCELED)
        return "query was canceled in query execution";
    return message;
}

void qa_answer_error(struct qh_stream *stream, enum qa_query_kind kind, qf_rc rc,
                     const char *message)
{
    struct qf_strbuf body = QF_STRBUF_INIT;

    message = message_for(rc, message);
    if (rc == QF_EBUSY || rc == QF_EUNAVAILABLE || rc == QF_ENOSPC)
        qh_stream_header(stream, "Retry-After", "1");
    if (kind == QA_QUERY_EVENTS) {
        qf_strbuf_printf(&body,
                         "{\"status\":\"error\",\"code\":\"%s\",\"message\":", qf_rc_name(rc));
        qf_strbuf_json(&body, qf_str_from(message));
        qf_strbuf_putc(&body, '}');
    } else {
        qa_json_error(&body, qf_rc_prom_type(rc), qf_str_from(message));
    }
    qh_stream_answer(stream, qf_rc_http_status(rc), "application/json", qf_strbuf_view(&body));
    qf_strbuf_done(&body);
}

void qa_query_fail(struct qa_query *query, qf_rc rc, const char *message)
{
    struct qf_strbuf events = QF_STRBUF_INIT;

    query->rc = rc;
    if (!query->err.rc)
        (void)qf_err_set(&query->err, rc, "%s", message_for(rc, message));
    if (!qh_stream_begun(query->stream)) {
        qa_answer_error(query->stream, query->ask.kind, rc, message);
    } else if (query->ask.kind == QA_QUERY_EVENTS) {
        qa_sse_error(&events, qf_rc_name(rc), qf_str_from(message_for(rc, message)));
        (void)qh_stream_write(query->stream, qf_strbuf_view(&events));
        qh_stream_end(query->stream);
    } else {
        qh_stream_abort(query->stream); /* half a JSON document: the reader must not take it */
    }
    qf_strbuf_done(&events);
}
