/* hands.c - tasks of the leader, one after the other on the threads of its pools. */
#include "ring/coord/hands.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ring/coord/lead_int.h"

#define NAP_MS 50

void rg_listing_done(struct rg_listing *listing)
{
    QF_VEC_DONE(&listing->names);
    qf_strbuf_done(&listing->bytes);
}

struct rg_view *rg_view_use(struct rg_view *view)
{
    if (view)
        atomic_fetch_add(&view->users, 1);
    return view;
}

void rg_view_drop(struct rg_view *view)
{
    if (view && atomic_fetch_sub(&view->users, 1) == 1) {
        (void)rg_ring_free(view->ring);
        free(view);
    }
}

void rg_task_free(void *arg)
{
    struct rg_task *task = arg;

    rg_view_drop(task->view);
    free(task->heat);
    free(task);
}

static const char *url_of(const struct rg_task *task)
{
    return task->view->ring->nodes[task->node].url;
}

/* --- streams --- */

/* Wait until @bytes more may come. */
static void pace(struct rg_lead *lead, uint64_t bytes)
{
    int64_t now = qf_clock_mono_ms(), until;
    uint64_t rate = rg_hours_rate(&lead->options.hours, qf_clock_wall_ms());

    if (!rate)
        return;
    qf_lock_take(lead->pace.lock);
    lead->pace.free_ms =
        QF_MAX(lead->pace.free_ms, now) + (int64_t)((double)bytes * 1000 / (double)rate);
    until = lead->pace.free_ms;
    while ((now = qf_clock_mono_ms()) < until && !atomic_load(&lead->stopping))
        (void)qf_lock_wait(lead->pace.lock, QF_MIN(until - now, NAP_MS));
    qf_lock_drop(lead->pace.lock);
}

static qf_rc list(struct rg_task *task, struct rg_listing *listing, struct qf_err *err)
{
    const struct rg_hands *hands = task->lead->options.hands;

    listing->epoch = task->view->ring->epoch; /* with nothing to list */
    return hands->list ? hands->list(hands->ctx, task->slot, listing, err) : QF_OK;
}

/* The names of the slot, in pieces; *ret_missing: those that it lacks at the end. */
static qf_rc in_pieces(struct rg_task *task, const struct rg_place_of_call *at,
                       const struct rg_listing *listing, bool streams, size_t *ret_missing,
                       struct qf_err *err)
{
    struct rg_lead *lead = task->lead;
    const struct rg_hands *hands = lead->options.hands;
    size_t from = 0, missing = 0;
    qf_rc rc = QF_OK;

    do { /* at least one, which says whose disk it is */
        size_t count = QF_MIN(listing->names.count - from, (size_t)RG_PIECE_NAMES);
        struct rg_moved moved = { 0 };

        rc = (streams ? hands->stream : hands->hold)(hands->ctx, at, listing->names.items + from,
                                                     count, &moved, err);
        from += count;
        if (rc != QF_OK)
            break;
        missing += moved.missing;
        task->looked.incarnation = moved.incarnation;
        task->blobs += moved.blobs;
        task->bytes += moved.bytes;
        atomic_fetch_add(&lead->figures.blobs, moved.blobs);
        atomic_fetch_add(&lead->figures.bytes, moved.bytes);
        pace(lead, moved.bytes);
    } while (from < listing->names.count && !atomic_load(&lead->stopping));
    *ret_missing = missing + (listing->names.count - from);
    return rc;
}

static size_t sources_of(const struct rg_task *task, const char *ret_urls[RG_NODES_MAX])
{
    size_t count = 0;

    for (uint8_t n = 0; n < RG_NODES_MAX; n++)
        if ((task->sources & RG_NODE(n)) && n != task->node)
            ret_urls[count++] = task->view->ring->nodes[n].url;
    return count;
}

static qf_rc run_stream(struct rg_task *task, const struct rg_place_of_call *at, struct qf_err *err)
{
    const struct rg_hands *hands = task->lead->options.hands;
    QF_CLEANUP(rg_listing_done) struct rg_listing listing = { 0 };
    size_t missing = 0;
    qf_rc rc = list(task, &listing, err);

    if (rc == QF_OK)
        rc = in_pieces(task, at, &listing, true, &missing, err);
    if (rc == QF_OK && missing)
        rc = qf_err_set(err, QF_ENOTFOUND, "%zu of %zu blobs could not be fetched", missing,
                        listing.names.count);
    if (rc == QF_OK)
        rc = hands->documents(hands->ctx, at, err);
    atomic_fetch_add(&task->lead->figures.streams, 1);
    atomic_fetch_add(&task->lead->figures.streams_failed, rc != QF_OK);
    return rc;
}

static qf_rc run_verify(struct rg_task *task, const struct rg_place_of_call *at, struct qf_err *err)
{
    QF_CLEANUP(rg_listing_done) struct rg_listing listing = { 0 };
    size_t missing = 0;
    qf_rc rc = list(task, &listing, err);

    task->listed = listing.epoch;
    if (rc == QF_OK)
        rc = in_pieces(task, at, &listing, false, &missing, err);
    if (rc == QF_OK && missing)
        rc = qf_err_set(err, QF_ENOTFOUND, "it lacks %zu of %zu blobs", missing,
                        listing.names.count);
    if (rc == QF_OK)
        atomic_fetch_add(&task->lead->figures.verified, 1);
    return rc;
}

/* --- the rest --- */

static qf_rc run_tell(struct rg_task *task, struct qf_err *err)
{
    const struct rg_hands *hands = task->lead->options.hands;
    const struct rg_ring *ring = task->view->ring;
    uint64_t epochs[RG_SLOTS];
    qf_rc rc;

    for (uint32_t i = 0; i < ring->slot_count; i++)
        epochs[i] = ring->slots[i].epoch;
    rc = hands->tell(hands->ctx, url_of(task), epochs, ring->slot_count, &task->looked, err);
    if (rc == QF_OK)
        atomic_fetch_add(&task->lead->figures.told, 1);
    return rc;
}

/* Who does not say what is read there is up all the same. */
static qf_rc run_look(struct rg_task *task, struct qf_err *err)
{
    const struct rg_hands *hands = task->lead->options.hands;
    struct qf_err own = { 0 };
    qf_rc rc = hands->look(hands->ctx, url_of(task), &task->looked, err);

    if (task->heat && (rc != QF_OK || !hands->heat ||
                       hands->heat(hands->ctx, url_of(task), task->heat, &own) != QF_OK)) {
        free(task->heat);
        task->heat = NULL;
    }
    return rc;
}

static qf_rc run(struct rg_task *task, struct qf_err *err)
{
    const struct rg_hands *hands = task->lead->options.hands;
    const char *sources[RG_NODES_MAX];
    struct rg_place_of_call at = { .url = url_of(task), .slot = task->slot, .epoch = task->epoch };
    qf_rc rc;

    at.source_count = sources_of(task, sources);
    at.sources = sources;
    switch (task->kind) {
    case RG_TASK_LOOK:
        return run_look(task, err);
    case RG_TASK_TELL:
        return run_tell(task, err);
    case RG_TASK_ADOPT:
        return hands->adopt(hands->ctx, task->partition, task->view->ring, err);
    case RG_TASK_STREAM:
        return run_stream(task, &at, err);
    case RG_TASK_VERIFY:
        return run_verify(task, &at, err);
    case RG_TASK_CLEAN:
        rc = hands->clean(hands->ctx, &at, err);
        atomic_fetch_add(&task->lead->figures.cleaned, rc == QF_OK);
        return rc;
    case RG_TASK_LEAD:
    case RG_TASK_CONFIRMED:
    case RG_TASK_STOP:
        break;
    }
    return QF_EINTERNAL;
}

void rg_task_run(void *arg)
{
    struct rg_task *task = arg;
    struct qf_err err = { 0 };

    task->ok = !atomic_load(&task->lead->stopping) && run(task, &err) == QF_OK;
    if (!task->ok && task->kind >= RG_TASK_TELL && err.rc != QF_OK)
        QF_LOG_INFO("a storage node did not do what it was asked for",
                    QF_KV_STR("node", task->view->ring->nodes[task->node].name),
                    QF_KV_U64("slot", task->slot), QF_KV_STR("reason", err.msg));
    /* Room for all tasks that can be under way: false only at the end. */
    if (!qf_mailbox_try_send(task->lead->box, task))
        rg_task_free(task);
}
