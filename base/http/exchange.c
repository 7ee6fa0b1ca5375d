/* exchange.c - one request and its answer: from libmicrohttpd to the handler and back. */
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/http/listener_int.h"
#include "base/http/params.h"
#include "base/http/rules.h"
#include "base/pure/alloc.h"

static void suspend_connection(void *connection)
{
    MHD_suspend_connection(connection);
}

static void resume_connection(void *connection)
{
    MHD_resume_connection(connection);
}

static void list_exchange(struct qh_exchange *exchange)
{
    struct qh_listener *listener = exchange->listener;
    bool closing;

    qf_lock_take(listener->lock);
    exchange->next = listener->exchanges;
    if (exchange->next)
        exchange->next->prev = exchange;
    listener->exchanges = exchange;
    listener->active++;
    closing = listener->closing;
    qf_lock_drop(listener->lock);
    if (closing)
        qh_stream_tick(exchange->stream, 0, 0, true);
}

static void unlist_exchange(struct qh_exchange *exchange)
{
    struct qh_listener *listener = exchange->listener;

    qf_lock_take(listener->lock);
    if (exchange->prev)
        exchange->prev->next = exchange->next;
    else
        listener->exchanges = exchange->next;
    if (exchange->next)
        exchange->next->prev = exchange->prev;
    listener->active--;
    qf_lock_drop(listener->lock);
}

static enum qh_method method_of(const char *word)
{
    static const struct {
        const char *word;
        enum qh_method method;
    } methods[] = {
        { "GET", QH_METHOD_GET },       { "POST", QH_METHOD_POST },
        { "HEAD", QH_METHOD_HEAD },     { "OPTIONS", QH_METHOD_OPTIONS },
        { "DELETE", QH_METHOD_DELETE }, { "PUT", QH_METHOD_PUT },
    };

    for (size_t i = 0; i < QF_COUNT_OF(methods); i++)
        if (strcmp(word, methods[i].word) == 0)
            return methods[i].method;
    return QH_METHOD_OTHER;
}

/* Whether the client's certificate is good, where one is asked for. */
static bool verify_peer(const struct qh_listener *listener, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info;
    unsigned status = 0;

    if (!listener->tls || !listener->options.tls_client_ca_file)
        return true;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info && info->tls_session &&
           gnutls_certificate_verify_peers2(info->tls_session, &status) == GNUTLS_E_SUCCESS &&
           status == 0;
}

void *qh_on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct qh_exchange *exchange = qf_xcalloc(1, sizeof(*exchange));
    struct qh_listener *listener = cls;
    struct qh_request *request = &exchange->request;
    const char *query = strchr(target, '?');

    exchange->listener = listener;
    request->arena =
        qf_arena_new(4 * (listener->options.body_bytes_max + listener->options.header_bytes_max));
    request->query = qf_arena_str(request->arena, qf_str_from(query ? query + 1 : ""));
    qh_link_mark(connection, listener, QH_LINK_READS);
    return exchange;
}

static void exchange_begin(struct qh_exchange *exchange, struct MHD_Connection *connection,
                           const char *url, const char *method)
{
    struct qh_listener *listener = exchange->listener;
    struct qh_request *request = &exchange->request;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct qh_stream_hooks hooks = { .suspend = suspend_connection,
                                     .resume = resume_connection,
                                     .connection = connection,
                                     .fd = info ? info->connect_fd : -1 };

    exchange->begun = true;
    exchange->stream = qh_stream_new(listener->options.stream_bytes_max);
    qh_stream_attach(exchange->stream, &hooks);
    exchange->body.limit = listener->options.body_bytes_max;
    request->method = method_of(method);
    request->peer_verified = verify_peer(listener, connection);
    request->path = qf_arena_str(request->arena, qf_str_from(qh_target_path(url)));
    list_exchange(exchange);
}

/* Tell of its end, if anybody knows of its beginning. */
static void exchange_end(struct qh_exchange *exchange, bool complete)
{
    const struct qh_listener_options *options = &exchange->listener->options;

    qh_stream_close(exchange->stream);
    if (options->finished)
        options->finished(options->ctx, &exchange->request,
                          &(struct qh_outcome){ exchange->status, complete });
    unlist_exchange(exchange);
    (void)qh_stream_drop(exchange->stream);
}

static void exchange_free(struct qh_exchange *exchange, bool complete)
{
    if (exchange->begun)
        exchange_end(exchange, complete);
    (void)qf_arena_free(exchange->request.arena);
    qf_strbuf_done(&exchange->body);
    qf_purse_give(&exchange->listener->bodies, exchange->body_paid);
    free(exchange);
}

/* Where libmicrohttpd's iterator puts what it finds. */
struct gathering {
    struct qf_arena *arena;
    struct qh_params *params;
    qf_rc rc;
    struct qf_err *err;
};

static enum MHD_Result gather(void *ctx, enum MHD_ValueKind kind, const char *key, size_t key_len,
                              const char *value, size_t value_len)
{
    struct gathering *into = ctx;
    struct qf_str name = { key, key_len }, text = { value ? value : "", value_len };

    (void)kind;
    into->rc = qh_params_add(into->arena, into->params, qf_arena_str(into->arena, name),
                             qf_arena_str(into->arena, text), into->err);
    return into->rc == QF_OK ? MHD_YES : MHD_NO;
}

static qf_rc gather_all(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                        struct qf_arena *arena, struct qh_params *params, struct qf_err *err)
{
    struct gathering into = { .arena = arena, .params = params, .err = err };

    (void)MHD_get_connection_values_n(connection, kind, gather, &into);
    return into.rc;
}

static qf_rc read_headers(struct qh_exchange *exchange, struct MHD_Connection *connection,
                          struct qf_err *err)
{
    struct qh_request *request = &exchange->request;
    qf_rc rc = gather_all(connection, MHD_HEADER_KIND, request->arena, &request->headers, err);

    if (rc == QF_OK)
        qh_request_read_headers(request);
    return rc;
}

static void answer_plain(struct qh_stream *stream, int status, const char *text)
{
    qh_stream_answer(stream, status, "text/plain; charset=utf-8", qf_str_from(text));
}

/* Who asks like that may mean something else by the bytes that follow. */
static void answer_broken(struct qh_stream *stream, const struct qh_refusal *refusal)
{
    qh_stream_header(stream, "Connection", "close");
    if (refusal->text[0])
        answer_plain(stream, refusal->status, refusal->text);
    else
        qh_stream_answer(stream, refusal->status, NULL, QF_STR(""));
}

static void handle(struct qh_exchange *exchange)
{
    const struct qh_listener_options *options = &exchange->listener->options;
    struct qf_err err = { 0 };

    exchange->handled = true;
    exchange->request.body = qf_strbuf_view(&exchange->body);
    if (exchange->too_large) {
        answer_plain(exchange->stream, 413, "the request body is too large\n");
    } else if (exchange->no_room) {
        qh_stream_header(exchange->stream, "Retry-After", "1");
        answer_plain(exchange->stream, 503, "too many requests are being read: try again\n");
    } else if (qh_request_read_params(&exchange->request, &err) != QF_OK ||
               qf_arena_failed(exchange->request.arena)) {
        answer_plain(exchange->stream, 400, err.rc ? err.msg : "the request is too large");
    } else {
        options->handle(options->ctx, &exchange->request, exchange->stream);
    }
}

static ssize_t read_stream(void *stream, uint64_t pos, char *buf, size_t max)
{
    ssize_t taken = qh_stream_take(stream, buf, max);

    (void)pos;
    if (taken == QH_STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (taken == QH_STREAM_CUT)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    return taken;
}

static void drop_stream(void *stream)
{
    (void)qh_stream_drop(stream);
}

/* What makes the body of the answer, bytes as they come or something that is there already. From
 * here on the response owns it. */
static struct MHD_Response *make_response(struct qh_stream *stream,
                                          const struct qh_stream_head *head)
{
    struct MHD_Response *response;
    struct qh_body body;

    if (qh_stream_take_body(stream, &body)) {
        if (body.fd >= 0)
            response = MHD_create_response_from_fd_at_offset64(body.length, body.fd, body.offset);
        else
            response = MHD_create_response_from_buffer_with_free_callback_cls(
                body.bytes.len, (void *)(uintptr_t)body.bytes.data, body.release, body.owner);
        if (!response)
            qh_body_done(&body);
        return response;
    }
    response = MHD_create_response_from_callback(head->whole ? head->length : MHD_SIZE_UNKNOWN,
                                                 QH_BLOCK_BYTES, read_stream, qh_stream_ref(stream),
                                                 drop_stream);
    if (!response)
        (void)qh_stream_drop(stream);
    return response;
}

static enum MHD_Result send_head(struct qh_exchange *exchange, struct MHD_Connection *connection)
{
    struct qh_stream_head head;
    struct MHD_Response *response;
    enum MHD_Result queued;

    if (!qh_stream_head(exchange->stream, &head))
        return MHD_YES; /* suspended until it begins */
    response = make_response(exchange->stream, &head);
    if (!response)
        return MHD_NO;
    if (head.content_type)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, head.content_type);
    for (size_t i = 0; i < head.header_count; i++)
        (void)MHD_add_response_header(response, head.names[i], head.values[i]);
    exchange->status = head.status;
    queued = MHD_queue_response(connection, (unsigned)head.status, response);
    MHD_destroy_response(response);
    return queued;
}

/* Look at the headers: true if the request was refused for them, and answered. */
static bool refuse(struct qh_exchange *exchange, struct MHD_Connection *connection,
                   const char *version)
{
    const struct qh_listener_options *options = &exchange->listener->options;
    struct qh_refusal refusal = { 0 };
    struct qf_err err = { 0 };

    if (read_headers(exchange, connection, &err) != QF_OK ||
        qf_arena_failed(exchange->request.arena))
        answer_plain(exchange->stream, 400, err.rc ? err.msg : "the request is too large");
    else if (!qh_request_keeps_rules(&exchange->request, strcmp(version, "HTTP/1.0") != 0,
                                     &refusal))
        answer_broken(exchange->stream, &refusal);
    else if (!options->admit || options->admit(options->ctx, &exchange->request, exchange->stream))
        return false;
    exchange->handled = true;
    return true;
}

/* Keep a piece of the body, if there is room for it: it is copied once more when it is read. */
static void add_to_body(struct qh_exchange *exchange, const char *bytes, size_t len)
{
    exchange->too_large |= len > exchange->body.limit - exchange->body.len;
    if (exchange->too_large || exchange->no_room)
        return;
    if (!qf_purse_take(&exchange->listener->bodies, 2 * len)) {
        exchange->no_room = true;
        return;
    }
    exchange->body_paid += 2 * len;
    qf_strbuf_add(&exchange->body, bytes, len);
}

enum MHD_Result qh_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request_ctx)
{
    struct qh_exchange *exchange = *request_ctx;

    if (!exchange->begun) {
        exchange_begin(exchange, connection, url, method);
        return refuse(exchange, connection, version) ? send_head(exchange, connection) : MHD_YES;
    }
    if (*upload_size) {
        add_to_body(exchange, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (!exchange->handled) {
        qh_link_mark(connection, cls, QH_LINK_BUSY);
        handle(exchange);
    }
    return send_head(exchange, connection);
}

void qh_on_completed(void *cls, struct MHD_Connection *connection, void **request_ctx,
                     enum MHD_RequestTerminationCode code)
{
    if (*request_ctx)
        exchange_free(*request_ctx, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    *request_ctx = NULL;
    qh_link_mark(connection, cls, QH_LINK_RESTS);
}
