/* ring_put.c - a blob to all owners at once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ring/core/keep.h"
#include "segments/store/ring_int.h"

/* A ring of this age is good enough to begin with. */
#define RING_AGE_MS 5000
#define ROUNDS 8
#define PAUSE_MS 250
/* Those who are behind the quorum have so long. */
#define BEHIND_MS 60000
/* With hand-off: so long others are waited for, until they count as missing. */
#define STRAGGLE_MS 500
/* A blob that is replayed to a node this moment is sent to it after that, or after this long. */
#define REPLAYED_MS 5000
#define LOOK_MS 20

/* One owner of a put. */
struct ring_copy {
    struct ring_put *put;
    struct qf_thread *thread;
    uint8_t node;
    bool ended; /* behind the put's lock */
    char name[RG_NAME_MAX + 1], url[RG_URL_MAX + 1];
};

/* A put, until all owners have answered. */
struct ring_put {
    struct ring_store *store;
    struct ring_put *next;
    bool used; /* by who put it; behind the store's lock */
    char *name;
    struct sg_store_bytes bytes; /* its own */
    struct rg_keep_query query;
    struct sg_store_limit limit;
    struct qf_lock *lock; /* of the rest */
    struct rg_tally tally;
    size_t left; /* owners that have not answered */
    struct qf_err err;
    struct ring_copy copies[2 * RG_COPIES_MAX];
    size_t copy_count;
};

static void put_free(struct ring_put *put)
{
    for (size_t i = 0; i < put->copy_count; i++)
        (void)qf_thread_join(put->copies[i].thread);
    if (put->bytes.fd >= 0)
        (void)close(put->bytes.fd);
    free((char *)(uintptr_t)put->bytes.data);
    free(put->name);
    (void)qf_lock_free(put->lock);
    free(put);
}

/* Let hand-off know. False: it does not hear of the end, for it sends the same blob to the same node for too long. */
static bool begin_copy(const struct ring_copy *copy)
{
    const struct ring_put *put = copy->put;
    const struct sg_ring_handoff *handoff = &put->store->handoff;

    if (!handoff->add)
        return false;
    for (int64_t waited = 0; waited < REPLAYED_MS; waited += LOOK_MS) {
        if (handoff->begin(handoff->ctx, copy->name, put->query.name))
            return true;
        if (sg_store_limit_check(&put->limit, put->query.name, NULL))
            break;
        (void)poll(NULL, 0, LOOK_MS);
    }
    return false;
}

static qf_rc send_copy(const struct ring_copy *copy, struct qf_err *err)
{
    const struct ring_put *put = copy->put;
    const struct sg_ring_handoff *handoff = &put->store->handoff;
    struct sg_keep_answer answer;
    bool told;
    qf_rc rc;

    if (!copy->url[0])
        return qf_err_set(err, QF_EUNAVAILABLE, "nobody said where node %u is", copy->node);
    told = begin_copy(copy);
    rc = sg_keep_put(put->store->client, copy->url, &put->query, &put->bytes, &put->limit, &answer,
                     err);
    if (told)
        handoff->end(handoff->ctx, copy->name, put->query.name, rc == QF_OK);
    return rc;
}

static void run_copy(void *arg)
{
    struct ring_copy *copy = arg;
    struct ring_put *put = copy->put;
    struct qf_err err = { 0 };
    enum rg_answer heard = RG_ANSWER_HAS;
    qf_rc rc = send_copy(copy, &err);

    if (rc)
        heard = rc == QF_EGONE ? RG_ANSWER_OLD : RG_ANSWER_FAILED;
    qf_lock_take(put->lock);
    rg_tally_hear(&put->tally, copy->node, heard);
    if (rc && !put->err.rc)
        put->err = err;
    copy->ended = true;
    put->left--;
    qf_lock_wake_all(put->lock);
    qf_lock_drop(put->lock);
}

/* Bytes that stay while others behind the quorum still take them. */
static qf_rc own_bytes(struct ring_put *put, const struct sg_store_bytes *bytes, struct qf_err *err)
{
    put->bytes = (struct sg_store_bytes){ .fd = -1, .size = bytes->size };
    if (bytes->data) {
        put->bytes.data = qf_xmemdup0(bytes->data, bytes->size);
        return QF_OK;
    }
    put->bytes.fd = fcntl(bytes->fd, F_DUPFD_CLOEXEC, 0);
    return put->bytes.fd >= 0 ? QF_OK : qf_err_set(err, QF_EIO, "cannot put: %s", strerror(errno));
}

/* With the ring's lock: who has to get it. */
static void choose_owners(struct ring_store *store, struct ring_put *put)
{
    rg_nodes everyone;

    rg_tally_begin(&put->tally, store->ring, put->query.slot, RG_LEVEL_QUORUM);
    put->query.epoch = put->tally.slot.epoch;
    everyone = rg_slot_everyone(&put->tally.slot);
    for (uint8_t node = 0; node < RG_NODES_MAX; node++) {
        struct ring_copy *copy = &put->copies[put->copy_count];

        if (!(everyone & RG_NODE(node)) || put->copy_count == QF_COUNT_OF(put->copies))
            continue;
        copy->put = put;
        copy->node = node;
        memcpy(copy->url, store->ring->nodes[node].url, sizeof(copy->url));
        memcpy(copy->name, store->ring->nodes[node].name, sizeof(copy->name));
        put->copy_count++;
    }
}

static qf_rc begin_put(struct ring_store *store, struct qf_str name,
                       const struct sg_store_bytes *bytes, const struct rg_sum *sum,
                       struct ring_put **ret_put, struct qf_err *err)
{
    struct ring_put *put = qf_xcalloc(1, sizeof(*put));
    qf_rc rc;

    put->store = store;
    put->used = true;
    put->lock = qf_lock_new();
    put->name = qf_xmemdup0(name.data, name.len);
    put->query = (struct rg_keep_query){ .name = { put->name, name.len }, .sum = *sum };
    put->limit = (struct sg_store_limit){ .cancel = &store->closing,
                                          .deadline_ms = qf_clock_mono_ms() + BEHIND_MS };
    rc = own_bytes(put, bytes, err);
    if (rc) {
        put_free(put);
        return rc;
    }
    qf_lock_take(store->lock);
    put->query.slot = rg_blob_slot(name, RG_PLACEMENTS, store->ring->slot_count);
    choose_owners(store, put);
    put->next = store->puts;
    store->puts = put;
    store->put_count++;
    qf_lock_drop(store->lock);
    *ret_put = put;
    return QF_OK;
}

static void start_copies(struct ring_put *put)
{
    put->left = put->copy_count;
    for (size_t i = 0; i < put->copy_count; i++) {
        struct ring_copy *copy = &put->copies[i];

        copy->thread = qf_thread_start("ring-put", run_copy, copy);
        if (!copy->thread)
            run_copy(copy);
    }
}

/* Until there is enough, or there cannot be. */
static enum rg_tally_state wait_for(struct ring_put *put, const struct sg_store_limit *limit,
                                    struct qf_err *err)
{
    struct rg_ring *rules = put->store->rules;
    enum rg_tally_state state;

    qf_lock_take(put->lock);
    for (;;) {
        state = rg_tally_state(&put->tally, rules);
        if (state != RG_TALLY_WAITS || put->left == 0 ||
            sg_store_limit_check(limit, put->query.name, err))
            break;
        (void)qf_lock_wait(put->lock, sg_store_limit_left(limit, 50));
    }
    if (state != RG_TALLY_ENOUGH)
        *err = err->rc ? *err : put->err;
    qf_lock_drop(put->lock);
    return state;
}

/* With the lock: somebody who is not away may still take it. */
static bool somebody_may(struct ring_put *put)
{
    const struct sg_ring_handoff *handoff = &put->store->handoff;

    for (size_t i = 0; i < put->copy_count; i++)
        if (!put->copies[i].ended && !handoff->away(handoff->ctx, put->copies[i].name))
            return true;
    return false;
}

/* There is enough: hand off what the others lack. A put that is behind goes on, and takes the reference back if it succeeds. */
static qf_rc hand_off(struct ring_put *put, const struct sg_store_limit *limit, struct qf_err *err)
{
    const struct sg_ring_handoff *handoff = &put->store->handoff;
    const struct sg_ring_blob blob = { .name = put->query.name,
                                       .slot = put->query.slot,
                                       .bytes = &put->bytes,
                                       .sum = put->query.sum };
    int64_t until_ms = qf_clock_mono_ms() + STRAGGLE_MS;
    rg_nodes missing;
    qf_rc rc = QF_OK;

    qf_lock_take(put->lock);
    while (put->left && somebody_may(put) && qf_clock_mono_ms() < until_ms &&
           !sg_store_limit_check(limit, put->query.name, NULL))
        (void)qf_lock_wait(put->lock, LOOK_MS);
    missing = rg_tally_missing(&put->tally);
    qf_lock_drop(put->lock);
    for (size_t i = 0; i < put->copy_count && !rc; i++) {
        const struct ring_copy *copy = &put->copies[i];
        bool has;

        if (!(missing & RG_NODE(copy->node)))
            continue;
        rc = handoff->add(handoff->ctx, copy->name, &blob, err);
        qf_lock_take(put->lock);
        has = put->tally.has & RG_NODE(copy->node);
        qf_lock_drop(put->lock);
        if (has) /* meanwhile */
            handoff->end(handoff->ctx, copy->name, put->query.name, true);
    }
    return rc;
}

/* Puts that are over go; of too many that are not the oldest is waited for. */
static void reap(struct ring_store *store, size_t most)
{
    struct ring_put *over = NULL, **at;

    qf_lock_take(store->lock);
    at = &store->puts;
    while (*at) {
        struct ring_put *put = *at;
        bool ended;

        qf_lock_take(put->lock);
        ended = put->left == 0;
        qf_lock_drop(put->lock);
        if (put->used || (!ended && (store->put_count <= most || put->next))) {
            at = &put->next;
            continue;
        }
        *at = put->next;
        put->next = over;
        over = put;
        store->put_count--;
    }
    qf_lock_drop(store->lock);
    while (over) {
        struct ring_put *next = over->next;

        put_free(over);
        over = next;
    }
}

void ring_puts_done(struct ring_store *store)
{
    while (store->puts)
        reap(store, 0);
}

/* One round: with the ring as it is known. */
static qf_rc place_once(struct ring_store *store, struct qf_str name,
                        const struct sg_store_bytes *bytes, const struct rg_sum *sum,
                        const struct sg_store_limit *limit, uint32_t *ret_slot, uint64_t *ret_epoch,
                        enum rg_tally_state *ret_state, struct qf_err *err)
{
    struct ring_put *put;
    qf_rc rc = begin_put(store, name, bytes, sum, &put, err);

    if (rc)
        return rc;
    *ret_slot = put->query.slot;
    *ret_epoch = put->tally.epoch;
    start_copies(put);
    *ret_state = wait_for(put, limit, err);
    if (*ret_state == RG_TALLY_ENOUGH && store->handoff.add)
        rc = hand_off(put, limit, err);
    qf_lock_take(store->lock);
    put->used = false;
    qf_lock_drop(store->lock);
    return rc == QF_OK && (err->rc == QF_ECANCELED || err->rc == QF_ETIMEOUT) ? err->rc : rc;
}

qf_rc ring_place(struct ring_store *store, struct qf_str name, const struct sg_store_bytes *bytes,
                 const struct sg_store_limit *limit, uint32_t *ret_slot, uint64_t *ret_epoch,
                 struct qf_err *err)
{
    enum rg_tally_state state = RG_TALLY_WAITS;
    struct qf_err why = { 0 };
    struct rg_sum sum;
    int64_t age_ms = RING_AGE_MS;
    qf_rc rc;

    if (!rg_blob_name_valid(name))
        return qf_err_set(err, QF_EINVAL, "\"%.*s\" is not a name of a blob", QF_STR_ARG(name));
    rc = sg_keep_sum(bytes, &sum, err);
    for (int i = 0; i < ROUNDS && !rc; i++) {
        why = (struct qf_err){ 0 };
        rc = ring_follow(store, age_ms, limit, err);
        if (rc)
            break;
        rc = place_once(store, name, bytes, &sum, limit, ret_slot, ret_epoch, &state, &why);
        reap(store, RING_PUTS_MAX);
        if (rc || state == RG_TALLY_ENOUGH)
            break;
        age_ms = 0; /* owners may be others by now */
        if (state == RG_TALLY_FAILED && i >= 1)
            break;
        (void)poll(NULL, 0, (int)sg_store_limit_left(limit, PAUSE_MS));
    }
    if (rc == QF_OK && state == RG_TALLY_ENOUGH)
        return QF_OK;
    if (rc)
        return qf_err_set(err, rc, "%s", why.rc ? why.msg : "cannot put");
    return qf_err_set(err, QF_EUNAVAILABLE, "%.*s: no majority of its owners has it: %s",
                      QF_STR_ARG(name), why.msg);
}

static qf_rc place_counted(struct sg_store *base, struct qf_str name,
                           const struct sg_store_bytes *bytes, const struct sg_store_call *call,
                           uint32_t *ret_slot, uint64_t *ret_epoch, struct qf_err *err)
{
    struct sg_store_limit limit = sg_store_limit_of(call);
    qf_rc rc = ring_place(ring_of(base), name, bytes, &limit, ret_slot, ret_epoch, err);

    if (rc)
        atomic_fetch_add_explicit(&base->failures, 1, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&base->bytes_written, bytes->size, memory_order_relaxed);
    return rc;
}

qf_rc sg_ring_place(struct sg_store *base, struct qf_str name, int fd, uint64_t size,
                    const struct sg_store_call *call, uint32_t *ret_slot, uint64_t *ret_epoch,
                    struct qf_err *err)
{
    const struct sg_store_bytes bytes = { .fd = fd, .size = size };

    return place_counted(base, name, &bytes, call, ret_slot, ret_epoch, err);
}

qf_rc sg_ring_place_data(struct sg_store *base, struct qf_str name, struct qf_str data,
                         const struct sg_store_call *call, uint32_t *ret_slot, uint64_t *ret_epoch,
                         struct qf_err *err)
{
    const struct sg_store_bytes bytes = { .data = data.data, .fd = -1, .size = data.len };

    return place_counted(base, name, &bytes, call, ret_slot, ret_epoch, err);
}

qf_rc sg_ring_place_of(struct sg_store *base, struct qf_str name, const struct sg_store_call *call,
                       uint32_t *ret_slot, uint64_t *ret_epoch, struct qf_err *err)
{
    struct ring_store *store = ring_of(base);
    struct sg_store_limit limit = sg_store_limit_of(call);
    qf_rc rc = ring_follow(store, RING_AGE_MS, &limit, err);

    if (rc)
        return rc;
    qf_lock_take(store->lock);
    *ret_slot = rg_blob_slot(name, RG_PLACEMENTS, store->ring->slot_count);
    *ret_epoch = store->ring->epoch;
    qf_lock_drop(store->lock);
    return QF_OK;
}

bool sg_ring_placed_too_early(int64_t placed_ms)
{
    return rg_put_is_old(placed_ms, qf_clock_mono_ms(), RG_BLOB_GRACE_MS);
}
