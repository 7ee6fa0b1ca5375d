/* pages.c - what is going on, as JSON: rows are copied on the coordinator's thread, and made into an
 * answer on another. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
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
    size_t done;
};

struct worker_row {
    char name[PB_ID_BYTES_MAX + 1];
    size_t address_len; /* in page->texts */
    struct wc_api_worker_view view;
};

struct quarantine_row {
    size_t segment_len; /* in page->texts */
    struct wc_quarantine_entry entry;
};

struct page {
    struct qa_coord *coord;
    struct qh_stream *stream; /* a reference */
    QF_VEC(struct query_row) queries;
    QF_VEC(struct worker_row) workers;
    QF_VEC(struct quarantine_row) quarantine;
    struct qf_strbuf texts;
    size_t left_out;
    qf_time_ms now;
};

static void page_free(struct page *page)
{
    (void)atomic_fetch_sub(&page->coord->pages, 1);
    (void)qh_stream_drop(page->stream);
    QF_VEC_DONE(&page->queries);
    QF_VEC_DONE(&page->workers);
    QF_VEC_DONE(&page->quarantine);
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

static void put_query(const struct page *page, const struct query_row *row, size_t *at,
                      struct qf_strbuf *buf)
{
    qf_strbuf_puts(buf, "{\"query_id\":");
    qf_strbuf_json(buf, qf_str_from(row->name));
    qf_strbuf_puts(buf, ",\"tenant\":");
    qf_strbuf_json(buf, next_text(page, at, row->tenant_len));
    qf_strbuf_puts(buf, ",\"query\":");
    qf_strbuf_json(buf, next_text(page, at, row->text_len));
    qf_strbuf_printf(buf,
                     ",\"kind\":\"%s\",\"state\":\"%s\",\"start_ms\":%" PRId64
                     ",\"end_ms\":%" PRId64 ",\"step_ms\":%" PRId64
                     ",\"age_seconds\":%.3f,\"work_done\":%zu}",
                     qa_query_kind_name(row->kind), row->state, row->start_ms, row->end_ms,
                     row->step_ms, row->age_seconds, row->done);
}

static void put_worker(const struct page *page, const struct worker_row *row, size_t *at,
                       struct qf_strbuf *buf)
{
    const struct wc_api_worker_view *view = &row->view;

    qf_strbuf_puts(buf, "{\"worker_id\":");
    qf_strbuf_json(buf, qf_str_from(row->name));
    qf_strbuf_puts(buf, ",\"address\":");
    qf_strbuf_json(buf, next_text(page, at, row->address_len));
    qf_strbuf_printf(buf,
                     ",\"state\":\"%s\",\"accepting\":%s,\"draining\":%s,\"available\":%s,"
                     "\"slots\":%" PRIu32 ",\"queue_depth\":%" PRIu32 ",\"assigned\":%" PRIu32
                     ",\"accepted\":%" PRIu32 ",\"ready\":%" PRIu32 ",\"silent_ms\":%" PRId64
                     ",\"rtt_ms\":%" PRId64 ",\"dials_failed\":%" PRIu32 "}",
                     wc_peer_state_name(view->state), view->accepting ? "true" : "false",
                     view->draining ? "true" : "false", view->available ? "true" : "false",
                     view->slots, view->queue_depth, view->assigned, view->accepted, view->ready,
                     view->session.v ? page->now - view->heard_at : -1, view->rtt_ms,
                     view->dials_failed);
}

static void put_quarantine(const struct page *page, const struct quarantine_row *row, size_t *at,
                           struct qf_strbuf *buf)
{
    qf_strbuf_puts(buf, "{\"segment\":");
    qf_strbuf_json(buf, next_text(page, at, row->segment_len));
    qf_strbuf_printf(buf, ",\"state\":\"%s\",\"deaths\":%" PRIu32 ",\"seconds_left\":%" PRId64 "}",
                     row->entry.suspicion == WC_QUARANTINED ? "quarantined" : "suspect",
                     row->entry.deaths, (row->entry.until - page->now) / 1000);
}

static void render(void *arg)
{
    struct page *page = arg;
    struct qf_strbuf buf = QF_STRBUF_INIT;
    size_t at = 0;

    qf_strbuf_puts(&buf, "{\"status\":\"success\",\"data\":[");
    for (size_t i = 0; i < page->queries.count; i++) {
        qf_strbuf_puts(&buf, i ? "," : "");
        put_query(page, &page->queries.items[i], &at, &buf);
    }
    for (size_t i = 0; i < page->workers.count; i++) {
        qf_strbuf_puts(&buf, i ? "," : "");
        put_worker(page, &page->workers.items[i], &at, &buf);
    }
    for (size_t i = 0; i < page->quarantine.count; i++) {
        qf_strbuf_puts(&buf, i ? "," : "");
        put_quarantine(page, &page->quarantine.items[i], &at, &buf);
    }
    qf_strbuf_putc(&buf, ']');
    if (page->left_out)
        qf_strbuf_printf(&buf, ",\"infos\":[\"%zu more are not shown: raise limit\"]",
                         page->left_out);
    qf_strbuf_putc(&buf, '}');
    qh_stream_answer(page->stream, 200, "application/json", qf_strbuf_view(&buf));
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
                             .done = query->co.committed };

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
        row.address_len = add_text(page, qf_str_from(endpoint->address));
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

void co_show_page(struct qa_coord *coord, enum qa_inspect what, const char *tenant, size_t limit,
                  struct qh_stream *stream)
{
    struct page *page;

    if (atomic_fetch_add(&coord->pages, 1) >= PAGES_MAX) {
        (void)atomic_fetch_sub(&coord->pages, 1);
        qa_answer_error(stream, QA_FORMAT_JSON, QF_EBUSY, "too many such requests at once");
        return;
    }
    page = qf_xcalloc(1, sizeof(*page));
    page->coord = coord;
    page->stream = qh_stream_ref(stream);
    page->now = qf_clock_mono_ms();
    if (what == QA_INSPECT_QUERIES)
        add_queries(page, tenant, limit);
    else if (what == QA_INSPECT_WORKERS)
        add_workers(page, limit);
    else
        add_quarantine(page, limit);
    if (qf_pool_submit(coord->options.pool, render, page))
        return;
    qa_answer_error(stream, QA_FORMAT_JSON, QF_EBUSY, "too many queries at once");
    page_free(page);
}
