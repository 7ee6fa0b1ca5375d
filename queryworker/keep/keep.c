/* keep.c - the keeper of a worker: threads, keys, figures. */
#include "queryworker/keep/keep.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/pool.h"
#include "base/sys/thread.h"
#include "queryworker/keep/mend.h"

#define THREADS 8
#define QUEUE_MAX 64 /* each with a part of a blob */
#define SLOW_THREADS 2
#define TICK_MS 250

struct qw_keep {
    struct qw_keep_options options;
    struct kp_keeper *keeper;
    struct sg_keep_client *client;
    struct qh_tenants *tenants;
    struct qf_pool *pool, *slow;
    struct qf_thread *thread;
    struct qw_mend *mend;
    uint64_t mended, garbage, docs_mended, docs_unreadable; /* told */
    struct qf_lock *lock;                                   /* for waiting */
    bool stop;                                              /* behind the lock */
    struct kp_figures told;
};

struct kp_keeper *qw_keep_keeper(struct qw_keep *keep)
{
    return keep->keeper;
}

struct sg_keep_client *qw_keep_client(struct qw_keep *keep)
{
    return keep->client;
}

struct qh_tenants *qw_keep_tenants(struct qw_keep *keep)
{
    return keep->tenants;
}

struct qw_metrics *qw_keep_metrics(struct qw_keep *keep)
{
    return keep->options.metrics;
}

bool qw_keep_submit(struct qw_keep *keep, bool slow, void (*fn)(void *arg), void *arg)
{
    return qf_pool_submit(slow ? keep->slow : keep->pool, fn, arg);
}

/* --- housekeeping --- */

static void count(struct qf_metric *metric, uint64_t more)
{
    qf_metric_add(metric, 0, (double)more);
}

static void show_documents(struct qw_keep *keep)
{
    const struct qw_even *even = qw_mend_even(keep->mend);
    struct qw_metrics *m = keep->options.metrics;
    uint64_t mended = atomic_load(&even->mended), unreadable = atomic_load(&even->unreadable);

    qf_metric_set(m->keep_docs_behind, 0, (double)atomic_load(&even->behind));
    count(m->keep_docs_mended, mended - keep->docs_mended);
    count(m->keep_docs_unreadable, unreadable - keep->docs_unreadable);
    keep->docs_mended = mended;
    keep->docs_unreadable = unreadable;
}

static void show_mending(struct qw_keep *keep)
{
    struct qw_metrics *m = keep->options.metrics;
    uint64_t mended, garbage;

    if (!keep->mend)
        return;
    mended = atomic_load(&qw_mend_figures(keep->mend)->mended);
    garbage = atomic_load(&qw_mend_figures(keep->mend)->garbage);
    qf_metric_set(m->keep_marks, 0, (double)atomic_load(&qw_mend_figures(keep->mend)->marks));
    count(m->keep_mended, mended - keep->mended);
    count(m->keep_garbage, garbage - keep->garbage);
    keep->mended = mended;
    keep->garbage = garbage;
    show_documents(keep);
}

static void show_figures(struct qw_keep *keep)
{
    struct kp_figures now = kp_figures(keep->keeper), *was = &keep->told;
    struct qw_metrics *m = keep->options.metrics;

    qf_metric_set(m->keep_blobs, 0, (double)now.blobs);
    qf_metric_set(m->keep_bytes, 0, (double)now.bytes);
    qf_metric_set(m->keep_docs, 0, (double)now.documents);
    qf_metric_set(m->keep_free_bytes, 0, (double)now.free_bytes);
    qf_metric_set(m->keep_told, 0, kp_life(keep->keeper).told);
    qf_metric_set(m->keep_uploads, 0, (double)now.uploads);
    count(m->keep_puts, now.puts - was->puts);
    count(m->keep_put_bytes, now.put_bytes - was->put_bytes);
    count(m->keep_repeated, now.repeated - was->repeated);
    count(m->keep_refused, now.refused - was->refused);
    count(m->keep_full, now.full - was->full);
    count(m->keep_streamed, now.streamed - was->streamed);
    count(m->keep_streamed_bytes, now.streamed_bytes - was->streamed_bytes);
    count(m->keep_scrubbed_bytes, now.scrubbed_bytes - was->scrubbed_bytes);
    count(m->keep_damaged, now.damaged - was->damaged);
    count(m->keep_dropped, now.dropped - was->dropped);
    show_mending(keep);
    *was = now;
}

static void refresh_keys(struct qw_keep *keep)
{
    struct qf_err err = { 0 };
    bool changed = false;

    if (qh_tenants_refresh(keep->tenants, &changed, &err) == QF_OK && changed)
        QF_LOG_INFO("the keys of this keeper were read again");
}

/* True: it is time to stop. */
static bool pause_for(struct qw_keep *keep, int64_t ms)
{
    bool stop;

    qf_lock_take(keep->lock);
    if (!keep->stop && ms > 0)
        (void)qf_lock_wait(keep->lock, ms);
    stop = keep->stop;
    qf_lock_drop(keep->lock);
    return stop;
}

/* Verify so much that the rate holds: what one blob took more than its share is paid with pauses. */
static void run(void *arg)
{
    struct qw_keep *keep = arg;
    int64_t owed = 0; /* bytes that may be read now */

    qf_thread_yield_to_others();
    while (!pause_for(keep, TICK_MS)) {
        show_figures(keep);
        refresh_keys(keep);
        kp_check(keep->keeper);
        if (!keep->options.scrub_rate)
            continue;
        owed = QF_MIN(owed + (int64_t)keep->options.scrub_rate * TICK_MS / 1000,
                      (int64_t)keep->options.scrub_rate);
        if (owed > 0)
            owed -= (int64_t)kp_scrub(keep->keeper, (uint64_t)owed);
    }
}

/* --- start and stop --- */

static bool has_own(void *ctx, struct qf_str name)
{
    return kp_trusts(ctx, name);
}

static void suspect_own(void *ctx, struct qf_str name)
{
    kp_suspect(ctx, name);
}

static int open_own(void *ctx, struct qf_str name)
{
    struct kp_said said = { 0 };
    struct kp_file file;

    kp_get(ctx, name, &file, &said);
    return file.fd;
}

/* Read what it holds in place, and keep it complete. */
static bool join_ring(struct qw_keep *keep)
{
    const struct qw_keep_options *o = &keep->options;

    if (!sg_store_is_ring(o->store))
        return true;
    sg_ring_set_local(o->store,
                      &(struct sg_ring_local){ has_own, open_own, suspect_own, keep->keeper });
    keep->mend = qw_mend_start(&(struct qw_mend_options){ .keeper = keep->keeper,
                                                          .client = keep->client,
                                                          .store = o->store,
                                                          .name = o->name,
                                                          .every_ms = o->mend_ms });
    return keep->mend != NULL;
}

static qf_rc start(struct qw_keep *keep, struct qf_err *err)
{
    const struct qw_keep_options *o = &keep->options;
    const struct kp_options keeper = { .dir = o->dir, .reserve_bytes = o->reserve_bytes };
    qf_rc rc = kp_open(&keeper, &keep->keeper, err);

    if (rc)
        return rc;
    keep->client = sg_keep_client_new(
        &(struct sg_keep_client_options){ .key_file = o->peer_key_file,
                                          .ca_file = o->peer_ca_file,
                                          .cert_file = o->peer_cert_file,
                                          .cert_key_file = o->peer_cert_key_file },
        err);
    keep->tenants = qh_tenants_new(o->key_file, err);
    if (!keep->client || !keep->tenants)
        return err->rc;
    keep->lock = qf_lock_new();
    keep->pool = qf_pool_new("keep", o->threads ? o->threads : THREADS, QUEUE_MAX);
    keep->slow = qf_pool_new("keep-copy", SLOW_THREADS, QUEUE_MAX);
    if (!join_ring(keep))
        return qf_err_set(err, QF_EUNAVAILABLE, "cannot start the threads of the keeper");
    keep->thread = qf_thread_start("keep-scrub", run, keep);
    if (!keep->pool || !keep->slow || !keep->thread)
        return qf_err_set(err, QF_EUNAVAILABLE, "cannot start the threads of the keeper");
    return QF_OK;
}

struct qw_keep *qw_keep_new(const struct qw_keep_options *options, struct qf_err *err)
{
    struct qw_keep *keep = qf_xcalloc(1, sizeof(*keep));

    keep->options = *options;
    return start(keep, err) == QF_OK ? keep : qw_keep_free(keep);
}

struct qw_keep *qw_keep_free(struct qw_keep *keep)
{
    if (!keep)
        return NULL;
    if (keep->thread) {
        qf_lock_take(keep->lock);
        keep->stop = true;
        qf_lock_wake_all(keep->lock);
        qf_lock_drop(keep->lock);
        (void)qf_thread_join(keep->thread);
    }
    keep->mend = qw_mend_stop(keep->mend);
    keep->pool = qf_pool_free(keep->pool);
    keep->slow = qf_pool_free(keep->slow);
    if (keep->lock)
        (void)qf_lock_free(keep->lock);
    keep->tenants = qh_tenants_free(keep->tenants);
    keep->client = sg_keep_client_free(keep->client);
    keep->keeper = kp_free(keep->keeper);
    free(keep);
    return NULL;
}
