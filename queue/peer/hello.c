/* hello.c - who may talk to us: what a hello says, and what is wrong with it. */
#include <stdio.h>

#include "base/sys/log.h"
#include "queue/peer/peer_int.h"

/* Why a peer does not fit. */
struct verdict {
    enum qp_state state;
    grpc_status_code status;
    char why[200];
};

static const struct {
    enum qp_state state;
    grpc_status_code status;
} statuses[] = {
    { QP_WRONG_VERSION, GRPC_STATUS_UNIMPLEMENTED },
    { QP_WRONG_CLUSTER, GRPC_STATUS_FAILED_PRECONDITION },
    { QP_WRONG_NAME, GRPC_STATUS_NOT_FOUND },
    { QP_SAME_NAME, GRPC_STATUS_ALREADY_EXISTS },
    { QP_NOT_ALLOWED, GRPC_STATUS_PERMISSION_DENIED },
};

/* What a refusal by the other side means. */
enum qp_state qp_state_of_status(grpc_status_code status)
{
    for (size_t i = 0; i < QF_COUNT_OF(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].state;
    return QP_UNREACHABLE;
}

static bool refuse(struct verdict *verdict, enum qp_state state)
{
    verdict->state = state;
    verdict->status = GRPC_STATUS_UNAVAILABLE;
    for (size_t i = 0; i < QF_COUNT_OF(statuses); i++)
        if (statuses[i].state == state)
            verdict->status = statuses[i].status;
    return false;
}

void qp_say_hello(struct qp_stream *stream)
{
    struct qp_peers *peers = stream->peers;
    struct pb_peer_frame frame = { .kind = PB_PEER_HELLO };
    struct pb_peer_hello *hello = &frame.u.hello;

    *hello =
        (struct pb_peer_hello){ .protocol_version = peers->options.protocol_oldest,
                                .protocol_newest = peers->options.protocol_newest,
                                .name = qf_str_from(peers->options.name),
                                .to = qf_str_from(stream->dialed ? stream->peer->stat.name : ""),
                                .instance = peers->instance,
                                .http_token = qf_str_from(peers->token),
                                .software = QF_STR("promfabric " PROMFABRIC_VERSION),
                                .records = peers->options.records };
    if (peers->options.http_base)
        hello->http_base = qf_str_from(peers->options.http_base);
    qf_lock_take(peers->lock);
    hello->cluster = peers->cluster;
    qf_lock_drop(peers->lock);
    qp_stream_say(stream, &frame);
}

static bool name_fits(const struct qp_stream *stream, const struct pb_peer_hello *hello,
                      struct verdict *verdict)
{
    const char *own = stream->peers->options.name;

    if (qf_str_is(hello->name, own)) {
        bool self = hello->instance == stream->peers->instance;

        (void)snprintf(verdict->why, sizeof(verdict->why),
                       self ? "node %s was given its own address as a peer's"
                            : "another node is called %s as well",
                       own);
        return refuse(verdict, self ? QP_WRONG_NAME : QP_SAME_NAME);
    }
    if (stream->dialed && !qf_str_is(hello->name, stream->peer->stat.name)) {
        (void)snprintf(verdict->why, sizeof(verdict->why), "there answers node %.*s",
                       QF_STR_ARG(hello->name));
        return refuse(verdict, QP_WRONG_NAME);
    }
    if (!stream->dialed && hello->to.len && !qf_str_is(hello->to, own)) {
        (void)snprintf(verdict->why, sizeof(verdict->why), "this is node %s", own);
        return refuse(verdict, QP_WRONG_NAME);
    }
    return true;
}

static bool cluster_fits(struct qp_peers *peers, const struct pb_peer_hello *hello,
                         struct verdict *verdict)
{
    uint64_t own;

    qf_lock_take(peers->lock);
    own = peers->cluster;
    qf_lock_drop(peers->lock);
    if (!own || !hello->cluster || own == hello->cluster)
        return true;
    (void)snprintf(verdict->why, sizeof(verdict->why),
                   "node %s is in cluster %016llx, node %.*s in %016llx", peers->options.name,
                   (unsigned long long)own, QF_STR_ARG(hello->name),
                   (unsigned long long)hello->cluster);
    return refuse(verdict, QP_WRONG_CLUSTER);
}

/* A stream of another process under the same name. */
static struct qp_stream *other_process(const struct qp_peer *peer, uint64_t instance)
{
    struct qp_stream *streams[] = { peer->dialed, peer->accepted };

    for (size_t i = 0; i < QF_COUNT_OF(streams); i++)
        if (streams[i] && streams[i]->state == QP_STREAM_READY && streams[i]->instance != instance)
            return streams[i];
    return NULL;
}

/* A node that was restarted may come before the end of its old stream is known, and is told to try
 * again: the ping ends a stream whose other end is gone. Only if the old one has spoken since, two
 * processes share the name. */
static bool alone(struct qp_stream *stream, struct qp_peer *peer, const struct pb_peer_hello *hello,
                  struct verdict *verdict)
{
    struct qp_stream *other = other_process(peer, hello->instance);
    bool again = peer->conflict_instance == hello->instance;

    if (!other)
        return true;
    (void)snprintf(verdict->why, sizeof(verdict->why), "another process is connected as node %s",
                   peer->stat.name);
    again = again && other->heard > peer->conflict_at;
    if (again || peer->conflict_instance != hello->instance)
        peer->conflict_at = stream->peers->now;
    peer->conflict_instance = hello->instance;
    if (again)
        return refuse(verdict, QP_SAME_NAME);
    qp_stream_say(other, &(struct pb_peer_frame){ .kind = PB_PEER_PING });
    return refuse(verdict, QP_DIALING);
}

static uint32_t newest_of(const struct pb_peer_hello *hello)
{
    return QF_MAX(hello->protocol_newest, hello->protocol_version);
}

/* The version to speak with whoever said @hello; 0: there is none. */
static uint32_t agreed(const struct qp_options *own, const struct pb_peer_hello *hello)
{
    uint32_t newest = QF_MIN(own->protocol_newest, newest_of(hello));

    return newest >= own->protocol_oldest && newest >= hello->protocol_version ? newest : 0;
}

static void copy(char *out, size_t size, struct qf_str text)
{
    (void)snprintf(out, size, "%.*s", QF_STR_ARG(text));
}

static void take(struct qp_stream *stream, struct qp_peer *peer, const struct pb_peer_hello *hello)
{
    struct qp_peers *peers = stream->peers;
    struct qp_stream **place = stream->dialed ? &peer->dialed : &peer->accepted;
    struct qp_stream *old = *place;

    stream->peer = peer;
    stream->instance = hello->instance;
    stream->state = QP_STREAM_READY;
    stream->ready_at = peers->now;
    *place = stream;
    if (old && old != stream) { /* the same process dialled again */
        old->reported = true;
        old->peer = NULL;
        qp_stream_cancel(old, "replaced");
    }
    qf_lock_take(peers->lock);
    peer->stat.cluster = hello->cluster;
    peer->stat.instance = hello->instance;
    peer->stat.records = hello->records;
    peer->stat.protocol = agreed(&peers->options, hello);
    peer->stat.connects++;
    copy(peer->stat.http_base, sizeof(peer->stat.http_base), hello->http_base);
    copy(peer->token, sizeof(peer->token), hello->http_token);
    qf_lock_drop(peers->lock);
    if (!stream->dialed)
        qp_say_hello(stream);
    qp_choose(peers, peer);
    qp_set_state(peers, peer, QP_CONNECTED, "");
}

static bool fits(struct qp_stream *stream, const struct pb_peer_hello *hello,
                 struct verdict *verdict)
{
    const struct qp_options *own = &stream->peers->options;

    if (!agreed(own, hello)) {
        (void)snprintf(verdict->why, sizeof(verdict->why),
                       "node %s speaks versions %u to %u, node %.*s versions %u to %u", own->name,
                       (unsigned)own->protocol_oldest, (unsigned)own->protocol_newest,
                       QF_STR_ARG(hello->name), (unsigned)hello->protocol_version,
                       (unsigned)newest_of(hello));
        return refuse(verdict, QP_WRONG_VERSION);
    }
    return name_fits(stream, hello, verdict) && cluster_fits(stream->peers, hello, verdict);
}

void qp_on_hello(struct qp_stream *stream, const struct pb_peer_hello *hello)
{
    struct qp_peers *peers = stream->peers;
    struct verdict verdict = { 0 };
    bool good = fits(stream, hello, &verdict);
    /* Who dials us by mistake is no peer of ours. */
    bool enter = good || verdict.state != QP_WRONG_NAME;
    struct qp_peer *peer = stream->dialed ? stream->peer
                           : enter        ? qp_enter(peers, hello->name)
                                          : NULL;

    if (good && !peer) {
        qp_stream_end(stream, GRPC_STATUS_RESOURCE_EXHAUSTED, "too many peers");
        return;
    }
    if (good && alone(stream, peer, hello, &verdict)) {
        take(stream, peer, hello);
        return;
    }
    if (stream->dialed)
        qp_lost(stream, verdict.state, verdict.why);
    else if (peer && verdict.state != QP_DIALING &&
             (!peer->current || verdict.state == QP_SAME_NAME))
        qp_set_state(peers, peer, verdict.state, verdict.why);
    qp_stream_end(stream, verdict.status, verdict.why);
}
