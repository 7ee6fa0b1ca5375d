/* inspect.c - what the coordinator shows of itself. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "queryapi/dispatch/coordinator_int.h"

/* What is shown of a query's state. A query that is being ended is at the end of its answer, which
 * is an error. */
enum phase { QUEUED, PLANNING, WORKING, ANSWERING, PHASES };
static const char *const phase_names[PHASES] = { "queued", "planning", "working", "answering" };

static enum phase phase_of(enum wc_query_state state)
{
    switch (state) {
    case WC_QUERY_QUEUED:
        return QUEUED;
    case WC_QUERY_PLANNING:
        return PLANNING;
    case WC_QUERY_WORKING:
        return WORKING;
    case WC_QUERY_ANSWERING:
    case WC_QUERY_PAUSED:
    case WC_QUERY_STREAMING:
    case WC_QUERY_STOPPING:
    case WC_QUERY_DROPPING:
    case WC_QUERY_ENDED:
    case WC_QUERY__COUNT:
        break;
    }
    return ANSWERING;
}

static void put_worker(struct qf_strbuf *buf, const struct endpoint *endpoint,
                       const struct wc_api_worker_view *view, qf_time_ms now)
{
    qf_strbuf_puts(buf, "{\"worker_id\":");
    qf_strbuf_json(buf, qf_str_from(endpoint->name));
    qf_strbuf_puts(buf, ",\"address\":");
    qf_strbuf_json(buf, qf_str_from(endpoint->address));
    qf_strbuf_printf(buf,
                     ",\"state\":\"%s\",\"accepting\":%s,\"draining\":%s,\"available\":%s,"
                     "\"slots\":%" PRIu32 ",\"queue_depth\":%" PRIu32 ",\"assigned\":%" PRIu32
                     ",\"accepted\":%" PRIu32 ",\"ready\":%" PRIu32 ",\"silent_ms\":%" PRId64
                     ",\"rtt_ms\":%" PRId64 ",\"dials_failed\":%" PRIu32 "}",
                     wc_peer_state_name(view->state), view->accepting ? "true" : "false",
                     view->draining ? "true" : "false", view->available ? "true" : "false",
                     view->slots, view->queue_depth, view->assigned, view->accepted, view->ready,
                     view->session.v ? now - view->heard_at : -1, view->rtt_ms, view->dials_failed);
}

static void put_workers(struct qa_coord *coord, struct qf_strbuf *buf, qf_time_ms now)
{
    bool first = true;

    qf_strbuf_puts(buf, "{\"status\":\"success\",\"data\":[");
    for (size_t i = 0; i < coord->endpoints.count; i++) {
        struct wc_api_worker_view view;

        if (!wc_api_worker(coord->wc, coord->endpoints.items[i].worker, &view))
            continue;
        if (!first)
            qf_strbuf_putc(buf, ',');
        first = false;
        put_worker(buf, &coord->endpoints.items[i], &view, now);
    }
    qf_strbuf_puts(buf, "]}");
}

static void put_query(const struct qa_coord *coord, struct qf_strbuf *buf,
                      const struct qa_query *query)
{
    enum wc_query_state state = wc_life_state(coord->life, (struct wc_query_id){ query->id });

    qf_strbuf_puts(buf, "{\"query_id\":");
    qf_strbuf_json(buf, qf_str_from(query->name));
    qf_strbuf_puts(buf, ",\"tenant\":");
    qf_strbuf_json(buf, query->ask.tenant);
    qf_strbuf_puts(buf, ",\"query\":");
    qf_strbuf_json(buf, qf_str_sub(query->ask.text, 0, 4096));
    qf_strbuf_printf(
        buf,
        ",\"kind\":\"%s\",\"state\":\"%s\",\"start_ms\":%" PRId64 ",\"end_ms\":%" PRId64
        ",\"step_ms\":%" PRId64 ",\"age_seconds\":%.3f,\"work_done\":%zu}",
        qa_query_kind_name(query->ask.kind), phase_names[phase_of(state)], query->ask.start_ms,
        query->ask.end_ms, query->ask.step_ms,
        (double)(qf_clock_mono_ns() - query->timings.submitted_ns) / 1e9, query->co.committed);
}

static void put_queries(struct qa_coord *coord, const char *tenant, struct qf_strbuf *buf)
{
    bool first = true;

    qf_strbuf_puts(buf, "{\"status\":\"success\",\"data\":[");
    for (size_t i = 0; i < coord->slot_count; i++) {
        if (!coord->slots[i] || !co_in_sight(coord->slots[i], tenant))
            continue;
        if (!first)
            qf_strbuf_putc(buf, ',');
        first = false;
        put_query(coord, buf, coord->slots[i]);
    }
    qf_strbuf_puts(buf, "]}");
}

/* Queries that wait for admission count as queued work too: they need workers soon. */
static void put_scaling(struct qa_coord *coord, struct qf_strbuf *buf, qf_time_ms now)
{
    const struct wc_api_stats *stats = wc_api_stats(coord->wc);
    struct wc_api_queue queue = wc_api_queue(coord->wc, now);
    uint32_t waiting = wc_life_stats(coord->life)->queries[WC_QUERY_QUEUED];
    char age[QF_DOUBLE_TEXT_MAX];

    (void)qf_double_json((double)queue.oldest_age_ms / 1000, age);
    qf_strbuf_printf(buf,
                     "{\"work\":{\"queued\":%" PRIu32 ",\"running\":%" PRIu32
                     ",\"inflight\":%" PRIu32 ","
                     "\"oldest_age_seconds\":%s},\"workers\":{\"alive\":%" PRIu32
                     ",\"accepting\":%" PRIu32 ",\"draining\":%" PRIu32 "}}",
                     queue.queued + waiting, queue.running, queue.inflight + waiting, age,
                     stats->workers_alive, stats->workers_available, stats->workers_draining);
}

void co_inspect(struct qa_coord *coord, enum qa_inspect what, const char *tenant,
                struct qh_stream *stream)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    qf_time_ms now = qf_clock_mono_ms();

    switch (what) {
    case QA_INSPECT_WORKERS:
        put_workers(coord, &buf, now);
        break;
    case QA_INSPECT_QUERIES:
        put_queries(coord, tenant, &buf);
        break;
    case QA_INSPECT_SCALING:
        put_scaling(coord, &buf, now);
        break;
    case QA_INSPECT_QUARANTINE:
        co_put_quarantine(coord, &buf, now);
        break;
    }
    qh_stream_answer(stream, 200, "application/json", qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
}

static void update_queries(struct qa_coord *coord)
{
    const struct wc_life_stats *stats = wc_life_stats(coord->life);
    uint32_t counts[PHASES] = { 0 };

    for (int state = 0; state < WC_QUERY_ENDED; state++)
        counts[phase_of((enum wc_query_state)state)] += stats->queries[state];
    for (size_t i = 0; i < PHASES; i++)
        qf_metric_set(coord->options.metrics->query_states, i, counts[i]);
}

void co_update_metrics(struct qa_coord *coord)
{
    struct qa_metrics *m = coord->options.metrics;
    const struct wc_api_stats *now = wc_api_stats(coord->wc);
    struct wc_api_stats *seen = &coord->seen;
    struct wc_api_queue queue = wc_api_queue(coord->wc, qf_clock_mono_ms());

    update_queries(coord);
    qf_metric_set(m->workers, 0, now->workers);
    qf_metric_set(m->workers, 1, now->workers_alive);
    qf_metric_set(m->workers, 2, now->workers_available);
    qf_metric_set(m->workers, 3, now->workers_draining);
    qf_metric_set(m->streams, 0, now->workers_alive);
    qf_metric_set(m->work_queued, 0, queue.queued);
    qf_metric_set(m->work_running, 0, queue.running);
    qf_metric_set(m->work_kept, 0, now->items_kept);
    qf_metric_set(m->work_oldest_seconds, 0, (double)queue.oldest_age_ms / 1000);
    qf_metric_set(m->segments_quarantined, 0,
                  wc_quarantine_held(coord->quarantine.table, qf_clock_mono_ms()));
    qf_metric_set(m->spool_bytes, 0, (double)atomic_load(&coord->spool_bytes));
#define COUNT(metric, index, field)                                                                \
    qf_metric_add(m->metric, (index), (double)(now->field - seen->field))
    COUNT(tenant_limits, QA_LIMIT_WORK, kept);
    COUNT(work_assigned, 0, assigned);
    COUNT(work_accepted, 0, accepted);
    COUNT(work_rejected, 0, rejected);
    COUNT(work_reassigned, 0, reassigned);
    COUNT(work_hedges, 0, hedged);
    COUNT(work_hedges, 1, hedges_won);
    COUNT(work_hedges, 2, hedges_lost);
    COUNT(affinity, 0, affinity_hits);
    COUNT(affinity, 1, affinity_misses);
    COUNT(work_committed, 0, committed);
    COUNT(work_duplicates, 0, duplicates);
    COUNT(work_ignored, 0, illegal);
    COUNT(work_ignored, 0, stale);
    COUNT(work_blamed, 0, blamed);
#undef COUNT
    *seen = *now;
    qf_metric_add(m->tenant_limits, QA_LIMIT_QUERIES,
                  (double)(wc_life_stats(coord->life)->held - coord->held_seen));
    coord->held_seen = wc_life_stats(coord->life)->held;
}
