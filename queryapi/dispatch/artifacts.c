/* artifacts.c - artifacts in the coordinator: downloads from workers, and where their bytes go. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryapi/dispatch/coordinator_int.h"

static bool fits(uint64_t others, uint64_t bytes, uint64_t max)
{
    return bytes <= max && others <= max - bytes;
}

/* The tenant's artifacts are too large: because of this query alone, or of all its queries. */
static qf_rc tenant_has_no_spool(struct qa_query *query, uint64_t of_query)
{
    uint64_t max = query->limits.of[QF_LIMIT_SPOOL];
    bool alone = of_query > max;

    query->limit = QF_LIMIT_SPOOL;
    (void)snprintf(query->co.reason, sizeof(query->co.reason),
                   alone ? "the query's results on workers are larger than its tenant may have: "
                           "%" PRIu64 " bytes (spool)"
                         : "the queries of this tenant have all the results from workers that they "
                           "may have together: %" PRIu64 " bytes (spool); try again later",
                   max);
    return alone ? QF_ELIMIT : QF_EBUSY;
}

/* Count what a work's artifact takes before it is fetched, once however often it is run. QF_ELIMIT,
 * QF_EBUSY: that is more than the query, or its tenant, may have; co.reason says it. */
static qf_rc announce(const struct qa_coord *coord, struct qa_query *query, struct qa_item *item,
                      uint64_t bytes)
{
    uint64_t others = query->co.announced_bytes - item->announced_bytes;
    uint64_t max = coord->options.query_artifact_bytes_max;
    uint64_t share = query->limits.of[QF_LIMIT_SPOOL];
    struct qa_tenant *tenant = query->tenant;

    if (!fits(others, bytes, max)) {
        (void)snprintf(query->co.reason, sizeof(query->co.reason),
                       "the query's results on workers are larger than %" PRIu64 " bytes", max);
        return QF_ELIMIT;
    }
    if (tenant && share && !fits(tenant->spool_bytes - item->announced_bytes, bytes, share))
        return tenant_has_no_spool(query, others + bytes);
    if (tenant)
        tenant->spool_bytes += bytes - item->announced_bytes;
    item->announced_bytes = bytes;
    query->co.announced_bytes = others + bytes;
    return QF_OK;
}

void co_unannounce(struct qa_query *query)
{
    if (query->tenant)
        query->tenant->spool_bytes -= query->co.announced_bytes;
    query->co.announced_bytes = 0;
}

static void list_fetch(struct qa_coord *coord, struct qa_fetch *fetch)
{
    fetch->next = coord->fetches;
    if (fetch->next)
        fetch->next->prev = fetch;
    coord->fetches = fetch;
}

static void unlist_fetch(struct qa_coord *coord, struct qa_fetch *fetch)
{
    if (fetch->prev)
        fetch->prev->next = fetch->next;
    else
        coord->fetches = fetch->next;
    if (fetch->next)
        fetch->next->prev = fetch->prev;
}

/* One attempt's bytes are here: downloads of the others are not needed. */
static void forget_rivals(struct qa_coord *coord, uint64_t work)
{
    for (struct qa_fetch *at = coord->fetches; at; at = at->next)
        if (at->work == work)
            atomic_store(&at->unwanted, true);
}

void co_forget_fetches(struct qa_coord *coord, uint64_t query)
{
    for (struct qa_fetch *at = coord->fetches; at; at = at->next)
        if (at->query == query)
            atomic_store(&at->unwanted, true);
}

struct qa_fetch *co_fetch_new(const struct pb_ready *ready)
{
    struct qa_fetch *fetch = qf_xcalloc(1, sizeof(*fetch));

    fetch->work = ready->work_id;
    fetch->attempt = ready->attempt;
    fetch->ready_ns = qf_clock_mono_ns();
    fetch->url = qf_xmemdup0(ready->artifact_url.data, ready->artifact_url.len);
    fetch->size_bytes = ready->artifact_size_bytes;
    fetch->scan_us = ready->timings.scan_us;
    fetch->said = (struct qa_said){ .queued_us = ready->timings.queued_us,
                                    .download_us = ready->timings.download_us,
                                    .write_us = ready->timings.write_us,
                                    .rows = ready->row_count,
                                    .series = ready->series_count,
                                    .samples = ready->samples_read,
                                    .download_bytes = ready->download_bytes,
                                    .cache_hits = ready->cache_hits,
                                    .cache_misses = ready->cache_misses,
                                    .head_samples = ready->head_samples,
                                    .head_bytes = ready->head_bytes };
    (void)qa_checksum_parse(ready->artifact_checksum.data, ready->artifact_checksum.len,
                            &fetch->checksum);
    return fetch;
}

static void submit(struct qa_coord *coord, struct qa_fetch *fetch)
{
    list_fetch(coord, fetch);
    if (qa_fetcher_submit(coord->fetcher, fetch))
        return;
    unlist_fetch(coord, fetch);
    co_tell_work(coord, (struct wc_api_event){ .type = WC_API_EV_FETCH_FAILED,
                                               .work.v = fetch->work,
                                               .attempt = fetch->attempt,
                                               .fetch_error = WC_FETCH_IO });
    (void)qa_fetch_free(fetch);
}

void co_fetch(struct qa_coord *coord, const struct wc_api_effect *effect, struct qa_fetch **fetch)
{
    struct qa_query *query = co_find_query(coord, effect->query.v);
    struct qa_item *item = co_find_item(query, effect->work.v);
    qf_rc rc;

    if (!item)
        return;
    (*fetch)->query = effect->query.v;
    rc = announce(coord, query, item, (*fetch)->size_bytes);
    if (rc == QF_OK) {
        submit(coord, *fetch);
        *fetch = NULL;
        return;
    }
    co_tell_work(coord, (struct wc_api_event){
                            .type = WC_API_EV_QUERY_CANCEL, .query = effect->query, .rc = rc });
}

static void fetch_failed(struct qa_coord *coord, struct qa_fetch *fetch)
{
    struct qa_query *query;
    struct qa_item *item = co_item_of(coord, fetch->work, &query);

    if (!item) {
        QF_LOG_DEBUG("artifact not fetched, nobody waits for it any more",
                     QF_KV_U64("work_id", fetch->work), QF_KV_STR("reason", fetch->detail));
        return;
    }
    qf_metric_add(coord->options.metrics->fetch_failures,
                  fetch->spool_full ? (size_t)WC_FETCH__COUNT : (size_t)fetch->error, 1);
    QF_LOG_WARN(fetch->spool_full ? "artifact not fetched, its query fails"
                                  : "artifact not fetched, its work will be run again",
                QF_KV_STR("query_id", query->name), QF_KV_U64("work_id", fetch->work),
                QF_KV_U64("attempt", fetch->attempt),
                QF_KV_STR("code", wc_fetch_error_name(fetch->error)),
                QF_KV_STR("reason", fetch->detail));
    item->waiting_ns = qf_clock_mono_ns();
    (void)snprintf(query->co.reason, sizeof(query->co.reason),
                   "%s (query %s, work %" PRIu64 "; the server's log says more)",
                   fetch->spool_full ? "the spool has no room for the results of workers"
                                     : "the result of a worker was not fetched",
                   query->name, fetch->work);
    if (fetch->spool_full) {
        co_tell_work(coord, (struct wc_api_event){ .type = WC_API_EV_QUERY_CANCEL,
                                                   .query.v = fetch->query,
                                                   .rc = QF_ENOSPC });
        return;
    }
    co_tell_work(coord, (struct wc_api_event){ .type = WC_API_EV_FETCH_FAILED,
                                               .work.v = fetch->work,
                                               .attempt = fetch->attempt,
                                               .fetch_error = fetch->error });
}

static void observe_fetch(struct qa_coord *coord, const struct qa_fetch *fetch)
{
    struct qa_metrics *m = coord->options.metrics;

    qf_metric_observe(m->ready_to_fetch_seconds,
                      (double)(fetch->started_ns - fetch->ready_ns) / 1e9);
    qf_metric_observe(m->fetch_seconds, (double)(fetch->ended_ns - fetch->started_ns) / 1e9);
    qf_metric_add(m->fetch_bytes, 0, (double)fetch->size_bytes);
}

static void free_fetch(void *fetch)
{
    (void)qa_fetch_free(fetch);
}

void co_fetch_drop(struct qa_coord *coord, struct qa_fetch *fetch)
{
    if (!fetch || !qa_artifact_present(&fetch->artifact)) {
        (void)qa_fetch_free(fetch);
        return;
    }
    /* Nobody wanted the downloaded artifact; if it is a file, that is removed on a pool thread. */
    (void)atomic_fetch_sub(&coord->spool_bytes, fetch->size_bytes);
    if (!qf_pool_submit(coord->options.pool, free_fetch, fetch))
        free_fetch(fetch);
}

void co_fetched(struct qa_coord *coord, struct qa_fetch *fetch)
{
    unlist_fetch(coord, fetch);
    if (!fetch->ok) {
        fetch_failed(coord, fetch);
        (void)qa_fetch_free(fetch);
        return;
    }
    observe_fetch(coord, fetch);
    co_tell(coord, (struct event){ .machine = MACHINE_WORK,
                                   .work = { .type = WC_API_EV_FETCHED,
                                             .work.v = fetch->work,
                                             .attempt = fetch->attempt,
                                             .checksum = fetch->checksum },
                                   .fetch = fetch });
}

void co_commit(struct qa_coord *coord, const struct wc_api_effect *effect, struct qa_fetch *fetch)
{
    struct qa_query *query = co_find_query(coord, effect->query.v);
    struct qa_item *item = co_find_item(query, effect->work.v);

    if (!item || qa_artifact_present(&item->artifact))
        return;
    item->artifact = fetch->artifact;
    fetch->artifact = (struct qa_artifact){ 0 };
    item->scan_us = fetch->scan_us;
    query->co.artifact_bytes += fetch->size_bytes;
    query->co.head_samples += fetch->said.head_samples;
    query->co.head_bytes += fetch->said.head_bytes;
    query->co.committed++;
    forget_rivals(coord, effect->work.v);
    co_progress(coord, query);
}
