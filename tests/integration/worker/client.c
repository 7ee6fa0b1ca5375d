/* client.c - the API's end of a control stream, for tests. */
#include "tests/integration/worker/client.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"

enum { TAG_START = 1, TAG_READ, TAG_WRITE, TAG_STATUS, TAG_CLOSE, TAG__COUNT };

struct client {
    struct client_options options;
    struct qf_arena *arena;
    grpc_channel *channel;
    grpc_completion_queue *cq;
    grpc_call *call;
    bool busy[TAG__COUNT];
    bool write_failed, ended;
    grpc_byte_buffer *incoming;
    grpc_metadata_array initial, trailing;
    grpc_status_code status;
    grpc_slice details;
    QF_VEC(struct qf_str) inbox;
    size_t inbox_next;
    int64_t beat_at;
    unsigned echoes, beats;
};

static void start(struct client *client, uintptr_t tag, const grpc_op *op)
{
    if (grpc_call_start_batch(client->call, op, 1, (void *)tag, NULL) == GRPC_CALL_OK)
        client->busy[tag] = true;
}

static void read_next(struct client *client)
{
    grpc_op op = { .op = GRPC_OP_RECV_MESSAGE };

    op.data.recv_message.recv_message = &client->incoming;
    start(client, TAG_READ, &op);
}

static void keep_incoming(struct client *client)
{
    grpc_byte_buffer_reader reader;

    if (!client->incoming)
        return;
    if (grpc_byte_buffer_reader_init(&reader, client->incoming)) {
        grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);
        struct qf_str bytes = { (const char *)GRPC_SLICE_START_PTR(slice),
                                GRPC_SLICE_LENGTH(slice) };

        QF_VEC_PUSH(&client->inbox, qf_arena_str(client->arena, bytes));
        grpc_slice_unref(slice);
        grpc_byte_buffer_reader_destroy(&reader);
    }
    grpc_byte_buffer_destroy(client->incoming);
    client->incoming = NULL;
    read_next(client);
}

/* Handle one completion; false if none came within @wait_ms. */
static bool turn(struct client *client, int64_t wait_ms)
{
    gpr_timespec deadline =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(wait_ms, GPR_TIMESPAN));
    grpc_event event = grpc_completion_queue_next(client->cq, deadline, NULL);
    uintptr_t tag = (uintptr_t)event.tag;

    if (event.type != GRPC_OP_COMPLETE)
        return false;
    client->busy[tag] = false;
    if (tag == TAG_READ)
        keep_incoming(client);
    else if (tag == TAG_STATUS)
        client->ended = true;
    else if (tag == TAG_WRITE && !event.success)
        client->write_failed = true;
    return true;
}

static grpc_channel *make_channel(const struct client_options *options)
{
    grpc_ssl_pem_key_cert_pair pair = { options->key, options->cert };
    grpc_channel_credentials *credentials =
        options->ca
            ? grpc_ssl_credentials_create(options->ca, options->cert ? &pair : NULL, NULL, NULL)
            : grpc_insecure_credentials_create();
    grpc_arg args[1] = { { .type = GRPC_ARG_STRING,
                           .key = (char *)(uintptr_t)GRPC_SSL_TARGET_NAME_OVERRIDE_ARG } };
    grpc_channel_args channel_args = { 0, args };
    grpc_channel *channel;

    args[0].value.string = (char *)(uintptr_t) "localhost";
    channel_args.num_args = options->ca ? 1 : 0;
    channel = grpc_channel_create(options->target, credentials, &channel_args);
    grpc_channel_credentials_release(credentials);
    return channel;
}

static void open_call(struct client *client)
{
    const char *method = client->options.method ? client->options.method : PB_CONTROL_METHOD;
    grpc_slice slice = grpc_slice_from_copied_string(method);
    grpc_op op = { .op = GRPC_OP_SEND_INITIAL_METADATA };
    grpc_op status = { .op = GRPC_OP_RECV_STATUS_ON_CLIENT };
    grpc_op initial = { .op = GRPC_OP_RECV_INITIAL_METADATA };

    client->call =
        grpc_channel_create_call(client->channel, NULL, GRPC_PROPAGATE_DEFAULTS, client->cq, slice,
                                 NULL, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    grpc_slice_unref(slice);
    start(client, TAG_WRITE, &op);
    initial.data.recv_initial_metadata.recv_initial_metadata = &client->initial;
    start(client, TAG_START, &initial);
    status.data.recv_status_on_client.trailing_metadata = &client->trailing;
    status.data.recv_status_on_client.status = &client->status;
    status.data.recv_status_on_client.status_details = &client->details;
    start(client, TAG_STATUS, &status);
    read_next(client);
}

struct client *client_new(const struct client_options *options)
{
    struct client *client = qf_xcalloc(1, sizeof(*client));

    grpc_init();
    client->options = *options;
    client->arena = qf_arena_new(SIZE_MAX);
    client->cq = grpc_completion_queue_create_for_next(NULL);
    client->channel = make_channel(options);
    grpc_metadata_array_init(&client->initial);
    grpc_metadata_array_init(&client->trailing);
    client->details = grpc_empty_slice();
    client->status = (grpc_status_code)-1;
    open_call(client);
    client->beat_at = qf_clock_mono_ms();
    if (!options->no_hello) {
        struct pb_api_message hello = {
            .kind = PB_API_HELLO,
            .u.hello = { options->protocol_version ? options->protocol_version
                                                   : PB_PROTOCOL_VERSION,
                         QF_STR("test-api"), QF_STR("test") },
        };

        (void)client_send(client, &hello);
    }
    return client;
}

struct client *client_free(struct client *client)
{
    bool busy = true;

    if (!client)
        return NULL;
    (void)grpc_call_cancel(client->call, NULL);
    while (busy) {
        busy = false;
        for (int i = 1; i < TAG__COUNT; i++)
            busy = busy || client->busy[i];
        if (busy)
            (void)turn(client, 1000);
    }
    if (client->incoming)
        grpc_byte_buffer_destroy(client->incoming);
    grpc_call_unref(client->call);
    grpc_channel_destroy(client->channel);
    grpc_completion_queue_shutdown(client->cq);
    while (grpc_completion_queue_next(client->cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL).type !=
           GRPC_QUEUE_SHUTDOWN)
        continue;
    grpc_completion_queue_destroy(client->cq);
    grpc_metadata_array_destroy(&client->initial);
    grpc_metadata_array_destroy(&client->trailing);
    grpc_slice_unref(client->details);
    QF_VEC_DONE(&client->inbox);
    (void)qf_arena_free(client->arena);
    free(client);
    grpc_shutdown();
    return NULL;
}

bool client_send_bytes(struct client *client, struct qf_str bytes)
{
    grpc_slice slice = grpc_slice_from_copied_buffer(bytes.data, bytes.len);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_op op = { .op = GRPC_OP_SEND_MESSAGE };

    grpc_slice_unref(slice);
    while (client->busy[TAG_WRITE] && !client->ended)
        (void)turn(client, 1000);
    if (!client->ended && !client->write_failed) {
        op.data.send_message.send_message = buffer;
        start(client, TAG_WRITE, &op);
    }
    grpc_byte_buffer_destroy(buffer);
    return !client->ended && !client->write_failed;
}

bool client_send(struct client *client, const struct pb_api_message *message)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    bool sent;

    pb_api_encode(&buf, message);
    sent = client_send_bytes(client, qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
    return sent;
}

void client_half_close(struct client *client)
{
    grpc_op op = { .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT };

    while (client->busy[TAG_WRITE] && !client->ended)
        (void)turn(client, 1000);
    start(client, TAG_CLOSE, &op);
}

static void beat(struct client *client)
{
    struct pb_api_message message = { .kind = PB_API_HEARTBEAT,
                                      .u.heartbeat = { qf_clock_mono_ns() / 1000, false } };

    if (client->options.no_heartbeat || client->options.method ||
        qf_clock_mono_ms() < client->beat_at)
        return;
    client->beat_at = qf_clock_mono_ms() + 1000;
    (void)client_send(client, &message);
}

bool client_receive_bytes(struct client *client, struct qf_str *ret_bytes, int64_t timeout_ms)
{
    int64_t give_up = qf_clock_mono_ms() + timeout_ms;

    for (;;) {
        int64_t now = qf_clock_mono_ms();
        int64_t beat_in = QF_MAX(client->beat_at - now, 1);

        beat(client);
        if (client->inbox_next < client->inbox.count) {
            *ret_bytes = client->inbox.items[client->inbox_next++];
            return true;
        }
        if (now >= give_up || (client->ended && !client->busy[TAG_READ]))
            return false;
        (void)turn(client, QF_MIN(beat_in, give_up - now));
    }
}

bool client_receive(struct client *client, struct pb_worker_message *ret_message,
                    int64_t timeout_ms)
{
    int64_t give_up = qf_clock_mono_ms() + timeout_ms;
    struct qf_str bytes;

    while (client_receive_bytes(client, &bytes, QF_MAX(give_up - qf_clock_mono_ms(), 0))) {
        struct pb_api_message echo = { .kind = PB_API_HEARTBEAT };

        if (pb_worker_decode(client->arena, bytes, ret_message, NULL))
            return false;
        if (ret_message->kind != PB_WORKER_HEARTBEAT)
            return true;
        if (ret_message->u.heartbeat.echo) {
            client->echoes++;
        } else if (!client->options.no_heartbeat) {
            client->beats++;
            echo.u.heartbeat = (struct pb_heartbeat){ ret_message->u.heartbeat.sent_us, true };
            (void)client_send(client, &echo);
        }
    }
    return false;
}

bool client_receive_kind(struct client *client, enum pb_worker_kind kind,
                         struct pb_worker_message *ret_message, int64_t timeout_ms)
{
    int64_t give_up = qf_clock_mono_ms() + timeout_ms;

    while (client_receive(client, ret_message, QF_MAX(give_up - qf_clock_mono_ms(), 0)))
        if (ret_message->kind == kind)
            return true;
    return false;
}

int client_wait_end(struct client *client, int64_t timeout_ms, const char **ret_details)
{
    int64_t give_up = qf_clock_mono_ms() + timeout_ms;

    while (!client->ended && qf_clock_mono_ms() < give_up)
        (void)turn(client, 20);
    if (!client->ended)
        return -1;
    if (ret_details) {
        char *details = grpc_slice_to_c_string(client->details);

        *ret_details = qf_arena_cstr(client->arena, qf_str_from(details));
        gpr_free(details);
    }
    return (int)client->status;
}

unsigned client_echoes(const struct client *client)
{
    return client->echoes;
}

unsigned client_beats(const struct client *client)
{
    return client->beats;
}
