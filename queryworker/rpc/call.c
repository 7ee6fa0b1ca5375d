/* call.c - one gRPC call on the server: its operations, queue and end. */
#include <assert.h>
#include <grpc/byte_buffer.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "proto/rpc/message.h"
#include "queryworker/rpc/server_int.h"

struct qw_call *qw_call_new(struct qw_server *server, grpc_call *call, enum qw_call_kind kind)
{
    static const struct rpc_queue_limits limits = { .messages_max = QW_SERVER_QUEUE_MESSAGES_MAX,
                                                    .bytes_max = QW_SERVER_QUEUE_BYTES_MAX };
    struct qw_call *self = qf_xcalloc(1, sizeof(*self));

    self->server = server;
    self->kind = kind;
    self->call = call;
    rpc_queue_init(&self->out, &limits);
    self->health_sent = -1;
    self->held_until = QF_TIME_NEVER;
    for (int op = 0; op < QW_OP__COUNT; op++)
        self->tags[op] = (struct qw_tag){
            .message = { QW_MESSAGE_RPC }, .server = server, .call = self, .op = (enum qw_op)op
        };
    return self;
}

void qw_call_free(struct qw_call *self)
{
    rpc_queue_clear(&self->out);
    if (self->incoming)
        grpc_byte_buffer_destroy(self->incoming);
    grpc_call_unref(self->call);
    free(self);
}

static void start(struct qw_call *self, enum qw_op tag, const grpc_op *ops, size_t count)
{
    grpc_call_error error;

    assert(!self->busy[tag]);
    error = grpc_call_start_batch(self->call, ops, count, &self->tags[tag], NULL);
    assert(error == GRPC_CALL_OK); /* anything else is a misuse of the API, not bad luck */
    (void)error;
    self->busy[tag] = true;
}

void qw_call_start(struct qw_call *self, bool read)
{
    grpc_op metadata = { .op = GRPC_OP_SEND_INITIAL_METADATA };
    grpc_op close = { .op = GRPC_OP_RECV_CLOSE_ON_SERVER };

    close.data.recv_close_on_server.cancelled = &self->canceled;
    start(self, QW_OP_CLOSE, &close, 1);
    start(self, QW_OP_WRITE, &metadata, 1);
    if (read)
        qw_call_read(self);
}

/* Something else completed on this thread meanwhile: it waits for its turn. */
static void put_off(struct qw_server *server, struct qw_tag *tag, bool ok)
{
    tag->ok = ok;
    if (qf_mailbox_try_send(server->options.mailbox, tag))
        return;
    tag->next = server->put_off; /* where the mailbox is full, a dispatch is near */
    server->put_off = tag;
}

/* As start(). True if a write completed at once and nobody else will hear of it: gRPC mostly writes
 * messages to the socket at once, and would wake the completion thread to say so, which would wake this
 * one. A message that is here already waits for its turn, as if the completion thread had found it. */
static bool start_here(struct qw_call *self, enum qw_op tag, const grpc_op *op)
{
    grpc_completion_queue *cq = self->server->cq;
    void *found = NULL;
    int ok = 0;

    grpc_completion_queue_thread_local_cache_init(cq);
    start(self, tag, op, 1);
    if (!grpc_completion_queue_thread_local_cache_flush(cq, &found, &ok))
        return false;
    if (tag == QW_OP_WRITE && found == &self->tags[QW_OP_WRITE]) {
        self->busy[QW_OP_WRITE] = false;
        return true;
    }
    put_off(self->server, found, ok != 0);
    return false;
}

void qw_call_read(struct qw_call *self)
{
    grpc_op op = { .op = GRPC_OP_RECV_MESSAGE };

    if (self->state != QW_CALL_LIVE || self->busy[QW_OP_READ])
        return;
    op.data.recv_message.recv_message = &self->incoming;
    (void)start_here(self, QW_OP_READ, &op);
}

static void send_status(struct qw_call *self)
{
    grpc_slice details = grpc_slice_from_copied_string(self->why);
    grpc_op op = { .op = GRPC_OP_SEND_STATUS_FROM_SERVER };

    op.data.send_status_from_server.status = self->status;
    op.data.send_status_from_server.status_details = &details;
    start(self, QW_OP_STATUS, &op, 1);
    grpc_slice_unref(details);
}

/* Send the first message. True if that is over already. */
static bool send_first(struct qw_call *self)
{
    grpc_op op = { .op = GRPC_OP_SEND_MESSAGE };
    bool over;

    op.data.send_message.send_message = rpc_queue_first(&self->out);
    if (self->out.count > 1) /* the next one follows at once: one write for both */
        op.flags = GRPC_WRITE_BUFFER_HINT;
    over = start_here(self, QW_OP_WRITE, &op);
    rpc_queue_drop(&self->out, qf_clock_mono_ms()); /* gRPC has what it needs of it */
    return over;
}

/* Send what comes next: a message, or at the end the status. */
static void pump(struct qw_call *self)
{
    self->held_until = QF_TIME_NEVER;
    do {
        if (self->state == QW_CALL_OVER || self->busy[QW_OP_WRITE] || self->busy[QW_OP_STATUS])
            return;
        if (!rpc_queue_first(&self->out)) {
            if (self->state == QW_CALL_ENDING)
                send_status(self);
            return;
        }
    } while (send_first(self));
}

bool qw_call_write(struct qw_call *self, struct qf_str bytes, bool hold)
{
    qf_time_ms now = qf_clock_mono_ms();

    if (self->state != QW_CALL_LIVE || !rpc_queue_push(&self->out, bytes, now))
        return false;
    if (!hold)
        pump(self);
    else if (self->held_until == QF_TIME_NEVER)
        self->held_until = now + QW_SERVER_HOLD_MS;
    return true;
}

void qw_call_release(struct qw_call *self, qf_time_ms now)
{
    if (self->held_until <= now)
        pump(self);
}

void qw_call_end(struct qw_call *self, grpc_status_code status, const char *why)
{
    if (self->state != QW_CALL_LIVE)
        return;
    self->state = QW_CALL_ENDING;
    self->status = status;
    (void)snprintf(self->why, sizeof(self->why), "%s", why);
    self->linger_until = qf_clock_mono_ms() + QW_SERVER_LINGER_MS;
    pump(self);
}

void qw_call_cancel(struct qw_call *self, grpc_status_code status, const char *why)
{
    if (self->state == QW_CALL_OVER)
        return;
    self->state = QW_CALL_OVER;
    rpc_queue_clear(&self->out);
    (void)grpc_call_cancel_with_status(self->call, status, why, NULL);
}

void qw_call_completed(struct qw_call *self, enum qw_op op)
{
    assert(self->busy[op]);
    self->busy[op] = false;
    if (op == QW_OP_WRITE)
        pump(self);
    /* CLOSE comes when the status was sent or the peer is gone: there is nothing left to do. */
    if (op == QW_OP_CLOSE)
        self->state = QW_CALL_OVER;
}

bool qw_call_finished(const struct qw_call *self)
{
    if (self->state != QW_CALL_OVER)
        return false;
    for (int op = 0; op < QW_OP__COUNT; op++)
        if (self->busy[op])
            return false;
    return true;
}

bool qw_call_take_message(struct qw_call *self, struct qf_arena *arena, struct qf_str *ret_bytes)
{
    struct qf_str bytes;
    grpc_slice slice;
    bool taken = false;

    if (!self->incoming)
        return false;
    if (rpc_message_view(self->incoming, &slice, &bytes)) {
        *ret_bytes = qf_arena_str(arena, bytes);
        taken = ret_bytes->data != NULL;
        grpc_slice_unref(slice);
    }
    grpc_byte_buffer_destroy(self->incoming);
    self->incoming = NULL;
    return taken;
}
