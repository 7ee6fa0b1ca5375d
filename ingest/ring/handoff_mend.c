/* handoff_mend.c - what is kept is compared with the manifests; nodes are asked to fetch what is not kept for them. */
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ingest/ring/handoff_int.h"
#include "segments/store/keep_client.h"

#define PAUSE_MS 500
#define COMPARE_MS 60000
#define LIST_MS 30000
#define FRESH_MS 1000
/* So often, for about a minute, a mark is tried whose blob nothing names: it may have been put just now. */
#define UNNAMED_TRIES 6
#define FETCH_MS (INT64_C(5) * 60 * 1000)
/* Names that a node is asked to fetch at once. */
#define PIECE_NAMES 64

struct names {
    QF_VEC(struct qf_str) items; /* each allocated */
    uint32_t slot;
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->items.count; i++)
        free((char *)(uintptr_t)names->items.items[i].data);
    QF_VEC_DONE(&names->items);
}

static void add_name(struct names *names, struct qf_str name)
{
    QF_VEC_PUSH(&names->items, (struct qf_str){ qf_xmemdup0(name.data, name.len), name.len });
}

static struct sg_store_call call_of(struct in_handoff *h)
{
    return (struct sg_store_call){ .cancel = &h->stopping, .timeout_ms = LIST_MS };
}

/* Ask the manifests what changed, unless that was a moment ago. */
static bool refresh(struct in_handoff *h, struct qf_err *err)
{
    const struct sg_store_call call = call_of(h);

    if (h->listed_ms && qf_clock_mono_ms() - h->listed_ms < FRESH_MS)
        return true;
    if (sg_ring_refresh(h->store, &call, err) != QF_OK)
        return false;
    h->listed_ms = qf_clock_mono_ms();
    return true;
}

/* --- what left the manifests --- */

static void tell_listed(struct in_handoff *h, const struct names *names)
{
    for (size_t i = 0; i < names->items.count && !atomic_load(&h->stopping); i++) {
        struct qf_str name = names->items.items[i];
        bool listed = sg_ring_lists(h->store, name);

        qf_lock_take(h->lock);
        (void)in_handoff_step(
            h, (struct rg_handoff_event){ .kind = RG_HANDOFF_LISTED, .name = name, .ok = listed });
        qf_lock_drop(h->lock);
    }
}

/* Names first, then what the manifests say: what is named in between is found. False: it was not learned. */
static bool compare(struct in_handoff *h)
{
    QF_CLEANUP(names_done) struct names names = { 0 };
    char document[RG_DOC_NAME_TEXT + 1];
    struct qf_err err = { 0 };

    qf_lock_take(h->lock);
    for (size_t i = 0; i < rg_handoff_rows(h->core); i++) {
        struct qf_str name = rg_handoff_payload(h->core, i);

        if (name.len && !rg_doc_of_part(name, document)) /* no manifest names documents */
            add_name(&names, name);
    }
    qf_lock_drop(h->lock);
    if (!names.items.count)
        return true;
    h->listed_ms = 0;
    if (!refresh(h, &err)) {
        QF_LOG_DEBUG("hand-off cannot learn what manifests name", QF_KV_STR("error", err.msg));
        return false;
    }
    tell_listed(h, &names);
    return true;
}

/* --- marks --- */

/* A node that is asked to fetch. */
struct fetching {
    char target[RG_NAME_MAX + 1], url[RG_URL_MAX + 1];
    char sources[RG_KEEP_SOURCES_MAX][RG_URL_MAX + 1];
    size_t source_count;
    uint64_t epoch;
    bool owner, up;
};

/* With the lock. Old and new owners, and who was one and may have it still. */
static void find_fetching(const struct in_handoff *h, const struct rg_mark *mark,
                          struct fetching *f)
{
    const struct rg_slot *slot = &h->ring->slots[mark->slot % h->ring->slot_count];
    rg_nodes others = (rg_slot_everyone(slot) | slot->stale) & ~RG_NODE(mark->node);
    const struct in_target *target = &h->nodes[mark->node];

    memset(f, 0, sizeof(*f));
    memcpy(f->target, target->name, sizeof(f->target));
    memcpy(f->url, target->url, sizeof(f->url));
    f->epoch = slot->epoch;
    f->owner = rg_slot_everyone(slot) & RG_NODE(mark->node);
    f->up = target->up;
    for (uint8_t i = 0; i < RG_NODES_MAX && f->source_count < RG_KEEP_SOURCES_MAX; i++)
        if ((others & RG_NODE(i)) && h->nodes[i].url[0] && h->nodes[i].name[0])
            memcpy(f->sources[f->source_count++], h->nodes[i].url, RG_URL_MAX + 1);
}

static bool fetch_piece(struct in_handoff *h, const struct fetching *f, uint32_t slot,
                        struct qf_str *items, size_t count, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT, answer = QF_STRBUF_INIT;
    const struct sg_store_limit limit = { .cancel = &h->stopping,
                                          .deadline_ms = qf_clock_mono_ms() + FETCH_MS };
    const struct rg_keep_query query = { .slot = slot, .epoch = f->epoch };
    struct rg_names names = { .names = items, .count = count };
    struct sg_keep_answer said;
    struct rg_held held;
    bool whole;

    for (; names.source_count < f->source_count; names.source_count++)
        names.sources[names.source_count] = qf_str_from(f->sources[names.source_count]);
    rg_names_encode(&body, &names);
    if (sg_keep_ask(sg_ring_client(h->store), f->url, "POST", RG_KEEP_STREAM, &query,
                    qf_strbuf_view(&body), &limit, &answer, &said, err) != QF_OK)
        return false;
    if (rg_held_decode(qf_strbuf_view(&answer), &held) != QF_OK) {
        (void)qf_err_set(err, QF_EPROTO, "%s: an answer that cannot be read", f->target);
        return false;
    }
    whole = held.missing_count == 0;
    if (!whole)
        (void)qf_err_set(err, QF_ENOTFOUND, "%zu of %zu names are not with other owners",
                         held.missing_count, count);
    rg_held_done(&held);
    return whole;
}

static bool pick(void *ctx, struct qf_str name, uint32_t slot, uint64_t bytes)
{
    struct names *names = ctx;

    (void)bytes;
    if (slot == names->slot)
        add_name(names, name);
    return true;
}

/* True: the mark goes. What no manifest names needs no repair, unless it may be named yet: whoever puts it knows. */
static bool mend(struct in_handoff *h, const struct rg_mark *mark, const struct fetching *f,
                 struct qf_err *err)
{
    QF_CLEANUP(names_done) struct names names = { .slot = mark->slot };
    const struct sg_store_call call = call_of(h);
    bool whole = true;

    if (!f->owner || !f->target[0])
        return true;
    if (!f->up || !refresh(h, err))
        return false;
    if (!mark->name[0] && sg_ring_names(h->store, &call, pick, &names, err) != QF_OK)
        return false;
    if (mark->name[0] && !sg_ring_lists(h->store, qf_str_from(mark->name)))
        return mark->tries >= UNNAMED_TRIES;
    if (mark->name[0])
        add_name(&names, qf_str_from(mark->name));
    for (size_t i = 0; i < names.items.count && whole; i += PIECE_NAMES)
        whole = fetch_piece(h, f, mark->slot, names.items.items + i,
                            QF_MIN(names.items.count - i, (size_t)PIECE_NAMES), err);
    if (whole)
        atomic_fetch_add(&h->repaired, names.items.count);
    return whole;
}

/* False: none is due. */
static bool mend_next(struct in_handoff *h)
{
    const struct rg_mark *due;
    struct qf_err err = { 0 };
    struct fetching *f;
    struct rg_mark mark;
    bool done;

    qf_lock_take(h->lock);
    due = h->ring ? rg_repair_next(h->repair, qf_clock_mono_ms()) : NULL;
    if (!due) {
        qf_lock_drop(h->lock);
        return false;
    }
    mark = *due;
    f = qf_xmalloc(sizeof(*f));
    find_fetching(h, &mark, f);
    qf_lock_drop(h->lock);
    done = mend(h, &mark, f, &err);
    if (!done && f->up)
        QF_LOG_DEBUG("a node could not fetch what it lacks, will be asked again",
                     QF_KV_STR("node", f->target), QF_KV_STR("error", err.msg));
    free(f);
    qf_lock_take(h->lock);
    rg_repair_end(h->repair, mark.node, mark.slot, qf_str_from(mark.name), done,
                  qf_clock_mono_ms());
    qf_lock_drop(h->lock);
    return true;
}

void in_handoff_mend(void *arg)
{
    struct in_handoff *h = arg;
    int64_t compared_ms = INT64_MIN / 2;

    qf_thread_yield_to_others();
    while (!atomic_load(&h->stopping)) {
        while (!atomic_load(&h->stopping) && mend_next(h))
            ;
        if (qf_clock_mono_ms() - compared_ms >= COMPARE_MS && compare(h))
            compared_ms = qf_clock_mono_ms();
        qf_lock_take(h->lock);
        if (!atomic_load(&h->stopping))
            (void)qf_lock_wait(h->lock, PAUSE_MS);
        qf_lock_drop(h->lock);
    }
}
