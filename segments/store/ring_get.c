/* ring_get.c - a blob from whoever has it. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "segments/store/ring_int.h"

#define RING_AGE_MS 5000
#define ROUNDS 2

/* Where to ask, in this order. */
struct sources {
    char urls[RG_NODES_MAX][RG_URL_MAX + 1];
    uint8_t nodes[RG_NODES_MAX];
    size_t count;
};

/* With the lock: it is down, as the leader of meta says, or did not answer here. */
static bool is_away(const struct ring_store *store, uint8_t node)
{
    return store->ring->nodes[node].down ||
           rg_breaker_open(&store->breakers[node], qf_clock_mono_ms());
}

static void add_nodes(const struct ring_store *store, rg_nodes nodes, bool away, rg_nodes *done,
                      struct sources *sources)
{
    const struct rg_ring *ring = store->ring;

    for (uint8_t node = 0; node < RG_NODES_MAX; node++) {
        if (!(nodes & ~*done & RG_NODE(node)) || !ring->nodes[node].url[0] ||
            (!away && is_away(store, node)))
            continue;
        sources->nodes[sources->count] = node;
        memcpy(sources->urls[sources->count++], ring->nodes[node].url, RG_URL_MAX + 1);
        *done |= RG_NODE(node);
    }
}

/* Owners in their order, then newcomers and those that were owners; those that seem away after all others: who has it
 * alone is asked in any case. */
static void find_sources(struct ring_store *store, struct qf_str name, struct rg_keep_query *query,
                         struct sources *sources)
{
    const struct rg_ring *ring;
    const struct rg_slot *slot;
    rg_nodes done = 0;

    qf_lock_take(store->lock);
    ring = store->ring;
    query->slot = rg_blob_slot(name, RG_PLACEMENTS, ring->slot_count);
    slot = &ring->slots[query->slot];
    query->epoch = slot->epoch;
    for (unsigned i = 0; i < slot->owners.count; i++)
        add_nodes(store, RG_NODE(slot->owners.nodes[i]), false, &done, sources);
    add_nodes(store, rg_slot_everyone(slot) | slot->stale, false, &done, sources);
    add_nodes(store, rg_slot_everyone(slot) | slot->stale, true, &done, sources);
    qf_lock_drop(store->lock);
}

/* Whether the one at @url answered, whatever it said. */
static void note_answer(struct ring_store *store, uint8_t node, const char *url, bool answered)
{
    bool changed;

    qf_lock_take(store->lock);
    changed = rg_breaker_hear(&store->breakers[node], answered, qf_clock_mono_ms());
    qf_lock_drop(store->lock);
    if (changed && answered)
        QF_LOG_INFO("a storage node answers again", QF_KV_STR("url", url));
    else if (changed)
        QF_LOG_WARN("a storage node does not answer: others are asked first",
                    QF_KV_STR("url", url));
}

/* One try with everybody. QF_ENOTFOUND only if all of them said so. */
static qf_rc read_round(struct ring_store *store, const struct rg_keep_query *query,
                        const struct sources *sources, const struct sg_keep_range *range,
                        const struct sg_store_limit *limit, uint64_t *ret_len, struct qf_err *err)
{
    qf_rc worst = QF_ENOTFOUND;

    for (size_t i = 0; i < sources->count; i++) {
        struct sg_keep_answer answer = { 0 };
        struct qf_err own = { 0 };
        qf_rc rc = sg_keep_get(store->client, sources->urls[i], query, range, limit, ret_len,
                               &answer, &own);

        atomic_fetch_add_explicit(&store->base.requests, 1, memory_order_relaxed);
        if (rc != QF_ECANCELED && rc != QF_ETIMEOUT)
            note_answer(store, sources->nodes[i], sources->urls[i], rc == QF_OK || answer.status);
        if (rc == QF_OK)
            return QF_OK;
        if (i + 1 < sources->count)
            atomic_fetch_add_explicit(&store->base.retries, 1, memory_order_relaxed);
        if (rc == QF_ECANCELED || rc == QF_ETIMEOUT || rc == QF_ELIMIT || rc == QF_ENOSPC)
            return qf_err_set(err, rc, "%s", own.msg);
        if (rc != QF_ENOTFOUND) {
            worst = rc == QF_ECORRUPT ? rc : QF_EIO;
            *err = own;
            err->rc = worst;
        }
    }
    if (worst == QF_ENOTFOUND)
        (void)qf_err_set(err, worst, "%.*s: no owner has it", QF_STR_ARG(query->name));
    return worst;
}

qf_rc ring_read(struct ring_store *store, struct qf_str name, const struct sg_keep_range *range,
                const struct sg_store_limit *limit, uint64_t *ret_len, struct qf_err *err)
{
    struct sources *sources = qf_xcalloc(1, sizeof(*sources));
    struct rg_keep_query query = { .name = name };
    struct qf_err own = { 0 };
    int64_t age_ms = RING_AGE_MS;
    qf_rc rc = QF_OK;

    for (int i = 0; i < ROUNDS; i++) {
        own = (struct qf_err){ 0 };
        rc = ring_follow(store, age_ms, limit, &own);
        if (rc)
            break;
        sources->count = 0;
        find_sources(store, name, &query, sources);
        rc = read_round(store, &query, sources, range, limit, ret_len, &own);
        if (rc != QF_ENOTFOUND && rc != QF_EIO && rc != QF_ECORRUPT)
            break;
        age_ms = 0; /* it may have moved */
    }
    free(sources);
    if (rc == QF_OK)
        atomic_fetch_add_explicit(&store->base.bytes_read, *ret_len, memory_order_relaxed);
    return rc == QF_OK ? QF_OK : qf_err_set(err, rc, "%s", own.msg);
}
