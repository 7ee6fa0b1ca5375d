/* query.c - life of one query, and how it fails. */
#include "queryapi/query/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "promql/leaf.h"
#include "queryapi/encode/error.h"
#include "queryapi/encode/events.h"
#include "queryapi/query/explain.h"
#include "queryapi/query/query_int.h"

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

struct qa_query *qa_query_new(const struct qa_query_env *env, const struct qa_ask *ask,
                              struct qh_stream *stream)
{
    struct qa_query *query = qf_xcalloc(1, sizeof(*query));

    query->env = env;
    query->purse.limit = env->memory_bytes_max;
    query->purse.parent = env->purse;
    query->samples_max = env->samples_max;
    query->oldest_ts = INT64_MIN;
    query->limit = QF_LIMIT__COUNT;
    if (env->tenants) {
        query->tenant = qa_tenants_take(env->tenants, ask->tenant, &query->limits);
        query->purse.parent = &query->tenant->purse;
        query->samples_max = query->limits.of[QF_LIMIT_SAMPLES];
        query->oldest_ts = qf_limits_oldest(&query->limits, qf_clock_wall_ms());
    }
    query->arena = qf_arena_new_from(&query->purse);
    query->ask = qa_ask_copy(query->arena, ask);
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
    for (size_t i = 0; i < query->item_count; i++)
        qa_artifact_done(&query->items[i].artifact);
    query->items = NULL;
    query->parts = NULL;
    query->explain = NULL;
    query->estimate = (struct qa_estimate){ 0 };
    query->item_count = query->part_count = query->segment_count = query->head_count = 0;
    query->snapshot = sg_catalog_snapshot_drop(query->snapshot);
    query->unlisted = sg_catalog_told_drop(query->unlisted);
    query->fresh = qa_status_drop(query->fresh);
    query->maps = qa_maps_drop(query->maps);
}

/* What it cost, for the audit log. */
static void note_cost(struct qa_query *query)
{
    struct qa_audit_entry *audit = query->audit;

    if (!audit)
        return;
    memcpy(audit->query_id, query->name, sizeof(audit->query_id));
    audit->outcome = query->rc;
    audit->points = query->points;
    audit->bytes = query->co.artifact_bytes;
    for (size_t i = 0; i < query->part_count; i++)
        if (query->parts[i].eval)
            audit->samples += pq_eval_stats(query->parts[i].eval).samples_read;
}

struct qa_query *qa_query_free(struct qa_query *query)
{
    if (!query)
        return NULL;
    note_cost(query);
    qa_query_reset(query);
    (void)qh_stream_drop(query->stream);
    (void)qf_arena_free(query->arena);
    (void)qa_tenant_drop(query->tenant); /* whose purse paid the arena */
    (void)qa_audit_drop(query->audit);
    free(query);
    return NULL;
}

const struct qa_head_figures *qa_query_heads(const struct qa_query *query,
                                             struct qa_head_figures *room)
{
    if (!query->env->asker)
        return NULL;
    *room =
        (struct qa_head_figures){ query->head_count, query->co.head_samples, query->co.head_bytes };
    return room;
}

const char *qa_query_cancel_text(const struct qa_query *query)
{
    return query->cancel_rc == QF_EUNAVAILABLE ? "the server is shutting down"
                                               : qf_rc_text(query->cancel_rc);
}

/* The tenant's purse has no more: because of this query alone, or of all its queries. */
static qf_rc tenant_has_no_memory(struct qa_query *query, struct qf_err *err)
{
    bool alone = qf_purse_used(&query->tenant->purse) <= qf_purse_used(&query->purse);

    query->limit = QF_LIMIT_MEMORY;
    return qf_err_set(err, alone ? QF_ELIMIT : QF_EBUSY,
                      alone ? "the query needs more memory than its tenant may have: %" PRIu64
                              " bytes (memory)"
                            : "the queries of this tenant use all the memory they may have "
                              "together: %" PRIu64 " bytes (memory); try again later",
                      (uint64_t)query->tenant->purse.limit);
}

qf_rc qa_query_no_memory(struct qa_query *query, struct qf_err *err)
{
    const struct qf_purse *empty = qf_purse_empty_ancestor(&query->purse);

    if (!empty)
        return qf_err_set(err, QF_ELIMIT, "the query needs more memory than it may have");
    if (query->tenant && empty == &query->tenant->purse)
        return tenant_has_no_memory(query, err);
    return qf_err_set(err, QF_EUNAVAILABLE,
                      "the queries of this server use all the memory they may have together "
                      "(--queries-memory); try again later");
}

/* How long each work should take, from what its leaf took before. Works of a leaf are in a row. */
static void expect_costs(struct qa_query *query)
{
    const struct qa_costs *costs = query->env->costs;

    for (size_t first = 0, end; first < query->item_count; first = end) {
        const struct qa_item *item = &query->items[first];
        uint64_t scan_us;

        for (end = first; end < query->item_count; end++)
            if (query->items[end].leaf_id != item->leaf_id)
                break;
        if (!costs || !qa_costs_find(costs, qa_leaf_key(query, item->plan, item->leaf), &scan_us))
            continue;
        for (size_t i = first; i < end; i++)
            query->items[i].expect_ms = 1 + (int64_t)(scan_us / (end - first) / 1000);
    }
}

/* What went wrong stays in query->err, for the log. */
static void fail_turn(struct qa_query *query, qf_rc rc)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf hidden = QF_STRBUF_INIT;
    const char *text = atomic_load(&query->canceled) ? qa_query_cancel_text(query) : qf_rc_text(rc);

    if (!qa_error_is_askers(rc)) {
        qa_error_hide(rc, query->name, 0, &hidden);
        text = qf_strbuf_cstr(&hidden);
    } else if (query->err.rc == rc) {
        text = query->err.msg;
    }
    qa_query_fail(query, rc, text);
}

static qf_rc run_turn(struct qa_query *query, enum qa_turn turn)
{
    switch (turn) {
    case QA_TURN_PLAN:
        return qa_query_plan(query, &query->err);
    case QA_TURN_RESUME:
        return qa_query_resume(query, &query->err);
    case QA_TURN_ANSWER:
        break;
    }
    return qa_query_answer(query, &query->err);
}

void qa_query_turn(struct qa_query *query, enum qa_turn turn)
{
    qf_rc rc;

    query->next = QA_NEXT_OVER;
    if (atomic_load(&query->canceled))
        rc = query->cancel_rc;
    else
        rc = run_turn(query, turn);
    if (rc == QF_OK && query->next == QA_NEXT_WORK) {
        expect_costs(query);
        if (!qh_stream_begun(query->stream))
            qa_answer_begin(query);
        if (query->ask.kind == QA_QUERY_EXPLAIN)
            rc = qa_explain_document(query, &query->err);
        else if (qa_explained(query))
            rc = qa_explain_plan(query, &query->err);
        else if (qa_profiled(query))
            rc = qa_explain_silently(query, &query->err);
    }
    if (rc == QF_ECANCELED && atomic_load(&query->canceled))
        rc = query->cancel_rc; /* a deadline is a way to be canceled */
    if (rc == QF_ELIMIT && qf_purse_empty_ancestor(&query->purse)) {
        query->err = (struct qf_err){ 0 }; /* the first message would stay */
        rc = qa_query_no_memory(query, &query->err);
    }
    if (rc != QF_OK) {
        fail_turn(query, rc);
        query->next = QA_NEXT_OVER;
    }
}

/* Too many samples for a tenant that may have fewer, or more, than others: say how many. */
static const char *name_limit(struct qa_query *query, const char *message, char *buf, size_t size)
{
    if (strcmp(message, PQ_TOO_MANY_SAMPLES) != 0)
        return message;
    query->limit = QF_LIMIT_SAMPLES;
    if (query->samples_max == query->env->samples_max)
        return message;
    (void)snprintf(buf, size, "%s: this tenant may load %" PRIu64 " (samples)", message,
                   query->samples_max);
    return buf;
}

void qa_query_fail(struct qa_query *query, qf_rc rc, const char *message)
{
    enum qa_format format = qa_query_kind_format(query->ask.kind);
    struct qf_strbuf events = QF_STRBUF_INIT;
    char named[200];

    query->rc = rc;
    if (rc == QF_ELIMIT)
        message = name_limit(query, message, named, sizeof(named));
    (void)snprintf(query->told, sizeof(query->told), "%s", qa_error_text(rc, message));
    if (!query->err.rc)
        (void)qf_err_set(&query->err, rc, "%s", query->told);
    if (!qh_stream_begun(query->stream)) {
        qa_answer_error(query->stream, format, rc, message);
    } else if (format == QA_FORMAT_EVENTS) {
        qa_sse_error(&events, qf_rc_name(rc), qf_str_from(qa_error_text(rc, message)));
        (void)qh_stream_write(query->stream, qf_strbuf_view(&events));
        qh_stream_end(query->stream);
    } else {
        qh_stream_abort(query->stream); /* half a JSON document: the reader must not take it */
    }
    qf_strbuf_done(&events);
}
