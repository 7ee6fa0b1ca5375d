/* stream.c - one gRPC call between two nodes: its operations, what it sends, its end. */
#include <assert.h>
#include <grpc/byte_buffer.h>
#include <grpc/support/alloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "queue/peer/peer_int.h"

struct qp_stream *qp_stream_new(struct qp_peers *peers, grpc_call *call, grpc_channel *channel)
{
    static const struct rpc_queue_limits own = { .messages_max = 64, .bytes_max = 64 << 10 };
    struct qp_stream *stream = qf_xcalloc(1, sizeof(*stream));

    stream->peers = peers;
    stream->dialed = channel != NULL;
    stream->channel = channel;
    stream->call = call;
    stream->began = stream->heard = stream->said = peers->now;
    rpc_queue_init(&stream->own, &own);
    grpc_metadata_array_init(&stream->initial);
    grpc_metadata_array_init(&stream->trailing);
    stream->details = grpc_empty_slice();
    for (int op = 0; op < QP_OP__COUNT; op++)
        stream->tags[op] =
            (struct qp_tag){ .item = { QP_ITEM_TAG }, .stream = stream, .op = (enum qp_op)op };
    stream->next = peers->streams;
    peers->streams = stream;
    peers->stream_count++;
    return stream;
}

void qp_stream_free(struct qp_stream *stream)
{
    struct qp_stream **at = &stream->peers->streams;

    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    stream->peers->stream_count--;
    rpc_queue_clear(&stream->own);
    if (stream->incoming)
        grpc_byte_buffer_destroy(stream->incoming);
    if (stream->outgoing)
        grpc_byte_buffer_destroy(stream->outgoing);
    grpc_metadata_array_destroy(&stream->initial);
    grpc_metadata_array_destroy(&stream->trailing);
    grpc_slice_unref(stream->details);
    grpc_call_unref(stream->call);
    if (stream->channel)
        grpc_channel_destroy(stream->channel);
    free(stream);
}

static void start(struct qp_stream *stream, enum qp_op tag, const grpc_op *ops, size_t count)
{
    grpc_call_error error;

    assert(!stream->busy[tag]);
    error = grpc_call_start_batch(stream->call, ops, count, &stream->tags[tag], NULL);
    assert(error == GRPC_CALL_OK); /* anything else is a misuse of the API, not bad luck */
    (void)error;
    stream->busy[tag] = true;
}

static void await_end(struct qp_stream *stream)
{
    grpc_op op = { 0 };

    if (stream->dialed) {
        op.op = GRPC_OP_RECV_STATUS_ON_CLIENT;
        op.data.recv_status_on_client.trailing_metadata = &stream->trailing;
        op.data.recv_status_on_client.status = &stream->status;
        op.data.recv_status_on_client.status_details = &stream->details;
    } else {
        op.op = GRPC_OP_RECV_CLOSE_ON_SERVER;
        op.data.recv_close_on_server.cancelled = &stream->canceled;
    }
    start(stream, QP_OP_CLOSE, &op, 1);
}

void qp_stream_start(struct qp_stream *stream)
{
    grpc_op metadata = { .op = GRPC_OP_SEND_INITIAL_METADATA };
    grpc_op reads[2] = { { .op = GRPC_OP_RECV_MESSAGE }, { .op = GRPC_OP_RECV_INITIAL_METADATA } };

    await_end(stream);
    start(stream, QP_OP_WRITE, &metadata, 1);
    reads[0].data.recv_message.recv_message = &stream->incoming;
    reads[1].data.recv_initial_metadata.recv_initial_metadata = &stream->initial;
    start(stream, QP_OP_READ, reads, stream->dialed ? 2 : 1);
}

void qp_stream_read(struct qp_stream *stream)
{
    grpc_op op = { .op = GRPC_OP_RECV_MESSAGE };

    if (stream->state > QP_STREAM_READY || stream->busy[QP_OP_READ])
        return;
    op.data.recv_message.recv_message = &stream->incoming;
    start(stream, QP_OP_READ, &op, 1);
}

static void send_status(struct qp_stream *stream)
{
    grpc_slice details = grpc_slice_from_copied_string(stream->why);
    grpc_op op = { .op = GRPC_OP_SEND_STATUS_FROM_SERVER };

    op.data.send_status_from_server.status = stream->status;
    op.data.send_status_from_server.status_details = &details;
    start(stream, QP_OP_STATUS, &op, 1);
    grpc_slice_unref(details);
}

/* The next frame to send, in stream->outgoing; false: there is none. */
static bool take_next(struct qp_stream *stream)
{
    struct qp_peers *peers = stream->peers;
    struct qp_peer *peer = stream->peer;
    struct rpc_queue *queue = &stream->own;

    if (rpc_queue_first(queue)) {
        stream->outgoing = rpc_queue_take(queue, peers->now, &stream->outgoing_bytes);
        return true;
    }
    if (stream->state != QP_STREAM_READY || peer->current != stream)
        return false;
    qf_lock_take(peers->lock);
    queue = &peer->out;
    if (rpc_queue_first(queue)) {
        stream->outgoing = rpc_queue_take(queue, peers->now, &stream->outgoing_bytes);
        peer->full_since = 0;
        peer->stat.messages_sent++;
        peer->stat.bytes_sent += stream->outgoing_bytes;
    }
    qf_lock_drop(peers->lock);
    return stream->outgoing != NULL;
}

void qp_stream_pump(struct qp_stream *stream)
{
    grpc_op op = { .op = GRPC_OP_SEND_MESSAGE };

    if (stream->state == QP_STREAM_OVER || stream->busy[QP_OP_WRITE] || stream->busy[QP_OP_STATUS])
        return;
    if (stream->state == QP_STREAM_ENDING) {
        send_status(stream);
        return;
    }
    if (!take_next(stream))
        return;
    stream->said = stream->peers->now;
    op.data.send_message.send_message = stream->outgoing;
    start(stream, QP_OP_WRITE, &op, 1);
}

void qp_stream_say(struct qp_stream *stream, const struct pb_peer_frame *frame)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    pb_peer_encode(&buf, frame);
    /* Beyond its bound it is a ping among many that nobody reads: the tick ends such a stream. */
    (void)rpc_queue_push(&stream->own, qf_strbuf_view(&buf), stream->peers->now);
    qf_strbuf_done(&buf);
    qp_stream_pump(stream);
}

void qp_stream_end(struct qp_stream *stream, grpc_status_code status, const char *why)
{
    if (stream->dialed) {
        qp_stream_cancel(stream, why);
        return;
    }
    if (stream->state > QP_STREAM_READY)
        return;
    stream->state = QP_STREAM_ENDING;
    stream->status = status;
    stream->linger_until = stream->peers->now + QP_LINGER_MS;
    (void)snprintf(stream->why, sizeof(stream->why), "%s", why);
    qp_stream_pump(stream);
}

void qp_stream_cancel(struct qp_stream *stream, const char *why)
{
    if (stream->state == QP_STREAM_OVER)
        return;
    stream->state = QP_STREAM_OVER;
    if (!stream->why[0])
        (void)snprintf(stream->why, sizeof(stream->why), "%s", why);
    (void)grpc_call_cancel(stream->call, NULL);
}

void qp_stream_completed(struct qp_stream *stream, enum qp_op op, bool ok)
{
    assert(stream->busy[op]);
    stream->busy[op] = false;
    if (op == QP_OP_WRITE) {
        if (stream->outgoing)
            grpc_byte_buffer_destroy(stream->outgoing);
        stream->outgoing = NULL;
        if (ok)
            qp_stream_pump(stream);
    }
    /* CLOSE comes when the status was sent or received, or the connection is gone. */
    if (op == QP_OP_CLOSE)
        stream->state = QP_STREAM_OVER;
}

bool qp_stream_finished(const struct qp_stream *stream)
{
    if (stream->state != QP_STREAM_OVER)
        return false;
    for (int op = 0; op < QP_OP__COUNT; op++)
        if (stream->busy[op])
            return false;
    return true;
}
