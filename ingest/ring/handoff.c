/* handoff.c - hand-off begins and ends, follows the ring, keeps what puts leave behind. */
#include "ingest/ring/handoff.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ingest/ring/handoff_int.h"

#define TICK_MS_MIN 20
#define TICK_MS_MAX 250
#define SENDERS 4
#define LOOKERS 2
/* Sends that were given up and are not over yet wait in front of new ones: at most one of each. */
#define SENDS_MAX (2 * RG_NODES_MAX)

int64_t in_handoff_now(const struct in_handoff *h)
{
    return qf_clock_mono_ms() + h->clock_ms;
}

/* --- steps --- */

void in_handoff_mark(struct in_handoff *h, uint8_t node, uint32_t slot, struct qf_str name)
{
    char document[RG_DOC_NAME_TEXT + 1];

    if (rg_doc_of_part(name, document)) {
        if (h->document)
            h->document(h->document_ctx, slot, document);
        return; /* else keepers find out when they compare themselves */
    }
    atomic_fetch_add(&h->marked, 1);
    rg_repair_mark(h->repair, node, slot, name, qf_clock_mono_ms());
}

static void perform(struct in_handoff *h, const struct rg_handoff_effect *effect)
{
    bool pinned = h->pinned.len && qf_str_eq(effect->name, h->pinned);

    switch (effect->kind) {
    case RG_HANDOFF_STORE: /* were written before */
    case RG_HANDOFF_REF:
        break;
    case RG_HANDOFF_UNREF:
        if (!pinned)
            sp_unrefer(h->spool, h->nodes[effect->node].name, effect->name);
        break;
    case RG_HANDOFF_FREE:
        if (!pinned)
            sp_drop(h->spool, effect->name);
        break;
    case RG_HANDOFF_SEND:
        in_handoff_send(h, effect);
        break;
    case RG_HANDOFF_MARK:
        in_handoff_mark(h, effect->node, effect->slot, effect->name);
        break;
    }
}

qf_rc in_handoff_step(struct in_handoff *h, struct rg_handoff_event event)
{
    struct rg_handoff_effects effects;
    qf_rc rc;

    event.now_ms = in_handoff_now(h);
    rc = rg_handoff_step(h->core, &event, &effects);
    for (size_t i = 0; i < effects.count; i++)
        perform(h, &effects.items[i]);
    return rc;
}

/* --- the ring --- */

static uint8_t find(const struct in_handoff *h, const char *node)
{
    for (uint8_t i = 0; i < RG_NODES_MAX; i++)
        if (h->nodes[i].name[0] && strcmp(h->nodes[i].name, node) == 0)
            return i;
    return RG_NODES_MAX;
}

static void follow_node(struct in_handoff *h, uint8_t i)
{
    const struct rg_node *node = &h->ring->nodes[i];
    struct in_target *target = &h->nodes[i];
    bool there = node->state != RG_NODE_NONE && node->state != RG_NODE_REMOVED;

    if (target->name[0] && (!there || strcmp(target->name, node->name) != 0)) {
        (void)in_handoff_step(h,
                              (struct rg_handoff_event){ .kind = RG_HANDOFF_REMOVED, .node = i });
        rg_repair_forget(h->repair, i);
        target->name[0] = '\0';
        target->up = target->away = target->failing = false;
    }
    if (!there)
        return;
    memcpy(target->name, node->name, sizeof(target->name));
    memcpy(target->url, node->url, sizeof(target->url));
}

/* A reference of before this start. */
static void load_one(struct in_handoff *h, const struct in_early *early)
{
    uint8_t node = find(h, early->node);
    int64_t now = in_handoff_now(h);
    struct rg_handoff_event event = { .kind = RG_HANDOFF_ADD,
                                      .node = node,
                                      .name = early->part.name,
                                      .slot = early->part.slot,
                                      .bytes = early->part.bytes,
                                      .time_ms = QF_MIN(early->time_ms, now) };
    bool kept = false;

    if (node < RG_NODES_MAX && early->whole)
        kept = in_handoff_step(h, event) == QF_OK;
    if (node < RG_NODES_MAX && !kept) /* lost, or caps are less than they were */
        in_handoff_mark(h, node, early->part.slot, early->part.name);
    if (node == RG_NODES_MAX || !rg_handoff_has(h->core, node, early->part.name))
        sp_unrefer(h->spool, early->node, early->part.name);
}

static void load(struct in_handoff *h)
{
    for (size_t i = 0; i < h->early.count; i++)
        load_one(h, &h->early.items[i]);
    for (size_t i = 0; i < h->early.count; i++)
        if (!rg_handoff_stores(h->core, h->early.items[i].part.name))
            sp_drop(h->spool, h->early.items[i].part.name);
    if (h->early.count)
        QF_LOG_INFO("hand-off goes on with what was kept",
                    QF_KV_U64("references", rg_handoff_figures(h->core).references));
}

static void forget_early(struct in_handoff *h)
{
    for (size_t i = 0; i < h->early.count; i++) {
        free(h->early.items[i].node);
        free(h->early.items[i].name);
    }
    QF_VEC_DONE(&h->early);
}

static void follow_ring(struct in_handoff *h)
{
    struct rg_ring *ring = rg_board_ring(h->board, &h->applied);
    bool first = !h->ring;

    if (!ring || !ring->founded) {
        (void)rg_ring_free(ring);
        return;
    }
    (void)rg_ring_free(h->ring);
    h->ring = ring;
    for (uint8_t i = 0; i < RG_NODES_MAX; i++)
        follow_node(h, i);
    if (first) {
        load(h);
        forget_early(h);
    }
}

/* --- what puts say --- */

static bool begin_live(void *ctx, const char *name, struct qf_str blob)
{
    struct in_handoff *h = ctx;
    uint8_t node;
    bool begun = true;

    qf_lock_take(h->lock);
    node = find(h, name);
    if (node < RG_NODES_MAX)
        begun = in_handoff_step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_LIVE,
                                                              .node = node,
                                                              .name = blob }) != QF_EEXIST;
    qf_lock_drop(h->lock);
    return begun;
}

static void end_live(void *ctx, const char *name, struct qf_str blob, bool ok)
{
    struct in_handoff *h = ctx;
    uint8_t node;

    qf_lock_take(h->lock);
    node = find(h, name);
    if (node < RG_NODES_MAX)
        (void)in_handoff_step(
            h, (struct rg_handoff_event){
                   .kind = RG_HANDOFF_LIVE_ENDED, .node = node, .name = blob, .ok = ok });
    qf_lock_drop(h->lock);
}

static bool is_away(void *ctx, const char *name)
{
    struct in_handoff *h = ctx;
    uint8_t node;
    bool away;

    qf_lock_take(h->lock);
    node = find(h, name);
    away = node < RG_NODES_MAX && h->nodes[node].away;
    qf_lock_drop(h->lock);
    return away;
}

/* With the lock: files of @name are what the core knows again. */
static void unpin(struct in_handoff *h, struct qf_str name)
{
    h->pinned = QF_STR("");
    for (uint8_t i = 0; i < RG_NODES_MAX; i++)
        if (h->nodes[i].name[0] && !rg_handoff_has(h->core, i, name))
            sp_unrefer(h->spool, h->nodes[i].name, name);
    if (!rg_handoff_stores(h->core, name))
        sp_drop(h->spool, name);
}

/* With the lock: nothing could be written. */
static qf_rc do_without(struct in_handoff *h, uint8_t node, const struct sg_ring_blob *blob,
                        qf_rc rc, const struct qf_err *why, struct qf_err *err)
{
    if (atomic_fetch_add(&h->disk_failures, 1) % 100 == 0)
        QF_LOG_WARN("a payload cannot be kept for a node that is away",
                    QF_KV_STR("error", why->msg));
    if (h->options.policy == RG_BACKPRESSURE)
        return qf_err_set(err, rc, "%s", why->msg);
    in_handoff_mark(h, node, blob->slot, blob->name);
    return QF_OK;
}

/* With the lock. A node that missed something is not up before it was looked at. */
static qf_rc refer(struct in_handoff *h, struct rg_handoff_event event)
{
    struct in_target *target = &h->nodes[event.node];

    if (target->up && !rg_handoff_waiting(h->core, event.node)) {
        target->up = false;
        target->due_ms = 0;
        (void)in_handoff_step(
            h, (struct rg_handoff_event){ .kind = RG_HANDOFF_STATUS, .node = event.node });
    }
    return in_handoff_step(h, event);
}

/* Written first, outside of the lock: an ADD that is refused, or a crash, leaves files that are swept. */
static qf_rc keep(struct in_handoff *h, uint8_t node, const char *name,
                  const struct sg_ring_blob *blob, struct qf_err *err)
{
    const struct sp_part part = { blob->name, blob->slot, blob->bytes->size, blob->sum };
    struct rg_handoff_event event = { .kind = RG_HANDOFF_ADD,
                                      .node = node,
                                      .name = blob->name,
                                      .slot = blob->slot,
                                      .bytes = blob->bytes->size,
                                      .time_ms = in_handoff_now(h) };
    struct qf_err own = { 0 };
    qf_rc rc = sp_store(h->spool, &part, blob->bytes, &own);

    if (rc == QF_OK)
        rc = sp_refer(h->spool, name, &part, event.time_ms, &own);
    qf_lock_take(h->lock);
    if (strcmp(h->nodes[node].name, name) != 0)
        rc = QF_OK; /* it was removed meanwhile */
    else if (rc == QF_OK)
        rc = refer(h, event);
    else
        rc = do_without(h, node, blob, rc, &own, err);
    unpin(h, blob->name);
    if (strcmp(h->nodes[node].name, name) != 0)
        sp_unrefer(h->spool, name, blob->name);
    qf_lock_drop(h->lock);
    return rc;
}

static qf_rc add(void *ctx, const char *name, const struct sg_ring_blob *blob, struct qf_err *err)
{
    struct in_handoff *h = ctx;
    bool kept = false;
    uint8_t node;
    qf_rc rc = QF_OK;

    qf_lock_take(h->adding);
    qf_lock_take(h->lock);
    node = find(h, name);
    if (node == RG_NODES_MAX)
        rc = qf_err_set(err, QF_EUNAVAILABLE, "this node does not know %s of the ring yet", name);
    else if (rg_handoff_refuses(h->core, node, blob->name, blob->bytes->size))
        rc = QF_EBUSY;
    else
        kept = rg_handoff_has(h->core, node, blob->name);
    if (rc == QF_OK && !kept)
        h->pinned = blob->name;
    qf_lock_drop(h->lock);
    if (rc == QF_OK && !kept)
        rc = keep(h, node, name, blob, err);
    qf_lock_drop(h->adding);
    atomic_fetch_add(&h->refused, rc == QF_EBUSY);
    if (rc == QF_EBUSY)
        rc = qf_err_set(err, QF_EBUSY, "hand-off for %s is full: puts wait for it", name);
    return rc;
}

/* --- life --- */

static void found(void *ctx, const char *node, const struct sp_part *part, int64_t time_ms,
                  bool whole)
{
    struct in_handoff *h = ctx;
    struct in_early early = { .node = qf_xstrdup(node),
                              .name = qf_xmemdup0(part->name.data, part->name.len),
                              .part = *part,
                              .time_ms = time_ms,
                              .whole = whole };

    early.part.name = (struct qf_str){ early.name, part->name.len };
    QF_VEC_PUSH(&h->early, early);
}

/* Time: turns, rests, looks, ends of references. */
static void run_ticker(void *arg)
{
    struct in_handoff *h = arg;

    qf_lock_take(h->lock);
    while (!atomic_load(&h->stopping)) {
        int64_t now, wait;

        follow_ring(h);
        in_handoff_look(h);
        (void)in_handoff_step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_TICK });
        now = in_handoff_now(h);
        wait = rg_handoff_deadline(h->core, now) - now;
        wait = QF_MAX(wait, (int64_t)TICK_MS_MIN);
        (void)qf_lock_wait(h->lock, QF_MIN(wait, (int64_t)TICK_MS_MAX));
    }
    qf_lock_drop(h->lock);
}

static qf_rc open_parts(struct in_handoff *h, struct qf_err *err)
{
    const struct sp_options spool = { h->options.dir, h->options.reserve_bytes };
    uint64_t damaged = 0;
    qf_rc rc = sg_store_open(&(struct sg_store_options){ .url = h->options.store }, &h->store, err);

    if (rc == QF_OK)
        rc = sp_open(&spool, found, h, &damaged, &h->spool, err);
    atomic_store(&h->damaged, damaged);
    if (damaged)
        QF_LOG_WARN(
            "references of hand-off are damaged: what they were of is found when nodes compare "
            "themselves with the manifests",
            QF_KV_U64("references", damaged));
    return rc;
}

static qf_rc start_threads(struct in_handoff *h, struct qf_err *err)
{
    h->senders = qf_pool_new("handoff-send", SENDERS, SENDS_MAX);
    h->lookers = qf_pool_new("handoff-look", LOOKERS, RG_NODES_MAX);
    if (h->senders && h->lookers) {
        h->ticker = qf_thread_start("handoff", run_ticker, h);
        h->mender = qf_thread_start("handoff-mend", in_handoff_mend, h);
    }
    return h->ticker && h->mender ? QF_OK
                                  : qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
}

qf_rc in_handoff_start(const struct in_handoff_options *options, struct rg_board *board,
                       struct in_handoff **ret_handoff, struct qf_err *err)
{
    const struct rg_handoff_options core = { .node_bytes = options->node_bytes,
                                             .store_bytes = options->store_bytes,
                                             .policy = options->policy,
                                             .quantum = options->quantum,
                                             .rest_ms = options->rest_ms,
                                             .turns = SENDERS };
    struct in_handoff *h = qf_xcalloc(1, sizeof(*h));
    qf_rc rc;

    h->options = *options;
    h->options.dir = qf_xstrdup(options->dir);
    h->options.store = qf_xstrdup(options->store);
    h->board = board;
    h->clock_ms = qf_clock_wall_ms() - qf_clock_mono_ms();
    h->lock = qf_lock_new();
    h->adding = qf_lock_new();
    h->core = rg_handoff_new(&core);
    h->repair = rg_repair_new(&(struct rg_repair_options){ 0 });
    h->hooks = (struct sg_ring_handoff){ h, begin_live, end_live, is_away, add };
    rc = open_parts(h, err);
    if (rc == QF_OK)
        rc = start_threads(h, err);
    if (rc != QF_OK)
        h = in_handoff_stop(h);
    *ret_handoff = h;
    return rc;
}

struct in_handoff *in_handoff_stop(struct in_handoff *h)
{
    if (!h)
        return NULL;
    qf_lock_take(h->lock);
    atomic_store(&h->stopping, true);
    qf_lock_wake_all(h->lock);
    qf_lock_drop(h->lock);
    (void)qf_thread_join(h->ticker);
    (void)qf_thread_join(h->mender);
    h->senders = qf_pool_free(h->senders);
    h->lookers = qf_pool_free(h->lookers);
    h->spool = sp_close(h->spool);
    h->store = sg_store_free(h->store);
    h->core = rg_handoff_free(h->core);
    h->repair = rg_repair_free(h->repair);
    h->ring = rg_ring_free(h->ring);
    forget_early(h);
    h->lock = qf_lock_free(h->lock);
    h->adding = qf_lock_free(h->adding);
    free((char *)h->options.dir);
    free((char *)h->options.store);
    free(h);
    return NULL;
}

const struct sg_ring_handoff *in_handoff_hooks(const struct in_handoff *h)
{
    return h ? &h->hooks : NULL;
}

void in_handoff_set_documents(struct in_handoff *h, in_handoff_document *fn, void *ctx)
{
    qf_lock_take(h->lock);
    h->document = fn;
    h->document_ctx = ctx;
    qf_lock_drop(h->lock);
}

void in_handoff_figures(struct in_handoff *h, struct in_handoff_figures *ret)
{
    *ret = (struct in_handoff_figures){ 0 };
    if (!h)
        return;
    qf_lock_take(h->lock);
    ret->of = rg_handoff_figures(h->core);
    ret->marks = rg_repair_count(h->repair);
    for (uint8_t i = 0; i < RG_NODES_MAX; i++)
        ret->away += h->nodes[i].away && rg_handoff_waiting(h->core, i) > 0;
    if (ret->of.oldest_ms != INT64_MAX)
        ret->oldest_ms = in_handoff_now(h) - ret->of.oldest_ms;
    qf_lock_drop(h->lock);
    ret->sent_bytes = atomic_load(&h->sent_bytes);
    ret->failures = atomic_load(&h->failures);
    ret->needless = atomic_load(&h->needless);
    ret->of.delivered -= QF_MIN(ret->needless, ret->of.delivered);
    ret->of.refused += atomic_load(&h->refused);
    ret->disk_failures = atomic_load(&h->disk_failures);
    ret->damaged = atomic_load(&h->damaged);
    ret->marked = atomic_load(&h->marked);
    ret->repaired = atomic_load(&h->repaired);
}
