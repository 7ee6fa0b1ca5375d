/* runs.c - works: from START to the artifact and its end. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryworker/work/work_int.h"

void qw_run_list_push(struct qw_run_list *list, struct qw_run *run)
{
    assert(!run->list);
    run->list = list;
    run->next = NULL;
    run->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = run;
    list->last = run;
    list->count++;
}

void qw_run_list_remove(struct qw_run *run)
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

struct qw_run *qw_run_find(struct qw_coordinator *co, uint64_t id)
{
    return qw_table_find(&co->runs, id);
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

void qw_run_accept(struct qw_coordinator *co, uint64_t session, uint64_t id)
{
    struct qw_run *run = qf_xcalloc(1, sizeof(*run));
    const struct pb_assign *assign = co->assign;

    assert(assign && co->assign_arena);
    run->node.key = id;
    run->session = session;
    run->work = assign->work_id;
    run->attempt = assign->attempt;
    run->leaf = assign->leaf_id;
    run->assign = *assign;
    run->arena = QF_TAKE(co->assign_arena);
    run->received_ns = co->assign_ns;
    run->deadline = assign->timeout_ms && assign->timeout_ms < INT32_MAX
                        ? qf_clock_mono_ms() + (qf_time_ms)assign->timeout_ms
                        : QF_TIME_NEVER;
    (void)snprintf(run->query_id, sizeof(run->query_id), "%.*s", QF_STR_ARG(assign->query_id));
    (void)snprintf(run->traceparent, sizeof(run->traceparent), "%.*s",
                   QF_STR_ARG(assign->traceparent));
    qw_table_add(&co->runs, &run->node);
    QF_LOG_DEBUG("work accepted", QW_KV_RUN(run), QF_KV_U64("session", session),
                 QF_KV_U64("segments", assign->segment_count));
}

/* Give back all it holds; the record itself goes too. */
static void forget(struct qw_coordinator *co, struct qw_run *run)
{
    assert(!run->task);
    qw_run_list_remove(run);
    qw_table_remove(&co->runs, &run->node);
    qw_cache_release(co->cache, run->hold);
    (void)qf_arena_free(run->arena);
    free(run->url);
    free(run);
}

/* Where its artifact is counted: the disk budget is about files alone. */
static uint64_t *bytes_with(struct qw_coordinator *co, const struct qw_run *run)
{
    return run->in_memory ? &co->memory_bytes : &co->spool_bytes;
}

static void remove_artifact(struct qw_coordinator *co, struct qw_run *run)
{
    if (run->phase != QW_RUN_KEPT)
        return;
    qw_spool_remove(co->options.spool, &run->token);
    *bytes_with(co, run) -= run->ready.artifact_size_bytes;
    *token_link(co, &run->token) = run->token_next;
}

void qw_run_drop(struct qw_coordinator *co, uint64_t id)
{
    struct qw_run *run = qw_run_find(co, id);

    if (!run)
        return;
    QF_LOG_DEBUG("work dropped", QW_KV_RUN(run));
    remove_artifact(co, run);
    forget(co, run);
}

void qw_run_start(struct qw_coordinator *co, uint64_t id)
{
    struct qw_run *run = qw_run_find(co, id);

    assert(run && run->phase == QW_RUN_QUEUED);
    run->phase = QW_RUN_STARTING;
    run->started_ns = qf_clock_mono_ns();
    qf_metric_observe(co->m->queue_seconds, (double)(run->started_ns - run->received_ns) / 1e9);
    qw_run_list_push(&co->starting, run);
}

void qw_run_stop(struct qw_coordinator *co, uint64_t id)
{
    struct qw_run *run = qw_run_find(co, id);

    if (!run || run->stopped)
        return;
    run->stopped = true;
    run->stop_ns = qf_clock_mono_ns();
    if (run->task) {
        atomic_store(&run->task->cancel, true);
        return;
    }
    if (run->phase == QW_RUN_WAITING) { /* settle will find it stopped */
        qw_run_list_remove(run);
        qw_run_list_push(&co->starting, run);
    }
}

/* The run ended without an artifact. */
static void fail(struct qw_coordinator *co, struct qw_run *run, qf_rc rc, bool retryable)
{
    uint64_t id = run->node.key;

    if (run->stopped)
        qf_metric_observe(co->m->cancel_seconds, (double)(qf_clock_mono_ns() - run->stop_ns) / 1e9);
    qf_metric_add(co->m->works_failed, qw_metrics_error_index(rc), 1);
    qw_run_list_remove(run);
    qw_cache_release(co->cache, run->hold);
    run->hold = NULL;
    (void)qw_co_step(co, (struct wc_worker_event){ .type = WC_WORKER_EV_RUN_FAILED,
                                                   .run = { id },
                                                   .failure = { rc, retryable } });
    run = qw_run_find(co, id);
    if (run)
        forget(co, run);
}

static void launch(struct qw_coordinator *co, struct qw_run *run)
{
    const struct pb_limits *own = &co->options.work_limits;
    const struct pb_limits *asked = &run->assign.limits;
    struct qw_task *task = qf_xcalloc(1, sizeof(*task));
    bool submitted;

#define LESSER(field) (asked->field && asked->field < own->field ? asked->field : own->field)
    *task = (struct qw_task){
        .message = { QW_MESSAGE_RUN },
        .mailbox = co->options.mailbox,
        .run = run->node.key,
        .spool = co->options.spool,
        .token = qw_spool_token(),
        .spec = run->assign.spec,
        .limits = { LESSER(samples_max), LESSER(memory_bytes_max), LESSER(artifact_bytes_max) },
        .segment_count = run->hold->count,
    };
#undef LESSER
    task->segments = qf_xcalloc(task->segment_count + 1, sizeof(*task->segments));
    for (size_t i = 0; i < task->segment_count; i++) {
        const struct qw_segment *segment = run->hold->segments[i];

        task->segments[i] = (struct qw_task_segment){ .path = qw_segment_path(segment),
                                                      .size = qw_segment_size(segment),
                                                      .reader = qw_segment_reader(segment) };
    }
    run->task = task;
    run->phase = QW_RUN_EXECUTING;
    run->launched_ns = qf_clock_mono_ns();
    submitted = qf_pool_submit(co->options.pool, qw_task_run, task);
    assert(submitted); /* the pool has room for as many as there are slots */
    (void)submitted;
}

/* A run from the starting list: get its segments, or end it if nobody wants it any more. */
static void begin(struct qw_coordinator *co, struct qw_run *run)
{
    qw_run_list_push(&co->active, run);
    if (run->stopped) {
        (void)qf_err_set(&run->err, QF_ECANCELED, "canceled");
        fail(co, run, QF_ECANCELED, false);
        return;
    }
    if (run->deadline <= qf_clock_mono_ms()) {
        (void)qf_err_set(&run->err, QF_ETIMEOUT, "the query's deadline passed before it started");
        fail(co, run, QF_ETIMEOUT, false);
        return;
    }
    run->hold = qw_cache_acquire(co->cache, run->assign.segments, run->assign.segment_count, run);
    run->phase = QW_RUN_WAITING;
    if (run->stopped) { /* to make room is a step too, and found its session silent */
        (void)qf_err_set(&run->err, QF_ECANCELED, "canceled");
        fail(co, run, QF_ECANCELED, false);
    } else if (run->hold->rc) {
        run->err = run->hold->err;
        fail(co, run, run->err.rc, qf_rc_retryable(run->err.rc));
    } else if (run->hold->missing == 0) {
        launch(co, run);
    }
}

static void downloads_ended(struct qw_coordinator *co, struct qw_run *run)
{
    if (run->stopped)
        return; /* it is on the starting list and ends there */
    if (run->hold->rc) {
        run->err = run->hold->err;
        fail(co, run, run->err.rc, qf_rc_retryable(run->err.rc));
        return;
    }
    launch(co, run);
}

void qw_co_settle(struct qw_coordinator *co)
{
    struct qw_hold *hold;
    struct qw_run *run;

    for (;;) {
        if (co->closed.count) {
            (void)qw_co_step(co, (struct wc_worker_event){
                                     .type = WC_WORKER_EV_SESSION_CLOSED,
                                     .session = { co->closed.items[--co->closed.count] } });
        } else if ((run = co->starting.first) != NULL) {
            qw_run_list_remove(run);
            if (co->done) /* too late to start anything */
                qw_run_drop(co, run->node.key);
            else
                begin(co, run);
        } else if (co->cache && (hold = qw_cache_settled(co->cache)) != NULL) {
            downloads_ended(co, hold->owner);
        } else {
            return;
        }
    }
}

static struct wc_checksum parse_checksum(const char *text)
{
    unsigned long long high = 0, low = 0;

    (void)sscanf(text, "xxh3:%16llx%16llx", &high, &low);
    return (struct wc_checksum){ high, low };
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
        .cache_misses = run->hold->misses,
    };
}

static void succeed(struct qw_coordinator *co, struct qw_run *run, const struct qw_task *task)
{
    fill_ready(co, run, task);
    qf_metric_observe(co->m->task_seconds, (double)(task->ended_ns - run->started_ns) / 1e9);
    qf_metric_observe(co->m->scan_seconds, (double)(task->scanned_ns - task->started_ns) / 1e9);
    qf_metric_observe(co->m->write_seconds, (double)(task->ended_ns - task->scanned_ns) / 1e9);
    if (run->stopped)
        qf_metric_observe(co->m->cancel_seconds, (double)(qf_clock_mono_ns() - run->stop_ns) / 1e9);
    run->phase = QW_RUN_KEPT;
    qw_cache_release(co->cache, run->hold);
    run->hold = NULL;
    run->arena = qf_arena_free(run->arena);
    run->assign = (struct pb_assign){ 0 };
    run->in_memory = task->in_memory;
    *bytes_with(co, run) += run->ready.artifact_size_bytes;
    *token_link(co, &run->token) = run;
    qw_run_list_remove(run);
    qw_run_list_push(&co->unacked, run);
    (void)qw_co_step(co, (struct wc_worker_event){ .type = WC_WORKER_EV_RUN_DONE,
                                                   .run = { run->node.key },
                                                   .checksum = parse_checksum(run->checksum) });
    qw_co_settle(co);
    qw_co_look_after_disk(co);
}

/* A file that is bad or gone is not read again. Worth another try if it was only our copy. */
static bool distrust(struct qw_coordinator *co, struct qw_run *run, const struct qf_err *err)
{
    bool retry = false;

    for (size_t i = 0; i < run->hold->count; i++)
        if (strstr(err->msg, qw_segment_path(run->hold->segments[i])))
            retry = qw_segment_distrust(co->cache, run->hold->segments[i]) || retry;
    return retry;
}

static uint64_t evict(void *ctx, enum qw_eviction kind);

void qw_run_task_back(struct qw_coordinator *co, struct qw_task *task)
{
    struct qw_run *run = qw_run_find(co, task->run);
    bool retryable = qf_rc_retryable(task->rc);

    assert(run && run->task == task);
    run->task = NULL;
    for (size_t i = 0; i < task->segment_count; i++)
        if (task->segments[i].opened)
            qw_segment_give_reader(co->cache, run->hold->segments[i], task->segments[i].reader);
    qf_metric_add(co->m->samples_read, 0, (double)task->samples_read);
    if (task->rc == QF_OK) {
        succeed(co, run, task);
    } else {
        /* Not only the API cancels: a deadline does, and the end of this worker. */
        if (task->rc != QF_ECANCELED || (!run->err.rc && !co->done)) {
            run->err = task->err;
        } else if (!run->err.rc) {
            (void)qf_err_set(&run->err, QF_EUNAVAILABLE, "the worker is shutting down");
            retryable = true;
        }
        if (!run->err.rc)
            run->err.rc = task->rc;
        task->rc = run->err.rc;
        if (task->rc == QF_ECORRUPT || task->rc == QF_ENOTFOUND)
            retryable = distrust(co, run, &task->err);
        /* Not found means: not in the store. A copy goes when another work finds it bad. */
        if (task->rc == QF_ENOTFOUND && retryable)
            task->rc = run->err.rc = QF_EIO;
        if (task->rc == QF_ENOSPC) { /* whatever the figures say, something has to go */
            qf_metric_inc(co->m->no_space);
            if (!evict(co, QW_EVICT_CACHE))
                (void)evict(co, QW_EVICT_ACKED);
        }
        fail(co, run, task->rc, retryable);
    }
    qw_task_free(task);
    qw_co_settle(co);
}

void qw_run_acked(struct qw_coordinator *co, uint64_t id)
{
    struct qw_run *run = qw_run_find(co, id);

    if (!run || run->list != &co->unacked)
        return;
    qw_run_list_remove(run);
    qw_run_list_push(&co->acked, run);
}

void qw_run_fetched(struct qw_coordinator *co, struct qw_fetch *fetch)
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

void qw_run_check_deadlines(struct qw_coordinator *co, qf_time_ms now)
{
    for (struct qw_run *run = co->active.first, *next; run; run = next) {
        next = run->next;
        if (run->deadline > now || run->err.rc)
            continue;
        (void)qf_err_set(&run->err, QF_ETIMEOUT, "the query's deadline passed");
        if (run->task)
            atomic_store(&run->task->cancel, true);
        else
            fail(co, run, QF_ETIMEOUT, false);
    }
    qw_co_settle(co);
}

qf_time_ms qw_run_deadline(const struct qw_coordinator *co)
{
    qf_time_ms deadline = QF_TIME_NEVER;

    for (const struct qw_run *run = co->active.first; run; run = run->next)
        if (!run->err.rc)
            deadline = QF_MIN(deadline, run->deadline);
    return deadline;
}

/* The oldest of @list that is in memory, or that is a file. */
static uint64_t evict_artifact(struct qw_coordinator *co, struct qw_run_list *list, bool in_memory)
{
    struct qw_run *run = list->first;
    uint64_t id, bytes;

    while (run && run->in_memory != in_memory)
        run = run->next;
    if (!run)
        return 0;
    id = run->node.key;
    bytes = run->ready.artifact_size_bytes;
    remove_artifact(co, run);
    QF_LOG_AT(list == &co->acked ? QF_LOG_LEVEL_DEBUG : QF_LOG_LEVEL_WARN, "artifact evicted",
              QW_KV_RUN(run), QF_KV_U64("bytes", bytes));
    (void)qw_co_step(co, (struct wc_worker_event){ .type = WC_WORKER_EV_EVICTED, .run = { id } });
    if ((run = qw_run_find(co, id)) != NULL)
        forget(co, run);
    return bytes ? bytes : 1;
}

static uint64_t evict(void *ctx, enum qw_eviction kind)
{
    struct qw_coordinator *co = ctx;
    uint64_t before = co->spool_bytes, freed = 0;

    switch (kind) {
    case QW_EVICT_CACHE:
        freed = qw_cache_evict(co->cache);
        break;
    case QW_EVICT_ACKED:
        freed = evict_artifact(co, &co->acked, false);
        break;
    case QW_EVICT_EXPIRED:
        (void)qw_co_step(co, (struct wc_worker_event){ .type = WC_WORKER_EV_TICK });
        freed = before - co->spool_bytes;
        break;
    case QW_EVICT_UNACKED:
        freed = evict_artifact(co, &co->unacked, false);
        break;
    }
    if (freed)
        qf_metric_add(co->m->evictions, kind, 1);
    return freed;
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
    (void)qw_budget_make_room(&co->options.budget, qw_co_usage(co), QW_BUDGET_SPOOL, 0, evict, co);
    /* Memory is small: what was acknowledged does not wait there for its time to come. */
    while (qw_spool_crowded(co->options.spool) && evict_artifact(co, &co->acked, true))
        qf_metric_add(co->m->evictions, QW_EVICT_ACKED, 1);
    qw_co_settle(co);
}
