/* listener.c - HTTP server on libmicrohttpd. */
#include "base/http/listener.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http/params.h"
#include "base/net/address.h"
#include "base/net/pem.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"

#define BLOCK_BYTES ((size_t)32 << 10)

/* One request and its answer. */
struct exchange {
    struct qh_listener *listener;
    struct exchange *prev, *next;
    struct qh_request request;
    struct qf_strbuf body;
    struct qh_stream *stream;
    bool too_large, handled;
    int status;
};

/* One connection, to tell one that dribbles its request from one that waits for an answer. */
struct link {
    struct link *prev, *next;
    int fd;
    qf_time_ms waiting_since; /* for a whole request; 0: it has one */
};

struct qh_listener {
    struct qh_listener_options options;
    struct MHD_Daemon *daemon;
    int fd;
    uint16_t port;
    char *cert, *key;
    struct qf_lock *lock; /* guards the lists and `closing` */
    struct exchange *exchanges;
    struct link *links;
    size_t active;
    bool closing;
};

static void suspend_connection(void *connection)
{
    MHD_suspend_connection(connection);
}

static void resume_connection(void *connection)
{
    MHD_resume_connection(connection);
}

static void list_exchange(struct exchange *exchange)
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

static void unlist_exchange(struct exchange *exchange)
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
        { "DELETE", QH_METHOD_DELETE },
    };

    for (size_t i = 0; i < QF_COUNT_OF(methods); i++)
        if (strcmp(word, methods[i].word) == 0)
            return methods[i].method;
    return QH_METHOD_OTHER;
}

static struct qf_str header(struct MHD_Connection *connection, const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);

    return value ? qf_str_from(value) : QF_STR("");
}

/* "text/html; charset=x" -> "text/html", in lower case. */
static struct qf_str media_type(struct qf_arena *arena, struct qf_str value)
{
    const char *semicolon = memchr(value.data, ';', value.len);
    char *copy;

    if (semicolon)
        value = qf_str_sub(value, 0, (size_t)(semicolon - value.data));
    value = qf_str_trim(value);
    copy = qf_arena_cstr(arena, value);
    for (size_t i = 0; copy && i < value.len; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] + 'a' - 'A');
    return copy ? (struct qf_str){ copy, value.len } : QF_STR("");
}

/* gzip or *, not with q=0. */
static bool accepts_gzip(struct qf_str value)
{
    while (value.len) {
        const char *comma = memchr(value.data, ',', value.len);
        size_t len = comma ? (size_t)(comma - value.data) : value.len;
        struct qf_str item = qf_str_trim(qf_str_sub(value, 0, len));

        value = qf_str_sub(value, len + 1, value.len);
        if (!qf_str_starts(item, QF_STR("gzip")) && !qf_str_starts(item, QF_STR("*")))
            continue;
        return !qf_str_ends(item, QF_STR("q=0")) && !qf_str_ends(item, QF_STR("q=0.0"));
    }
    return false;
}

static struct exchange *exchange_new(struct qh_listener *listener,
                                     struct MHD_Connection *connection, const char *url,
                                     const char *method)
{
    struct exchange *exchange = qf_xcalloc(1, sizeof(*exchange));
    struct qh_request *request = &exchange->request;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct qh_stream_hooks hooks = { .suspend = suspend_connection,
                                     .resume = resume_connection,
                                     .connection = connection,
                                     .fd = info ? info->connect_fd : -1 };

    exchange->listener = listener;
    exchange->stream = qh_stream_new(listener->options.stream_bytes_max);
    qh_stream_attach(exchange->stream, &hooks);
    exchange->body.limit = listener->options.body_bytes_max;
    request->arena =
        qf_arena_new(4 * (listener->options.body_bytes_max + listener->options.header_bytes_max));
    request->method = method_of(method);
    request->path = qf_arena_str(request->arena, qf_str_from(url));
    request->content_type = media_type(request->arena, header(connection, "Content-Type"));
    request->tenant_header = qf_arena_str(request->arena, header(connection, "X-Scope-OrgID"));
    request->authorization = qf_arena_str(request->arena, header(connection, "Authorization"));
    request->origin = qf_arena_str(request->arena, header(connection, "Origin"));
    request->traceparent = qf_arena_str(request->arena, header(connection, "traceparent"));
    request->accepts_gzip = accepts_gzip(header(connection, "Accept-Encoding"));
    list_exchange(exchange);
    return exchange;
}

static void exchange_free(struct exchange *exchange)
{
    const struct qh_listener_options *options = &exchange->listener->options;

    qh_stream_close(exchange->stream);
    if (options->finished)
        options->finished(options->ctx, exchange->status);
    unlist_exchange(exchange);
    (void)qh_stream_drop(exchange->stream);
    (void)qf_arena_free(exchange->request.arena);
    qf_strbuf_done(&exchange->body);
    free(exchange);
}

struct url_args {
    struct qh_request *request;
    qf_rc rc;
    struct qf_err *err;
};

static enum MHD_Result add_url_arg(void *ctx, enum MHD_ValueKind kind, const char *key,
                                   size_t key_len, const char *value, size_t value_len)
{
    struct url_args *args = ctx;
    struct qf_arena *arena = args->request->arena;

    (void)kind;
    args->rc = qh_params_add(
        arena, &args->request->params, qf_arena_str(arena, (struct qf_str){ key, key_len }),
        qf_arena_str(arena, (struct qf_str){ value ? value : "", value_len }), args->err);
    return args->rc == QF_OK ? MHD_YES : MHD_NO;
}

/* Parameters of the body come first: they win. */
static qf_rc collect_params(struct exchange *exchange, struct MHD_Connection *connection,
                            struct qf_err *err)
{
    struct qh_request *request = &exchange->request;
    struct url_args args = { .request = request, .err = err };
    qf_rc rc = QF_OK;

    request->body = qf_strbuf_view(&exchange->body);
    if (qh_request_has_form(request))
        rc = qh_params_add_form(request->arena, &request->params, request->body, err);
    if (rc)
        return rc;
    (void)MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, add_url_arg, &args);
    return args.rc;
}

static void answer_plain(struct qh_stream *stream, int status, const char *text)
{
    qh_stream_answer(stream, status, "text/plain; charset=utf-8", qf_str_from(text));
}

static void handle(struct exchange *exchange, struct MHD_Connection *connection)
{
    const struct qh_listener_options *options = &exchange->listener->options;
    struct qf_err err = { 0 };

    exchange->handled = true;
    if (exchange->too_large) {
        answer_plain(exchange->stream, 413, "the request body is too large\n");
    } else if (collect_params(exchange, connection, &err) != QF_OK ||
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

static enum MHD_Result send_head(struct exchange *exchange, struct MHD_Connection *connection)
{
    struct qh_stream_head head;
    struct MHD_Response *response;
    enum MHD_Result queued;

    if (!qh_stream_head(exchange->stream, &head))
        return MHD_YES; /* suspended until it begins */
    response = MHD_create_response_from_callback(head.whole ? head.length : MHD_SIZE_UNKNOWN,
                                                 BLOCK_BYTES, read_stream,
                                                 qh_stream_ref(exchange->stream), drop_stream);
    if (!response) {
        (void)qh_stream_drop(exchange->stream);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, head.content_type);
    for (size_t i = 0; i < head.header_count; i++)
        (void)MHD_add_response_header(response, head.names[i], head.values[i]);
    exchange->status = head.status;
    queued = MHD_queue_response(connection, (unsigned)head.status, response);
    MHD_destroy_response(response);
    return queued;
}

/* The connection has a whole request, or (@waiting) waits for the next one. */
static void mark_link(struct MHD_Connection *connection, struct qh_listener *listener, bool waiting)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct link *link = info ? info->socket_context : NULL;

    if (!link)
        return;
    qf_lock_take(listener->lock);
    link->waiting_since = waiting ? qf_clock_mono_ms() : 0;
    qf_lock_drop(listener->lock);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request_ctx)
{
    struct exchange *exchange = *request_ctx;

    (void)version;
    if (!exchange) {
        *request_ctx = exchange_new(cls, connection, url, method);
        return MHD_YES;
    }
    if (*upload_size) {
        if (!exchange->too_large)
            qf_strbuf_add(&exchange->body, upload, *upload_size);
        exchange->too_large |= exchange->body.overflowed;
        *upload_size = 0;
        return MHD_YES;
    }
    if (!exchange->handled) {
        mark_link(connection, cls, false);
        handle(exchange, connection);
    }
    return send_head(exchange, connection);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **request_ctx,
                         enum MHD_RequestTerminationCode code)
{
    (void)code;
    if (*request_ctx)
        exchange_free(*request_ctx);
    *request_ctx = NULL;
    mark_link(connection, cls, true);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_ctx,
                          enum MHD_ConnectionNotificationCode code)
{
    struct qh_listener *listener = cls;
    struct link *link = *socket_ctx;

    qf_lock_take(listener->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        *socket_ctx = link = qf_xcalloc(1, sizeof(*link));
        link->fd = info ? info->connect_fd : -1;
        link->waiting_since = qf_clock_mono_ms();
        link->next = listener->links;
        if (link->next)
            link->next->prev = link;
        listener->links = link;
    } else if (link) {
        if (link->prev)
            link->prev->next = link->next;
        else
            listener->links = link->next;
        if (link->next)
            link->next->prev = link->prev;
        free(link);
        *socket_ctx = NULL;
    }
    qf_lock_drop(listener->lock);
}

static void on_log(void *cls, const char *fmt, va_list args) QF_PRINTF(2, 0);
static void on_log(void *cls, const char *fmt, va_list args)
{
    char text[300];

    (void)cls;
    (void)vsnprintf(text, sizeof(text), fmt, args);
    QF_LOG_DEBUG("http server", QF_KV_SLICE("detail", qf_str_trim(qf_str_from(text))));
}

static void set_defaults(struct qh_listener_options *options)
{
#define DEFAULT(field, value) options->field = options->field ? options->field : (value)
    DEFAULT(threads, 4);
    DEFAULT(connections_max, 2048);
    DEFAULT(body_bytes_max, (size_t)2 << 20);
    DEFAULT(header_bytes_max, (size_t)64 << 10);
    DEFAULT(stream_bytes_max, (size_t)256 << 10);
    DEFAULT(idle_timeout_ms, 30000);
    DEFAULT(header_timeout_ms, 30000);
    DEFAULT(keepalive_ms, 5000);
#undef DEFAULT
}

static qf_rc start_daemon(struct qh_listener *listener, struct qf_err *err)
{
    const struct qh_listener_options *options = &listener->options;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, NULL },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, NULL },
        { MHD_OPTION_END, 0, NULL },
    };

    if (options->tls_cert_file) {
        qf_rc rc = qf_pem_read(options->tls_cert_file, &listener->cert, err);

        if (rc == QF_OK)
            rc = qf_pem_read(options->tls_key_file, &listener->key, err);
        if (rc)
            return rc;
        tls[0].ptr_value = listener->cert;
        tls[1].ptr_value = listener->key;
        flags |= MHD_USE_TLS;
    } else {
        tls[0].option = MHD_OPTION_END;
    }
    listener->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, listener, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, listener->fd, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned)QF_MAX(options->threads, (size_t)2), MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)options->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        options->header_bytes_max + BLOCK_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)((options->idle_timeout_ms + 999) / 1000), MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, listener, MHD_OPTION_NOTIFY_CONNECTION, on_connection, listener,
        MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!listener->daemon)
        return qf_err_set(err, QF_EIO, "cannot start the HTTP server%s",
                          options->tls_cert_file ? ": check certificate and key" : "");
    listener->fd = -1; /* the daemon's now */
    return QF_OK;
}

struct qh_listener *qh_listener_new(const struct qh_listener_options *options, struct qf_err *err)
{
    struct qh_listener *listener = qf_xcalloc(1, sizeof(*listener));

    listener->options = *options;
    set_defaults(&listener->options);
    listener->fd = -1;
    listener->lock = qf_lock_new();
    if (qf_address_listen(options->listen, &listener->fd, &listener->port, err) != QF_OK ||
        start_daemon(listener, err) != QF_OK)
        return qh_listener_free(listener);
    return listener;
}

/* Look at every connection, and at every answer under way. */
static void look_after(struct qh_listener *listener, bool cut)
{
    qf_time_ms now = qf_clock_mono_ms();

    qf_lock_take(listener->lock);
    listener->closing |= cut;
    for (struct exchange *at = listener->exchanges; at; at = at->next)
        qh_stream_tick(at->stream, now, listener->options.keepalive_ms, cut);
    for (struct link *at = listener->links; at; at = at->next) {
        if (at->waiting_since && now - at->waiting_since > listener->options.header_timeout_ms &&
            at->fd >= 0) {
            (void)shutdown(at->fd, SHUT_RDWR); /* the server closes it when it sees that */
            at->waiting_since = 0;
        }
    }
    qf_lock_drop(listener->lock);
}

struct qh_listener *qh_listener_free(struct qh_listener *listener)
{
    if (!listener)
        return NULL;
    if (listener->daemon) {
        look_after(listener, true);
        MHD_stop_daemon(listener->daemon);
    }
    if (listener->fd >= 0)
        (void)close(listener->fd);
    free(listener->cert);
    free(listener->key);
    (void)qf_lock_free(listener->lock);
    free(listener);
    return NULL;
}

uint16_t qh_listener_port(const struct qh_listener *listener)
{
    return listener->port;
}

void qh_listener_tick(struct qh_listener *listener)
{
    look_after(listener, false);
}

size_t qh_listener_active(struct qh_listener *listener)
{
    size_t active;

    qf_lock_take(listener->lock);
    active = listener->active;
    qf_lock_drop(listener->lock);
    return active;
}
