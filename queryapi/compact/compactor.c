/* compactor.c - passes over the store, one API at a time. */
#include "queryapi/compact/compactor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"
#include "queryapi/compact/behind.h"
#include "queryapi/dispatch/jobs.h"
#include "segments/store/lease.h"
#include "segments/store/ring.h"

#define LEASE_NAME "compaction"
/* How long after the death of its holder another API goes on: some intervals. */
#define LEASE_MIN_MS 10000
#define LEASE_MAX_MS 120000
/* How often the lease is looked at while a pass runs. */
#define KEEP_MS 1000
/* The longest time between two looks whether there is something to do. */
#define LOOK_MS 60000
/* A job that cost workers is left alone for so long. */
#define REFUSED_MS (INT64_C(6) * 3600 * 1000)
#define REFUSED_MAX 256
#define RING_AGE_MS 5000
#define RING_ASK_MS 2000
/* Damaged files that are told of once, and shown. */
#define TOLD_MAX 1024
#define SHOWN_MAX 20
/* Attempts that end in these are counted as such. */
enum job_outcome { JOB_DONE, JOB_VANISHED, JOB_DAMAGED, JOB_FAILED };
/* By the label of compaction_runs. */
enum outcome { DONE, BUSY, IDLE, FAILED };

struct tenant {
    char *name;
    uint64_t damaged, doomed, waiting, skipped; /* after its last pass */
    int64_t passed_ms;                          /* when that was; monotonic */
};

struct refused {
    uint64_t key;
    int64_t until_ms;
};

struct qa_compactor {
    struct qa_compactor_options options;
    struct qf_thread *thread;
    struct qf_lock *lock; /* guards the waits, and `keeping` */
    atomic_bool stopping;
    atomic_bool cancel; /* the pass under way: stopping, or the lease is gone */

    struct qf_thread *keeper; /* of the lease, while a pass runs */
    bool keeping;
    struct sg_lease *lease;

    /* Of its thread. */
    QF_VEC(struct tenant) tenants;
    QF_VEC(struct refused) refused;
    QF_VEC(uint64_t) told;
    char *shown[SHOWN_MAX]; /* damaged files, as told */
    size_t shown_count;
    enum outcome last;
    struct qf_err err;
    int64_t pass_ended_ms; /* of the day; 0: none yet */
    double pass_seconds;
    uint64_t behind_segments, behind_jobs;
    double behind_seconds;
};

/* --- waiting --- */

static void wait_ms(struct qa_compactor *c, int64_t ms)
{
    qf_lock_take(c->lock);
    if (!atomic_load(&c->stopping))
        (void)qf_lock_wait(c->lock, ms);
    qf_lock_drop(c->lock);
}

/* --- the lease, while a pass runs --- */

static int64_t lease_ms(const struct qa_compactor *c)
{
    int64_t ttl = QF_MIN(c->options.interval_ms, (int64_t)LEASE_MAX_MS) * 4;

    ttl = QF_MIN(ttl, (int64_t)LEASE_MAX_MS);
    return QF_MAX(ttl, (int64_t)LEASE_MIN_MS);
}

/* On a thread of its own: a pass may list or verify for longer than a lease lasts. */
static void keep_lease(void *arg)
{
    struct qa_compactor *c = arg;
    struct sg_store_call call = { .cancel = &c->stopping, .timeout_ms = LEASE_MAX_MS / 4 };

    qf_lock_take(c->lock);
    while (c->keeping) {
        qf_rc rc = QF_OK;

        qf_lock_drop(c->lock);
        if (sg_lease_due(c->lease))
            rc = sg_lease_renew(c->lease, &call, NULL);
        if (rc == QF_ENOTFOUND || sg_lease_left_ms(c->lease) == 0)
            atomic_store(&c->cancel, true); /* somebody else does it now */
        qf_lock_take(c->lock);
        if (c->keeping)
            (void)qf_lock_wait(c->lock, KEEP_MS);
    }
    qf_lock_drop(c->lock);
}

static void stop_keeping(struct qa_compactor *c)
{
    qf_lock_take(c->lock);
    c->keeping = false;
    qf_lock_wake_all(c->lock);
    qf_lock_drop(c->lock);
    c->keeper = qf_thread_join(c->keeper);
}

/* --- jobs --- */

static uint64_t key_of(const struct sg_job *job)
{
    uint64_t key = 0;

    for (size_t i = 0; i < job->input_count; i++)
        key = key * UINT64_C(0x9e3779b97f4a7c15) + qf_hash_bytes(job->inputs[i]);
    return key;
}

static bool is_refused(const struct qa_compactor *c, const struct sg_job *job)
{
    uint64_t key = key_of(job);

    for (size_t i = 0; i < c->refused.count; i++)
        if (c->refused.items[i].key == key && c->refused.items[i].until_ms > qf_clock_mono_ms())
            return true;
    return false;
}

static void refuse(struct qa_compactor *c, const struct sg_job *job)
{
    struct refused refused = { key_of(job), qf_clock_mono_ms() + REFUSED_MS };
    size_t oldest = 0;

    if (c->refused.count < REFUSED_MAX) {
        QF_VEC_PUSH(&c->refused, refused);
        return;
    }
    for (size_t i = 1; i < c->refused.count; i++)
        if (c->refused.items[i].until_ms < c->refused.items[oldest].until_ms)
            oldest = i;
    c->refused.items[oldest] = refused;
}

static void count_job(struct qa_compactor *c, const struct qa_job *job)
{
    struct qa_metrics *m = c->options.metrics;
    enum job_outcome outcome = JOB_FAILED;

    if (job->rc == QF_ECANCELED)
        return;
    if (job->rc == QF_OK)
        outcome = JOB_DONE;
    else if (job->rc == QF_ENOTFOUND)
        outcome = JOB_VANISHED;
    else if ((job->rc == QF_ECORRUPT || job->rc == QF_EUNSUPPORTED) && job->err.subject)
        outcome = JOB_DAMAGED;
    qf_metric_add(m->compaction_jobs, outcome, 1);
    if (job->rc != QF_OK) {
        QF_LOG_WARN("compaction job not done", QF_KV_U64("job_id", job->job.job_id),
                    QF_KV_SLICE("tenant", job->job.tenant), QF_KV_STR("code", qf_rc_name(job->rc)),
                    QF_KV_STR("reason", job->err.msg), QF_KV_U64("attempts", job->attempts));
        return;
    }
    qf_metric_add(m->compaction_segments, 0, (double)job->job.input_count);
    qf_metric_add(m->compaction_segments, 1, (double)(job->done.outputs + job->done.present));
    qf_metric_add(m->compaction_bytes, 0, (double)job->done.bytes_read);
    qf_metric_add(m->compaction_bytes, 1, (double)job->done.bytes_written);
    qf_metric_add(m->compaction_samples, 0, (double)job->done.samples);
    QF_LOG_INFO(
        "compaction job done", QF_KV_U64("job_id", job->job.job_id),
        QF_KV_SLICE("tenant", job->job.tenant), QF_KV_U64("shard", job->job.shard),
        QF_KV_U64("segments", job->job.input_count),
        QF_KV_U64("outputs", job->done.outputs + job->done.present),
        QF_KV_U64("samples", job->done.samples), QF_KV_U64("bytes_read", job->done.bytes_read),
        QF_KV_U64("bytes_written", job->done.bytes_written), QF_KV_STR("worker_id", job->worker),
        QF_KV_U64("attempts", job->attempts), QF_KV_DOUBLE("seconds", job->seconds));
}

static struct pb_job to_message(const struct qa_compactor *c, const struct sg_pass_job *job)
{
    return (struct pb_job){ .tenant = job->job.tenant,
                            .inputs = job->job.inputs,
                            .input_count = job->job.input_count,
                            .dead = job->job.dead,
                            .dead_count = job->job.dead_count,
                            .window_ms = job->job.window_ms,
                            .shard = job->job.shard,
                            .shard_count = job->job.shard_count,
                            .generation = job->job.generation,
                            .input_bytes = job->bytes,
                            .memory_bytes = c->options.memory_bytes,
                            .file_bytes = c->options.file_bytes };
}

/* Who keeps its inputs, which are all of one shard. */
static void add_owners(const struct qa_compactor *c, struct qa_job *job)
{
    struct sg_ring_owners owners;

    sg_ring_owners(c->options.store, job->job.tenant, job->job.shard, &owners);
    for (size_t i = 0; i < owners.count; i++)
        qa_job_add_owner(job, qf_str_from(owners.names[i]));
}

static void take_result(struct qa_compactor *c, const struct qa_job *from, struct sg_pass_job *to)
{
    to->rc = from->rc;
    to->err = from->err;
    if (from->rc == QF_OK)
        to->result = (struct sg_job_result){ .series = from->done.series,
                                             .samples = from->done.samples,
                                             .bytes_read = from->done.bytes_read,
                                             .bytes_written = from->done.bytes_written,
                                             .outputs = from->done.outputs,
                                             .present = from->done.present };
    if (from->rc == QF_EQUARANTINED)
        refuse(c, &to->job);
    count_job(c, from);
}

/* Those that are too large for a message, or cost workers, are not sent. */
static bool may_send(const struct qa_compactor *c, struct sg_pass_job *job)
{
    if (job->job.input_count > PB_JOB_INPUTS_MAX || job->job.dead_count > PB_JOB_DEAD_MAX) {
        job->rc = qf_err_set(&job->err, QF_ELIMIT, "a job over %zu files, which replaced %zu",
                             job->job.input_count, job->job.dead_count);
        return false;
    }
    if (!is_refused(c, &job->job))
        return true;
    job->rc =
        qf_err_set(&job->err, QF_EQUARANTINED, "workers died of merging %zu files from %.*s on",
                   job->job.input_count, QF_STR_ARG(job->job.inputs[0]));
    return false;
}

static void run_jobs(void *ctx, struct sg_pass_job *jobs, size_t count)
{
    struct qa_compactor *c = ctx;
    struct sg_store_call call = { .cancel = &c->cancel, .timeout_ms = RING_ASK_MS };
    struct qa_job *sent = qf_xcalloc(count + 1, sizeof(*sent));
    size_t *of = qf_xcalloc(count + 1, sizeof(*of));
    size_t sent_count = 0;

    /* An older ring does no harm: a job goes to a worker that reads from others. */
    if (sg_store_is_ring(c->options.store))
        (void)!sg_ring_follow(c->options.store, RING_AGE_MS, &call, NULL);
    for (size_t i = 0; i < count; i++)
        if (may_send(c, &jobs[i])) {
            sent[sent_count].job = to_message(c, &jobs[i]);
            add_owners(c, &sent[sent_count]);
            of[sent_count++] = i;
        }
    qa_coord_run_jobs(c->options.coord, sent, sent_count, &c->cancel);
    for (size_t i = 0; i < sent_count; i++)
        take_result(c, &sent[i], &jobs[of[i]]);
    free(sent);
    free(of);
}

/* --- a tenant --- */

static void tell_damaged(struct qa_compactor *c, const char *text)
{
    uint64_t key = qf_hash_bytes(qf_str_from(text));

    for (size_t i = 0; i < c->told.count; i++)
        if (c->told.items[i] == key)
            return;
    if (c->told.count < TOLD_MAX)
        QF_VEC_PUSH(&c->told, key);
    QF_LOG_ERROR("a segment is damaged, and is left alone by compaction",
                 QF_KV_STR("reason", text));
}

static void on_event(void *ctx, enum sg_pass_event event, const char *text)
{
    struct qa_compactor *c = ctx;

    switch (event) {
    case SG_PASS_DAMAGED:
        tell_damaged(c, text);
        if (c->shown_count < SHOWN_MAX)
            c->shown[c->shown_count++] = qf_xstrdup(text);
        break;
    case SG_PASS_SKIPPED:
        QF_LOG_WARN("compaction leaves a job out", QF_KV_STR("reason", text));
        break;
    case SG_PASS_JOB:
    case SG_PASS_VANISHED:
    case SG_PASS_REMOVED:
    case SG_PASS_DELETE:
        break;
    }
}

static struct sg_pass_options pass_options(struct qa_compactor *c)
{
    return (struct sg_pass_options){ .store = c->options.store,
                                     .temp_dir = c->options.temp_dir,
                                     .memory_bytes = c->options.memory_bytes,
                                     .file_bytes = c->options.file_bytes,
                                     .settle_ms = c->options.settle_ms,
                                     .grace_ms = c->options.grace_ms,
                                     .agree = c->options.agree,
                                     .cancel = &c->cancel,
                                     .on_event = on_event,
                                     .run_jobs = run_jobs,
                                     .ctx = c };
}

static struct tenant *find_tenant(struct qa_compactor *c, const char *name)
{
    for (size_t i = 0; i < c->tenants.count; i++)
        if (strcmp(c->tenants.items[i].name, name) == 0)
            return &c->tenants.items[i];
    QF_VEC_PUSH(&c->tenants, (struct tenant){ .name = qf_xstrdup(name), .passed_ms = -1 });
    return &c->tenants.items[c->tenants.count - 1];
}

/* Is there something to do, as far as one can tell without asking the store? */
static bool needs_pass(const struct qa_compactor *c, const struct tenant *tenant,
                       const struct qa_behind_tenant *behind)
{
    int64_t since = qf_clock_mono_ms() - tenant->passed_ms;

    return tenant->passed_ms < 0 || behind->jobs || tenant->damaged || tenant->skipped ||
           (tenant->doomed && since >= c->options.grace_ms / 4);
}

static qf_rc pass_tenant(struct qa_compactor *c, struct tenant *tenant)
{
    struct sg_pass_options options = pass_options(c);
    struct sg_pass_result result = { 0 };
    struct qf_err err = { 0 };
    qf_rc rc = sg_pass_run(&options, qf_str_from(tenant->name), &result, &err);

    qf_metric_add(c->options.metrics->compaction_deleted, 0, (double)result.deleted);
    if (rc == QF_OK) {
        tenant->passed_ms = qf_clock_mono_ms();
        tenant->damaged = result.damaged;
        tenant->doomed = result.doomed;
        tenant->skipped = result.skipped;
    }
    if (result.jobs || result.deleted)
        QF_LOG_INFO("compaction", QF_KV_STR("tenant", tenant->name),
                    QF_KV_U64("segments_before", result.files_before),
                    QF_KV_U64("segments_after", result.files_after), QF_KV_U64("jobs", result.jobs),
                    QF_KV_U64("samples", result.samples), QF_KV_U64("deleted", result.deleted),
                    QF_KV_U64("doomed", result.doomed), QF_KV_U64("damaged", result.damaged));
    if (rc != QF_OK)
        (void)qf_err_set(&c->err, rc, "tenant %s: %s", tenant->name, err.msg);
    return rc;
}

/* --- all of them --- */

static void set_behind(struct qa_compactor *c, const struct qa_behind *behind, int64_t now_ms)
{
    struct qa_metrics *m = c->options.metrics;
    int64_t oldest = 0;

    c->behind_segments = c->behind_jobs = 0;
    for (size_t i = 0; i < behind->tenants.count; i++) {
        const struct qa_behind_tenant *tenant = &behind->tenants.items[i];

        c->behind_segments += tenant->segments;
        c->behind_jobs += tenant->jobs;
        if (tenant->since_ms)
            oldest = oldest ? QF_MIN(oldest, tenant->since_ms) : tenant->since_ms;
    }
    c->behind_seconds = oldest ? (double)QF_MAX(now_ms - oldest, INT64_C(0)) / 1000 : 0;
    qf_metric_set(m->compaction_behind_segments, 0, (double)c->behind_segments);
    qf_metric_set(m->compaction_behind_seconds, 0, c->behind_seconds);
}

static void clear_shown(struct qa_compactor *c)
{
    while (c->shown_count)
        free(c->shown[--c->shown_count]);
}

static void pass_all(struct qa_compactor *c, const struct qa_behind *behind)
{
    uint64_t damaged = 0;

    clear_shown(c);
    for (size_t i = 0; i < behind->tenants.count && !atomic_load(&c->cancel); i++) {
        struct tenant *tenant = find_tenant(c, behind->tenants.items[i].name);

        /* One that fails does not keep the others from being done. */
        if (needs_pass(c, tenant, &behind->tenants.items[i]))
            (void)pass_tenant(c, tenant);
    }
    for (size_t i = 0; i < behind->tenants.count; i++)
        damaged += find_tenant(c, behind->tenants.items[i].name)->damaged;
    qf_metric_set(c->options.metrics->compaction_damaged, 0, (double)damaged);
}

static bool something_to_do(struct qa_compactor *c, const struct qa_behind *behind)
{
    for (size_t i = 0; i < behind->tenants.count; i++)
        if (needs_pass(c, find_tenant(c, behind->tenants.items[i].name), &behind->tenants.items[i]))
            return true;
    return false;
}

static enum outcome look(struct qa_compactor *c, const struct qa_behind *behind)
{
    struct sg_store_call call = { .cancel = &c->stopping, .timeout_ms = 60000 };
    struct sg_lease_options lease = { .name = LEASE_NAME,
                                      .text = c->options.api_id,
                                      .ttl_ms = lease_ms(c) };
    qf_rc rc;

    c->err = (struct qf_err){ 0 };
    if (!something_to_do(c, behind))
        return DONE;
    if (!qa_coord_lane(c->options.coord).slots && !c->options.wakes)
        return IDLE;
    rc = sg_lease_take(c->options.store, &lease, &call, &c->lease, &c->err);
    if (rc != QF_OK)
        return rc == QF_EBUSY ? BUSY : FAILED;
    atomic_store(&c->cancel, false);
    if (atomic_load(&c->stopping)) /* which was said before it would have been forgotten here */
        atomic_store(&c->cancel, true);
    c->keeping = true;
    c->keeper = qf_thread_start("compact-lease", keep_lease, c);
    if (c->keeper)
        pass_all(c, behind);
    else
        (void)qf_err_set(&c->err, QF_EUNAVAILABLE, "cannot start a thread");
    stop_keeping(c);
    c->lease = sg_lease_drop(c->lease);
    if (atomic_load(&c->cancel))
        return BUSY;
    return c->err.rc == QF_OK ? DONE : FAILED;
}

/* What is shown to operators. */
static void tell_state(struct qa_compactor *c, bool running)
{
    static const char *const words[] = { "done", "busy", "no_workers", "failed" };
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_printf(
        &text,
        "\"enabled\":true,\"state\":\"%s\",\"outcome\":\"%s\",\"behind_segments\":%" PRIu64
        ",\"behind_seconds\":%.0f,\"pass_ended_ms\":%" PRId64 ",\"pass_seconds\":%.3f,\"error\":",
        running ? "planning" : "waiting", words[c->last], c->behind_segments, c->behind_seconds,
        c->pass_ended_ms, c->pass_seconds);
    qf_strbuf_json(&text, qf_str_from(c->err.msg));
    qf_strbuf_puts(&text, ",\"damaged\":[");
    for (size_t i = 0; i < c->shown_count; i++) {
        qf_strbuf_puts(&text, i ? "," : "");
        qf_strbuf_json(&text, qf_str_from(c->shown[i]));
    }
    qf_strbuf_putc(&text, ']');
    qa_coord_tell_compaction(c->options.coord, qf_strbuf_take(&text));
}

static void tick(struct qa_compactor *c)
{
    struct sg_pass_options options = pass_options(c);
    int64_t now_ms = qf_clock_wall_ms(), began = qf_clock_mono_ms();
    struct qa_behind behind = qa_behind_make(c->options.catalog, &options, now_ms);
    enum outcome outcome;

    set_behind(c, &behind, now_ms);
    tell_state(c, true);
    outcome = look(c, &behind);
    qa_behind_done(&behind);
    if (atomic_load(&c->stopping))
        return;
    qf_metric_add(c->options.metrics->compaction_runs, outcome, 1);
    if (outcome == FAILED && c->last != FAILED)
        QF_LOG_WARN("compaction failed, will try again", QF_KV_STR("error", c->err.msg));
    if (outcome == IDLE && c->last != IDLE)
        QF_LOG_INFO("compaction waits for a worker that takes background jobs");
    if (outcome == DONE) {
        c->pass_ended_ms = qf_clock_wall_ms();
        c->pass_seconds = (double)(qf_clock_mono_ms() - began) / 1000;
    }
    c->last = outcome;
    behind = qa_behind_make(c->options.catalog, &options, qf_clock_wall_ms());
    set_behind(c, &behind, qf_clock_wall_ms());
    qa_behind_done(&behind);
    tell_state(c, false);
}

static void run(void *arg)
{
    struct qa_compactor *c = arg;

    /* Not at the lowest priority, as jobs on workers are: it shares its heap with the queries of this API, and whoever loses
     * the processor while it holds the heap's lock makes these wait. */
    while (!atomic_load(&c->stopping)) {
        tick(c);
        /* Who does not do it looks more often: workers may come, the other may die. */
        wait_ms(c, c->last == DONE || c->last == FAILED
                       ? c->options.interval_ms
                       : QF_MIN(c->options.interval_ms, (int64_t)LOOK_MS));
    }
}

struct qa_compactor *qa_compactor_new(const struct qa_compactor_options *options)
{
    struct qa_compactor *c = qf_xcalloc(1, sizeof(*c));

    c->options = *options;
    c->lock = qf_lock_new();
    atomic_init(&c->stopping, false);
    atomic_init(&c->cancel, false);
    c->thread = qf_thread_start("compact", run, c);
    return c->thread ? c : qa_compactor_free(c);
}

struct qa_compactor *qa_compactor_free(struct qa_compactor *c)
{
    if (!c)
        return NULL;
    qf_lock_take(c->lock);
    atomic_store(&c->stopping, true);
    atomic_store(&c->cancel, true);
    qf_lock_wake_all(c->lock);
    qf_lock_drop(c->lock);
    if (c->thread)
        (void)qf_thread_join(c->thread);
    (void)qf_lock_free(c->lock);
    for (size_t i = 0; i < c->tenants.count; i++)
        free(c->tenants.items[i].name);
    QF_VEC_DONE(&c->tenants);
    QF_VEC_DONE(&c->refused);
    QF_VEC_DONE(&c->told);
    clear_shown(c);
    free(c);
    return NULL;
}
