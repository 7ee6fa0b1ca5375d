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
    case WC_QUERY_ASKING:
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

const char *co_phase_name(const struct qa_coord *coord, const struct qa_query *query)
{
    return phase_names[phase_of(wc_life_state(coord->life, (struct wc_query_id){ query->id }))];
}

/* Queries that wait for admission count as queued work too: they need workers soon. Background jobs do if somebody said
 * so: else they wait for workers that queries woke. */
void co_put_scaling(struct qa_coord *coord, struct qf_strbuf *buf)
{
    const struct wc_api_stats *stats = wc_api_stats(coord->wc);
    struct wc_api_queue queue = wc_api_queue(coord->wc, qf_clock_mono_ms());
    const struct wc_lane_stats *jobs = wc_lane_stats(coord->lane.machine);
    uint32_t waiting = wc_life_stats(coord->life)->queries[WC_QUERY_QUEUED];
    char age[QF_DOUBLE_TEXT_MAX];

    if (coord->options.jobs_wake)
        waiting += jobs->pending + jobs->sent;
    (void)qf_double_json((double)queue.oldest_age_ms / 1000, age);
    qf_strbuf_printf(
        buf,
        "{\"work\":{\"queued\":%" PRIu32 ",\"running\":%" PRIu32 ",\"inflight\":%" PRIu32 ","
        "\"oldest_age_seconds\":%s},\"workers\":{\"alive\":%" PRIu32 ",\"accepting\":%" PRIu32
        ",\"draining\":%" PRIu32 "},\"background\":{\"queued\":%" PRIu32 ",\"running\":%" PRIu32
        "}}",
        queue.queued + waiting, queue.running, queue.inflight + waiting, age, stats->workers_alive,
        stats->workers_available, stats->workers_draining, jobs->pending, jobs->sent);
}

static void show_scaling(struct qa_coord *coord, struct qh_stream *stream)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    co_put_scaling(coord, &buf);
    qh_stream_answer(stream, 200, "application/json", qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
}

void co_inspect(struct qa_coord *coord, enum qa_inspect what, const char *tenant, size_t limit,
                struct qh_stream *stream)
{
    switch (what) {
    case QA_INSPECT_WORKERS:
    case QA_INSPECT_QUERIES:
    case QA_INSPECT_QUARANTINE:
    case QA_INSPECT_FINISHED:
        co_show_page(coord, what, tenant, limit, stream);
        break;
    case QA_INSPECT_SCALING:
        show_scaling(coord, stream);
        break;
    case QA_INSPECT_COMPACTION:
        co_show_compaction(coord, stream);
        break;
    }
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
    double waiting;

    update_queries(coord);
    co_lane_metrics(coord);
    qf_metric_set(m->workers, 0, now->workers_available);
    /* One that is leaving is neither accepting nor draining. */
    waiting = (double)now->workers_alive - now->workers_available - now->workers_draining;
    qf_metric_set(m->workers, 1, waiting > 0 ? waiting : 0);
    qf_metric_set(m->workers, 2, now->workers_draining);
    qf_metric_set(m->workers, 3, (double)now->workers - now->workers_alive);
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
    COUNT(tenant_limits, QF_LIMIT_WORK, kept);
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
    qf_metric_add(m->tenant_limits, QF_LIMIT_QUERIES,
                  (double)(wc_life_stats(coord->life)->held - coord->held_seen));
    coord->held_seen = wc_life_stats(coord->life)->held;
}
