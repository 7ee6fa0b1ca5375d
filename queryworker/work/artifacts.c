/* artifacts.c - what runs leave behind, until it is dropped: by its run's end, or for room. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryworker/work/work_int.h"

static void list_push(struct qw_run_list *list, struct qw_run *run)
{
    assert(!run->list);
    run->list = list;
    run->next = NULL;
    run->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = run;
    list->last = run;
    list->count++;
}

static void list_remove(struct qw_run *run)
{
    struct qw_run_list *list = run->list;

    if (!list)
        return;
    *(run->prev ? &run->prev->next : &list->first) = run->next;
    *(run->next ? &run->next->prev : &list->last) = run->prev;
    list->count--;
    run->list = NULL;
    run->next = run->prev = NULL;
}

static struct qw_run **token_link(struct qw_coordinator *co, const struct qw_token *token)
{
    unsigned bucket = 0;
    struct qw_run **link;

    /* Tokens are random: twelve bits of their text are as good as a hash. */
    (void)sscanf(token->text, "%3x", &bucket);
    link = &co->tokens[bucket % QW_TABLE_BUCKETS];
    while (*link && memcmp((*link)->token.text, token->text, QW_TOKEN_LEN) != 0)
        link = &(*link)->token_next;
    return link;
}

/* Where the artifact of @run is counted: the disk budget is about files alone. */
static uint64_t *bytes_with(struct qw_coordinator *co, const struct qw_run *run)
{
    return run->in_memory ? &co->memory_bytes : &co->spool_bytes;
}

static void fill_ready(struct qw_coordinator *co, struct qw_run *run, const struct qw_task *task)
{
    struct qf_strbuf url = QF_STRBUF_INIT;

    qf_strbuf_printf(&url, "%s" QW_ARTIFACT_PATH "%s", co->base_url, task->token.text);
    run->url = qf_strbuf_take(&url);
    run->token = task->token;
    memcpy(run->checksum, task->info.checksum, sizeof(run->checksum));
    run->ready = (struct pb_ready){
        .work_id = run->work,
        .attempt = run->attempt,
        .artifact_url = qf_str_from(run->url),
        .artifact_size_bytes = task->info.size_bytes,
        .artifact_checksum = qf_str_from(run->checksum),
        .row_count = task->info.row_count,
        .min_ts = task->info.min_ts,
        .max_ts = task->info.max_ts,
        .parquet_schema_version = task->info.schema_version,
        .timings = { .queued_us = (uint64_t)(run->started_ns - run->received_ns) / 1000,
                     .download_us = (uint64_t)(run->launched_ns - run->started_ns) / 1000,
                     .scan_us = (uint64_t)(task->scanned_ns - task->started_ns) / 1000,
                     .write_us = (uint64_t)(task->ended_ns - task->scanned_ns) / 1000 },
        .series_count = task->series_count,
        .samples_read = task->samples_read,
        .download_bytes = run->hold->download_bytes,
        .cache_hits = run->hold->hits,
        .head_samples = run->hold->head_samples,
        .head_bytes = run->hold->head_bytes,
        .cache_misses = run->hold->misses,
    };
}

void qw_artifact_keep(struct qw_coordinator *co, struct qw_run *run, const struct qw_task *task)
{
    fill_ready(co, run, task);
    run->in_memory = task->in_memory;
    *bytes_with(co, run) += run->ready.artifact_size_bytes;
    *token_link(co, &run->token) = run;
    list_push(&co->unacked, run);
}

void qw_artifact_acked(struct qw_coordinator *co, struct qw_run *run)
{
    if (!run->list) /* evicted; the event is on its way */
        return;
    list_remove(run);
    list_push(&co->acked, run);
}

void qw_artifact_drop(struct qw_coordinator *co, struct qw_run *run)
{
    if (!run->list)
        return;
    QF_LOG_DEBUG("work dropped", QW_KV_RUN(run));
    list_remove(run);
    qw_spool_remove(co->options.spool, &run->token);
    *bytes_with(co, run) -= run->ready.artifact_size_bytes;
    *token_link(co, &run->token) = run->token_next;
}

void qw_artifact_fetched(struct qw_coordinator *co, struct qw_fetch *fetch)
{
    struct qw_run *run = *token_link(co, &fetch->token);

    if (fetch->complete) {
        qf_metric_observe(co->m->fetch_seconds,
                          (double)(fetch->ended_ns - fetch->started_ns) / 1e9);
        qf_metric_add(co->m->fetch_bytes, 0, (double)fetch->bytes);
    }
    if (run && !run->fetched) {
        run->fetched = true;
        qf_metric_observe(co->m->ready_to_fetch_seconds,
                          (double)(fetch->started_ns - run->ready_ns) / 1e9);
    }
    if (run)
        QF_LOG_DEBUG("artifact fetched", QW_KV_RUN(run), QF_KV_U64("bytes", fetch->bytes),
                     QF_KV_U64("complete", fetch->complete));
    free(fetch);
}

/* The artifact of @run is gone at once; the state machine hears of it in its turn. */
static uint64_t evict_artifact(struct qw_coordinator *co, struct qw_run *run)
{
    uint64_t bytes = run->ready.artifact_size_bytes;

    QF_LOG_AT(run->list == &co->acked ? QF_LOG_LEVEL_DEBUG : QF_LOG_LEVEL_WARN, "artifact evicted",
              QW_KV_RUN(run), QF_KV_U64("bytes", bytes));
    qw_artifact_drop(co, run);
    qw_co_post(co,
               (struct wc_worker_event){ .type = WC_WORKER_EV_EVICTED, .run = { run->node.key } });
    return bytes ? bytes : 1;
}

/* The oldest of @list that is in memory, or that is a file; NULL if there is none. */
static struct qw_run *oldest(const struct qw_run_list *list, bool in_memory)
{
    struct qw_run *run = list->first;

    while (run && run->in_memory != in_memory)
        run = run->next;
    return run;
}

/* The artifact of @run has been kept long enough, though the tick that drops it is still to come. */
static bool expired(const struct qw_coordinator *co, const struct qw_run *run)
{
    int64_t age_ms = (qf_clock_mono_ns() - run->ready_ns) / 1000000;

    return run->ready_ns && age_ms >= co->options.limits.artifact_ms;
}

static uint64_t evict(void *ctx, enum qw_eviction kind)
{
    struct qw_coordinator *co = ctx;
    struct qw_run *run = NULL;
    uint64_t freed = 0;

    switch (kind) {
    case QW_EVICT_CACHE:
        freed = qw_cache_evict(co->cache);
        break;
    case QW_EVICT_ACKED:
        run = oldest(&co->acked, false);
        break;
    case QW_EVICT_EXPIRED:
        run = oldest(&co->unacked, false);
        if (run && !expired(co, run))
            run = NULL;
        break;
    case QW_EVICT_UNACKED:
        run = oldest(&co->unacked, false);
        break;
    }
    if (run)
        freed = evict_artifact(co, run);
    if (freed)
        qf_metric_add(co->m->evictions, kind, 1);
    return freed;
}

void qw_co_free_some_disk(struct qw_coordinator *co)
{
    if (!evict(co, QW_EVICT_CACHE))
        (void)evict(co, QW_EVICT_ACKED);
}

struct qw_budget_usage qw_co_usage(const struct qw_coordinator *co)
{
    return (struct qw_budget_usage){
        .cache_bytes = co->cache ? qw_cache_stats(co->cache).bytes : 0,
        .spool_bytes = co->spool_bytes,
        .disk_free_bytes = qw_spool_disk_free(co->options.spool),
    };
}

bool qw_coordinator_make_room(void *ctx, uint64_t cache_bytes)
{
    struct qw_coordinator *co = ctx;

    return qw_budget_make_room(&co->options.budget, qw_co_usage(co), QW_BUDGET_CACHE, cache_bytes,
                               evict, co);
}

void qw_co_look_after_disk(struct qw_coordinator *co)
{
    struct qw_run *run;

    (void)qw_budget_make_room(&co->options.budget, qw_co_usage(co), QW_BUDGET_SPOOL, 0, evict, co);
    /* Memory is small: what was acknowledged does not wait there for its time to come. */
    while (qw_spool_crowded(co->options.spool) && (run = oldest(&co->acked, true)) != NULL) {
        (void)evict_artifact(co, run);
        qf_metric_add(co->m->evictions, QW_EVICT_ACKED, 1);
    }
}
