/* handoff_send.c - nodes are looked at, and sent what they lack. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ingest/docs/replicas.h"
#include "ingest/ring/handoff_int.h"
#include "segments/store/keep_client.h"

#define LOOK_MS 3000
#define LOOK_EVERY_MS 1000
#define LOOK_EVERY_MS_MAX 10000
#define SEND_MS (INT64_C(5) * 60 * 1000)
/* A send, or a look, of which the log says that it took long. */
#define SLOW_MS 5000
#define PAUSE_MS 100

/* A blob on its way to a node. */
struct sending {
    struct in_handoff *handoff;
    uint8_t node;
    uint64_t send;
    char target[RG_NAME_MAX + 1], url[RG_URL_MAX + 1];
    char name[RG_HANDOFF_NAME_MAX + 1];
    uint64_t epoch;
    bool owner; /* the node is one of its slot's */
};

struct looking {
    struct in_handoff *handoff;
    uint8_t node;
    char target[RG_NAME_MAX + 1], url[RG_URL_MAX + 1];
};

/* --- sends --- */

/* With the lock. */
static void report(const struct sending *s, enum rg_handoff_event_kind kind, bool ok)
{
    (void)in_handoff_step(s->handoff, (struct rg_handoff_event){ .kind = kind,
                                                                 .node = s->node,
                                                                 .name = qf_str_from(s->name),
                                                                 .ok = ok,
                                                                 .send = s->send });
}

/* Bytes per second that the node may get: the time is spent here, so that its next one waits. */
static void pace(const struct in_handoff *h, uint64_t bytes, int64_t took_ms)
{
    uint64_t left = h->options.rate ? bytes * 1000 / h->options.rate : 0;

    left -= QF_MIN(left, (uint64_t)took_ms);
    while (left && !atomic_load(&h->stopping)) {
        uint64_t step = QF_MIN(left, (uint64_t)PAUSE_MS);

        (void)poll(NULL, 0, (int)step);
        left -= step;
    }
}

/* The payload cannot be had any more: unless the reference went just now, everybody who lacks it is marked. */
static void lose(const struct sending *s, const struct qf_err *err)
{
    struct in_handoff *h = s->handoff;

    qf_lock_take(h->lock);
    if (rg_handoff_has(h->core, s->node, qf_str_from(s->name))) {
        QF_LOG_WARN("what hand-off kept is damaged: nodes that lack it fetch it from others",
                    QF_KV_STR("name", s->name), QF_KV_STR("error", err->msg));
        report(s, RG_HANDOFF_LOST, false);
    }
    qf_lock_drop(h->lock);
}

static void note_slow(const struct sending *s, uint64_t bytes, int64_t ms, qf_rc rc)
{
    if (ms >= SLOW_MS)
        QF_LOG_WARN("slow hand-off", QF_KV_STR("node", s->target), QF_KV_STR("name", s->name),
                    QF_KV_U64("bytes", bytes), QF_KV_I64("ms", ms),
                    QF_KV_STR("result", rc == QF_OK ? "ok" : qf_rc_text(rc)));
}

static qf_rc put_blob(const struct sending *s, const struct sp_part *part, int fd,
                      const struct sg_store_limit *limit, struct qf_err *err)
{
    const struct rg_keep_query query = {
        .name = part->name, .slot = part->slot, .epoch = s->epoch, .sum = part->sum
    };
    const struct sg_store_bytes bytes = { .fd = fd, .size = part->bytes };
    struct sg_keep_answer answer;

    return sg_keep_put(sg_ring_client(s->handoff->store), s->url, &query, &bytes, limit, &answer,
                       err);
}

/* A write of the document @name becomes part of what the node has. */
static qf_rc join_document(const struct sending *s, const struct sp_part *part, const char *name,
                           int fd, const struct sg_store_limit *limit, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *data = qf_xmalloc(RG_SHEET_BYTES_MAX);
    QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
    const struct rg_keep_query query = { .name = qf_str_from(name),
                                         .slot = part->slot,
                                         .epoch = s->epoch };
    int status;

    if (part->bytes > RG_SHEET_BYTES_MAX ||
        pread(fd, data, part->bytes, 0) != (ssize_t)part->bytes ||
        rg_sheet_decode((struct qf_str){ data, part->bytes }, &sheet) != QF_OK)
        return qf_err_set(err, QF_ECORRUPT, "hand-off: a document that cannot be read");
    return in_replica_join(sg_ring_client(s->handoff->store), s->url, &query, &sheet, limit,
                           &status, err);
}

static qf_rc put(const struct sending *s, const struct sp_part *part, int fd, struct qf_err *err)
{
    struct in_handoff *h = s->handoff;
    const struct sg_store_limit limit = { .cancel = &h->stopping,
                                          .deadline_ms = qf_clock_mono_ms() + SEND_MS };
    int64_t began_ms = qf_clock_mono_ms(), took_ms;
    char document[RG_DOC_NAME_TEXT + 1];
    qf_rc rc = rg_doc_of_part(part->name, document)
                   ? join_document(s, part, document, fd, &limit, err)
                   : put_blob(s, part, fd, &limit, err);

    took_ms = qf_clock_mono_ms() - began_ms;
    note_slow(s, part->bytes, took_ms, rc);
    if (rc == QF_OK) {
        atomic_fetch_add(&h->sent_bytes, part->bytes);
        pace(h, part->bytes, took_ms);
    }
    return rc;
}

static qf_rc send_blob(const struct sending *s, struct qf_err *err)
{
    struct in_handoff *h = s->handoff;
    struct sp_part part;
    int fd;
    qf_rc rc;

    if (atomic_load(&h->stopping))
        return QF_ECANCELED;
    if (!s->owner) {
        atomic_fetch_add(&h->needless, 1);
        return QF_OK;
    }
    rc = sp_take(h->spool, s->target, qf_str_from(s->name), &part, &fd, err);
    if (rc == QF_ENOTFOUND || rc == QF_ECORRUPT)
        lose(s, err);
    if (rc != QF_OK)
        return rc;
    rc = put(s, &part, fd, err);
    (void)close(fd);
    return rc;
}

/* With the lock. */
static void note_failure(struct in_handoff *h, const struct sending *s, qf_rc rc,
                         const struct qf_err *err)
{
    struct in_target *target = &h->nodes[s->node];

    if (rc == QF_OK || rc == QF_ECANCELED) {
        target->failing &= rc != QF_OK;
        return;
    }
    atomic_fetch_add(&h->failures, 1);
    if (!target->failing)
        QF_LOG_WARN("a node cannot be sent what it missed, will be tried again",
                    QF_KV_STR("node", s->target), QF_KV_STR("error", err->msg));
    target->failing = true;
    target->due_ms = 0; /* is it there at all? */
}

static void run_send(void *arg)
{
    struct sending *s = arg;
    struct in_handoff *h = s->handoff;
    struct qf_err err = { 0 };
    qf_rc rc = send_blob(s, &err);

    qf_lock_take(h->lock);
    h->nodes[s->node].sending--;
    note_failure(h, s, rc, &err);
    if (rc != QF_ECANCELED)
        report(s, RG_HANDOFF_SENT, rc == QF_OK);
    qf_lock_drop(h->lock);
    free(s);
}

void in_handoff_send(struct in_handoff *h, const struct rg_handoff_effect *effect)
{
    const struct rg_slot *slot = &h->ring->slots[effect->slot % h->ring->slot_count];
    struct sending *s = qf_xcalloc(1, sizeof(*s));
    struct in_target *target = &h->nodes[effect->node];

    s->handoff = h;
    s->node = effect->node;
    s->send = effect->send;
    memcpy(s->target, target->name, sizeof(s->target));
    memcpy(s->url, target->url, sizeof(s->url));
    memcpy(s->name, effect->name.data, effect->name.len);
    s->epoch = slot->epoch;
    s->owner = rg_slot_everyone(slot) & RG_NODE(effect->node);
    target->sending++;
    if (qf_pool_submit(h->senders, run_send, s))
        return;
    /* As many as there can be are under way: a bug, or it is stopping. The node's next coming up begins anew. */
    target->sending--;
    free(s);
}

/* --- looks --- */

/* With the lock. A node that is sent something of before it went down is not up before that is over: one send at a time. */
static void looked(struct in_handoff *h, const struct looking *l, bool up)
{
    struct in_target *target = &h->nodes[l->node];

    target->looking = false;
    if (strcmp(target->name, l->target) != 0)
        return;
    target->away = !up;
    target->wait_ms = up ? LOOK_EVERY_MS : QF_MIN(2 * target->wait_ms, (int64_t)LOOK_EVERY_MS_MAX);
    target->due_ms = qf_clock_mono_ms() + target->wait_ms;
    if (up == target->up || (up && target->sending))
        return;
    target->up = up;
    if (up)
        rg_repair_hurry(h->repair, l->node, qf_clock_mono_ms());
    if (rg_handoff_waiting(h->core, l->node))
        QF_LOG_INFO(up ? "a node is there: it gets what it missed" : "a node does not answer",
                    QF_KV_STR("node", l->target),
                    QF_KV_U64("references", rg_handoff_waiting(h->core, l->node)));
    (void)in_handoff_step(
        h, (struct rg_handoff_event){ .kind = RG_HANDOFF_STATUS, .node = l->node, .up = up });
}

static void run_look(void *arg)
{
    struct looking *l = arg;
    struct in_handoff *h = l->handoff;
    const struct sg_store_limit limit = { .cancel = &h->stopping,
                                          .deadline_ms = qf_clock_mono_ms() + LOOK_MS };
    const struct rg_keep_query query = { 0 };
    struct sg_keep_answer answer = { 0 };
    qf_rc rc = sg_keep_ask(sg_ring_client(h->store), l->url, "GET", RG_KEEP_STATUS, &query,
                           QF_STR(""), &limit, NULL, &answer, NULL);

    qf_lock_take(h->lock);
    looked(h, l, rc == QF_OK && answer.incarnation && answer.told);
    qf_lock_wake_all(h->lock);
    qf_lock_drop(h->lock);
    free(l);
}

static void look_at(struct in_handoff *h, uint8_t node)
{
    struct in_target *target = &h->nodes[node];
    struct looking *l = qf_xcalloc(1, sizeof(*l));

    l->handoff = h;
    l->node = node;
    memcpy(l->target, target->name, sizeof(l->target));
    memcpy(l->url, target->url, sizeof(l->url));
    if (!target->wait_ms)
        target->wait_ms = LOOK_EVERY_MS;
    target->looking = qf_pool_submit(h->lookers, run_look, l);
    if (!target->looking)
        free(l);
}

void in_handoff_look(struct in_handoff *h)
{
    int64_t now_ms = qf_clock_mono_ms();

    for (uint8_t i = 0; i < RG_NODES_MAX; i++) {
        const struct in_target *target = &h->nodes[i];

        if (target->url[0] && target->name[0] && !target->looking && now_ms >= target->due_ms &&
            (target->away || rg_handoff_waiting(h->core, i) || rg_repair_has(h->repair, i)))
            look_at(h, i);
    }
}
