/* retainer.c - files go whose samples are behind their tenant's retention. */
#include "queryapi/retain/retainer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"
#include "queryapi/retain/census.h"
#include "segments/store/lease.h"
#include "segments/store/ring.h"
#include "segments/write/remove.h"
#include "segments/write/sweep.h"

#define LEASE_TTL_MS 120000
/* How often figures are taken, at least. */
#define CENSUS_INTERVAL_MS 30000
/* How often leftovers of writers that died are looked for. */
#define SWEEP_INTERVAL_MS INT64_C(86400000)
#define INTERVAL_MIN_MS 1000
#define INTERVAL_MAX_MS 600000

/* By the label of retention_runs. */
enum outcome { DONE, BUSY, CLOCKS, FAILED };

struct qa_retainer {
    struct qa_retainer_options options;
    struct qf_thread *thread;
    struct qf_lock *lock; /* guards nothing but the wait */
    atomic_bool stopping;

    /* Of its thread. */
    uint64_t retentions; /* what they were */
    int64_t since_ms;    /* from when on, monotonic */
    int64_t due_ms;      /* the next look at the store */
    int64_t sweep_due_ms;
    enum outcome last; /* a trouble is told once */
    struct sg_lease *lease;
    int64_t now_ms;           /* of the look under way */
    uint64_t segments, bytes; /* removed in it */
    qf_rc rc;
    struct qf_err err;
};

int64_t qa_retainer_interval_ms(int64_t slack_ms)
{
    int64_t quarter = QF_MIN(slack_ms / 4, (int64_t)INTERVAL_MAX_MS);

    return QF_MAX(quarter, (int64_t)INTERVAL_MIN_MS);
}

/* Before each segment: is it still us who do this? */
static bool keep_lease(void *ctx, const struct sg_store_object *object,
                       const struct sg_segment_name *name, bool cut)
{
    struct qa_retainer *r = ctx;
    struct sg_store_call call = { .cancel = &r->stopping };

    (void)object;
    (void)name;
    (void)cut;
    if (r->lease && sg_lease_due(r->lease)) {
        r->rc = sg_lease_renew(r->lease, &call, &r->err);
        /* The store failed and there is time: the next segment tries again. */
        if (r->rc != QF_ENOTFOUND && sg_lease_left_ms(r->lease) > LEASE_TTL_MS / 4)
            r->rc = QF_OK;
    }
    return r->rc == QF_OK;
}

static bool look_at_tenant(void *ctx, struct qf_str tenant)
{
    struct qa_retainer *r = ctx;
    struct qf_limits limits = qa_tenants_limits(r->options.tenants, tenant);
    int64_t oldest = qf_limits_oldest(&limits, r->now_ms);
    struct sg_remove_options remove = { .store = r->options.store,
                                        .tenant = tenant,
                                        .min_ts = INT64_MIN,
                                        .retention = true,
                                        .cancel = &r->stopping,
                                        .on_segment = keep_lease,
                                        .ctx = r };
    struct sg_remove_result result;
    qf_rc rc;

    if (oldest == INT64_MIN)
        return true;
    remove.max_ts = oldest - r->options.slack_ms - 1;
    rc = sg_remove(&remove, &result, &r->err);
    if (rc != QF_OK)
        r->rc = rc;
    r->segments += result.gone.segments;
    r->bytes += result.gone.bytes;
    qf_metric_add(r->options.metrics->retention_segments, 0, (double)result.gone.segments);
    qf_metric_add(r->options.metrics->retention_bytes, 0, (double)result.gone.bytes);
    if (result.gone.segments)
        QF_LOG_INFO("segments behind the retention deleted", QF_KV_SLICE("tenant", tenant),
                    QF_KV_U64("segments", result.gone.segments),
                    QF_KV_U64("bytes", result.gone.bytes), QF_KV_I64("from_ms", result.gone.min_ts),
                    QF_KV_I64("to_ms", result.gone.max_ts),
                    QF_KV_U64("retention_ms", limits.of[QF_LIMIT_RETENTION]));
    if (result.gone.annexes)
        QF_LOG_INFO("exemplars and metadata behind the retention deleted",
                    QF_KV_SLICE("tenant", tenant), QF_KV_U64("files", result.gone.annexes));
    return r->rc == QF_OK;
}

/* What time it is, for deleting: false if nobody knows. */
static bool tell_time(struct qa_retainer *r, const struct sg_store_call *call)
{
    int64_t wall, stores = 0;

    r->rc = sg_store_clock(r->options.store, call, &stores, &r->err);
    wall = qf_clock_wall_ms();
    r->now_ms = QF_MIN(wall, stores);
    return r->rc == QF_OK && wall - stores <= r->options.slack_ms &&
           stores - wall <= r->options.slack_ms;
}

/* Leftovers of writers that died. That this fails costs nothing but room: the next day tries again. */
static void sweep_if_due(struct qa_retainer *r)
{
    struct sg_sweep_options options = { .store = r->options.store };
    struct sg_store_call call = { .cancel = &r->stopping };
    struct qf_err err = { 0 }, why = { 0 };
    struct sg_sweep swept;
    qf_rc rc;

    if (qf_clock_mono_ms() < r->sweep_due_ms)
        return;
    r->sweep_due_ms = qf_clock_mono_ms() + SWEEP_INTERVAL_MS;
    rc = sg_sweep(&options, &call, &swept, &why, &err);
    if (rc != QF_OK || why.rc != QF_OK)
        QF_LOG_WARN("leftovers of writers that died cannot be removed",
                    QF_KV_STR("error", rc != QF_OK ? err.msg : why.msg));
    else if (swept.in_store + swept.notes + swept.leases)
        QF_LOG_INFO("leftovers of writers that died removed", QF_KV_U64("files", swept.in_store),
                    QF_KV_U64("notes", swept.notes), QF_KV_U64("leases", swept.leases));
}

static enum outcome look(struct qa_retainer *r)
{
    struct sg_store_call call = { .cancel = &r->stopping, .timeout_ms = 60000 };
    struct sg_lease_options lease = { .name = "retention",
                                      .text = r->options.api_id,
                                      .ttl_ms = LEASE_TTL_MS };
    enum outcome outcome;

    r->segments = r->bytes = 0;
    r->err = (struct qf_err){ 0 };
    /* On our own nodes the log says what is removed: several APIs that do it disturb nobody. */
    r->rc = sg_store_is_ring(r->options.store)
                ? QF_OK
                : sg_lease_take(r->options.store, &lease, &call, &r->lease, &r->err);
    if (r->rc != QF_OK)
        return r->rc == QF_EBUSY ? BUSY : FAILED;
    if (tell_time(r, &call)) {
        struct sg_store_call listing = { .cancel = &r->stopping };
        struct qf_err err = { 0 };
        qf_rc rc = sg_remove_tenants(r->options.store, &listing, look_at_tenant, r, &err);

        if (r->rc == QF_OK && rc != QF_OK) {
            r->rc = rc;
            r->err = err;
        }
        outcome = r->rc == QF_OK ? DONE : FAILED;
        if (outcome == DONE)
            sweep_if_due(r);
    } else {
        outcome = r->rc == QF_OK ? CLOCKS : FAILED;
    }
    r->lease = sg_lease_drop(r->lease);
    return outcome;
}

/* Nobody knows, or knows any more, how long tenants keep their samples. */
static bool is_stale(const struct qa_retainer *r, int64_t now)
{
    int64_t age_ms = qa_tenants_age_ms(r->options.tenants, now);

    return age_ms < 0 || age_ms > r->options.settings_age_ms;
}

static void look_if_due(struct qa_retainer *r, int64_t now)
{
    enum outcome outcome;

    if (!r->retentions || now - r->since_ms < r->options.slack_ms || now < r->due_ms ||
        is_stale(r, now))
        return;
    outcome = look(r);
    r->due_ms = qf_clock_mono_ms() + qa_retainer_interval_ms(r->options.slack_ms);
    if (atomic_load(&r->stopping))
        return;
    qf_metric_add(r->options.metrics->retention_runs, outcome, 1);
    if (outcome == CLOCKS && r->last != CLOCKS)
        QF_LOG_WARN(
            "the store's clock and this machine's differ by more than the slack: nothing is "
            "deleted",
            QF_KV_I64("slack_ms", r->options.slack_ms));
    if (outcome == FAILED && r->last != FAILED)
        QF_LOG_WARN("segments behind the retention cannot be deleted, will try again",
                    QF_KV_STR("error", r->err.msg));
    r->last = outcome;
}

static void tick(struct qa_retainer *r)
{
    uint64_t retentions = qa_tenants_retentions(r->options.tenants);
    int64_t now = qf_clock_mono_ms();

    if (retentions != r->retentions) {
        r->retentions = retentions;
        r->since_ms = now;
        if (retentions)
            QF_LOG_INFO("retention: what is behind it is not read any more, and its files go after "
                        "the slack",
                        QF_KV_I64("slack_ms", r->options.slack_ms));
    }
    qa_census(r->options.catalog, r->options.tenants, r->options.slack_ms, r->options.metrics);
    look_if_due(r, now);
}

static void run(void *arg)
{
    struct qa_retainer *r = arg;
    int64_t pause =
        QF_MIN(qa_retainer_interval_ms(r->options.slack_ms), (int64_t)CENSUS_INTERVAL_MS);

    while (!atomic_load(&r->stopping)) {
        tick(r);
        qf_lock_take(r->lock);
        if (!atomic_load(&r->stopping))
            (void)qf_lock_wait(r->lock, pause);
        qf_lock_drop(r->lock);
    }
}

struct qa_retainer *qa_retainer_new(const struct qa_retainer_options *options)
{
    struct qa_retainer *r = qf_xcalloc(1, sizeof(*r));

    r->options = *options;
    r->lock = qf_lock_new();
    r->since_ms = qf_clock_mono_ms();
    atomic_init(&r->stopping, false);
    r->thread = qf_thread_start("retain", run, r);
    return r->thread ? r : qa_retainer_free(r);
}

struct qa_retainer *qa_retainer_free(struct qa_retainer *retainer)
{
    if (!retainer)
        return NULL;
    qf_lock_take(retainer->lock);
    atomic_store(&retainer->stopping, true);
    qf_lock_wake_all(retainer->lock);
    qf_lock_drop(retainer->lock);
    if (retainer->thread)
        (void)qf_thread_join(retainer->thread);
    (void)qf_lock_free(retainer->lock);
    free(retainer);
    return NULL;
}
