/* control_client.c - control streams on the gRPC C core. */
#include "queryapi/rpc/control_client.h"

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"
#include "proto/rpc/credentials.h"
#include "proto/rpc/message.h"
#include "proto/rpc/queue.h"

/* A worker that takes nothing for so long does not read. One that does may have a burst to take:
 * all the work of a query is sent at once. */
#define STUCK_MS 3000
#define BURST 4 /* times queue_bytes_max, and then it is over in any case */

enum tag_kind { TAG_SEND, TAG_RECV, TAG_STATUS };

struct call;

struct tag {
    struct call *call;
    enum tag_kind kind;
    struct tag *next; /* in qa_rpc.put_off */
    bool ok;
};

/* One session. It lives until every batch it started has come back. */
struct call {
    struct call *next;
    struct qa_rpc *rpc;
    uint64_t session;
    grpc_channel *channel;
    grpc_call *call;
    struct tag send, recv, status;
    int pending; /* batches under way */
    bool heard, closing;
    bool broke; /* it ended without a word of ours or of the worker's */
    qf_time_ms dial_deadline;
    char why[200];

    grpc_byte_buffer *received;
    grpc_metadata_array initial, trailing;
    grpc_status_code code;
    grpc_slice details;

    struct rpc_queue out; /* its first message is being sent while `sending` */
    bool sending;
};

struct qa_rpc {
    struct qa_rpc_options options;
    grpc_completion_queue *queue;
    grpc_channel_credentials *credentials;
    uint64_t generation; /* of the TLS files that the credentials are made of */
    struct qf_thread *thread;
    struct call *calls;
    size_t count;
    struct tag *put_off;      /* completed while something was sent, when the mailbox was full */
    struct qf_arena *scratch; /* of the message being decoded */
};

static void forward_completions(void *arg)
{
    struct qa_rpc *rpc = arg;

    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(rpc->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);

        if (event.type == GRPC_QUEUE_SHUTDOWN)
            return;
        if (event.type == GRPC_OP_COMPLETE)
            rpc->options.post(rpc->options.ctx, event.tag, event.success != 0);
    }
}

/* Credentials from the TLS files as they are. False: those that were there stay. */
static bool renew_credentials(struct qa_rpc *rpc, struct qf_err *err)
{
    uint64_t generation = rpc->options.tls ? qf_tls_files_generation(rpc->options.tls) : 0;
    grpc_channel_credentials *fresh;

    if (rpc->credentials && generation == rpc->generation)
        return true;
    fresh = rpc_channel_credentials(rpc->options.tls, err);
    if (!fresh)
        return false;
    if (rpc->credentials)
        grpc_channel_credentials_release(rpc->credentials);
    rpc->credentials = fresh;
    rpc->generation = generation;
    return true;
}

struct qa_rpc *qa_rpc_new(const struct qa_rpc_options *options, struct qf_err *err)
{
    struct qa_rpc *rpc = qf_xcalloc(1, sizeof(*rpc));

    grpc_init();
    rpc->options = *options;
    if (!rpc->options.queue_messages_max)
        rpc->options.queue_messages_max = 65536;
    if (!rpc->options.queue_bytes_max)
        rpc->options.queue_bytes_max = (size_t)64 << 20;
    if (!rpc->options.dial_timeout_ms)
        rpc->options.dial_timeout_ms = 5000;
    rpc->scratch = qf_arena_new(PB_DECODE_BYTES_MAX);
    rpc->queue = grpc_completion_queue_create_for_next(NULL);
    if (!renew_credentials(rpc, err))
        return qa_rpc_free(rpc);
    rpc->thread = qf_thread_start("grpc", forward_completions, rpc);
    if (!rpc->thread) {
        (void)qf_err_set(err, QF_EUNAVAILABLE, "cannot start a thread");
        return qa_rpc_free(rpc);
    }
    return rpc;
}

struct qa_rpc *qa_rpc_free(struct qa_rpc *rpc)
{
    if (!rpc)
        return NULL;
    grpc_completion_queue_shutdown(rpc->queue);
    if (!rpc->thread) /* nobody else empties the queue */
        (void)grpc_completion_queue_next(rpc->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    (void)qf_thread_join(rpc->thread);
    grpc_completion_queue_destroy(rpc->queue);
    if (rpc->credentials)
        grpc_channel_credentials_release(rpc->credentials);
    (void)qf_arena_free(rpc->scratch);
    free(rpc);
    grpc_shutdown();
    return NULL;
}

size_t qa_rpc_count(const struct qa_rpc *rpc)
{
    return rpc->count;
}

static struct call *find(struct qa_rpc *rpc, uint64_t session)
{
    for (struct call *call = rpc->calls; call; call = call->next)
        if (call->session == session)
            return call;
    return NULL;
}

/* End the call; the first reason given is the one reported. */
static void end_call(struct call *call, const char *why)
{
    if (call->closing)
        return;
    call->closing = true;
    (void)snprintf(call->why, sizeof(call->why), "%s", why);
    (void)grpc_call_cancel(call->call, NULL);
}

static void start(struct call *call, const grpc_op *ops, size_t count, struct tag *tag)
{
    if (grpc_call_start_batch(call->call, ops, count, tag, NULL) == GRPC_CALL_OK)
        call->pending++;
    else
        end_call(call, "cannot start a gRPC operation");
}

/* Something else completed on this thread meanwhile: it waits for its turn. */
static void put_off(struct qa_rpc *rpc, struct tag *tag, bool ok)
{
    if (rpc->options.try_post(rpc->options.ctx, tag, ok))
        return;
    tag->ok = ok;
    tag->next = rpc->put_off;
    rpc->put_off = tag;
}

/* As start(). True if @tag completed at once and nobody else will hear of it, which is said of messages
 * sent alone: gRPC mostly writes them to the socket at once, and would wake the completion thread to say
 * so, which would wake this one. A message that is here already waits for its turn, as it would if
 * the completion thread had found it. */
static bool start_here(struct call *call, const grpc_op *ops, size_t count, struct tag *tag,
                       bool *ret_ok)
{
    struct qa_rpc *rpc = call->rpc;
    void *found = NULL;
    int ok = 0;

    grpc_completion_queue_thread_local_cache_init(rpc->queue);
    start(call, ops, count, tag);
    if (!grpc_completion_queue_thread_local_cache_flush(rpc->queue, &found, &ok))
        return false;
    *ret_ok = ok != 0;
    if (found == tag && tag->kind == TAG_SEND)
        return true;
    put_off(rpc, found, ok != 0);
    return false;
}

static void receive_next(struct call *call, bool first)
{
    grpc_op ops[2] = { { .op = GRPC_OP_RECV_MESSAGE } };
    bool ok;

    ops[0].data.recv_message.recv_message = &call->received;
    if (first) {
        ops[1].op = GRPC_OP_RECV_INITIAL_METADATA;
        ops[1].data.recv_initial_metadata.recv_initial_metadata = &call->initial;
    }
    (void)start_here(call, ops, first ? 2 : 1, &call->recv, &ok);
}

static void sent(struct call *call, bool ok)
{
    call->pending--;
    call->sending = false;
    rpc_queue_drop(&call->out, qf_clock_mono_ms());
    if (!ok)
        end_call(call, "");
}

static void send_next(struct call *call, bool first)
{
    bool again = true;

    while (again && rpc_queue_first(&call->out) && !call->sending && !call->closing) {
        grpc_op ops[2] = { { .op = GRPC_OP_SEND_MESSAGE },
                           { .op = GRPC_OP_SEND_INITIAL_METADATA } };
        bool ok = false;

        ops[0].data.send_message.send_message = rpc_queue_first(&call->out);
        if (call->out.count > 1) /* the next one follows at once: one write for both */
            ops[0].flags = GRPC_WRITE_BUFFER_HINT;
        call->sending = true;
        again = start_here(call, ops, first ? 2 : 1, &call->send, &ok);
        if (again)
            sent(call, ok);
        first = false;
    }
}

static void enqueue(struct call *call, const struct pb_api_message *message)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    if (call->closing)
        return;
    pb_api_encode(&buf, message);
    if (!rpc_queue_push(&call->out, qf_strbuf_view(&buf), qf_clock_mono_ms()))
        end_call(call, "the worker does not read its messages");
    qf_strbuf_done(&buf);
}

/* A channel of its own per dial, so that the backoff between dials is ours alone. */
static grpc_channel *make_channel(const struct qa_rpc *rpc, const char *address)
{
    grpc_arg args[] = {
        rpc_int_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
        rpc_int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)PB_MESSAGE_BYTES_MAX),
        rpc_int_arg(GRPC_ARG_ENABLE_RETRIES, 0),
        rpc_int_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
        { .type = GRPC_ARG_STRING,
          .key = GRPC_SSL_TARGET_NAME_OVERRIDE_ARG,
          .value.string = (char *)(uintptr_t)rpc->options.tls_server_name },
    };
    /* The last one only if there is such a name. */
    grpc_channel_args all = { QF_COUNT_OF(args) - !rpc->options.tls_server_name, args };

    return grpc_channel_create(address, rpc->credentials, &all);
}

void qa_rpc_dial(struct qa_rpc *rpc, uint64_t session, const char *address)
{
    struct pb_api_message hello = {
        .kind = PB_API_HELLO,
        .u.hello = { .protocol_version = pb_protocol_oldest,
                     .protocol_newest = pb_protocol_newest,
                     .api_id = qf_str_from(rpc->options.api_id),
                     .software = QF_STR("promfabric " PROMFABRIC_VERSION) },
    };
    struct rpc_queue_limits limits = { .messages_max = rpc->options.queue_messages_max,
                                       .bytes_max = rpc->options.queue_bytes_max,
                                       .patience_ms = STUCK_MS,
                                       .burst = BURST };
    grpc_op status = { .op = GRPC_OP_RECV_STATUS_ON_CLIENT };
    struct call *call = qf_xcalloc(1, sizeof(*call));

    call->rpc = rpc;
    call->session = session;
    call->dial_deadline = qf_clock_mono_ms() + rpc->options.dial_timeout_ms;
    rpc_queue_init(&call->out, &limits);
    call->send = (struct tag){ .call = call, .kind = TAG_SEND };
    call->recv = (struct tag){ .call = call, .kind = TAG_RECV };
    call->status = (struct tag){ .call = call, .kind = TAG_STATUS };
    grpc_metadata_array_init(&call->initial);
    grpc_metadata_array_init(&call->trailing);
    call->details = grpc_empty_slice();
    (void)renew_credentials(rpc, NULL); /* else with those that were good for the last dial */
    call->channel = make_channel(rpc, address);
    call->call = grpc_channel_create_call(call->channel, NULL, GRPC_PROPAGATE_DEFAULTS, rpc->queue,
                                          grpc_slice_from_static_string(PB_CONTROL_METHOD), NULL,
                                          gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    call->next = rpc->calls;
    rpc->calls = call;
    rpc->count++;
    status.data.recv_status_on_client.trailing_metadata = &call->trailing;
    status.data.recv_status_on_client.status = &call->code;
    status.data.recv_status_on_client.status_details = &call->details;
    start(call, &status, 1, &call->status);
    enqueue(call, &hello);
    send_next(call, true);
    receive_next(call, true);
}

void qa_rpc_send(struct qa_rpc *rpc, uint64_t session, const struct pb_api_message *message)
{
    struct call *call = find(rpc, session);

    if (!call)
        return;
    enqueue(call, message);
    /* Nobody waits for an acknowledgement: it goes with what is sent next, or at the next tick. */
    if (message->kind != PB_API_ACK)
        send_next(call, false);
}

void qa_rpc_hangup(struct qa_rpc *rpc, uint64_t session, const char *why)
{
    struct call *call = find(rpc, session);

    if (call)
        end_call(call, why);
}

void qa_rpc_cancel_all(struct qa_rpc *rpc)
{
    for (struct call *call = rpc->calls; call; call = call->next)
        end_call(call, "the API is shutting down");
}

static void complete(struct tag *tag, bool ok);

static void complete_put_off(struct qa_rpc *rpc)
{
    while (rpc->put_off) {
        struct tag *tag = rpc->put_off;

        rpc->put_off = tag->next;
        complete(tag, tag->ok);
    }
}

void qa_rpc_tick(struct qa_rpc *rpc, qf_time_ms now)
{
    complete_put_off(rpc);
    for (struct call *call = rpc->calls; call; call = call->next)
        send_next(call, false);
    for (struct call *call = rpc->calls; call; call = call->next)
        if (!call->heard && now >= call->dial_deadline)
            end_call(call, "the worker does not answer");
}

static void decode(struct call *call)
{
    struct qa_rpc *rpc = call->rpc;
    struct pb_worker_message message;
    struct qf_err err = { 0 };
    grpc_slice slice;
    struct qf_str bytes;
    qf_rc rc;

    if (!rpc_message_view(call->received, &slice, &bytes)) {
        end_call(call, "unreadable message");
        return;
    }
    qf_arena_reset(rpc->scratch);
    rc = pb_worker_decode(rpc->scratch, bytes, &message, &err);
    grpc_slice_unref(slice);
    if (rc != QF_OK) {
        end_call(call, err.msg);
        return;
    }
    call->heard = true;
    rpc->options.message(rpc->options.ctx, call->session, &message);
}

static void on_received(struct call *call, bool ok)
{
    grpc_byte_buffer *bytes = call->received;

    if (!ok || !bytes) {
        end_call(call, ""); /* the status says why */
        return;
    }
    if (!call->closing)
        decode(call);
    grpc_byte_buffer_destroy(bytes);
    call->received = NULL;
    if (!call->closing)
        receive_next(call, false);
}

static void on_status(struct call *call)
{
    char *details = grpc_slice_to_c_string(call->details);

    call->broke = !call->why[0] && call->code == GRPC_STATUS_UNAVAILABLE;
    if (!call->why[0])
        (void)snprintf(call->why, sizeof(call->why), "%s (status %d)",
                       details[0] ? details : "the worker closed the stream", (int)call->code);
    gpr_free(details);
    call->closing = true;
}

static void free_call(struct call *call)
{
    struct qa_rpc *rpc = call->rpc;
    struct call **at = &rpc->calls;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    rpc->count--;
    rpc_queue_clear(&call->out);
    if (call->received)
        grpc_byte_buffer_destroy(call->received);
    grpc_metadata_array_destroy(&call->initial);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_slice_unref(call->details);
    grpc_call_unref(call->call);
    grpc_channel_destroy(call->channel);
    rpc->options.closed(rpc->options.ctx, call->session, call->why, call->broke);
    free(call);
}

static void complete(struct tag *tag, bool ok)
{
    struct call *call = tag->call;

    switch (tag->kind) {
    case TAG_SEND:
        sent(call, ok);
        send_next(call, false);
        break;
    case TAG_RECV:
        call->pending--;
        on_received(call, ok);
        break;
    case TAG_STATUS:
        call->pending--;
        on_status(call);
        break;
    }
    if (call->pending == 0)
        free_call(call);
}

void qa_rpc_complete(struct qa_rpc *rpc, void *tag, bool ok)
{
    complete(tag, ok);
    complete_put_off(rpc);
}
