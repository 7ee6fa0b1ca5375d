/* peers.c - messages, forwarded asks and the joining of new nodes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/log.h"
#include "queue/log/bytes.h"
#include "queue/node/ask_int.h"
#include "queue/node/wire.h"
#include "queue/peer/wire.h"

#define METHOD_ASK "ask"
#define METHOD_JOIN "join"

const char *qn_name_of(const struct qn_queue *queue, uint64_t id)
{
    struct qn_node *node = queue->node;
    const struct qc_member *member;

    if (id == node->incarnation)
        return node->name;
    qc_members(queue->core, &node->members_scratch);
    member = qc_members_find(&node->members_scratch, id);
    if (member)
        return member->name;
    for (size_t i = 0; i < QF_COUNT_OF(node->known); i++)
        if (node->known[i].id == id)
            return node->known[i].name;
    return NULL;
}

/* A new member hears from a leader that no configuration of its own names. */
static void note_name(struct qn_node *node, uint64_t id, const char *name)
{
    struct qn_known *place = &node->known[node->known_next];

    for (size_t i = 0; i < QF_COUNT_OF(node->known); i++)
        if (node->known[i].id == id)
            place = &node->known[i];
    if (place == &node->known[node->known_next])
        node->known_next = (node->known_next + 1) % QF_COUNT_OF(node->known);
    place->id = id;
    (void)snprintf(place->name, sizeof(place->name), "%s", name);
}

/* --- messages --- */

static void drop_message(struct qn_node *node)
{
    atomic_fetch_add(&node->figures.messages_dropped, 1);
}

static void on_message(struct qn_node *node, const struct qn_note *note)
{
    struct qn_queue *queue = qn_queue_by_address(node, note->what);
    struct qp_entries entries = { 0 };
    struct qc_message message;

    if (!queue || !queue->core ||
        qp_message_decode((struct qf_str){ note->bytes, note->len }, &entries, &message, NULL) !=
            QF_OK) {
        drop_message(node);
    } else {
        note_name(node, message.from, note->from);
        qn_step(queue, &(struct qc_event){ .kind = QC_EVENT_MESSAGE, .message = &message });
    }
    qp_entries_done(&entries);
}

/* --- notes from the transport's thread --- */

static struct qn_note *new_note(enum qn_note_kind kind, const char *from, const char *what,
                                struct qf_str bytes)
{
    struct qn_note *note = qf_xcalloc(1, sizeof(*note));

    note->kind = kind;
    (void)snprintf(note->from, sizeof(note->from), "%s", from);
    (void)snprintf(note->what, sizeof(note->what), "%s", what);
    note->bytes = qf_xmemdup0(bytes.data, bytes.len);
    note->len = bytes.len;
    return note;
}

static void free_note(struct qn_note *note)
{
    free(note->bytes);
    free(note);
}

void qn_hear(struct qn_node *node, const char *from, const char *queue, struct qf_str bytes)
{
    struct qn_note *note = new_note(QN_NOTE_MESSAGE, from, queue, bytes);

    if (atomic_load(&node->halted) || !qf_mailbox_try_send(node->box, note)) {
        drop_message(node);
        free_note(note);
    }
}

void qn_called_by(struct qn_node *node, const char *from, const char *method, struct qf_str bytes,
                  void *reply)
{
    struct qn_note *note = new_note(QN_NOTE_CALL, from, method, bytes);

    note->reply = reply;
    if (atomic_load(&node->halted) || !qf_mailbox_try_send(node->box, note)) {
        node->options.transport.reply(reply, QF_EBUSY, QF_STR("too much is under way: try again"));
        free_note(note);
    }
}

/* The end of a call: the node must hear of it, or its ask would never be freed. Room is kept by the
 * bound of asks. */
static void called(void *arg, qf_rc rc, struct qf_str bytes)
{
    struct qn_ask *ask = arg;
    struct qn_note *note = new_note(QN_NOTE_CALLED, "", "", bytes);

    note->ask = ask;
    note->rc = rc;
    if (!qf_mailbox_send(ask->node->box, note, -1))
        free_note(note); /* stopped: qn_stop() frees what is out */
}

/* --- asks that another node answers --- */

bool qn_forward(struct qn_queue *queue, struct qn_ask *ask, const char *leader)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct qn_node *node = queue->node;
    const struct qn_transport *transport = &node->options.transport;

    if (!transport->call)
        return false;
    qn_ask_encode(&bytes, ask);
    if (transport->call(transport->ctx, leader, METHOD_ASK, qf_strbuf_view(&bytes),
                        QF_MAX(ask->due_ms - qn_now(), INT64_C(1)), called, ask) != QF_OK)
        return false;
    ask->waiting = true;
    ask->sent_to = qc_leader(queue->core);
    atomic_fetch_add(&node->figures.forwarded, 1);
    return true;
}

/* Who waits for an answer on another node. */
struct qn_asker {
    const struct qn_transport *transport;
    void *reply;
};

/* What another node asked for is done: tell it. */
static void tell_asker(void *ctx, struct qn_ask *ask)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct qn_asker *asker = ctx;

    qn_answer_encode(&bytes, &ask->answer);
    asker->transport->reply(asker->reply, QF_OK, qf_strbuf_view(&bytes));
    free(asker);
    (void)qn_ask_free(ask);
}

static void on_call_ask(struct qn_node *node, struct qn_note *note)
{
    struct qn_asker *asker;
    struct qn_ask *ask;

    if (qn_ask_decode((struct qf_str){ note->bytes, note->len }, &ask) != QF_OK) {
        node->options.transport.reply(note->reply, QF_EPROTO,
                                      QF_STR("an ask that this version cannot read"));
        return;
    }
    asker = qf_xcalloc(1, sizeof(*asker));
    asker->transport = &node->options.transport;
    asker->reply = note->reply;
    ask->forwarded = true;
    ask->done = tell_asker;
    ask->ctx = asker;
    qn_ask_begin(node, ask);
}

/* --- new nodes --- */

static void is_member_now(struct qn_node *node)
{
    QF_LOG_INFO("this node is part of a cluster now", QF_KV_STR("ingest_id", node->name));
    if (node->options.transport.joined)
        node->options.transport.joined(node->options.transport.ctx, atomic_load(&node->cluster));
}

/* A member of cluster @cluster wants this node: from now on it belongs there. */
static qf_rc join(struct qn_node *node, uint64_t cluster, struct qf_err *err)
{
    struct qn_queue *meta = qn_meta(node);
    struct ql_sequence_state next = meta->store.sequence;
    uint64_t own = atomic_load(&node->cluster);
    qf_rc rc;

    if (own == cluster)
        return QF_OK;
    if (own || !cluster)
        return qf_err_set(err, QF_EEXIST,
                          "node %s belongs to another cluster: empty its data folder and start it "
                          "without --bootstrap",
                          node->name);
    if (ql_log_last(meta->store.log) > 0)
        return qf_err_set(err, QF_EEXIST,
                          "node %s was about to make a cluster of its own: empty its data folder",
                          node->name);
    next.cluster = cluster;
    rc = ql_sequence_state_save(meta->disk, &next, err);
    if (rc != QF_OK) {
        qn_fatal(node, err);
        return rc;
    }
    meta->store.sequence = next;
    atomic_store(&node->cluster, cluster);
    is_member_now(node);
    return qn_queue_begin(meta, err);
}

void qn_found(struct qn_node *node, struct qn_ask *ask)
{
    struct qf_err err = { 0 };

    if (ask->forwarded) { /* who makes a cluster names the node itself */
        qn_ask_fail(ask, QF_EDENIED, "ask the node that shall make the cluster");
    } else if (atomic_load(&node->cluster)) {
        qn_ask_fail(ask, QF_EEXIST, "this node is in a cluster already");
    } else if (qn_queue_found(qn_meta(node), &err) != QF_OK) {
        qn_fatal(node, &err);
        qn_ask_fail(ask, err.rc, err.msg);
    } else {
        is_member_now(node);
        qn_ask_answer(ask);
    }
}

static void on_call_join(struct qn_node *node, struct qn_note *note)
{
    struct qf_err err = { 0 };
    unsigned char incarnation[8];
    qf_rc rc = QF_EPROTO;

    if (note->len == 8)
        rc = join(node, ql_get((const unsigned char *)note->bytes, 8), &err);
    ql_put(incarnation, node->incarnation, 8);
    node->options.transport.reply(note->reply, rc,
                                  rc == QF_OK ? (struct qf_str){ (char *)incarnation, 8 }
                                              : qf_str_from(err.msg));
}

bool qn_invite(struct qn_node *node, struct qn_ask *ask)
{
    const struct qn_transport *transport = &node->options.transport;
    unsigned char cluster[8];

    ql_put(cluster, atomic_load(&node->cluster), 8);
    if (!transport->call ||
        transport->call(transport->ctx, ask->member, METHOD_JOIN,
                        (struct qf_str){ (char *)cluster, 8 },
                        QF_MAX(ask->due_ms - qn_now(), INT64_C(1)), called, ask) != QF_OK)
        return false;
    ask->waiting = ask->invited = true;
    return true;
}

static void on_invited(struct qn_node *node, struct qn_ask *ask, const struct qn_note *note)
{
    struct qn_queue *meta = qn_meta(node);

    if (note->rc != QF_OK || note->len != 8)
        qn_ask_fail(ask, note->rc == QF_OK ? QF_EPROTO : note->rc, note->bytes);
    else if (!qc_serves(meta->core))
        qn_ask_fail(ask, QF_EUNAVAILABLE, "the leader has changed: try again");
    else {
        ask->member_id = ql_get((const unsigned char *)note->bytes, 8);
        qn_verb_begin(meta, ask);
    }
}

static void on_called(struct qn_node *node, const struct qn_note *note)
{
    struct qn_ask *ask = note->ask;
    bool invited = ask->invited;

    ask->waiting = ask->invited = false;
    ask->sent_to = 0;
    if (ask->answered) {
        (void)qn_ask_free(ask);
    } else if (atomic_load(&node->dead)) {
        qn_ask_fail(ask, QF_EUNAVAILABLE, "this node is stopping");
    } else if (invited) {
        on_invited(node, ask, note);
    } else if (note->rc != QF_OK) {
        ask->answer.unknown = true;
        qn_ask_fail(ask, note->rc, "the leader did not answer: what was asked for may be done");
    } else if (qn_answer_decode((struct qf_str){ note->bytes, note->len }, &ask->answer) != QF_OK) {
        qn_ask_fail(ask, QF_EPROTO, "the leader's answer cannot be read");
    } else {
        qn_ask_answer(ask);
    }
}

static void on_call(struct qn_node *node, struct qn_note *note)
{
    if (atomic_load(&node->dead))
        node->options.transport.reply(note->reply, QF_EUNAVAILABLE, QF_STR("the node is stopping"));
    else if (strcmp(note->what, METHOD_ASK) == 0)
        on_call_ask(node, note);
    else if (strcmp(note->what, METHOD_JOIN) == 0)
        on_call_join(node, note);
    else
        node->options.transport.reply(note->reply, QF_EUNSUPPORTED,
                                      QF_STR("a method that this version does not know"));
}

void qn_on_note_of_peer(struct qn_node *node, struct qn_note *note)
{
    switch (note->kind) {
    case QN_NOTE_MESSAGE:
        on_message(node, note);
        break;
    case QN_NOTE_CALL:
        on_call(node, note);
        break;
    case QN_NOTE_CALLED:
        on_called(node, note);
        break;
    case QN_NOTE_FETCHED:
        qn_on_fetched(node, note);
        break;
    case QN_NOTE_ASK:
    case QN_NOTE_SYNCED:
    case QN_NOTE_BUNDLE:
    case QN_NOTE_BUNDLED:
    case QN_NOTE_DRAIN:
    case QN_NOTE_STOP:
        break;
    }
}
