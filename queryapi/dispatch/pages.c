/* pages.c - what is going on, as JSON: rows are copied on the coordinator's thread, and made into an
 * answer, or into events for who watches, on another. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/clock.h"
#include "queryapi/dispatch/coordinator_int.h"

/* Pages that are made at once: each may hold megabytes. */
#define PAGES_MAX 8
#define TEXT_MAX 4096

struct query_row {
    char name[sizeof(((struct qa_query *)0)->name)];
    size_t tenant_len, text_len; /* in page->texts, one behind the other */
    enum qa_query_kind kind;
    const char *state;
    int64_t start_ms, end_ms, step_ms;
    double age_seconds;
    size_t done, total, segments;
    uint64_t artifact_bytes;
};

struct finished_row {
    struct finished of; /* its texts are in page->texts, told last */
    size_t tenant_len, text_len, told_len;
};

struct worker_row {
    char name[PB_ID_BYTES_MAX + 1];
    size_t address_len, error_len; /* in page->texts */
    struct wc_api_worker_view view;
    struct pb_disk disk;
    uint32_t background_slots, background_running;
};

struct quarantine_row {
    size_t segment_len; /* in page->texts */
    struct wc_quarantine_entry entry;
};

struct page {
    struct qa_coord *coord;
    struct qh_stream *stream; /* a reference */
    struct watcher *watcher;  /* who gets events; NULL: the answer is a document */
    enum qa_inspect what;
    QF_VEC(struct query_row) queries;
    QF_VEC(struct finished_row) finished;
    QF_VEC(struct worker_row) workers;
    QF_VEC(struct quarantine_row) quarantine;
    struct qf_strbuf scaling, ingest; /* of who watches workers */
    struct qf_strbuf texts;
    size_t left_out;
    qf_time_ms now;
};

static void page_free(struct page *page)
{
    if (page->watcher)
        atomic_store(&page->watcher->busy, false);
    (void)atomic_fetch_sub(&page->coord->pages, 1);
    (void)qh_stream_drop(page->stream);
    QF_VEC_DONE(&page->queries);
    QF_VEC_DONE(&page->finished);
    QF_VEC_DONE(&page->workers);
    QF_VEC_DONE(&page->quarantine);
    qf_strbuf_done(&page->scaling);
    qf_strbuf_done(&page->ingest);
    qf_strbuf_done(&page->texts);
    free(page);
}

/* --- rendering, on a thread of the pool --- */

/* The next @len bytes of the texts. */
static struct qf_str next_text(const struct page *page, size_t *at, size_t len)
{
    struct qf_str text = qf_str_sub(qf_strbuf_view(&page->texts), *at, *at + len);

    *at += len;
    return text;
}

/* What rows of running and of finished queries begin with. */
static void put_asked(const struct page *page, const char *name, size_t tenant_len, size_t text_len,
                      size_t *at, struct qf_strbuf *buf)
{
    qf_strbuf_puts(buf, "{\"query_id\":");
    qf_strbuf_json(buf, qf_str_from(name));
    qf_strbuf_puts(buf, ",\"tenant\":");
    qf_strbuf_json(buf, next_text(page, at, tenant_len));
    qf_strbuf_puts(buf, ",\"query\":");
    qf_strbuf_json(buf, next_text(page, at, text_len));
}

static void put_query(const struct page *page, size_t index, size_t *at, struct qf_strbuf *buf)
{
    const struct query_row *row = &page->queries.items[index];

    put_asked(page, row->name, row->tenant_len, row->text_len, at, buf);
    qf_strbuf_printf(
        buf,
        ",\"kind\":\"%s\",\"state\":\"%s\",\"start_ms\":%" PRId64 ",\"end_ms\":%" PRId64
        ",\"step_ms\":%" PRId64 ",\"age_seconds\":%.3f,\"work_done\":%zu,\"work_total\":%zu,"
        "\"segments\":%zu,\"artifact_bytes\":%" PRIu64 "}",
        qa_query_kind_name(row->kind), row->state, row->start_ms, row->end_ms, row->step_ms,
        row->age_seconds, row->done, row->total, row->segments, row->artifact_bytes);
}

static void put_finished(const struct page *page, size_t index, size_t *at, struct qf_strbuf *buf)
{
    const struct finished_row *row = &page->finished.items[index];
    const struct finished *of = &row->of;

    put_asked(page, of->name, row->tenant_len, row->text_len, at, buf);
    qf_strbuf_printf(buf,
                     ",\"kind\":\"%s\",\"state\":\"finished\",\"outcome\":\"%s\","
                     "\"start_ms\":%" PRId64 ",\"end_ms\":%" PRId64 ",\"step_ms\":%" PRId64
                     ",\"ended_ms\":%" PRId64 ",\"seconds\":{\"queued\":%.6f,\"planning\":%.6f,"
                     "\"working\":%.6f,\"answering\":%.6f,\"total\":%.6f},\"segments\":%" PRIu64
                     ",\"works\":%" PRIu64 ",\"replans\":%" PRIu32 ",\"samples\":%" PRIu64
                     ",\"points\":%" PRIu64 ",\"artifact_bytes\":%" PRIu64,
                     qa_query_kind_name(of->kind), qf_rc_name(of->rc), of->start_ms, of->end_ms,
                     of->step_ms, of->ended_ms, of->queued_seconds, of->planning_seconds,
                     of->working_seconds, of->answering_seconds, of->total_seconds, of->segments,
                     of->works, of->replans, of->samples, of->points, of->artifact_bytes);
    if (row->told_len) {
        qf_strbuf_puts(buf, ",\"error\":");
        qf_strbuf_json(buf, next_text(page, at, row->told_len));
    }
    qf_strbuf_putc(buf, '}');
}

static void put_worker(const struct page *page, size_t index, size_t *at, struct qf_strbuf *buf)
{
    const struct worker_row *row = &page->workers.items[index];
    const struct wc_api_worker_view *view = &row->view;

    qf_strbuf_puts(buf, "{\"worker_id\":");
    qf_strbuf_json(buf, qf_str_from(row->name));
    qf_strbuf_puts(buf, ",\"address\":");
    qf_strbuf_json(buf, next_text(page, at, row->address_len));
    qf_strbuf_puts(buf, ",\"last_error\":");
    qf_strbuf_json(buf, next_text(page, at, row->error_len));
    qf_strbuf_printf(buf,
                     ",\"state\":\"%s\",\"accepting\":%s,\"draining\":%s,\"available\":%s,"
                     "\"slots\":%" PRIu32 ",\"queue_depth\":%" PRIu32 ",\"assigned\":%" PRIu32
                     ",\"accepted\":%" PRIu32 ",\"ready\":%" PRIu32 ",\"silent_ms\":%" PRId64
                     ",\"rtt_ms\":%" PRId64 ",\"dials_failed\":%" PRIu32
                     ",\"background_slots\":%" PRIu32 ",\"background_running\":%" PRIu32,
                     wc_peer_state_name(view->state), view->accepting ? "true" : "false",
                     view->draining ? "true" : "false", view->available ? "true" : "false",
                     view->slots, view->queue_depth, view->assigned, view->accepted, view->ready,
                     view->session.v ? page->now - view->heard_at : -1, view->rtt_ms,
                     view->dials_failed, row->background_slots, row->background_running);
    if (row->disk.bytes_max)
        qf_strbuf_printf(buf,
                         ",\"cache_bytes\":%" PRIu64 ",\"cache_segments\":%" PRIu32
                         ",\"disk_bytes\":%" PRIu64 ",\"disk_bytes_max\":%" PRIu64,
                         row->disk.cache_bytes, row->disk.cache_segments, row->disk.bytes,
                         row->disk.bytes_max);
    qf_strbuf_putc(buf, '}');
}

static void put_quarantine(const struct page *page, size_t index, size_t *at, struct qf_strbuf *buf)
{
    const struct quarantine_row *row = &page->quarantine.items[index];

    qf_strbuf_puts(buf, "{\"segment\":");
    qf_strbuf_json(buf, next_text(page, at, row->segment_len));
    qf_strbuf_printf(buf, ",\"state\":\"%s\",\"deaths\":%" PRIu32 ",\"seconds_left\":%" PRId64 "}",
                     row->entry.suspicion == WC_QUARANTINED ? "quarantined" : "suspect",
                     row->entry.deaths, (row->entry.until - page->now) / 1000);
}

typedef void put_row(const struct page *page, size_t index, size_t *at, struct qf_strbuf *buf);

static void put_list(const struct page *page, size_t count, put_row *put, size_t *at,
                     struct qf_strbuf *buf)
{
    qf_strbuf_putc(buf, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            qf_strbuf_putc(buf, ',');
        put(page, i, at, buf);
    }
    qf_strbuf_putc(buf, ']');
}

static void render(void *arg)
{
    struct page *page = arg;
    struct qf_strbuf buf = QF_STRBUF_INIT;
    size_t at = 0;

    qf_strbuf_puts(&buf, "{\"status\":\"success\",\"data\":");
    if (page->what == QA_INSPECT_WORKERS)
        put_list(page, page->workers.count, put_worker, &at, &buf);
    else if (page->what == QA_INSPECT_FINISHED)
        put_list(page, page->finished.count, put_finished, &at, &buf);
    else if (page->what == QA_INSPECT_QUARANTINE)
        put_list(page, page->quarantine.count, put_quarantine, &at, &buf);
    else
        put_list(page, page->queries.count, put_query, &at, &buf);
    if (page->left_out)
        qf_strbuf_printf(&buf, ",\"infos\":[\"%zu more are not shown: raise limit\"]",
                         page->left_out);
    qf_strbuf_putc(&buf, '}');
    qh_stream_answer(page->stream, 200, "application/json", qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
    page_free(page);
}

static void open_event(struct qf_strbuf *buf, const char *type)
{
    qf_strbuf_printf(buf, "data: {\"type\":\"%s\",\"data\":", type);
}

/* What runs and what is over. The texts of running ones come first. */
static void put_query_events(const struct page *page, struct qf_strbuf *buf)
{
    size_t at = 0;

    open_event(buf, "queries");
    put_list(page, page->queries.count, put_query, &at, buf);
    qf_strbuf_puts(buf, "}\n\n");
    if (page->finished.count == 0)
        return;
    open_event(buf, "finished");
    put_list(page, page->finished.count, put_finished, &at, buf);
    qf_strbuf_puts(buf, "}\n\n");
}

static void put_worker_events(const struct page *page, struct qf_strbuf *buf)
{
    size_t at = 0;

    open_event(buf, "workers");
    put_list(page, page->workers.count, put_worker, &at, buf);
    qf_strbuf_puts(buf, "}\n\n");
    open_event(buf, "scaling");
    qf_strbuf_str(buf, qf_strbuf_view(&page->scaling));
    qf_strbuf_puts(buf, "}\n\n");
    if (!page->ingest.len)
        return;
    open_event(buf, "ingest");
    qf_strbuf_str(buf, qf_strbuf_view(&page->ingest));
    qf_strbuf_puts(buf, "}\n\n");
}

static void render_events(void *arg)
{
    struct page *page = arg;
    struct qf_strbuf buf = QF_STRBUF_INIT;
    uint64_t hash;

    if (page->what == QA_INSPECT_WORKERS)
        put_worker_events(page, &buf);
    else
        put_query_events(page, &buf);
    hash = qf_hash_bytes(qf_strbuf_view(&buf));
    if (hash != page->watcher->last)
        (void)qh_stream_write(page->stream, qf_strbuf_view(&buf));
    page->watcher->last = hash;
    qf_strbuf_done(&buf);
    page_free(page);
}

/* --- copying, on the coordinator's thread --- */

static size_t add_text(struct page *page, struct qf_str text)
{
    qf_strbuf_str(&page->texts, text);
    return text.len;
}

static void add_query(struct page *page, const struct qa_query *query, const char *state)
{
    struct query_row row = { .kind = query->ask.kind,
                             .state = state,
                             .start_ms = query->ask.start_ms,
                             .end_ms = query->ask.end_ms,
                             .step_ms = query->ask.step_ms,
                             .done = query->co.committed,
                             .total = query->co.total,
                             .segments = query->co.segments,
                             .artifact_bytes = query->co.artifact_bytes };

    memcpy(row.name, query->name, sizeof(row.name));
    row.age_seconds = (double)(qf_clock_mono_ns() - query->timings.submitted_ns) / 1e9;
    row.tenant_len = add_text(page, query->ask.tenant);
    row.text_len = add_text(page, qf_str_sub(query->ask.text, 0, TEXT_MAX));
    QF_VEC_PUSH(&page->queries, row);
}

static void add_queries(struct page *page, const char *tenant, size_t limit)
{
    struct qa_coord *coord = page->coord;

    for (size_t i = 0; i < coord->slot_count; i++) {
        const struct qa_query *query = coord->slots[i];

        if (!query || !co_in_sight(query, tenant))
            continue;
        if (page->queries.count < limit)
            add_query(page, query, co_phase_name(coord, query));
        else
            page->left_out++;
    }
}

/* The newest first, down to number @from of all that ever were. */
static void add_finished(struct page *page, const char *tenant, size_t limit, uint64_t from)
{
    uint64_t count = page->coord->finished.count;

    from = QF_MAX(from, count > FINISHED_MAX ? count - FINISHED_MAX : 0);
    while (count > from) {
        const struct finished *of = &page->coord->finished.rows[--count % FINISHED_MAX];
        struct finished_row row = { .of = *of };

        if (tenant[0] && strcmp(tenant, of->tenant) != 0)
            continue;
        if (page->finished.count == limit) {
            page->left_out++;
            continue;
        }
        row.tenant_len = add_text(page, qf_str_from(of->tenant));
        row.text_len = add_text(page, qf_str_from(of->text));
        row.told_len = add_text(page, qf_str_from(of->told));
        QF_VEC_PUSH(&page->finished, row);
    }
}

static void add_workers(struct page *page, size_t limit)
{
    struct qa_coord *coord = page->coord;

    for (size_t i = 0; i < coord->endpoints.count; i++) {
        const struct endpoint *endpoint = &coord->endpoints.items[i];
        struct worker_row row;

        if (!wc_api_worker(coord->wc, endpoint->worker, &row.view))
            continue;
        if (page->workers.count == limit) {
            page->left_out++;
            continue;
        }
        memcpy(row.name, endpoint->name, sizeof(row.name));
        row.disk = endpoint->disk;
        row.background_slots = endpoint->background_slots;
        row.background_running = endpoint->background_running;
        row.address_len = add_text(page, qf_str_from(endpoint->address));
        row.error_len = add_text(page, qf_str_from(endpoint->last_error));
        QF_VEC_PUSH(&page->workers, row);
    }
}

/* What is not read comes before what is only suspected. */
static void add_quarantine(struct page *page, size_t limit)
{
    static const enum wc_suspicion order[] = { WC_QUARANTINED, WC_SUSPECT };
    const struct qa_coord *coord = page->coord;
    const char *segment;

    for (size_t i = 0; i < QF_COUNT_OF(order); i++) {
        for (uint32_t slot = 0; slot < CO_QUARANTINE_MAX; slot++) {
            struct quarantine_row row = { .entry =
                                              co_quarantine_at(coord, slot, page->now, &segment) };

            if (row.entry.suspicion != order[i])
                continue;
            if (page->quarantine.count == limit) {
                page->left_out++;
                continue;
            }
            row.segment_len = add_text(page, qf_str_from(segment));
            QF_VEC_PUSH(&page->quarantine, row);
        }
    }
}

/* NULL: too many are being made. */
static struct page *page_new(struct qa_coord *coord, enum qa_inspect what, struct qh_stream *stream)
{
    struct page *page;

    if (atomic_fetch_add(&coord->pages, 1) >= PAGES_MAX) {
        (void)atomic_fetch_sub(&coord->pages, 1);
        return NULL;
    }
    page = qf_xcalloc(1, sizeof(*page));
    page->coord = coord;
    page->what = what;
    page->stream = qh_stream_ref(stream);
    page->now = qf_clock_mono_ms();
    return page;
}

void co_show_page(struct qa_coord *coord, enum qa_inspect what, const char *tenant, size_t limit,
                  struct qh_stream *stream)
{
    struct page *page = page_new(coord, what, stream);

    if (!page) {
        qa_answer_error(stream, QA_FORMAT_JSON, QF_EBUSY, "too many such requests at once");
        return;
    }
    if (what == QA_INSPECT_QUERIES)
        add_queries(page, tenant, limit);
    else if (what == QA_INSPECT_FINISHED)
        add_finished(page, tenant, limit, 0);
    else if (what == QA_INSPECT_WORKERS)
        add_workers(page, limit);
    else
        add_quarantine(page, limit);
    if (qf_pool_submit(coord->options.pool, render, page))
        return;
    qa_answer_error(stream, QA_FORMAT_JSON, QF_EBUSY, "too many queries at once");
    page_free(page);
}

void co_show_watcher(struct qa_coord *coord, struct watcher *watcher)
{
    struct page *page = page_new(coord, watcher->what, watcher->stream);

    if (!page)
        return; /* another time */
    if (watcher->what == QA_INSPECT_WORKERS) {
        add_workers(page, watcher->limit);
        co_put_scaling(coord, &page->scaling);
        qf_strbuf_puts(&page->ingest, coord->roll ? coord->roll : "");
    } else {
        add_queries(page, watcher->tenant, watcher->limit);
        add_finished(page, watcher->tenant, watcher->limit, watcher->finished);
    }
    page->watcher = watcher;
    atomic_store(&watcher->busy, true);
    if (qf_pool_submit(coord->options.pool, render_events, page))
        watcher->finished = coord->finished.count;
    else
        page_free(page);
}
