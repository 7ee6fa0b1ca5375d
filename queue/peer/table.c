/* table.c - the peers by name, and how it stands with them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queue/peer/peer_int.h"

static const struct {
    const char *text, *line;
    enum qf_log_level level;
} states[] = {
    [QP_DIALING] = { "dialing", "peer lost, dialling again", QF_LOG_LEVEL_WARN },
    [QP_CONNECTED] = { "connected", "peer connected", QF_LOG_LEVEL_INFO },
    [QP_UNREACHABLE] = { "unreachable", "peer cannot be reached: check its address and TLS files",
                         QF_LOG_LEVEL_WARN },
    [QP_WRONG_CLUSTER] = { "wrong cluster",
                           "peer belongs to another cluster: check --peer, or empty the data "
                           "folder of the node that does not belong here",
                           QF_LOG_LEVEL_ERROR },
    [QP_WRONG_NAME] = { "wrong name",
                        "at the peer's address answers a node of another name: check --peer",
                        QF_LOG_LEVEL_ERROR },
    [QP_SAME_NAME] = { "same name", "two nodes have one name: give one another --ingest-id",
                       QF_LOG_LEVEL_ERROR },
    [QP_WRONG_VERSION] = { "wrong version",
                           "peer speaks no protocol version that this node does: upgrade by one "
                           "release at a time",
                           QF_LOG_LEVEL_ERROR },
    [QP_NOT_ALLOWED] = { "not allowed",
                         "peer refused: its certificate has not the name of an ingest node",
                         QF_LOG_LEVEL_ERROR },
};

const char *qp_state_text(enum qp_state state)
{
    return states[state].text;
}

struct qp_peer *qp_find(struct qp_peers *peers, const char *name)
{
    for (size_t i = 0; i < QP_PEERS_MAX; i++)
        if (peers->slots[i].used && strcmp(peers->slots[i].stat.name, name) == 0)
            return &peers->slots[i];
    return NULL;
}

/* One that dialled in and is gone makes room. */
static bool replaceable(const struct qp_peer *peer)
{
    return !peer->stat.configured && !peer->dialed && !peer->accepted && !peer->waits;
}

static struct qp_peer *free_slot(struct qp_peers *peers)
{
    for (size_t i = 0; i < QP_PEERS_MAX; i++)
        if (!peers->slots[i].used)
            return &peers->slots[i];
    for (size_t i = 0; i < QP_PEERS_MAX; i++)
        if (replaceable(&peers->slots[i])) {
            rpc_queue_clear(&peers->slots[i].out);
            return &peers->slots[i];
        }
    return NULL;
}

struct qp_peer *qp_enter(struct qp_peers *peers, struct qf_str name)
{
    struct rpc_queue_limits limits = { .messages_max = peers->options.queue_messages_max,
                                       .bytes_max = peers->options.queue_bytes_max };
    char text[QP_NAME_SIZE];
    struct qp_peer *peer;

    assert(name.len < sizeof(text));
    (void)snprintf(text, sizeof(text), "%.*s", QF_STR_ARG(name));
    qf_lock_take(peers->lock);
    peer = qp_find(peers, text);
    if (!peer && (peer = free_slot(peers)) != NULL) {
        *peer = (struct qp_peer){ .used = true, .redial_ms = peers->options.redial_ms_min };
        memcpy(peer->stat.name, text, sizeof(text));
        rpc_queue_init(&peer->out, &limits);
    }
    qf_lock_drop(peers->lock);
    return peer;
}

static void tell(struct qp_peers *peers, struct qp_peer *peer)
{
    struct qp_peer_stat stat;

    qf_lock_take(peers->lock);
    stat = peer->stat;
    qf_lock_drop(peers->lock);
    if (peers->callbacks.peer)
        peers->callbacks.peer(peers->callbacks.ctx, &stat);
}

void qp_set_state(struct qp_peers *peers, struct qp_peer *peer, enum qp_state state,
                  const char *why)
{
    bool news;

    qf_lock_take(peers->lock);
    news = peer->stat.state != state;
    peer->stat.state = state;
    if (why[0])
        (void)snprintf(peer->stat.why, sizeof(peer->stat.why), "%s", why);
    qf_lock_drop(peers->lock);
    if (!news)
        return;
    QF_LOG_AT(states[state].level, states[state].line, QF_KV_STR("peer", peer->stat.name),
              QF_KV_STR("address", peer->address), QF_KV_STR("why", why));
    tell(peers, peer);
}

static bool ready(const struct qp_stream *stream, const struct qp_peer *peer)
{
    return stream && (stream == peer->dialed || stream == peer->accepted) &&
           stream->state == QP_STREAM_READY;
}

void qp_choose(struct qp_peers *peers, struct qp_peer *peer)
{
    struct qp_stream *chosen = peer->current;

    if (!chosen || !ready(chosen, peer))
        chosen = ready(peer->dialed, peer)     ? peer->dialed
                 : ready(peer->accepted, peer) ? peer->accepted
                                               : NULL;
    if (chosen == peer->current)
        return;
    qf_lock_take(peers->lock);
    peer->stat.messages_dropped += peer->out.count;
    rpc_queue_clear(&peer->out);
    peer->full_since = 0;
    peer->current = chosen;
    qf_lock_drop(peers->lock);
    qp_end_waits(peers, peer, QF_TIME_NEVER, QF_EUNAVAILABLE, "the stream to the node was lost");
}

/* Take the waiting calls that are due out of the table. */
static struct qp_wait *take_due(struct qp_peers *peers, struct qp_peer *peer, qf_time_ms now)
{
    struct qp_wait *due = NULL, **at = &peer->waits;

    qf_lock_take(peers->lock);
    while (*at) {
        struct qp_wait *wait = *at;

        if (wait->deadline > now) {
            at = &wait->next;
            continue;
        }
        *at = wait->next;
        peer->wait_count--;
        wait->next = due;
        due = wait;
    }
    qf_lock_drop(peers->lock);
    return due;
}

void qp_end_waits(struct qp_peers *peers, struct qp_peer *peer, qf_time_ms now, qf_rc rc,
                  const char *why)
{
    struct qp_wait *due = take_due(peers, peer, now);

    while (due) {
        struct qp_wait *next = due->next;

        due->done(due->arg, rc, qf_str_from(why));
        free(due);
        due = next;
    }
}

size_t qp_stat(struct qp_peers *peers, struct qp_peer_stat ret_stats[QP_PEERS_MAX])
{
    size_t count = 0;

    qf_lock_take(peers->lock);
    for (size_t i = 0; i < QP_PEERS_MAX; i++) {
        struct qp_peer *peer = &peers->slots[i];

        if (!peer->used)
            continue;
        ret_stats[count] = peer->stat;
        ret_stats[count].queued_messages = peer->out.count;
        ret_stats[count].queued_bytes = peer->out.bytes;
        count++;
    }
    qf_lock_drop(peers->lock);
    return count;
}
