/* runs.c - runs: from acceptance to the end of the task. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryworker/work/work_int.h"

struct qw_run *qw_run_find(struct qw_coordinator *co, uint64_t id)
{
    return qw_table_find(&co->runs, id);
}

void qw_run_accept(struct qw_coordinator *co, uint64_t session, uint64_t id,
                   struct qw_assignment *assignment)
{
    struct qw_run *run = qf_xcalloc(1, sizeof(*run));
    const struct pb_assign *assign = &assignment->message;

    run->node.key = id;
    run->assignment = assignment;
    run->session = session;
    run->work = assign->work_id;
    run->attempt = assign->attempt;
    run->leaf = assign->leaf_id;
    run->received_ns = assignment->received_ns;
    (void)snprintf(run->query_id, sizeof(run->query_id), "%.*s", QF_STR_ARG(assign->query_id));
    (void)snprintf(run->traceparent, sizeof(run->traceparent), "%.*s",
                   QF_STR_ARG(assign->traceparent));
    qw_table_add(&co->runs, &run->node);
    QF_LOG_DEBUG("work accepted", QW_KV_RUN(run), QF_KV_U64("session", session),
                 QF_KV_U64("segments", assign->segment_count));
}

static void post_failed(struct qw_coordinator *co, const struct qw_run *run, bool retryable)
{
    qw_co_post(co, (struct wc_worker_event){ .type = WC_WORKER_EV_RUN_FAILED,
                                             .run = { run->node.key },
                                             .failure = { run->err.rc, retryable } });
}

/* All segments of @run are there, or one will never be. */
static void settled(struct qw_coordinator *co, struct qw_run *run)
{
    if (run->hold->rc) {
        run->err = run->hold->err;
        post_failed(co, run, qf_rc_retryable(run->err.rc));
        return;
    }
    qw_cache_tidy(co->cache, run->hold);
    qw_co_post(
        co, (struct wc_worker_event){ .type = WC_WORKER_EV_RUN_LOADED, .run = { run->node.key } });
}

void qw_run_load(struct qw_coordinator *co, struct qw_run *run)
{
    const struct pb_assign *assign = &run->assignment->message;

    run->started_ns = qf_clock_mono_ns();
    qf_metric_observe(co->m->queue_seconds, (double)(run->started_ns - run->received_ns) / 1e9);
    if (qw_assignment_check(assign, &run->err)) {
        post_failed(co, run, false);
        return;
    }
    run->hold =
        qw_cache_acquire(co->cache, assign->segments, assign->segment_count, assign->spec, run);
    qw_cache_acquire_heads(co->cache, run->hold, assign->tenant, &assign->heads);
    qw_cache_acquire_maps(co->cache, run->hold, assign->tenant, &assign->maps);
    if (run->hold->rc || run->hold->missing == 0)
        settled(co, run);
}

void qw_run_downloads_back(struct qw_coordinator *co)
{
    struct qw_hold *hold;

    while ((hold = qw_cache_settled(co->cache)) != NULL)
        settled(co, hold->owner);
}

/* Their files are the last ones of the hold, in the same order. */
static void add_maps(struct qw_task *task, const struct pb_maps *maps, const struct qw_hold *hold)
{
    task->maps = *maps;
    task->map_files = qf_xcalloc(maps->count + 1, sizeof(*task->map_files));
    for (size_t i = 0; i < maps->count; i++)
        task->map_files[i] = qw_segment_path(hold->segments[hold->count - maps->count + i]);
}

static struct qw_task *new_task(struct qw_coordinator *co, const struct qw_run *run)
{
    const struct pb_limits *own = &co->options.work_limits;
    const struct pb_limits *asked = &run->assignment->message.limits;
    struct qw_task *task = qf_xcalloc(1, sizeof(*task));

#define LESSER(field) (asked->field && asked->field < own->field ? asked->field : own->field)
    *task = (struct qw_task){
        .message = { QW_MESSAGE_RUN },
        .mailbox = co->options.mailbox,
        .run = run->node.key,
        .spool = co->options.spool,
        .token = qw_spool_token(),
        .spec = run->assignment->message.spec,
        .tenant = run->assignment->message.tenant,
        .limits = { LESSER(samples_max), LESSER(memory_bytes_max), LESSER(artifact_bytes_max) },
        .segment_count = run->hold->count - run->hold->map_count,
    };
#undef LESSER
    add_maps(task, &run->assignment->message.maps, run->hold);
    task->segments = qf_xcalloc(task->segment_count + 1, sizeof(*task->segments));
    task->hot = qw_cache_hot(co->cache);
    task->results = qw_cache_results(co->cache);
    for (size_t i = 0; i < task->segment_count; i++) {
        const struct qw_segment *segment = run->hold->segments[i];

        task->segments[i] = (struct qw_task_segment){ .path = qw_segment_path(segment),
                                                      .label = qw_segment_label(segment),
                                                      .name = qw_segment_in_place(segment),
                                                      .size = qw_segment_size(segment),
                                                      .reader = qw_segment_reader(segment),
                                                      .head = qw_segment_is_head(segment) };
    }
    for (size_t i = 0; i < task->segment_count; i++)
        if (task->segments[i].name)
            task->segments[i].store = qw_cache_store(co->cache);
    return task;
}

void qw_run_execute(struct qw_coordinator *co, struct qw_run *run)
{
    bool submitted;

    run->task = new_task(co, run);
    run->launched_ns = qf_clock_mono_ns();
    submitted = qf_pool_submit(co->options.pool, qw_task_run, run->task);
    assert(submitted); /* the pool has room for as many as there are slots */
    (void)submitted;
}

void qw_run_stop(struct qw_run *run)
{
    run->stop_ns = qf_clock_mono_ns();
    if (run->task) /* else its end is posted already */
        atomic_store(&run->task->cancel, true);
}

void qw_run_release(struct qw_coordinator *co, struct qw_run *run)
{
    qw_cache_release(co->cache, run->hold);
    run->hold = NULL;
    run->assignment = qw_assignment_free(run->assignment);
}

void qw_run_forget(struct qw_coordinator *co, struct qw_run *run)
{
    assert(!run->task);
    if (run->started_ns && !run->told) { /* canceled, or its session is lost */
        int64_t now = qf_clock_mono_ns();

        qf_metric_add(co->m->works_failed, qw_metrics_error_index(QF_ECANCELED), 1);
        qf_metric_observe(co->m->cancel_seconds,
                          run->stop_ns ? (double)(now - run->stop_ns) / 1e9 : 0);
    }
    qw_artifact_drop(co, run);
    qw_run_release(co, run);
    qw_table_remove(&co->runs, &run->node);
    free(run->url);
    free(run);
}

/* A file that is bad or gone is not read again. Worth another try if it was only our copy. */
static bool distrust(struct qw_coordinator *co, struct qw_run *run, const struct qf_err *err)
{
    return err->subject && qw_segment_distrust(co->cache, run->hold->segments[err->subject - 1]);
}

/* What the API hears of a task that failed. */
static void judge(struct qw_coordinator *co, struct qw_run *run, const struct qw_task *task)
{
    bool retryable = qf_rc_retryable(task->rc);

    run->err = task->err;
    run->err.rc = task->rc;
    if (task->rc == QF_ECORRUPT || task->rc == QF_ENOTFOUND)
        retryable = distrust(co, run, &task->err);
    /* Not found means: not in the store. It was the worker's own copy of a segment, which goes when
     * another run finds it bad. */
    if (task->rc == QF_ENOTFOUND && retryable)
        run->err.rc = QF_EIO;
    if (task->rc == QF_ENOSPC) {
        qf_metric_inc(co->m->no_space);
        qw_co_free_some_disk(co);
    }
    post_failed(co, run, retryable);
}

static struct wc_checksum parse_checksum(const char *text)
{
    unsigned long long high = 0, low = 0;

    (void)sscanf(text, "xxh3:%16llx%16llx", &high, &low);
    return (struct wc_checksum){ high, low };
}

/* Its event comes first: the artifact may be evicted at once, for another or for itself. */
static void succeed(struct qw_coordinator *co, struct qw_run *run, const struct qw_task *task)
{
    qf_metric_observe(co->m->task_seconds, (double)(task->ended_ns - run->started_ns) / 1e9);
    qf_metric_observe(co->m->scan_seconds, (double)(task->scanned_ns - task->started_ns) / 1e9);
    qf_metric_observe(co->m->write_seconds, (double)(task->ended_ns - task->scanned_ns) / 1e9);
    qw_artifact_keep(co, run, task);
    qw_co_post(co, (struct wc_worker_event){ .type = WC_WORKER_EV_RUN_DONE,
                                             .run = { run->node.key },
                                             .checksum = parse_checksum(run->checksum) });
    qw_co_look_after_disk(co);
}

void qw_run_task_back(struct qw_coordinator *co, struct qw_task *task)
{
    struct qw_run *run = qw_run_find(co, task->run);

    assert(run && run->task == task);
    run->task = NULL;
    for (size_t i = 0; i < task->segment_count; i++)
        if (task->segments[i].opened)
            qw_segment_give_reader(co->cache, run->hold->segments[i], task->segments[i].reader);
    qf_metric_add(co->m->samples_read, 0, (double)task->samples_read);
    if (task->rc == QF_OK)
        succeed(co, run, task);
    else
        judge(co, run, task);
    qw_task_free(task);
}
