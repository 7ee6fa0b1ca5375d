/* explain.c - the coordinator's side of queries that are watched: what happens to their work is
 * marked as it comes and told in intervals, so that a query of thousands of items costs the
 * coordinator no more than one of some hundred. */
#include "queryapi/query/explain.h"

#include <stdio.h>

#include "base/sys/clock.h"
#include "queryapi/dispatch/coordinator_int.h"

static void mark(struct qa_coord *coord, struct qa_query *query, size_t index, const char *reason)
{
    struct qa_work_note *note = &query->explain->notes[index];

    if (reason)
        (void)snprintf(note->reason, sizeof(note->reason), "%s", reason);
    if (query->explain->silent) /* what became of the work is asked of its notes, in the end */
        return;
    qa_explain_mark(query->explain, index);
    if (coord->explain_due == QF_TIME_NEVER)
        coord->explain_due = QF_MAX(qf_clock_mono_ms(), coord->explained_at + QA_WORKS_INTERVAL_MS);
}

/* Whoever is watched and works; NULL for all others. */
static struct qa_query *watched(const struct qa_coord *coord, uint64_t id)
{
    struct qa_query *query = co_find_query(coord, id);

    return query && query->co.working && query->explain ? query : NULL;
}

static void set_worker(struct qa_coord *coord, struct qa_query *query, struct qa_work_note *note,
                       struct wc_worker_id worker)
{
    const struct endpoint *endpoint = co_endpoint(coord, worker);

    if (note->view.worker && note->worker == worker.v)
        return;
    note->worker = worker.v;
    note->view.worker =
        qa_explain_name(query, worker.v, endpoint && endpoint->name[0] ? endpoint->name : "?");
}

void co_explain_heard(struct qa_coord *coord, const struct event *event)
{
    const struct wc_api_event *work = &event->work;
    struct qa_query *query;
    const struct qa_item *item;
    const char *reason = NULL;

    if (work->type == WC_API_EV_READY && event->fetch)
        event->fetch->worker = work->worker.v;
    if (work->type == WC_API_EV_REJECTED)
        reason = wc_reject_name(work->reject);
    else if (work->type != WC_API_EV_ACCEPTED && work->type != WC_API_EV_READY &&
             work->type != WC_API_EV_FAILED && work->type != WC_API_EV_FETCH_FAILED)
        return;
    item = co_item_of(coord, work->work.v, &query);
    if (!item || !query->explain || !query->co.working)
        return;
    if (work->type == WC_API_EV_FAILED || work->type == WC_API_EV_FETCH_FAILED)
        reason = query->co.reason;
    mark(coord, query, (size_t)(item - query->items), reason);
}

/* Work of a worker that is gone: told even if nobody else is there to take it. */
static void lose(struct qa_coord *coord, struct qa_query *query, struct wc_worker_id worker)
{
    char reason[120];

    for (size_t i = 0; i < query->explain->count; i++) {
        const struct qa_work_note *note = &query->explain->notes[i];

        if (note->worker != worker.v || note->view.has_figures || !note->view.worker)
            continue;
        (void)snprintf(reason, sizeof(reason), "worker %.90s was lost", note->view.worker);
        mark(coord, query, i, reason);
    }
}

static struct qa_figures figures_of(const struct qa_fetch *fetch)
{
    const struct qa_said *said = &fetch->said;
    int64_t fetch_ns = QF_MAX(fetch->ended_ns - fetch->started_ns, (int64_t)0);

    return (struct qa_figures){ .queued_us = said->queued_us,
                                .download_us = said->download_us,
                                .scan_us = fetch->scan_us,
                                .write_us = said->write_us,
                                .fetch_us = (uint64_t)fetch_ns / 1000,
                                .rows = said->rows,
                                .series = said->series,
                                .samples = said->samples,
                                .artifact_bytes = fetch->size_bytes,
                                .download_bytes = said->download_bytes,
                                .cache_hits = said->cache_hits,
                                .cache_misses = said->cache_misses };
}

static void commit(struct qa_coord *coord, struct qa_query *query, size_t index,
                   const struct wc_api_effect *effect, const struct qa_fetch *fetch)
{
    struct qa_work_note *note = &query->explain->notes[index];

    note->view.state = wc_item_state_name(WC_ITEM_FETCHED);
    note->view.attempt = effect->attempt;
    if (fetch) {
        set_worker(coord, query, note, (struct wc_worker_id){ fetch->worker });
        note->view.figures = figures_of(fetch);
        note->view.has_figures = true;
    }
    mark(coord, query, index, NULL);
}

void co_explain_effect(struct qa_coord *coord, const struct wc_api_effect *effect,
                       const struct qa_fetch *fetch)
{
    struct qa_query *query;
    const struct qa_item *item;
    size_t index;

    if (effect->type == WC_API_DO_LOST) {
        for (size_t i = 0; i < coord->slot_count; i++)
            if (coord->slots[i] && coord->slots[i]->co.working && coord->slots[i]->explain)
                lose(coord, coord->slots[i], effect->worker);
        return;
    }
    if (effect->type != WC_API_DO_ASSIGN && effect->type != WC_API_DO_HEDGE &&
        effect->type != WC_API_DO_FETCH && effect->type != WC_API_DO_COMMITTED)
        return;
    query = watched(coord, effect->query.v);
    item = co_find_item(query, effect->work.v);
    if (!item)
        return;
    index = (size_t)(item - query->items);
    if (effect->type == WC_API_DO_COMMITTED) {
        commit(coord, query, index, effect, fetch);
        return;
    }
    if (effect->type == WC_API_DO_HEDGE)
        query->explain->notes[index].view.hedged = true;
    if (effect->type == WC_API_DO_ASSIGN) {
        struct qa_work_note *note = &query->explain->notes[index];

        set_worker(coord, query, note, effect->worker);
        note->view.attempt = effect->attempt;
        note->view.state = wc_item_state_name(WC_ITEM_ASSIGNED);
    }
    mark(coord, query, index, NULL);
}

/* What the core knows of the item now. */
static void refresh(struct qa_coord *coord, struct qa_query *query, size_t index)
{
    struct qa_work_note *note = &query->explain->notes[index];
    struct wc_api_item_view view;

    if (!wc_api_item(coord->wc, (struct wc_work_id){ query->co.first_work + index }, &view))
        return;
    note->view.state = wc_item_state_name(view.state);
    note->view.failures = view.failures;
    note->view.hedged |= view.hedge.state != WC_HEDGE_NONE;
    if (view.state == WC_ITEM_FETCHED)
        return; /* attempt and worker are those that committed */
    note->view.attempt = view.attempt;
    if (view.worker.v)
        set_worker(coord, query, note, view.worker);
}

size_t co_explain_works(struct qa_coord *coord, struct qa_query *query, size_t max)
{
    struct qa_explain *explain = query->explain;

    if (!query->co.working || !explain || explain->silent || explain->changed_count == 0)
        return 0;
    for (size_t i = 0; i < QF_MIN(explain->changed_count, max); i++)
        refresh(coord, query, explain->changed[i]);
    return qa_explain_works(query, max);
}

/* A client that does not read gets its news later, and then only the last. */
static size_t tell(struct qa_coord *coord, struct qa_query *query, size_t max)
{
    if (!query->co.working || !query->explain || query->explain->changed_count == 0)
        return 0;
    return qh_stream_room(query->stream) ? co_explain_works(coord, query, max) : 0;
}

void co_explain_tick(struct qa_coord *coord, qf_time_ms now)
{
    size_t left = QA_WORKS_PER_INTERVAL, next = coord->explain_slot;
    bool more = false;

    if (now < coord->explain_due)
        return;
    for (size_t i = 0; i < coord->slot_count; i++) {
        size_t slot = (coord->explain_slot + i) % coord->slot_count;
        struct qa_query *query = coord->slots[slot];

        if (!query)
            continue;
        if (left > 0) {
            left -= tell(coord, query, QF_MIN(left, (size_t)QA_WORKS_AT_ONCE));
            next = slot + 1;
        }
        more |= query->co.working && query->explain && query->explain->changed_count > 0;
    }
    coord->explain_slot = next % coord->slot_count;
    coord->explained_at = now;
    coord->explain_due = more ? now + QA_WORKS_INTERVAL_MS : QF_TIME_NEVER;
}
