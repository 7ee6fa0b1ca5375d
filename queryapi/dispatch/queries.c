/* queries.c - queries in the coordinator: admission, turns, cancellation and their end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryapi/dispatch/coordinator_int.h"
#include "queryapi/http/prom_json.h"

/* How often a query is planned again because segments vanished. */
#define REPLANS_MAX 3
#define SLOT_BITS 16
#define SLOT_MASK ((UINT64_C(1) << SLOT_BITS) - 1)

struct qa_query *co_find_query(const struct qa_coord *coord, uint64_t id)
{
    uint64_t slot = id & SLOT_MASK;

    if (slot >= coord->options.queries_max || !coord->slots[slot])
        return NULL;
    return coord->slots[slot]->id == id ? coord->slots[slot] : NULL;
}

struct qa_work *co_find_work(struct qa_query *query, uint64_t work)
{
    uint64_t index;

    if (!query || work < query->co.first_work)
        return NULL;
    index = work - query->co.first_work;
    return index < query->work_count ? &query->works[index] : NULL;
}

/* --- the end --- */

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return from_ns && to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static void log_slow(const struct qa_query *query, double total)
{
    const struct qa_timings *t = &query->timings;
    struct qf_strbuf plan = { .limit = 2048 };

    for (size_t i = 0; i < query->part_count; i++)
        pq_plan_explain(&plan, query->parts[i].plan);
    QF_LOG_WARN(
        "slow query", QF_KV_STR("query_id", query->name), QF_KV_SLICE("tenant", query->ask.tenant),
        QF_KV_STR("kind", qa_query_kind_name(query->ask.kind)),
        QF_KV_SLICE("query", query->ask.text), QF_KV_I64("start_ms", query->ask.start_ms),
        QF_KV_I64("end_ms", query->ask.end_ms), QF_KV_I64("step_ms", query->ask.step_ms),
        QF_KV_DOUBLE("seconds", total),
        QF_KV_DOUBLE("queue_seconds", seconds(t->submitted_ns, t->admitted_ns)),
        QF_KV_DOUBLE("plan_seconds", seconds(t->admitted_ns, t->planned_ns)),
        QF_KV_DOUBLE("work_seconds", seconds(t->planned_ns, t->fetched_ns)),
        QF_KV_DOUBLE("answer_seconds", seconds(t->fetched_ns, t->over_ns)),
        QF_KV_U64("work_items", query->work_count), QF_KV_U64("segments", query->segment_count),
        QF_KV_U64("points", query->points), QF_KV_STR("outcome", qf_rc_name(query->rc)),
        QF_KV_SLICE("plan", qf_strbuf_view(&plan)));
    qf_strbuf_done(&plan);
}

/* What the client did is no event; what we could not do is. */
static void log_outcome(const struct qa_query *query, double total)
{
    bool ours = query->rc != QF_OK && query->rc != QF_ECANCELED && query->rc != QF_EINVAL &&
                query->rc != QF_EPARSE && query->rc != QF_EEXEC;

    QF_LOG_AT(ours ? QF_LOG_LEVEL_WARN : QF_LOG_LEVEL_DEBUG, ours ? "query failed" : "query over",
              QF_KV_STR("query_id", query->name), QF_KV_STR("outcome", qf_rc_name(query->rc)),
              QF_KV_STR("reason", query->err.msg), QF_KV_DOUBLE("seconds", total));
}

static void account(struct qa_coord *coord, struct qa_query *query)
{
    struct qa_metrics *m = coord->options.metrics;
    struct qa_timings *t = &query->timings;
    double total;

    t->over_ns = qf_clock_mono_ns();
    total = seconds(t->submitted_ns, t->over_ns);
    qf_metric_add(m->queries, qa_metrics_error_index(query->rc), 1);
    qf_metric_observe(m->query_seconds, total);
    if (t->first_ns)
        qf_metric_observe(m->first_result_seconds, seconds(t->submitted_ns, t->first_ns));
    if (t->admitted_ns)
        qf_metric_observe(m->queue_seconds, seconds(t->submitted_ns, t->admitted_ns));
    if (t->planned_ns)
        qf_metric_observe(m->plan_seconds, seconds(t->admitted_ns, t->planned_ns));
    if (t->fetched_ns) {
        qf_metric_observe(m->work_seconds, seconds(t->planned_ns, t->fetched_ns));
        qf_metric_observe(m->eval_seconds, seconds(t->fetched_ns, t->over_ns));
    }
    if (coord->options.slow_query_ms >= 0 && total * 1000 >= (double)coord->options.slow_query_ms) {
        qf_metric_inc(m->slow_queries);
        log_slow(query, total);
    }
    log_outcome(query, total);
}

static void free_query(void *query)
{
    (void)qa_query_free(query);
}

static void start_next(struct qa_coord *coord);

static void release_slot(struct qa_coord *coord, struct qa_query *query)
{
    struct tenant *tenant = query->co.tenant;

    if (!query->co.active)
        return;
    query->co.active = false;
    coord->active--;
    tenant->active--;
}

static void forget_tenant(struct qa_coord *coord, struct tenant *tenant)
{
    if (tenant->queued || tenant->active)
        return;
    for (size_t i = 0; i < coord->tenants.count; i++) {
        if (coord->tenants.items[i] != tenant)
            continue;
        coord->tenants.items[i] = coord->tenants.items[--coord->tenants.count];
        free(tenant->name);
        free(tenant);
        return;
    }
}

/* The query has been answered, one way or the other: its last moments. */
static void finish(struct qa_coord *coord, struct qa_query *query)
{
    uint64_t slot = query->id & SLOT_MASK;
    struct tenant *tenant = query->co.tenant;

    account(coord, query);
    release_slot(coord, query);
    tenant->active--; /* the one that kept the entry while the query lived */
    forget_tenant(coord, tenant);
    coord->slots[slot] = NULL;
    coord->free_slots[coord->free_slot_count++] = (uint32_t)slot;
    (void)atomic_fetch_sub(&coord->query_count, 1);
    (void)atomic_fetch_sub(&coord->spool_bytes, query->co.artifact_bytes);
    /* Its files are removed on a pool thread. */
    if (!qf_pool_submit(coord->options.pool, free_query, query))
        free_query(query);
    start_next(coord);
}

/* --- turns --- */

static void run_turn(void *arg)
{
    struct qa_query *query = arg;

    qa_query_turn(query, query->co.turn);
    co_post(query->co.coord, (struct msg){ .kind = MSG_TURN_DONE, .query = query });
}

static void lend(struct qa_coord *coord, struct qa_query *query, enum qa_turn turn)
{
    query->co.turn = turn;
    query->co.in_turn = true;
    query->co.room = false;
    if (qf_pool_submit(coord->options.pool, run_turn, query))
        return;
    query->co.in_turn = false;
    qa_query_fail(query, QF_EBUSY, "too many queries at once");
    finish(coord, query);
}

/* --- admission --- */

static struct tenant *tenant_of(struct qa_coord *coord, struct qf_str name)
{
    struct tenant *tenant;

    for (size_t i = 0; i < coord->tenants.count; i++)
        if (qf_str_is(name, coord->tenants.items[i]->name))
            return coord->tenants.items[i];
    tenant = qf_xcalloc(1, sizeof(*tenant));
    tenant->name = qf_xmemdup0(name.data, name.len);
    tenant->tail = &tenant->head;
    QF_VEC_PUSH(&coord->tenants, tenant);
    return tenant;
}

/* Tenants take turns, so that one with many queries does not keep out the others. */
static void start_next(struct qa_coord *coord)
{
    while (coord->active < coord->options.queries_active_max && coord->queued > 0) {
        struct tenant *tenant;
        struct qa_query *query;

        do {
            coord->next_tenant = (coord->next_tenant + 1) % coord->tenants.count;
            tenant = coord->tenants.items[coord->next_tenant];
        } while (!tenant->head);
        query = tenant->head;
        tenant->head = query->co.next_queued;
        if (!tenant->head)
            tenant->tail = &tenant->head;
        tenant->queued--;
        coord->queued--;
        tenant->active++;
        coord->active++;
        query->co.active = true;
        query->co.state = Q_PLANNING;
        query->timings.admitted_ns = qf_clock_mono_ns();
        lend(coord, query, QA_TURN_PLAN);
    }
}

static void refuse(struct qa_coord *coord, struct qa_query *query, qf_rc rc, const char *why)
{
    qf_metric_inc(coord->options.metrics->queries_refused);
    qa_query_fail(query, rc, why);
    (void)qa_query_free(query);
}

static void on_stream(void *ctx, uint64_t id, enum qh_stream_event event)
{
    co_post(ctx, (struct msg){ .kind = MSG_STREAM, .id = id, .number = (int)event });
}

void co_submit(struct qa_coord *coord, struct qa_query *query)
{
    struct tenant *tenant;
    uint32_t slot;

    if (coord->draining) {
        refuse(coord, query, QF_EUNAVAILABLE, "the server is shutting down");
        return;
    }
    if (coord->free_slot_count == 0) {
        refuse(coord, query, QF_EUNAVAILABLE, "too many queries at once");
        return;
    }
    tenant = tenant_of(coord, query->ask.tenant);
    if (tenant->queued >= coord->options.tenant_queue_max) {
        refuse(coord, query, QF_EBUSY, "too many queries of this tenant are waiting");
        return;
    }
    slot = coord->free_slots[--coord->free_slot_count];
    query->id = ++coord->query_number << SLOT_BITS | slot;
    (void)snprintf(query->name, sizeof(query->name), "%.63s-%" PRIx64, coord->options.api_id,
                   coord->query_number);
    coord->slots[slot] = query;
    (void)atomic_fetch_add(&coord->query_count, 1);
    query->co.coord = coord;
    query->co.tenant = tenant;
    query->co.state = Q_QUEUED;
    query->co.deadline =
        qf_clock_mono_ms() + (query->ask.timeout_ms > 0
                                  ? QF_MIN(query->ask.timeout_ms, coord->options.query_timeout_ms)
                                  : coord->options.query_timeout_ms);
    tenant->active++;
    *tenant->tail = query;
    tenant->tail = &query->co.next_queued;
    tenant->queued++;
    coord->queued++;
    qh_stream_header(query->stream, "X-Query-Id", query->name);
    qh_stream_listen(query->stream, on_stream, coord, query->id);
    if (qh_stream_gone(query->stream))
        co_cancel_query(coord, query, QF_ECANCELED);
    start_next(coord);
}

/* --- what happens to a query --- */

static void begin_work(struct qa_coord *coord, struct qa_query *query)
{
    struct wc_api_item_spec *items =
        qf_xcalloc(QF_MAX(query->work_count, (size_t)1), sizeof(*items));
    int64_t now = qf_clock_mono_ns();

    query->co.first_work = coord->works + 1;
    coord->works += query->work_count;
    for (size_t i = 0; i < query->work_count; i++) {
        query->works[i].waiting_ns = now;
        items[i] = (struct wc_api_item_spec){ .work.v = query->co.first_work + i,
                                              .leaf.v = query->works[i].leaf_id,
                                              .affinity = query->works[i].affinity };
    }
    query->co.state = Q_WORKING;
    query->co.in_core = true;
    co_progress(coord, query);
    co_step(coord, (struct wc_api_event){ .type = WC_API_EV_QUERY_BEGIN,
                                          .query.v = query->id,
                                          .begin = { .items = items,
                                                     .count = query->work_count,
                                                     .deadline = query->co.deadline } });
    free(items);
}

void co_turn_done(struct qa_coord *coord, struct qa_query *query)
{
    query->co.in_turn = false;
    if (query->next != QA_NEXT_OVER && atomic_load(&query->canceled)) {
        qa_query_fail(query, query->cancel_rc, qa_query_cancel_text(query));
        query->next = QA_NEXT_OVER;
    }
    switch (query->next) {
    case QA_NEXT_WORK:
        begin_work(coord, query);
        break;
    case QA_NEXT_ROOM:
        if (query->co.room) {
            lend(coord, query, QA_TURN_ANSWER);
            break;
        }
        /* A slow reader holds memory but none of the places of those who work. */
        release_slot(coord, query);
        start_next(coord);
        break;
    case QA_NEXT_OVER:
        finish(coord, query);
        break;
    }
}

void co_query_ended(struct qa_coord *coord, struct qa_query *query, qf_rc rc)
{
    const char *why;

    if (!query || !query->co.in_core)
        return;
    query->co.in_core = false;
    co_forget_fetches(coord, query->id);
    if (rc == QF_OK && !atomic_load(&query->canceled)) {
        query->co.state = Q_ANSWERING;
        lend(coord, query, QA_TURN_ANSWER);
        return;
    }
    if (atomic_load(&query->canceled))
        rc = query->cancel_rc;
    if (rc == QF_ENOTFOUND && query->co.replans < REPLANS_MAX) {
        /* Segments were replaced by others meanwhile: look again. */
        query->co.replans++;
        query->co.state = Q_PLANNING;
        query->co.committed = 0;
        query->co.reason[0] = '\0';
        (void)atomic_fetch_sub(&coord->spool_bytes, query->co.artifact_bytes);
        query->co.artifact_bytes = query->co.announced_bytes = 0;
        lend(coord, query, QA_TURN_PLAN);
        return;
    }
    why = query->co.reason[0] ? query->co.reason : qf_rc_text(rc);
    if (atomic_load(&query->canceled))
        why = qa_query_cancel_text(query);
    else if (rc == QF_EUNAVAILABLE && !query->co.reason[0])
        why = "no worker is available";
    qa_query_fail(query, rc, why);
    finish(coord, query);
}

void co_progress(struct qa_coord *coord, struct qa_query *query)
{
    struct qf_strbuf event = QF_STRBUF_INIT;

    if (!query->ask.progress || query->ask.kind != QA_QUERY_EVENTS)
        return;
    qa_sse_progress(&event, query->segment_count, query->work_count, query->co.committed,
                    wc_api_stats(coord->wc)->workers_available);
    (void)qh_stream_write(query->stream, qf_strbuf_view(&event));
    qf_strbuf_done(&event);
}

void co_stream_event(struct qa_coord *coord, uint64_t id, enum qh_stream_event event)
{
    struct qa_query *query = co_find_query(coord, id);

    if (!query)
        return;
    if (event == QH_STREAM_GONE) {
        co_cancel_query(coord, query, QF_ECANCELED);
        return;
    }
    if (query->co.in_turn)
        query->co.room = true;
    else if (query->co.state == Q_ANSWERING)
        lend(coord, query, QA_TURN_ANSWER);
}

/* --- cancellation --- */

static void unqueue(struct qa_coord *coord, struct qa_query *query)
{
    struct tenant *tenant = query->co.tenant;
    struct qa_query **at = &tenant->head;

    while (*at && *at != query)
        at = &(*at)->co.next_queued;
    if (!*at)
        return;
    *at = query->co.next_queued;
    if (!*at)
        tenant->tail = at;
    tenant->queued--;
    coord->queued--;
}

void co_cancel_query(struct qa_coord *coord, struct qa_query *query, qf_rc rc)
{
    if (atomic_load(&query->canceled))
        return;
    query->cancel_rc = rc;
    atomic_store(&query->canceled, true);
    if (query->co.in_turn)
        return; /* the turn sees the flag and ends */
    if (query->co.in_core) {
        co_step(coord, (struct wc_api_event){
                           .type = WC_API_EV_QUERY_CANCEL, .query.v = query->id, .rc = rc });
        return; /* QUERY_ENDED finishes it */
    }
    if (query->co.state == Q_QUEUED)
        unqueue(coord, query);
    qa_query_fail(query, rc, qa_query_cancel_text(query));
    finish(coord, query);
}

bool co_in_sight(const struct qa_query *query, const char *tenant)
{
    return tenant[0] == '\0' || qf_str_is(query->ask.tenant, tenant);
}

void co_cancel_by_name(struct qa_coord *coord, const char *name, const char *tenant,
                       struct qh_stream *stream)
{
    for (size_t i = 0; i < coord->options.queries_max; i++) {
        struct qa_query *query = coord->slots[i];

        if (!query || strcmp(query->name, name) != 0 || !co_in_sight(query, tenant))
            continue;
        co_cancel_query(coord, query, QF_ECANCELED);
        qh_stream_answer(stream, 200, "application/json",
                         QF_STR("{\"status\":\"success\",\"data\":\"canceled\"}"));
        return;
    }
    qa_answer_error(stream, QA_QUERY_INSTANT, QF_ENOTFOUND, "no such query");
}

void co_cancel_all(struct qa_coord *coord)
{
    for (size_t i = 0; i < coord->options.queries_max; i++)
        if (coord->slots[i])
            co_cancel_query(coord, coord->slots[i], QF_EUNAVAILABLE);
}

void co_expire(struct qa_coord *coord, qf_time_ms now)
{
    for (size_t i = 0; i < coord->options.queries_max; i++)
        if (coord->slots[i] && coord->slots[i]->co.deadline <= now)
            co_cancel_query(coord, coord->slots[i], QF_ETIMEOUT);
}

qf_time_ms co_next_deadline(const struct qa_coord *coord)
{
    qf_time_ms next = QF_TIME_NEVER;

    if (atomic_load(&coord->query_count) == 0)
        return next;
    for (size_t i = 0; i < coord->options.queries_max; i++)
        if (coord->slots[i] && !atomic_load(&coord->slots[i]->canceled))
            next = QF_MIN(next, coord->slots[i]->co.deadline);
    return next;
}
