/* queries.c - queries in the coordinator: what clients and turns say becomes events, and what the
 * life of queries wants done is done. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryapi/dispatch/coordinator_int.h"
#include "queryapi/encode/events.h"
#include "queryapi/query/explain.h"

#define SLOT_BITS 16
#define SLOT_MASK ((UINT64_C(1) << SLOT_BITS) - 1)

struct qa_query *co_find_query(const struct qa_coord *coord, uint64_t id)
{
    uint64_t slot = id & SLOT_MASK;

    if (slot >= coord->slot_count || !coord->slots[slot])
        return NULL;
    return coord->slots[slot]->id == id ? coord->slots[slot] : NULL;
}

struct qa_item *co_find_item(struct qa_query *query, uint64_t work)
{
    uint64_t index;

    if (!query || work < query->co.first_work)
        return NULL;
    index = work - query->co.first_work;
    return index < query->item_count ? &query->items[index] : NULL;
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
        QF_KV_U64("work_items", query->item_count), QF_KV_U64("segments", query->segment_count),
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

static void count_limit(struct qa_coord *coord, const struct qa_query *query)
{
    if (query->limit != QF_LIMIT__COUNT)
        qf_metric_add(coord->options.metrics->tenant_limits, query->limit, 1);
}

static void account(struct qa_coord *coord, struct qa_query *query)
{
    struct qa_metrics *m = coord->options.metrics;
    struct qa_timings *t = &query->timings;
    double total;

    t->over_ns = qf_clock_mono_ns();
    total = seconds(t->submitted_ns, t->over_ns);
    count_limit(coord, query);
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

/* Below this a query that is over may wait for the next one's thread: waking one of its own would cost
 * more than all that is to be done. */
#define FREE_LATER_MAX ((size_t)1 << 20)

/* Its memory and its files go on a thread of the pool. */
static void free_on_pool(struct qa_coord *coord, struct qa_query *query)
{
    bool small = qf_purse_used(&query->purse) + query->co.artifact_bytes < FREE_LATER_MAX;

    if (!(small ? qf_pool_submit_later : qf_pool_submit)(coord->options.pool, free_query, query))
        free_query(query);
}

static void give_slot(struct qa_coord *coord, const struct qa_query *query)
{
    uint64_t slot = query->id & SLOT_MASK;

    coord->slots[slot] = NULL;
    coord->free_slots[coord->free_slot_count++] = (uint32_t)slot;
}

/* The query has been answered, one way or the other: its last moments. */
static void finish(struct qa_coord *coord, struct qa_query *query)
{
    account(coord, query);
    co_remember(coord, query);
    give_slot(coord, query);
    co_unannounce(query);
    (void)atomic_fetch_sub(&coord->query_count, 1);
    (void)atomic_fetch_sub(&coord->spool_bytes, query->co.artifact_bytes);
    free_on_pool(coord, query);
}

/* --- the beginning --- */

static void on_stream(void *ctx, uint64_t id, enum qh_stream_event event)
{
    co_post(ctx, (struct msg){ .kind = MSG_STREAM, .id = id, .number = (int)event });
}

/* Without limits tenants are told apart by a hash of their names: those with the same one would share
 * a place in line, and nothing else. */
static struct wc_tenant_id tenant_of(const struct qa_query *query)
{
    return (struct wc_tenant_id){ query->tenant ? query->tenant->id
                                                : qf_hash_bytes(query->ask.tenant) };
}

static uint32_t limit_of(const struct qa_query *query, enum qf_limit limit)
{
    return (uint32_t)QF_MIN(query->limits.of[limit], (uint64_t)UINT32_MAX);
}

static struct wc_tenant_share share_of(const struct qa_query *query)
{
    return (struct wc_tenant_share){ .active_max = limit_of(query, QF_LIMIT_QUERIES),
                                     .queued_max = limit_of(query, QF_LIMIT_QUEUED),
                                     .streams_max = limit_of(query, QF_LIMIT_STREAMS) };
}

void co_submit(struct qa_coord *coord, struct qa_query *query)
{
    uint32_t slot = coord->free_slots[--coord->free_slot_count];
    int64_t timeout_ms = coord->options.query_timeout_ms;

    if (query->ask.timeout_ms > 0)
        timeout_ms = QF_MIN(query->ask.timeout_ms, timeout_ms);
    query->id = ++coord->query_number << SLOT_BITS | slot;
    query->co.coord = coord;
    query->co.deadline = qf_clock_mono_ms() + timeout_ms;
    coord->slots[slot] = query;
    co_tell_life(coord, (struct wc_life_event){ .type = WC_LIFE_EV_SUBMIT,
                                                .query.v = query->id,
                                                .submit = { .tenant = tenant_of(query),
                                                            .deadline = query->co.deadline,
                                                            .share = share_of(query) } });
}

static void refuse(struct qa_coord *coord, struct qa_query *query, qf_rc rc, const char *why)
{
    qf_metric_inc(coord->options.metrics->queries_refused);
    count_limit(coord, query);
    qa_query_fail(query, rc, why);
    give_slot(coord, query);
    (void)qa_query_free(query);
}

enum { WHY_BYTES = 120 };

static void say_streams(struct qa_query *query, uint32_t streams, char why[WHY_BYTES])
{
    query->limit = QF_LIMIT_STREAMS;
    (void)snprintf(why, WHY_BYTES,
                   "too many answers of this tenant wait for their readers: %" PRIu32 " (streams)",
                   streams);
}

/* Its tenant has too many slow readers, or else too many that wait. */
static void refuse_tenant(struct qa_coord *coord, struct qa_query *query)
{
    struct wc_life_tenant_view has = wc_life_tenant(coord->life, tenant_of(query));
    uint64_t streams_max = query->limits.of[QF_LIMIT_STREAMS];
    char why[WHY_BYTES];

    if (streams_max && has.streams >= streams_max) {
        say_streams(query, has.streams, why);
    } else {
        query->limit = QF_LIMIT_QUEUED;
        (void)snprintf(why, sizeof(why),
                       "too many queries of this tenant are waiting: %" PRIu32 " (queued)",
                       has.queued);
    }
    refuse(coord, query, QF_EBUSY, why);
}

void co_submitted(struct qa_coord *coord, struct qa_query *query, qf_rc rc)
{
    if (rc == QF_EBUSY) {
        refuse_tenant(coord, query);
        return;
    }
    if (rc != QF_OK) {
        refuse(coord, query, QF_EUNAVAILABLE,
               rc == QF_EUNAVAILABLE ? "the server is shutting down" : "too many queries at once");
        return;
    }
    (void)snprintf(query->name, sizeof(query->name), "%.63s-%" PRIx64, coord->options.api_id,
                   query->id >> SLOT_BITS);
    (void)atomic_fetch_add(&coord->query_count, 1);
    qh_stream_header(query->stream, "X-Query-Id", query->name);
    qh_stream_listen(query->stream, on_stream, coord, query->id);
    if (qa_explained(query))
        qa_explain_stage(query, "queued");
    if (qh_stream_gone(query->stream))
        co_tell_life(coord,
                     (struct wc_life_event){ .type = WC_LIFE_EV_CANCEL, .query.v = query->id });
}

/* --- what is said of a query --- */

void co_turn_done(struct qa_coord *coord, struct qa_query *query)
{
    static const enum wc_life_event_type events[] = {
        [QA_NEXT_ASK] = WC_LIFE_EV_ASK,
        [QA_NEXT_WORK] = WC_LIFE_EV_PLANNED,
        [QA_NEXT_ROOM] = WC_LIFE_EV_PAUSED,
        [QA_NEXT_OVER] = WC_LIFE_EV_ANSWERED,
    };

    co_tell_life(coord,
                 (struct wc_life_event){ .type = events[query->next],
                                         .query.v = query->id,
                                         .rc = query->next == QA_NEXT_OVER ? query->rc : QF_OK });
}

void co_work_over(struct qa_coord *coord, struct wc_query_id query, qf_rc rc)
{
    struct qa_query *of = co_find_query(coord, query.v);

    co_forget_fetches(coord, query.v);
    if (of && rc == QF_EQUARANTINED)
        co_explain_quarantine(coord, of);
    if (of)
        of->co.vanished = rc == QF_ENOTFOUND;
    co_tell_life(coord,
                 (struct wc_life_event){ .type = WC_LIFE_EV_WORK_OVER, .query = query, .rc = rc });
}

void co_stream_event(struct qa_coord *coord, uint64_t id, enum qh_stream_event event)
{
    if (!co_find_query(coord, id))
        return;
    co_tell_life(coord, (struct wc_life_event){ .type = event == QH_STREAM_GONE ? WC_LIFE_EV_CANCEL
                                                                                : WC_LIFE_EV_ROOM,
                                                .query.v = id });
}

bool co_in_sight(const struct qa_query *query, const char *tenant)
{
    return tenant[0] == '\0' || qf_str_is(query->ask.tenant, tenant);
}

void co_cancel_by_name(struct qa_coord *coord, const char *name, const char *tenant,
                       struct qh_stream *stream)
{
    for (size_t i = 0; i < coord->slot_count; i++) {
        const struct qa_query *query = coord->slots[i];

        if (!query || strcmp(query->name, name) != 0 || !co_in_sight(query, tenant))
            continue;
        co_tell_life(coord,
                     (struct wc_life_event){ .type = WC_LIFE_EV_CANCEL, .query.v = query->id });
        qh_stream_answer(stream, 200, "application/json",
                         QF_STR("{\"status\":\"success\",\"data\":\"canceled\"}"));
        return;
    }
    qa_answer_error(stream, QA_FORMAT_JSON, QF_ENOTFOUND, "no such query");
}

/* --- what is done to a query --- */

static void run_turn(void *arg)
{
    struct qa_query *query = arg;

    qa_query_turn(query, query->co.turn);
    co_post(query->co.coord, (struct msg){ .kind = MSG_TURN_DONE, .query = query });
}

static void lend(struct qa_coord *coord, struct qa_query *query, enum qa_turn turn)
{
    query->co.turn = turn;
    query->co.working = false;
    if (!qf_pool_submit(coord->options.pool, run_turn, query))
        co_tell_life(coord,
                     (struct wc_life_event){ .type = WC_LIFE_EV_REFUSED, .query.v = query->id });
}

/* Once more, if segments were replaced by others meanwhile: what was fetched goes with the old
 * plan. */
static void plan(struct qa_coord *coord, struct qa_query *query, uint32_t replans)
{
    if (replans == 0)
        query->timings.admitted_ns = qf_clock_mono_ns();
    query->co.replans = replans;
    query->co.committed = query->co.total = query->co.segments = 0;
    query->co.head_samples = query->co.head_bytes = 0;
    query->co.reason[0] = '\0';
    (void)atomic_fetch_sub(&coord->spool_bytes, query->co.artifact_bytes);
    query->co.artifact_bytes = 0;
    co_unannounce(query);
    if (qa_explained(query))
        qa_explain_stage(query, "planning");
    lend(coord, query, QA_TURN_PLAN);
}

static void ask(struct qa_coord *coord, struct qa_query *query)
{
    struct qa_question *question = qf_xcalloc(1, sizeof(*question));

    *question =
        (struct qa_question){ .query = query->id,
                              .tenant = qf_xmemdup0(query->ask.tenant.data, query->ask.tenant.len),
                              .min_ts = query->wants.min_ts,
                              .max_ts = query->wants.max_ts,
                              .anew = query->co.replans > 0 };
    if (qa_asker_submit(coord->asker, question))
        return;
    (void)qa_question_free(question);
    co_tell_life(coord, (struct wc_life_event){ .type = WC_LIFE_EV_REFUSED, .query.v = query->id });
}

/* A query that has ended meanwhile needs no answer. */
void co_told(struct qa_coord *coord, struct qa_question *question)
{
    struct qa_query *query = co_find_query(coord, question->query);

    if (query) {
        query->fresh = QF_TAKE(question->status);
        query->maps = QF_TAKE(question->maps);
        (void)snprintf(query->co.reason, sizeof(query->co.reason), "%s", question->reason);
        co_tell_life(coord, (struct wc_life_event){ .type = WC_LIFE_EV_TOLD,
                                                    .query.v = query->id,
                                                    .rc = question->rc });
    }
    (void)qa_question_free(question);
}

static void work(struct qa_coord *coord, struct qa_query *query)
{
    struct wc_api_item_spec *items =
        qf_xcalloc(QF_MAX(query->item_count, (size_t)1), sizeof(*items));
    int64_t now = qf_clock_mono_ns();

    query->co.total = query->item_count;
    query->co.segments = query->segment_count;
    query->co.first_work = coord->item_number + 1;
    coord->item_number += query->item_count;
    for (size_t i = 0; i < query->item_count; i++) {
        query->items[i].waiting_ns = now;
        items[i] = (struct wc_api_item_spec){ .work.v = query->co.first_work + i,
                                              .leaf.v = query->items[i].leaf_id,
                                              .affinity = query->items[i].affinity,
                                              .expect_ms = query->items[i].expect_ms,
                                              .owner_count = query->items[i].owner_count };
        memcpy(items[i].owners, query->items[i].owners, sizeof(items[i].owners));
    }
    if (!co_vet(coord, query, items)) {
        free(items);
        co_work_over(coord, (struct wc_query_id){ query->id }, QF_EQUARANTINED);
        return;
    }
    query->co.working = true;
    if (qa_explained(query))
        qa_explain_stage(query, "working");
    co_progress(coord, query);
    co_tell(coord,
            (struct event){ .machine = MACHINE_WORK,
                            .work = { .type = WC_API_EV_QUERY_BEGIN,
                                      .query.v = query->id,
                                      .begin = { .items = items,
                                                 .count = query->item_count,
                                                 .tenant = tenant_of(query),
                                                 .sent_max = limit_of(query, QF_LIMIT_WORK) } },
                            .items = items });
}

/* The first turn of an answer; later ones go on with it. */
static void answer(struct qa_coord *coord, struct qa_query *query)
{
    if (query->explain && !query->explain->silent && !query->explain->answering) {
        query->explain->answering = true;
        (void)co_explain_works(coord, query, QA_WORKS_AT_ONCE);
        qa_explain_stage(query, "answering");
    }
    lend(coord, query, QA_TURN_ANSWER);
}

/* Why nobody ran the work, as far as it is known. */
static void say_no_worker(const struct qa_coord *coord, char *text, size_t size)
{
    const char *last = "";

    for (size_t i = 0; i < coord->endpoints.count; i++)
        if (coord->endpoints.items[i].last_error[0])
            last = coord->endpoints.items[i].last_error;
    (void)snprintf(text, size, "no worker is available: %zu known%s%s", coord->endpoints.count,
                   last[0] ? ", last error: " : "", last);
}

/* What a worker is denied or does not find is no question's fault: there is something wrong with the
 * store. */
static qf_rc outcome_of(const struct wc_life_effect *effect)
{
    bool store = effect->rc == QF_EDENIED || effect->rc == QF_ENOTFOUND;

    return effect->cause == WC_LIFE_WORK && store ? QF_ESTORE : effect->rc;
}

static void fail(struct qa_coord *coord, struct qa_query *query,
                 const struct wc_life_effect *effect)
{
    const char *why = "too many queries at once";
    char crowded[WHY_BYTES], nobody[ENDPOINT_ERROR_MAX + 100];
    qf_rc rc = outcome_of(effect);

    if (effect->cause == WC_LIFE_CROWDED) {
        say_streams(query, wc_life_tenant(coord->life, tenant_of(query)).streams, crowded);
        why = crowded;
    } else if (effect->cause == WC_LIFE_CANCELED) {
        query->cancel_rc = effect->rc;
        why = qa_query_cancel_text(query);
    } else if (effect->cause == WC_LIFE_WORK || effect->cause == WC_LIFE_UNTOLD) {
        say_no_worker(coord, nobody, sizeof(nobody));
        why = query->co.reason[0]             ? query->co.reason
              : effect->rc == QF_EUNAVAILABLE ? nobody
                                              : qf_rc_text(rc);
    }
    (void)co_explain_works(coord, query, QA_WORKS_AT_ONCE);
    qa_query_fail(query, rc, why);
}

void co_perform_life(struct qa_coord *coord, const struct wc_life_effect *effect)
{
    struct qa_query *query = co_find_query(coord, effect->query.v);

    switch (effect->type) {
    case WC_LIFE_DO_PLAN:
        plan(coord, query, effect->replans);
        break;
    case WC_LIFE_DO_ASK:
        ask(coord, query);
        break;
    case WC_LIFE_DO_RESUME:
        lend(coord, query, QA_TURN_RESUME);
        break;
    case WC_LIFE_DO_WORK:
        work(coord, query);
        break;
    case WC_LIFE_DO_ANSWER:
        answer(coord, query);
        break;
    case WC_LIFE_DO_STOP:
        query->cancel_rc = effect->rc;
        atomic_store(&query->canceled, true); /* the turn sees it and ends */
        break;
    case WC_LIFE_DO_DROP:
        co_tell_work(coord, (struct wc_api_event){ .type = WC_API_EV_QUERY_CANCEL,
                                                   .query = effect->query,
                                                   .rc = effect->rc });
        break;
    case WC_LIFE_DO_FAIL:
        fail(coord, query, effect);
        break;
    case WC_LIFE_DO_END:
        finish(coord, query);
        break;
    case WC_LIFE_DO__COUNT:
        break;
    }
}

void co_progress(struct qa_coord *coord, struct qa_query *query)
{
    struct qf_strbuf event = QF_STRBUF_INIT;

    if (!query->ask.progress || qa_query_kind_format(query->ask.kind) != QA_FORMAT_EVENTS)
        return;
    qa_sse_progress(&event, query->segment_count, query->item_count, query->co.committed,
                    wc_api_stats(coord->wc)->workers_available);
    (void)qh_stream_write(query->stream, qf_strbuf_view(&event));
    qf_strbuf_done(&event);
}
