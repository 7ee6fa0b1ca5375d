/* ring_ask.c - ingest nodes are asked, one after the other; the ring is followed. */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "ring/core/wire.h"
#include "ring/wire/listing.h"
#include "segments/store/ring_int.h"

#define ROUNDS 5
#define PAUSE_MS 200

/* Another node may know better, or this one a little later. */
static bool is_passing(qf_rc rc)
{
    return rc == QF_EUNAVAILABLE || rc == QF_EIO || rc == QF_EPROTO;
}

static qf_rc ask_one(struct ring_store *store, size_t node, const char *path,
                     const struct qf_str *body, size_t body_max, const struct sg_store_limit *limit,
                     struct qf_strbuf *ret_body, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf url = QF_STRBUF_INIT;

    qf_strbuf_printf(&url, "%s%s", store->nodes[node], path);
    atomic_fetch_add_explicit(&store->base.requests, 1, memory_order_relaxed);
    qf_strbuf_reset(ret_body);
    if (body)
        return sg_keep_post(store->client, qf_strbuf_cstr(&url), *body, body_max, limit, ret_body,
                            err);
    return sg_keep_fetch(store->client, qf_strbuf_cstr(&url), body_max, limit, ret_body, err);
}

static qf_rc ask(struct ring_store *store, const char *path, const struct qf_str *body,
                 size_t body_max, const struct sg_store_limit *limit, struct qf_strbuf *ret_body,
                 struct qf_err *err)
{
    struct qf_err own = { 0 };
    qf_rc rc = QF_EUNAVAILABLE;

    for (size_t i = 0; i < ROUNDS * store->node_count; i++) {
        size_t node = atomic_load(&store->node) % store->node_count;

        own = (struct qf_err){ 0 };
        rc = ask_one(store, node, path, body, body_max, limit, ret_body, &own);
        if (!is_passing(rc))
            break;
        atomic_store(&store->node, node + 1);
        atomic_fetch_add_explicit(&store->base.retries, 1, memory_order_relaxed);
        if (sg_store_limit_check(limit, qf_str_from(path), NULL) || atomic_load(&store->closing))
            break;
        if ((i + 1) % store->node_count == 0)
            (void)poll(NULL, 0, (int)sg_store_limit_left(limit, PAUSE_MS));
    }
    return rc == QF_OK ? QF_OK : qf_err_set(err, rc, "%s", own.msg);
}

qf_rc ring_get(struct ring_store *store, const char *path, size_t body_max,
               const struct sg_store_limit *limit, struct qf_strbuf *ret_body, struct qf_err *err)
{
    return ask(store, path, NULL, body_max, limit, ret_body, err);
}

qf_rc ring_post(struct ring_store *store, const char *path, struct qf_str body,
                const struct sg_store_limit *limit, struct qf_strbuf *ret_body, struct qf_err *err)
{
    return ask(store, path, &body, (size_t)64 << 10, limit, ret_body, err);
}

/* --- the ring --- */

/* It never goes back: another ingest node may be behind. */
static void take_ring(struct ring_store *store, struct rg_ring *ring)
{
    qf_lock_take(store->lock);
    if (!store->ring || ring->applied >= store->ring->applied) {
        (void)rg_ring_free(store->ring);
        store->ring = ring;
        ring = NULL;
    }
    store->ring_ms = qf_clock_mono_ms();
    qf_lock_drop(store->lock);
    (void)rg_ring_free(ring);
}

qf_rc ring_follow(struct ring_store *store, int64_t age_ms, const struct sg_store_limit *limit,
                  struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct rg_ring *ring = NULL;
    struct qf_err own = { 0 };
    bool known, fresh;
    qf_rc rc;

    qf_lock_take(store->lock);
    known = store->ring && store->ring->founded;
    fresh = known && qf_clock_mono_ms() - store->ring_ms <= age_ms;
    qf_lock_drop(store->lock);
    if (fresh)
        return QF_OK;
    rc = ring_get(store, RG_RING_PATH, RG_RING_BYTES_MAX, limit, &body, &own);
    if (rc == QF_OK && rg_ring_decode(qf_strbuf_view(&body), &ring) != QF_OK)
        rc = qf_err_set(&own, QF_EPROTO, "an ingest node sent a ring that cannot be read");
    if (rc) /* one that is behind does no harm: keepers refuse it if it matters */
        return known ? QF_OK : qf_err_set(err, rc, "%s", own.msg);
    if (!ring->founded && !known)
        rc = qf_err_set(err, QF_EUNAVAILABLE, "%s: the ring has no nodes yet", store->base.url);
    take_ring(store, ring);
    return rc;
}

qf_rc sg_ring_view(struct sg_store *base, int64_t age_ms, const struct sg_store_call *call,
                   struct rg_ring **ret_ring, struct qf_err *err)
{
    struct ring_store *store = ring_of(base);
    struct sg_store_limit limit = sg_store_limit_of(call);
    qf_rc rc = ring_follow(store, age_ms, &limit, err);
    if (rc)
        return rc;
    qf_lock_take(store->lock);
    *ret_ring = rg_ring_new(store->ring->slot_count);
    rg_ring_copy(*ret_ring, store->ring);
    qf_lock_drop(store->lock);
    return QF_OK;
}

qf_rc sg_ring_follow(struct sg_store *base, int64_t age_ms, const struct sg_store_call *call,
                     struct qf_err *err)
{
    struct sg_store_limit limit = sg_store_limit_of(call);

    return ring_follow(ring_of(base), age_ms, &limit, err);
}

/* With the lock. */
static void name_owners(const struct rg_ring *ring, uint32_t slot, struct sg_ring_owners *owners)
{
    const struct rg_owners *of = &ring->slots[slot].owners;

    for (unsigned i = 0; i < of->count; i++)
        memcpy(owners->names[owners->count++], ring->nodes[of->nodes[i]].name, RG_NAME_MAX + 1);
}

void sg_ring_owners(struct sg_store *base, struct qf_str tenant, uint32_t shard,
                    struct sg_ring_owners *ret_owners)
{
    struct ring_store *store = ring_of(base);
    uint32_t slot;

    ret_owners->count = 0;
    if (!sg_store_is_ring(base))
        return;
    slot = rg_slot_of(tenant, shard, RG_PLACEMENTS);
    qf_lock_take(store->lock);
    if (store->ring && store->ring->founded)
        name_owners(store->ring, slot % store->ring->slot_count, ret_owners);
    qf_lock_drop(store->lock);
}
