/* mend.c - what a keeper lacks is marked, then fetched. */
#include "queryworker/keep/mend.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"
#include "queryworker/keep/even.h"
#include "ring/core/repair.h"

#define EVERY_MS 10000
/* Everything is compared so often, whether or not anything changed. */
#define WHOLE_MS (INT64_C(10) * 60 * 1000)
#define CALL_MS 30000
#define COPY_MS (INT64_C(5) * 60 * 1000)

struct qw_mend {
    struct qw_mend_options options;
    struct qw_mend_figures figures;
    struct rg_repair *repair;
    struct qf_thread *thread;
    struct qf_lock *lock; /* for waiting */
    atomic_bool stop;
    uint64_t changes_seen, damaged_seen, epoch_seen; /* of the last pass that compared */
    int64_t compared_ms;
    struct qw_even even;
};

/* One look at everything. */
struct pass {
    struct qw_mend *mend;
    const struct rg_ring *ring;
    uint8_t node; /* this one */
    int64_t now_ms;
};

/* While a slot moves, newcomers are filled by whoever drives the move, at its pace and in its figures. */
static bool owns(const struct pass *pass, uint32_t slot)
{
    return rg_owners_set(&pass->ring->slots[slot].owners) & RG_NODE(pass->node);
}

/* --- comparing --- */

static bool compare_one(void *ctx, struct qf_str name, uint32_t slot, uint64_t bytes)
{
    struct pass *pass = ctx;
    struct qw_mend *mend = pass->mend;

    (void)bytes;
    if (slot < pass->ring->slot_count && owns(pass, slot) && !kp_has(mend->options.keeper, name))
        rg_repair_mark(mend->repair, pass->node, slot, name, pass->now_ms);
    return !atomic_load(&mend->stop);
}

/* It was removed a moment ago: queries that were planned before still read it. */
static bool is_spared(const struct qw_mend *mend, struct qf_str name)
{
    int64_t removed_ms = sg_ring_removed_ms(mend->options.store, name);

    return removed_ms && qf_clock_mono_ms() - removed_ms < SG_RING_SPARED_MS;
}

/* What is held and not named, of which that was asked at @asked_ms. */
static void drop_garbage(struct qw_mend *mend, int64_t asked_ms)
{
    struct kp_blob blob;

    for (size_t i = 0; kp_blob_at(mend->options.keeper, i, &blob) && !atomic_load(&mend->stop); i++)
        if (blob.put_ms && !sg_ring_lists(mend->options.store, blob.name) &&
            !is_spared(mend, blob.name) &&
            kp_drop(mend->options.keeper, blob.name, asked_ms, RG_BLOB_GRACE_MS))
            atomic_fetch_add(&mend->figures.garbage, 1);
}

static bool is_due(const struct qw_mend *mend, const struct rg_ring *ring, int64_t now_ms)
{
    return sg_ring_changes(mend->options.store) != mend->changes_seen ||
           ring->epoch != mend->epoch_seen ||
           kp_figures(mend->options.keeper).damaged != mend->damaged_seen ||
           now_ms - mend->compared_ms >= WHOLE_MS || !mend->compared_ms;
}

static qf_rc compare(struct pass *pass, const struct sg_store_call *call, struct qf_err *err)
{
    struct qw_mend *mend = pass->mend;
    uint64_t damaged = kp_figures(mend->options.keeper).damaged;
    qf_rc rc = sg_ring_refresh(mend->options.store, call, err);
    uint64_t changes = sg_ring_changes(mend->options.store);

    if (rc || !is_due(mend, pass->ring, pass->now_ms))
        return rc;
    rc = sg_ring_names(mend->options.store, call, compare_one, pass, err);
    if (rc)
        return rc;
    drop_garbage(mend, pass->now_ms);
    mend->changes_seen = changes;
    mend->damaged_seen = damaged;
    mend->epoch_seen = pass->ring->epoch;
    mend->compared_ms = pass->now_ms;
    return QF_OK;
}

/* --- fetching --- */

/* Where else the blobs of a slot are. */
static void find_sources(const struct pass *pass, uint32_t slot, struct rg_names *names)
{
    const struct rg_slot *of = &pass->ring->slots[slot];
    rg_nodes others = (rg_slot_everyone(of) | of->stale) & ~RG_NODE(pass->node);

    for (uint8_t node = 0; node < RG_NODES_MAX && names->source_count < RG_KEEP_SOURCES_MAX; node++)
        if ((others & RG_NODE(node)) && pass->ring->nodes[node].url[0])
            names->sources[names->source_count++] = qf_str_from(pass->ring->nodes[node].url);
}

/* True: the mark goes. */
static bool mend_one(const struct pass *pass, uint32_t slot, struct qf_str name)
{
    struct qw_mend *mend = pass->mend;
    struct rg_names names = { .names = &name, .count = 1 };
    struct rg_keep_query query = { .slot = slot, .epoch = pass->ring->slots[slot].epoch };
    struct sg_store_limit limit = { .cancel = &mend->stop,
                                    .deadline_ms = qf_clock_mono_ms() + COPY_MS };
    struct rg_held held = { 0 };
    struct kp_said said = { 0 };
    bool mended;

    if (!owns(pass, slot) || !sg_ring_lists(mend->options.store, name) ||
        kp_has(mend->options.keeper, name))
        return true;
    find_sources(pass, slot, &names);
    kp_stream(mend->options.keeper, mend->options.client, &query, &names, &limit, &held, &said);
    mended = said.status == 200 && held.missing_count == 0;
    atomic_fetch_add(&mend->figures.mended, mended);
    rg_held_done(&held);
    return mended;
}

/* Marks of before this pass. One of a whole slot has been compared again with this one. */
static void mend_marked(const struct pass *pass)
{
    struct qw_mend *mend = pass->mend;
    const struct rg_mark *mark;

    while (!atomic_load(&mend->stop) && (mark = rg_repair_next(mend->repair, pass->now_ms))) {
        struct rg_mark own = *mark;
        struct qf_str name = qf_str_from(own.name);
        bool done = name.len ? mend_one(pass, own.slot, name) : true;

        if (!name.len)
            mend->compared_ms = 0;
        rg_repair_end(mend->repair, own.node, own.slot, name, done, qf_clock_mono_ms());
    }
}

/* --- passes --- */

static qf_rc run_pass(struct qw_mend *mend, struct qf_err *err)
{
    const struct sg_store_call call = { .cancel = &mend->stop, .timeout_ms = CALL_MS };
    struct pass pass = { .mend = mend, .now_ms = qf_clock_mono_ms() };
    struct rg_ring *ring = NULL;
    qf_rc rc = sg_ring_view(mend->options.store, mend->options.every_ms, &call, &ring, err);

    if (rc)
        return rc;
    pass.ring = ring;
    pass.node = rg_ring_node(ring, qf_str_from(mend->options.name));
    if (pass.node < RG_NODES_MAX && kp_life(mend->options.keeper).told) {
        mend_marked(&pass);
        rc = compare(&pass, &call, err);
        qw_even_pass(&mend->even, ring, pass.node);
    }
    (void)rg_ring_free(ring);
    atomic_store(&mend->figures.marks, rg_repair_count(mend->repair));
    return rc;
}

static void run(void *arg)
{
    struct qw_mend *mend = arg;
    bool failing = false;

    qf_thread_yield_to_others();
    while (!atomic_load(&mend->stop)) {
        struct qf_err err = { 0 };
        qf_rc rc = run_pass(mend, &err);

        atomic_fetch_add(rc ? &mend->figures.failures : &mend->figures.passes, 1);
        if (rc && !failing && !atomic_load(&mend->stop))
            QF_LOG_WARN("this keeper cannot learn what it should hold, will ask again",
                        QF_KV_STR("error", err.msg));
        failing = rc != QF_OK;
        qf_lock_take(mend->lock);
        if (!atomic_load(&mend->stop))
            (void)qf_lock_wait(mend->lock, mend->options.every_ms);
        qf_lock_drop(mend->lock);
    }
}

struct qw_mend *qw_mend_start(const struct qw_mend_options *options)
{
    struct qw_mend *mend = qf_xcalloc(1, sizeof(*mend));

    mend->options = *options;
    if (!mend->options.every_ms)
        mend->options.every_ms = EVERY_MS;
    mend->repair = rg_repair_new(&(struct rg_repair_options){ 0 });
    mend->lock = qf_lock_new();
    mend->even.keeper = options->keeper;
    mend->even.client = options->client;
    mend->even.stop = &mend->stop;
    mend->thread = qf_thread_start("keep-mend", run, mend);
    return mend->thread ? mend : qw_mend_stop(mend);
}

struct qw_mend *qw_mend_stop(struct qw_mend *mend)
{
    if (!mend)
        return NULL;
    qf_lock_take(mend->lock);
    atomic_store(&mend->stop, true);
    qf_lock_wake_all(mend->lock);
    qf_lock_drop(mend->lock);
    if (mend->thread)
        (void)qf_thread_join(mend->thread);
    (void)rg_repair_free(mend->repair);
    (void)qf_lock_free(mend->lock);
    free(mend);
    return NULL;
}

struct qw_mend_figures *qw_mend_figures(struct qw_mend *mend)
{
    return &mend->figures;
}

const struct qw_even *qw_mend_even(const struct qw_mend *mend)
{
    return &mend->even;
}
