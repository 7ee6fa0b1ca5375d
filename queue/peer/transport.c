/* transport.c - the transport's thread: accepts, dials, reads frames, looks after silence. */
#include <assert.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "proto/rpc/message.h"
#include "queue/peer/peer_int.h"

void qp_request_call(struct qp_peers *peers)
{
    grpc_call_error error;

    grpc_call_details_init(&peers->accepted_details);
    grpc_metadata_array_init(&peers->accepted_metadata);
    peers->accepted = NULL;
    error = grpc_server_request_call(peers->server, &peers->accepted, &peers->accepted_details,
                                     &peers->accepted_metadata, peers->cq, peers->cq,
                                     &peers->accept_tag);
    assert(error == GRPC_CALL_OK);
    (void)error;
}

static void accept_call(struct qp_peers *peers, bool ok)
{
    const char *wanted = peers->options.tls_peer_name;

    if (ok) {
        struct qp_stream *stream = qp_stream_new(peers, peers->accepted, NULL);

        qp_stream_start(stream);
        if (peers->ending)
            qp_stream_cancel(stream, "shutting down");
        else if (grpc_slice_str_cmp(peers->accepted_details.method, PB_PEER_METHOD) != 0)
            qp_stream_end(stream, GRPC_STATUS_UNIMPLEMENTED, "unknown method");
        else if (peers->stream_count > QP_STREAMS_MAX)
            qp_stream_end(stream, GRPC_STATUS_RESOURCE_EXHAUSTED, "too many streams");
        else if (wanted && !rpc_peer_has_name(stream->call, wanted))
            qp_stream_end(stream, GRPC_STATUS_PERMISSION_DENIED,
                          "the certificate has not the name of an ingest node");
    }
    grpc_call_details_destroy(&peers->accepted_details);
    grpc_metadata_array_destroy(&peers->accepted_metadata);
    if (ok && !peers->ending)
        qp_request_call(peers);
    else
        peers->accept_done = true;
}

bool qp_renew_credentials(struct qp_peers *peers, struct qf_err *err)
{
    uint64_t generation = peers->tls ? qf_tls_files_generation(peers->tls) : 0;
    grpc_channel_credentials *fresh;

    if (peers->credentials && generation == peers->generation)
        return true;
    fresh = rpc_channel_credentials(peers->tls, err);
    if (!fresh)
        return false;
    if (peers->credentials)
        grpc_channel_credentials_release(peers->credentials);
    peers->credentials = fresh;
    peers->generation = generation;
    return true;
}

/* A channel of its own per dial, so that the pauses between dials are ours alone. */
static grpc_channel *make_channel(const struct qp_peers *peers, const char *address)
{
    grpc_arg args[] = {
        rpc_int_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
        rpc_int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)PB_PEER_FRAME_BYTES_MAX),
        rpc_int_arg(GRPC_ARG_ENABLE_RETRIES, 0),
        rpc_int_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
        { .type = GRPC_ARG_STRING,
          .key = GRPC_SSL_TARGET_NAME_OVERRIDE_ARG,
          .value.string = (char *)(uintptr_t)peers->options.tls_peer_name },
    };
    /* The last one only if there is such a name. */
    grpc_channel_args all = { QF_COUNT_OF(args) - !peers->options.tls_peer_name, args };

    return grpc_channel_create(address, peers->credentials, &all);
}

static void dial(struct qp_peers *peers, struct qp_peer *peer)
{
    grpc_channel *channel;
    grpc_call *call;

    if (peers->tls)
        qf_tls_files_look(peers->tls);
    (void)qp_renew_credentials(peers, NULL); /* else with those that were good for the last dial */
    channel = make_channel(peers, peer->address);
    call = grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, peers->cq,
                                    grpc_slice_from_static_string(PB_PEER_METHOD), NULL,
                                    gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    peer->dialed = qp_stream_new(peers, call, channel);
    peer->dialed->peer = peer;
    qp_stream_start(peer->dialed);
    qp_say_hello(peer->dialed);
}

/* Half of the pause is random, so that nodes that lost each other do not meet in step. */
static void redial_later(struct qp_peers *peers, struct qp_peer *peer, const struct qp_stream *lost)
{
    const struct qp_options *options = &peers->options;
    bool lasted = lost->ready_at && peers->now - lost->ready_at >= options->redial_ms_max;
    int64_t pause = lasted ? options->redial_ms_min : peer->redial_ms;

    peer->redial_at =
        peers->now + pause / 2 + (int64_t)qf_prng_below(&peers->prng, (uint64_t)(pause / 2 + 1));
    peer->redial_ms = QF_MIN(pause * 2, options->redial_ms_max);
}

void qp_lost(struct qp_stream *stream, enum qp_state state, const char *why)
{
    struct qp_peers *peers = stream->peers;
    struct qp_peer *peer = stream->peer;

    if (stream->reported || !peer)
        return;
    stream->reported = true;
    stream->peer = NULL;
    if (peer->dialed == stream) {
        peer->dialed = NULL;
        redial_later(peers, peer, stream);
    }
    if (peer->accepted == stream)
        peer->accepted = NULL;
    qp_choose(peers, peer);
    if (!peer->current || state == QP_SAME_NAME)
        qp_set_state(peers, peer, state, why);
}

static void on_reply(struct qp_stream *stream, const struct pb_peer_reply *reply)
{
    struct qp_peers *peers = stream->peers;
    struct qp_wait *wait = NULL, **at = &stream->peer->waits;
    char name[QP_NAME_SIZE];

    qf_lock_take(peers->lock);
    while (*at && (*at)->id != reply->id)
        at = &(*at)->next;
    if (*at) {
        wait = *at;
        *at = wait->next;
        stream->peer->wait_count--;
    }
    qf_lock_drop(peers->lock);
    if (!wait)
        return; /* it came too late */
    (void)snprintf(name, sizeof(name), "%.*s", QF_STR_ARG(reply->code));
    wait->done(wait->arg, name[0] ? qf_rc_from_name(name) : QF_OK, reply->body);
    free(wait);
}

static void on_call(struct qp_stream *stream, const struct pb_peer_call *call)
{
    struct qp_peers *peers = stream->peers;
    char method[QP_NAME_SIZE];

    (void)snprintf(method, sizeof(method), "%.*s", QF_STR_ARG(call->method));
    peers->callbacks.call(peers->callbacks.ctx, stream->peer->stat.name, method, call->body,
                          qp_reply_new(peers, stream->peer->stat.name, call->id));
}

static void on_frame(struct qp_stream *stream, const struct pb_peer_frame *frame)
{
    struct qp_peers *peers = stream->peers;
    char queue[QP_NAME_SIZE];

    switch (frame->kind) {
    case PB_PEER_HELLO:
        break; /* the caller's */
    case PB_PEER_MESSAGE:
        (void)snprintf(queue, sizeof(queue), "%.*s", QF_STR_ARG(frame->u.message.queue));
        peers->callbacks.message(peers->callbacks.ctx, stream->peer->stat.name, queue,
                                 frame->u.message.body);
        break;
    case PB_PEER_CALL:
        on_call(stream, &frame->u.call);
        break;
    case PB_PEER_REPLY:
        on_reply(stream, &frame->u.reply);
        break;
    case PB_PEER_PING:
        break;
    }
}

static void break_off(struct qp_stream *stream, const char *why)
{
    qp_lost(stream, QP_DIALING, why);
    qp_stream_end(stream, GRPC_STATUS_INVALID_ARGUMENT, why);
}

static void take_frame(struct qp_stream *stream, struct qf_str bytes)
{
    struct qp_peers *peers = stream->peers;
    struct pb_peer_frame frame;
    struct qf_err err = { 0 };

    qf_arena_reset(peers->scratch);
    frame.kind = PB_PEER_MESSAGE;
    if (!pb_peer_message_view(bytes, &frame.u.message) &&
        pb_peer_decode(peers->scratch, bytes, &frame, &err) != QF_OK) {
        break_off(stream, err.msg);
        return;
    }
    if ((frame.kind == PB_PEER_HELLO) != (stream->state == QP_STREAM_HELLO)) {
        break_off(stream, "a hello is the first frame, and only that");
        return;
    }
    stream->heard = peers->now;
    if (frame.kind == PB_PEER_HELLO) {
        qp_on_hello(stream, &frame.u.hello);
        return;
    }
    qf_lock_take(peers->lock);
    stream->peer->stat.messages_received++;
    stream->peer->stat.bytes_received += bytes.len;
    qf_lock_drop(peers->lock);
    on_frame(stream, &frame);
}

static void on_read(struct qp_stream *stream, bool ok)
{
    grpc_byte_buffer *message = stream->incoming;
    struct qf_str bytes;
    grpc_slice slice;

    stream->incoming = NULL;
    if (!ok || !message) {
        /* Who dialled hears a status that says why. */
        if (!stream->dialed) {
            qp_lost(stream, QP_DIALING, "the peer closed the stream");
            qp_stream_end(stream, GRPC_STATUS_OK, "");
        }
    } else if (stream->state <= QP_STREAM_READY) {
        if (rpc_message_view(message, &slice, &bytes)) {
            take_frame(stream, bytes);
            grpc_slice_unref(slice);
        } else {
            break_off(stream, "unreadable frame");
        }
    }
    if (message)
        grpc_byte_buffer_destroy(message);
    if (ok && message)
        qp_stream_read(stream);
}

static void on_close(struct qp_stream *stream)
{
    char *details = grpc_slice_to_c_string(stream->details);
    enum qp_state state = QP_DIALING;

    if (stream->dialed && !stream->ready_at)
        state = qp_state_of_status(stream->status);
    qp_lost(stream, state,
            stream->why[0] ? stream->why
            : details[0]   ? details
                           : "the peer closed the stream");
    gpr_free(details);
}

static void on_tag(struct qp_peers *peers, struct qp_tag *tag)
{
    struct qp_stream *stream = tag->stream;

    if (tag == &peers->accept_tag) {
        accept_call(peers, tag->ok);
        return;
    }
    if (tag == &peers->stop_tag) {
        peers->stop_done = true;
        return;
    }
    qp_stream_completed(stream, tag->op, tag->ok);
    if (tag->op == QP_OP_READ)
        on_read(stream, tag->ok);
    else if (tag->op == QP_OP_CLOSE)
        on_close(stream);
    if (qp_stream_finished(stream)) {
        assert(!stream->peer);
        qp_stream_free(stream);
    }
}

static void on_kick(struct qp_peers *peers)
{
    qf_lock_take(peers->lock);
    peers->kick_posted = false;
    qf_lock_drop(peers->lock);
    for (size_t i = 0; i < QP_PEERS_MAX; i++)
        if (peers->slots[i].used && peers->slots[i].current)
            qp_stream_pump(peers->slots[i].current);
}

static void cut(struct qp_stream *stream, const char *why)
{
    struct qp_peer *peer = stream->peer;

    qp_lost(stream, stream->ready_at ? QP_DIALING : QP_UNREACHABLE, why);
    qp_stream_cancel(stream, why);
    if (!stream->ready_at || !peer)
        return;
    qf_lock_take(stream->peers->lock);
    peer->stat.cuts++;
    qf_lock_drop(stream->peers->lock);
}

/* Does the peer not take what is sent to it? */
static bool stuck(struct qp_stream *stream)
{
    struct qp_peers *peers = stream->peers;
    bool is;

    qf_lock_take(peers->lock);
    is = stream->peer->current == stream && stream->peer->full_since &&
         peers->now - stream->peer->full_since >= peers->options.stuck_ms;
    qf_lock_drop(peers->lock);
    return is ||
           (stream->busy[QP_OP_WRITE] && peers->now - stream->said >= 4 * peers->options.stuck_ms);
}

static bool of_other_cluster(struct qp_stream *stream)
{
    struct qp_peers *peers = stream->peers;
    bool is;

    qf_lock_take(peers->lock);
    is = peers->cluster && stream->peer->stat.cluster &&
         peers->cluster != stream->peer->stat.cluster;
    qf_lock_drop(peers->lock);
    return is;
}

static void tick_stream(struct qp_stream *stream)
{
    struct qp_peers *peers = stream->peers;
    const struct qp_options *options = &peers->options;

    switch (stream->state) {
    case QP_STREAM_HELLO:
        if (peers->now - stream->began >= options->dial_timeout_ms)
            cut(stream, "the peer does not answer");
        break;
    case QP_STREAM_READY:
        if (peers->now - stream->heard >= options->silence_ms)
            cut(stream, "the peer is silent");
        else if (stuck(stream))
            cut(stream, "the peer does not read what it is sent");
        else if (of_other_cluster(stream))
            cut(stream, "this node has become part of another cluster");
        else if (peers->now - stream->said >= options->silence_ms / 5 && !stream->busy[QP_OP_WRITE])
            qp_stream_say(stream, &(struct pb_peer_frame){ .kind = PB_PEER_PING });
        break;
    case QP_STREAM_ENDING:
        if (peers->now >= stream->linger_until)
            qp_stream_cancel(stream, "");
        break;
    case QP_STREAM_OVER:
        break;
    }
}

static void tick_peer(struct qp_peers *peers, struct qp_peer *peer)
{
    qp_end_waits(peers, peer, peers->now, QF_ETIMEOUT, "the node did not answer in time");
    if (peer->stat.configured && !peer->dialed && peers->now >= peer->redial_at)
        dial(peers, peer);
    if (peer->stat.state == QP_SAME_NAME && peer->current &&
        peers->now - peer->conflict_at > 3 * peers->options.redial_ms_max)
        qp_set_state(peers, peer, QP_CONNECTED, "");
}

static void tick(struct qp_peers *peers)
{
    struct qp_stream *next;

    peers->next_tick = peers->now + QP_TICK_MS;
    for (struct qp_stream *stream = peers->streams; stream; stream = next) {
        next = stream->next; /* ending one frees none: that takes a completion */
        tick_stream(stream);
    }
    for (size_t i = 0; !peers->ending && i < QP_PEERS_MAX; i++)
        if (peers->slots[i].used)
            tick_peer(peers, &peers->slots[i]);
}

static void begin_end(struct qp_peers *peers)
{
    peers->ending = true;
    for (size_t i = 0; i < QP_PEERS_MAX; i++) {
        struct qp_peer *peer = &peers->slots[i];

        if (!peer->used)
            continue;
        qp_end_waits(peers, peer, QF_TIME_NEVER, QF_ECANCELED, "shutting down");
        peer->dialed = peer->accepted = NULL;
        qp_choose(peers, peer);
    }
    for (struct qp_stream *stream = peers->streams; stream; stream = stream->next) {
        stream->reported = true; /* nobody is told any more */
        stream->peer = NULL;
        qp_stream_cancel(stream, "shutting down");
    }
    grpc_server_shutdown_and_notify(peers->server, peers->cq, &peers->stop_tag);
    grpc_server_cancel_all_calls(peers->server);
}

static void dispatch(struct qp_peers *peers, struct qp_item *item)
{
    switch (item->kind) {
    case QP_ITEM_TAG:
        on_tag(peers, (struct qp_tag *)item);
        break;
    case QP_ITEM_KICK:
        on_kick(peers);
        break;
    case QP_ITEM_FETCHED:
        qp_fetched(peers, item);
        break;
    case QP_ITEM_STOP:
        begin_end(peers);
        break;
    }
}

static bool over(const struct qp_peers *peers)
{
    return peers->ending && peers->stop_done && peers->accept_done && !peers->streams;
}

void qp_run(void *arg)
{
    struct qp_peers *peers = arg;

    while (!over(peers)) {
        struct qp_item *item = qf_mailbox_receive(peers->mailbox, QP_TICK_MS);

        peers->now = qf_clock_mono_ms();
        if (item)
            dispatch(peers, item);
        if (peers->now >= peers->next_tick)
            tick(peers);
    }
}
