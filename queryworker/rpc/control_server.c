/* control_server.c - listens, tells calls apart and connects them with the coordinator. */
#include "queryworker/rpc/control_server.h"

#include <assert.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"
#include "proto/codec/health.h"
#include "proto/rpc/credentials.h"
#include "proto/rpc/message.h"
#include "queryworker/rpc/server_int.h"

/* gRPC's own lines would break the log format; they are for people who debug gRPC. */
static void log_from_grpc(gpr_log_func_args *args)
{
    QF_LOG_DEBUG("grpc", QF_KV_STR("text", args->message));
}

/* The completion thread: hand every tag to the coordinator, which alone touches calls. */
static void forward_completions(void *arg)
{
    struct qw_server *server = arg;

    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(server->cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        struct qw_tag *tag = event.tag;

        if (event.type == GRPC_QUEUE_SHUTDOWN)
            return;
        if (event.type != GRPC_OP_COMPLETE)
            continue;
        tag->ok = event.success != 0;
        /* Waiting is fine: the coordinator never waits for this thread. */
        if (!qf_mailbox_send(server->options.mailbox, tag, -1))
            return;
    }
}

static void request_call(struct qw_server *server)
{
    grpc_call_error error;

    grpc_call_details_init(&server->accepted_details);
    grpc_metadata_array_init(&server->accepted_metadata);
    server->accepted = NULL;
    error = grpc_server_request_call(server->server, &server->accepted, &server->accepted_details,
                                     &server->accepted_metadata, server->cq, server->cq,
                                     &server->accept_tag);
    assert(error == GRPC_CALL_OK);
    (void)error;
}

/* The files for TLS, if there are any. */
static bool read_identity(struct qw_server *server, struct qf_err *err)
{
    const struct qw_server_options *options = &server->options;
    struct qf_tls_paths paths = { options->tls_client_ca, options->tls_cert, options->tls_key };

    if (!options->tls_client_ca && !options->tls_cert && !options->tls_key)
        return true;
    if (!options->tls_cert) {
        (void)qf_err_set(err, QF_EINVAL, "TLS needs both a certificate and a key file");
        return false;
    }
    server->identity.files = qf_tls_files_new(&paths, err);
    return server->identity.files != NULL;
}

static bool listen_on(struct qw_server *server, struct qf_err *err)
{
    grpc_arg args[] = {
        rpc_int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)PB_MESSAGE_BYTES_MAX),
        rpc_int_arg(GRPC_ARG_MAX_CONCURRENT_STREAMS, QW_SERVER_CALLS_MAX),
        rpc_int_arg(GRPC_ARG_ALLOW_REUSEPORT, 0), /* a taken port is an error, not a surprise */
        rpc_int_arg(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0),
    };
    grpc_channel_args channel_args = { QF_COUNT_OF(args), args };
    const struct qw_server_options *options = &server->options;
    const char *listen = options->listen;
    grpc_server_credentials *credentials;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf address = QF_STRBUF_INIT;

    if (!read_identity(server, err))
        return false;
    credentials = rpc_server_credentials(&server->identity, err);
    if (!credentials)
        return false;
    /* gRPC wants a host; this one stands for every address, those of IPv6 too. */
    qf_strbuf_printf(&address, "%s%s", listen[0] == ':' ? "0.0.0.0" : "", listen);
    server->server = grpc_server_create(&channel_args, NULL);
    grpc_server_register_completion_queue(server->server, server->cq, NULL);
    server->port =
        grpc_server_add_http2_port(server->server, qf_strbuf_cstr(&address), credentials);
    grpc_server_credentials_release(credentials);
    if (server->port > 0)
        return true;
    (void)qf_err_set(err, QF_EIO,
                     "cannot listen on %s: the address is taken or not ours, or TLS files are bad",
                     listen);
    return false;
}

struct qw_server *qw_server_new(const struct qw_server_options *options, struct qf_err *err)
{
    struct qw_server *server = qf_xcalloc(1, sizeof(*server));

    gpr_set_log_function(log_from_grpc);
    grpc_init();
    server->options = *options;
    server->accept_tag = (struct qw_tag){ .message = { QW_MESSAGE_RPC }, .server = server };
    server->stop_tag = server->accept_tag;
    server->cq = grpc_completion_queue_create_for_next(NULL);
    if (listen_on(server, err)) {
        grpc_server_start(server->server);
        server->thread = qf_thread_start("grpc", forward_completions, server);
        if (server->thread) {
            request_call(server);
            return server;
        }
        (void)qf_err_set(err, QF_EIO, "cannot start a thread");
    }
    server->stopping = server->stop_done = server->accept_done = true;
    return qw_server_free(server);
}

int qw_server_port(const struct qw_server *server)
{
    return server->port;
}

static enum qw_call_kind call_kind(const struct qw_server *server)
{
    static const struct {
        const char *method;
        enum qw_call_kind kind;
    } methods[] = {
        { PB_CONTROL_METHOD, QW_CALL_CONTROL },
        { PB_HEALTH_CHECK_METHOD, QW_CALL_HEALTH_CHECK },
        { PB_HEALTH_WATCH_METHOD, QW_CALL_HEALTH_WATCH },
    };

    if (server->call_count >= QW_SERVER_CALLS_MAX)
        return QW_CALL_REFUSED;
    for (size_t i = 0; i < QF_COUNT_OF(methods); i++)
        if (grpc_slice_str_cmp(server->accepted_details.method, methods[i].method) == 0)
            return methods[i].kind;
    return QW_CALL_UNKNOWN;
}

/* The coordinator hears of the end of a session exactly once, unless it ended it itself. */
static void forget_session(struct qw_call *call, enum qw_closed how, const char *why)
{
    const struct qw_server_handler *handler = &call->server->options.handler;
    uint64_t session = call->session;

    call->session = 0;
    if (session)
        handler->closed(handler->ctx, session, how, why);
}

static void open_session(struct qw_call *call)
{
    struct qw_server *server = call->server;
    const struct qw_server_handler *handler = &server->options.handler;
    char *peer = grpc_call_get_peer(call->call);
    uint64_t session = ++server->last_session;
    qf_rc rc;

    call->session = session; /* before the handler runs: it sends the first status from inside */
    rc = handler->opened(handler->ctx, session, peer);
    gpr_free(peer);
    if (rc) {
        call->session = 0;
        qw_call_end(call, (grpc_status_code)qf_rc_grpc_status(rc), qf_rc_text(rc));
    }
}

/* Whether the certificate of who calls is one of an API. */
static bool is_api(const struct qw_server *server, grpc_call *call)
{
    const char *wanted = server->options.tls_client_name;

    return !wanted || rpc_peer_has_name(call, wanted);
}

static void accept_call(struct qw_server *server, bool ok)
{
    struct qw_call *call;
    enum qw_call_kind kind;

    if (ok) {
        kind = call_kind(server);
        call = qw_call_new(server, server->accepted, kind);
        call->next = server->calls;
        server->calls = call;
        server->call_count++;
        qw_call_start(call, kind != QW_CALL_UNKNOWN && kind != QW_CALL_REFUSED);
        if (server->stopping) /* it came just before: nobody else would end it */
            qw_call_end(call, GRPC_STATUS_UNAVAILABLE, "worker is shutting down");
        else if (kind == QW_CALL_CONTROL && !is_api(server, call->call))
            qw_call_end(call, GRPC_STATUS_PERMISSION_DENIED,
                        "the certificate has not the name of an API");
        else if (kind == QW_CALL_CONTROL)
            open_session(call);
        else if (kind == QW_CALL_UNKNOWN)
            qw_call_end(call, GRPC_STATUS_UNIMPLEMENTED, "unknown method");
        else if (kind == QW_CALL_REFUSED)
            qw_call_end(call, GRPC_STATUS_RESOURCE_EXHAUSTED, "too many calls");
    }
    grpc_call_details_destroy(&server->accepted_details);
    grpc_metadata_array_destroy(&server->accepted_metadata);
    if (ok && !server->stopping)
        request_call(server);
    else
        server->accept_done = true;
}

static void read_control(struct qw_call *call, struct qf_arena *arena, struct qf_str bytes)
{
    const struct qw_server_handler *handler = &call->server->options.handler;
    struct pb_api_message message;
    struct qf_err err = { 0 };
    qf_rc rc = pb_api_decode(arena, bytes, &message, &err);

    if (rc) {
        (void)qf_arena_free(arena);
        qw_call_end(call, (grpc_status_code)qf_rc_grpc_status(rc), err.msg);
        forget_session(call, QW_CLOSED_PROTOCOL, err.msg);
        return;
    }
    handler->message(handler->ctx, call->session, arena, &message);
}

static bool send_health(struct qw_call *call, enum pb_health health)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    bool sent;

    if (call->health_sent == (int)health)
        return true;
    pb_health_response_encode(&buf, health);
    sent = qw_call_write(call, qf_strbuf_view(&buf), false);
    qf_strbuf_done(&buf);
    call->health_sent = (int)health;
    return sent;
}

static enum pb_health health_now(const struct qw_server *server)
{
    return server->serving ? PB_HEALTH_SERVING : PB_HEALTH_NOT_SERVING;
}

static void read_health(struct qw_call *call, struct qf_arena *arena, struct qf_str bytes)
{
    struct qf_str service = QF_STR("");
    struct qf_err err = { 0 };
    qf_rc rc = pb_health_request_decode(arena, bytes, &service, &err);
    bool known = service.len == 0 || qf_str_is(service, "promfabric.control.v1.Control");

    (void)qf_arena_free(arena);
    if (rc) {
        qw_call_end(call, GRPC_STATUS_INVALID_ARGUMENT, err.msg);
    } else if (call->kind == QW_CALL_HEALTH_WATCH) {
        (void)send_health(call, known ? health_now(call->server) : PB_HEALTH_SERVICE_UNKNOWN);
    } else if (!known) {
        qw_call_end(call, GRPC_STATUS_NOT_FOUND, "unknown service");
    } else {
        (void)send_health(call, health_now(call->server));
        qw_call_end(call, GRPC_STATUS_OK, "");
    }
}

static void message_read(struct qw_call *call)
{
    struct qf_arena *arena = qf_arena_new(QW_SERVER_ARENA_BYTES_MAX);
    struct qf_str bytes;

    if (!qw_call_take_message(call, arena, &bytes) || call->state != QW_CALL_LIVE) {
        (void)qf_arena_free(arena);
        /* The peer has nothing more to say. A watcher may go on listening, an API may not. */
        if (call->kind == QW_CALL_CONTROL) {
            qw_call_end(call, GRPC_STATUS_OK, "");
            forget_session(call, QW_CLOSED_BY_PEER, "closed by peer");
        } else if (call->kind == QW_CALL_HEALTH_CHECK) {
            qw_call_end(call, GRPC_STATUS_INVALID_ARGUMENT, "no request");
        }
        return;
    }
    if (call->kind == QW_CALL_CONTROL)
        read_control(call, arena, bytes);
    else
        read_health(call, arena, bytes);
    qw_call_read(call);
}

static void free_if_finished(struct qw_call *call)
{
    struct qw_server *server = call->server;
    struct qw_call **link = &server->calls;

    if (!qw_call_finished(call))
        return;
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    server->call_count--;
    qw_call_free(call);
}

static void dispatch(struct qw_server *server, struct qw_tag *tag)
{
    struct qw_call *call = tag->call;

    if (tag == &server->accept_tag) {
        accept_call(server, tag->ok);
        return;
    }
    if (tag == &server->stop_tag) {
        server->stop_done = true;
        return;
    }
    qw_call_completed(call, tag->op);
    if (tag->op == QW_OP_READ)
        message_read(call);
    else if (tag->op == QW_OP_CLOSE)
        forget_session(call, QW_CLOSED_LOST, "stream lost");
    free_if_finished(call);
}

void qw_server_dispatch(struct qw_server *server, struct qw_message *message)
{
    assert(message->kind == QW_MESSAGE_RPC);
    dispatch(server, (struct qw_tag *)message);
    while (server->put_off) {
        struct qw_tag *tag = server->put_off;

        server->put_off = tag->next;
        dispatch(server, tag);
    }
}

static struct qw_call *find_session(const struct qw_server *server, uint64_t session)
{
    if (session == 0)
        return NULL;
    for (struct qw_call *call = server->calls; call; call = call->next)
        if (call->session == session)
            return call;
    return NULL;
}

bool qw_server_send(struct qw_server *server, uint64_t session,
                    const struct pb_worker_message *message)
{
    struct qw_call *call = find_session(server, session);
    struct qf_strbuf buf = QF_STRBUF_INIT;
    bool sent;

    if (!call)
        return false;
    pb_worker_encode(&buf, message);
    sent = qw_call_write(call, qf_strbuf_view(&buf), message->kind == PB_WORKER_ACCEPTED);
    qf_strbuf_done(&buf);
    if (!sent) {
        qw_call_cancel(call, GRPC_STATUS_RESOURCE_EXHAUSTED, "peer does not read");
        forget_session(call, QW_CLOSED_STUCK, "peer does not read");
    }
    return sent;
}

void qw_server_end(struct qw_server *server, uint64_t session, qf_rc rc, const char *why,
                   bool graceful)
{
    struct qw_call *call = find_session(server, session);
    grpc_status_code status = rc ? (grpc_status_code)qf_rc_grpc_status(rc) : GRPC_STATUS_OK;

    if (!call)
        return;
    call->session = 0;
    if (graceful)
        qw_call_end(call, status, why);
    else
        qw_call_cancel(call, status, why);
}

void qw_server_set_serving(struct qw_server *server, bool serving)
{
    server->serving = serving;
    for (struct qw_call *call = server->calls; call; call = call->next)
        if (call->kind == QW_CALL_HEALTH_WATCH && call->health_sent >= 0 &&
            call->health_sent != PB_HEALTH_SERVICE_UNKNOWN)
            (void)send_health(call, health_now(server));
}

void qw_server_tick(struct qw_server *server, qf_time_ms now)
{
    for (struct qw_call *call = server->calls; call; call = call->next) {
        qw_call_release(call, now);
        if (call->state == QW_CALL_ENDING && call->linger_until <= now)
            qw_call_cancel(call, call->status, call->why);
    }
    /* Streams have had their say; connections would wait for their peers to agree. */
    if (server->stopping && !server->calls && !server->disconnected) {
        server->disconnected = true;
        grpc_server_cancel_all_calls(server->server);
    }
}

qf_time_ms qw_server_deadline(const struct qw_server *server)
{
    qf_time_ms deadline = QF_TIME_NEVER;

    for (const struct qw_call *call = server->calls; call; call = call->next) {
        deadline = QF_MIN(deadline, call->held_until);
        if (call->state == QW_CALL_ENDING)
            deadline = QF_MIN(deadline, call->linger_until);
    }
    return deadline;
}

void qw_server_stop(struct qw_server *server)
{
    if (server->stopping)
        return;
    server->stopping = true;
    grpc_server_shutdown_and_notify(server->server, server->cq, &server->stop_tag);
    for (struct qw_call *call = server->calls; call; call = call->next)
        qw_call_end(call, GRPC_STATUS_UNAVAILABLE, "worker is shutting down");
}

bool qw_server_stopped(const struct qw_server *server)
{
    return server->stop_done && server->accept_done && !server->calls;
}

struct qw_server *qw_server_free(struct qw_server *server)
{
    if (!server)
        return NULL;
    assert(server->stop_done && server->accept_done && !server->calls);
    if (server->port > 0 && !server->thread)
        grpc_server_shutdown_and_notify(server->server, server->cq, &server->stop_tag);
    grpc_completion_queue_shutdown(server->cq);
    if (server->thread) {
        (void)qf_thread_join(server->thread);
    } else {
        while (
            grpc_completion_queue_next(server->cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL).type !=
            GRPC_QUEUE_SHUTDOWN)
            continue;
    }
    if (server->server)
        grpc_server_destroy(server->server);
    grpc_completion_queue_destroy(server->cq);
    grpc_shutdown();
    (void)qf_tls_files_free(server->identity.files);
    free(server);
    return NULL;
}
