/* ask.c - the life of an ask: found its queue and leader, submitted, ended, answered. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "queue/node/ask_int.h"

/* A leader, or its followers, that have not been heard of for so many heartbeats may just be slow. */
enum { LATE_HEARTBEATS = 3 };

struct qn_ask *qn_ask_new(enum qn_verb verb, struct qf_str queue)
{
    struct qn_ask *ask = qf_xcalloc(1, sizeof(*ask));

    ask->verb = verb;
    queue = qf_str_sub(queue, 0, sizeof(ask->queue) - 1);
    if (queue.len)
        memcpy(ask->queue, queue.data, queue.len);
    return ask;
}

void qn_ask_add(struct qn_ask *ask, struct qf_str record)
{
    static const char header[QC_OFFER_HEADER + QN_ENVELOPE] = { QC_OFFER };
    size_t at = ask->bytes.len;

    qf_strbuf_add(&ask->bytes, header, sizeof(header));
    qf_strbuf_str(&ask->bytes, record);
    /* The buffer moves while it grows: where, for now. */
    QF_VEC_PUSH(&ask->records, (struct qf_str){ (const char *)at, ask->bytes.len - at });
}

struct qf_str qn_ask_record(const struct qn_ask *ask, size_t i)
{
    struct qf_str command = ask->records.items[i];

    return qf_str_sub(command, QC_OFFER_HEADER + QN_ENVELOPE, command.len);
}

struct qn_ask *qn_ask_free(struct qn_ask *ask)
{
    if (ask) {
        QF_VEC_DONE(&ask->records);
        QF_VEC_DONE(&ask->answer.records);
        qf_strbuf_done(&ask->bytes);
        qf_strbuf_done(&ask->answer.bytes);
        qf_strbuf_done(&ask->answer.text);
        free(ask->parts);
        free(ask);
    }
    return NULL;
}

/* --- the end --- */

static void list(struct qn_ask **head, struct qn_ask *ask)
{
    ask->open_prev = NULL;
    ask->open_next = *head;
    if (*head)
        (*head)->open_prev = ask;
    *head = ask;
}

static void unlist(struct qn_ask **head, struct qn_ask *ask)
{
    if (ask->open_prev)
        ask->open_prev->open_next = ask->open_next;
    else
        *head = ask->open_next;
    if (ask->open_next)
        ask->open_next->open_prev = ask->open_prev;
    ask->open_next = ask->open_prev = NULL;
}

void qn_ask_bury(struct qn_ask *ask)
{
    unlist(&ask->node->ghosts, ask);
    (void)qn_ask_free(ask);
}

/* The core still has requests of @ask: let what the client hears of go on without it. */
static struct qn_ask *detach(struct qn_ask *ask)
{
    struct qn_ask *told = qn_ask_new(ask->verb, qf_str_from(ask->queue));

    told->done = ask->done;
    told->ctx = ask->ctx;
    told->max = ask->max;
    told->answer = ask->answer;
    ask->answer = (struct qn_answer){ 0 };
    return told;
}

void qn_ask_answer(struct qn_ask *ask)
{
    struct qn_ask *told = ask;

    if (ask->answered)
        return;
    ask->answered = true;
    unlist(&ask->node->open, ask);
    atomic_fetch_sub(&ask->node->figures.asks, 1);
    if (ask->answer.err.rc != QF_OK)
        atomic_fetch_add(&ask->node->figures.refused, 1);
    if (ask->parts_open || ask->waiting)
        told = detach(ask);
    if (ask->parts_open)
        list(&ask->node->ghosts, ask);
    told->done(told->ctx, told);
}

void qn_ask_fail(struct qn_ask *ask, qf_rc rc, const char *why)
{
    (void)qf_err_set(&ask->answer.err, rc, "%s", why);
    qn_ask_answer(ask);
}

/* --- the beginning --- */

static void park(struct qn_ask *ask, const char *why)
{
    struct qn_node *node = ask->node;

    if (qn_now() >= ask->leader_due_ms || node->parked_count >= QN_PARKED_MAX || node->draining) {
        qn_ask_fail(ask, QF_EUNAVAILABLE, why);
        return;
    }
    ask->next = node->parked;
    ask->waiting = true;
    node->parked = ask;
    node->parked_count++;
}

/* The queue that an ask is about, if its sender may know of it. */
static struct qn_queue *queue_of(struct qn_node *node, const struct qn_ask *ask)
{
    struct qn_queue *queue;

    if (ask->verb == QN_CREATE || ask->verb == QN_DELETE || ask->verb == QN_CHANGE)
        return qn_meta(node);
    queue = qn_queue_find(node, ask->queue);
    if (queue && !ask->operates && strcmp(queue->tenant, ask->tenant) != 0)
        return NULL;
    return queue;
}

static bool check_access(struct qn_ask *ask)
{
    bool cluster = ask->verb == QN_CHANGE || ask->verb == QN_TRANSFER || ask->verb == QN_FOUND;

    if (ask->operates || (!qn_name_is_system(ask->queue) && !cluster))
        return true;
    qn_ask_fail(ask, QF_EDENIED,
                cluster ? "members and leaders are the operator's business: a key for all tenants"
                        : "this queue is the system's own: it needs a key for all tenants");
    return false;
}

static void no_such_queue(struct qn_ask *ask)
{
    char why[128];

    (void)snprintf(why, sizeof(why), "there is no queue %s", ask->queue);
    qn_ask_fail(ask, QF_ENOTFOUND, why);
}

static int64_t leader_wait(const struct qn_node *node, const struct qn_ask *ask)
{
    return ask->verb == QN_WRITE ? node->options.write_wait_ms : node->options.leader_wait_ms;
}

/* Has this node had no sign for too long that anything can be committed? A few heartbeats may be late. */
static bool is_cut_off(const struct qn_queue *queue, const struct qn_ask *ask, int64_t now)
{
    int64_t patience = QF_MAX(leader_wait(queue->node, ask),
                              LATE_HEARTBEATS * (int64_t)queue->node->options.heartbeat_ms);

    return now - (int64_t)qc_heard(queue->core, (uint64_t)now) >= patience;
}

static void lead_to(struct qn_queue *queue, struct qn_ask *ask)
{
    uint64_t leader = qc_leader(queue->core);
    const char *name = leader ? qn_name_of(queue, leader) : NULL;

    if (qc_leads(queue->core)) {
        if (!qc_serves(queue->core))
            park(ask, "this node was just elected and is not ready to answer");
        else if (is_cut_off(queue, ask, qn_now()))
            park(ask, "the leader hears of no majority of the queue's voters now");
        else
            qn_verb_begin(queue, ask);
        return;
    }
    if (ask->forwarded)
        qn_ask_fail(ask, QF_EUNAVAILABLE, "the leader has changed: try again");
    else if (!name || leader == queue->node->incarnation)
        park(ask, "the queue has no leader now: a majority of its voters must be reachable");
    else if (!qn_forward(queue, ask, name))
        park(ask, "the leader of the queue cannot be reached");
}

static void dispatch(struct qn_node *node, struct qn_ask *ask)
{
    struct qn_queue *queue = queue_of(node, ask);

    if (!check_access(ask))
        return;
    if (ask->verb == QN_LIST) {
        qn_show_all(node, ask, &ask->answer.text);
        ask->answer.next = node->folded + 1;
        qn_ask_answer(ask);
    } else if (ask->verb == QN_FOUND) {
        qn_found(node, ask);
    } else if (!atomic_load(&node->cluster)) {
        qn_ask_fail(ask, QF_EUNAVAILABLE,
                    "this node is in no cluster yet: add it at a member (promfabric queue members "
                    "--add NAME), or start it with --bootstrap to make a new one");
    } else if (!queue && qc_serves(qn_meta(node)->core)) {
        no_such_queue(ask);
    } else if (!queue && qn_now() < ask->leader_due_ms) {
        park(ask, "which queues there are is not known now: meta has no leader");
    } else if (!queue) {
        no_such_queue(ask);
    } else if (ask->verb == QN_LOOK) {
        qn_look(queue, ask);
    } else if (ask->verb == QN_SHOW) {
        qn_show(queue, &ask->answer.text);
        qn_ask_answer(ask);
    } else {
        lead_to(queue, ask);
    }
}

void qn_ask_begin(struct qn_node *node, struct qn_ask *ask)
{
    int64_t now = qn_now();
    size_t base = (size_t)ask->bytes.data;

    ask->node = node;
    ask->wait_due_ms = now + ask->wait_ms;
    ask->due_ms = ask->wait_due_ms + (ask->timeout_ms ? ask->timeout_ms : QN_TIMEOUT_MS);
    ask->leader_due_ms = now + QF_MIN(leader_wait(node, ask), ask->due_ms - now);
    for (size_t i = 0; i < ask->records.count; i++)
        ask->records.items[i].data = (const char *)(base + (size_t)ask->records.items[i].data);
    list(&node->open, ask);
    atomic_fetch_add(&node->figures.asks, 1);
    if (atomic_load(&node->dead))
        qn_ask_fail(ask, QF_EUNAVAILABLE, "this node is about to end");
    else
        dispatch(node, ask);
}

/* --- time --- */

static void try_parked(struct qn_node *node)
{
    struct qn_ask *ask = node->parked;

    node->parked = NULL;
    node->parked_count = 0;
    while (ask) {
        struct qn_ask *next = ask->next;

        ask->next = NULL;
        ask->waiting = false;
        if (ask->answered)
            (void)qn_ask_free(ask);
        else
            dispatch(node, ask);
        ask = next;
    }
}

/* Why @ask, which a core or another node has, shall not be waited for any longer; NULL: it shall. What
 * was asked for may still be done: nobody knows. */
static const char *given_up(struct qn_node *node, const struct qn_ask *ask, int64_t now)
{
    bool under_way =
        ask->parts_open || ask->sent_to || (ask->verb == QN_WRITE && ask->waiting); /* deferred */
    struct qn_queue *queue = under_way && now >= ask->leader_due_ms ? queue_of(node, ask) : NULL;

    if (!queue || !queue->core)
        return NULL;
    if (ask->sent_to && ask->sent_to != qc_leader(queue->core))
        return "the leader was replaced before it answered: what was asked for may be done";
    if (is_cut_off(queue, ask, now))
        return ask->sent_to
                   ? "the leader is not heard of: what was asked for may be done"
                   : "a majority of the queue's voters is not heard of: what was asked for "
                     "may still be done";
    return NULL;
}

void qn_ask_tick(struct qn_node *node, int64_t now)
{
    if (node->parked)
        try_parked(node);
    for (struct qn_ask *ask = node->open, *next; ask; ask = next) {
        const char *why = given_up(node, ask, now);

        next = ask->open_next;
        if (!why && now < ask->due_ms)
            continue;
        ask->answer.unknown = true;
        if (why)
            qn_ask_fail(ask, QF_EUNAVAILABLE, why);
        else
            qn_ask_fail(ask, QF_ETIMEOUT,
                        "no answer in time: what was asked for may still be done");
    }
}
