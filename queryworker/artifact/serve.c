/* serve.c - the worker's HTTP server. */
#include "queryworker/artifact/serve.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/net/address.h"
#include "base/net/pem.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"

#define HTTP_THREADS 2

struct qw_http {
    struct qw_http_options options;
    struct MHD_Daemon *daemon;
    char *cert, *key;
    int port;
};

static enum MHD_Result reply(struct qw_http *http, struct MHD_Connection *connection,
                             unsigned status, struct MHD_Response *response)
{
    enum MHD_Result queued;

    if (!response)
        return MHD_NO;
    qf_metric_add(http->options.metrics->http_requests, status / 100 - 1, 1);
    queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result reply_text(struct qw_http *http, struct MHD_Connection *connection,
                                  unsigned status, const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

    if (response) {
        (void)MHD_add_response_header(response, "Content-Type", "text/plain; charset=utf-8");
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
            (void)MHD_add_response_header(response, "Allow", "GET, HEAD");
    }
    return reply(http, connection, status, response);
}

static enum MHD_Result reply_metrics(struct qw_http *http, struct MHD_Connection *connection)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct MHD_Response *response;
    size_t len;

    qf_metrics_print(http->options.metrics->registry, &text);
    len = text.len;
    response = MHD_create_response_from_buffer(len, qf_strbuf_take(&text), MHD_RESPMEM_MUST_FREE);
    if (response)
        (void)MHD_add_response_header(response, "Content-Type",
                                      "text/plain; version=0.0.4; charset=utf-8");
    return reply(http, connection, MHD_HTTP_OK, response);
}

/* Where an artifact's bytes are: a file or memory. */
struct source {
    int fd;
    struct qw_shelf_item *item; /* NULL: a file */
};

static void drop_item(void *item)
{
    qw_shelf_drop(item);
}

/* From here on the response owns @source. NULL: it is gone already. */
static struct MHD_Response *respond(struct source source, uint64_t offset, uint64_t length)
{
    struct MHD_Response *response;

    if (source.item)
        response = MHD_create_response_from_buffer_with_free_callback_cls(
            length, (void *)(uintptr_t)(qw_shelf_bytes(source.item).data + offset), drop_item,
            source.item);
    else
        response = MHD_create_response_from_fd_at_offset64(length, source.fd, offset);
    if (response)
        return response;
    if (source.item)
        qw_shelf_drop(source.item);
    else
        (void)close(source.fd);
    return NULL;
}

/* An empty answer; the response owns @source here too, so that it is always the library that lets
 * go of it. */
static enum MHD_Result reply_unsatisfiable(struct qw_http *http, struct MHD_Connection *connection,
                                           struct source source, uint64_t size)
{
    struct MHD_Response *response = respond(source, 0, 0);
    char range[64];

    (void)snprintf(range, sizeof(range), "bytes */%llu", (unsigned long long)size);
    if (response)
        (void)MHD_add_response_header(response, "Content-Range", range);
    return reply(http, connection, MHD_HTTP_RANGE_NOT_SATISFIABLE, response);
}

/* The whole artifact or a part of it; the response owns @source. @fetch is told what goes out. */
static enum MHD_Result reply_bytes(struct qw_http *http, struct MHD_Connection *connection,
                                   struct source source, uint64_t size, struct qw_fetch *fetch)
{
    const char *header =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_RANGE);
    uint64_t offset = 0, length = size;
    enum qw_range range = qw_range_parse(header, size, &offset, &length);
    struct MHD_Response *response;
    char text[96];

    if (range == QW_RANGE_UNSATISFIABLE)
        return reply_unsatisfiable(http, connection, source, size);
    response = respond(source, offset, length);
    if (!response)
        return MHD_NO;
    fetch->bytes = length;
    (void)MHD_add_response_header(response, "Content-Type", "application/vnd.apache.parquet");
    (void)MHD_add_response_header(response, "Accept-Ranges", "bytes");
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    if (range == QW_RANGE_PART) {
        (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)offset,
                       (unsigned long long)(offset + length - 1), (unsigned long long)size);
        (void)MHD_add_response_header(response, "Content-Range", text);
    }
    return reply(http, connection, range == QW_RANGE_PART ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK,
                 response);
}

static bool find_artifact(struct qw_spool *spool, struct qf_str token, struct source *ret_source,
                          uint64_t *ret_size)
{
    struct source source = { .fd = -1, .item = qw_spool_find(spool, token) };
    struct stat info;

    if (source.item) {
        *ret_size = qw_shelf_bytes(source.item).len;
        *ret_source = source;
        return true;
    }
    source.fd = qw_spool_open_artifact(spool, token);
    if (source.fd < 0)
        return false;
    if (fstat(source.fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)close(source.fd);
        return false;
    }
    *ret_size = (uint64_t)info.st_size;
    *ret_source = source;
    return true;
}

static enum MHD_Result reply_artifact(struct qw_http *http, struct MHD_Connection *connection,
                                      struct qf_str token, bool head, void **request)
{
    struct qw_fetch *fetch;
    struct source source;
    uint64_t size;

    if (!find_artifact(http->options.spool, token, &source, &size))
        return reply_text(http, connection, MHD_HTTP_NOT_FOUND, "no such artifact\n");
    fetch = qf_xcalloc(1, sizeof(*fetch));
    fetch->message.kind = QW_MESSAGE_FETCH;
    memcpy(fetch->token.text, token.data, QW_TOKEN_LEN);
    fetch->started_ns = qf_clock_mono_ns();
    if (head)
        free(fetch); /* only what carries bytes is a fetch */
    else
        *request = fetch;
    return reply_bytes(http, connection, source, size, head ? &(struct qw_fetch){ 0 } : fetch);
}

static enum MHD_Result route(struct qw_http *http, struct MHD_Connection *connection,
                             const char *url, bool head, void **request)
{
    struct qf_str path = qf_str_from(url);
    const struct qw_http_state *state = http->options.state;

    if (qf_str_starts(path, QF_STR(QW_ARTIFACT_PATH)))
        return reply_artifact(http, connection,
                              qf_str_sub(path, sizeof(QW_ARTIFACT_PATH) - 1, path.len), head,
                              request);
    if (qf_str_is(path, "/metrics"))
        return reply_metrics(http, connection);
    if (qf_str_is(path, "/livez") || qf_str_is(path, "/-/healthy")) {
        if (qf_clock_mono_ms() - atomic_load(&state->alive_ms) < QW_LIVE_MS)
            return reply_text(http, connection, MHD_HTTP_OK, "ok\n");
        return reply_text(http, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                          "the coordinator is stuck\n");
    }
    if (qf_str_is(path, "/readyz") || qf_str_is(path, "/-/ready")) {
        if (atomic_load(&state->ready))
            return reply_text(http, connection, MHD_HTTP_OK, "ok\n");
        return reply_text(http, connection, MHD_HTTP_SERVICE_UNAVAILABLE, "not accepting work\n");
    }
    return reply_text(http, connection, MHD_HTTP_NOT_FOUND, "not found\n");
}

/* Marks a request whose headers were seen; replaced by the fetch it may become. */
static char headers_seen;

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload_data,
                              size_t *upload_size, void **request)
{
    struct qw_http *http = ctx;
    bool head = strcmp(method, "HEAD") == 0;

    (void)version;
    (void)upload_data;
    if (!*request) {
        *request = &headers_seen;
        return MHD_YES;
    }
    if (*upload_size) { /* swallow a body nobody asked for */
        *upload_size = 0;
        return MHD_YES;
    }
    if (!head && strcmp(method, "GET") != 0)
        return reply_text(http, connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    return route(http, connection, url, head, request);
}

static void completed(void *ctx, struct MHD_Connection *connection, void **request,
                      enum MHD_RequestTerminationCode why)
{
    struct qw_http *http = ctx;
    struct qw_fetch *fetch = *request;

    (void)connection;
    *request = NULL;
    if (!fetch || (void *)fetch == &headers_seen)
        return;
    fetch->ended_ns = qf_clock_mono_ns();
    fetch->complete = why == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    /* Only figures hang on it: when the coordinator is that busy they may be lost. */
    if (!qf_mailbox_try_send(http->options.mailbox, fetch))
        free(fetch);
}

static bool start(struct qw_http *http, struct qf_err *err)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD;
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, NULL },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, NULL },
        { MHD_OPTION_END, 0, NULL },
    };
    uint16_t port;
    int fd;

    if (http->options.tls_cert) {
        if (qf_pem_read(http->options.tls_cert, &http->cert, err) ||
            qf_pem_read(http->options.tls_key, &http->key, err))
            return false;
        tls[0].ptr_value = http->cert;
        tls[1].ptr_value = http->key;
        flags |= MHD_USE_TLS;
    } else {
        tls[0].option = MHD_OPTION_END;
    }
    if (qf_address_listen(http->options.listen, &fd, &port, err))
        return false;
    http->port = port;
    http->daemon = MHD_start_daemon(flags, 0, NULL, NULL, handle, http, MHD_OPTION_LISTEN_SOCKET,
                                    fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)HTTP_THREADS,
                                    MHD_OPTION_CONNECTION_LIMIT, (unsigned)QW_HTTP_CONNECTIONS_MAX,
                                    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)QW_HTTP_IDLE_SECONDS,
                                    MHD_OPTION_NOTIFY_COMPLETED, completed, http, MHD_OPTION_ARRAY,
                                    tls, MHD_OPTION_END);
    if (http->daemon)
        return true;
    (void)close(fd);
    (void)qf_err_set(err, QF_EINVAL, "cannot start the HTTP server%s",
                     http->cert ? ": bad TLS files" : "");
    return false;
}

struct qw_http *qw_http_new(const struct qw_http_options *options, struct qf_err *err)
{
    struct qw_http *http = qf_xcalloc(1, sizeof(*http));

    http->options = *options;
    if (!options->tls_cert != !options->tls_key)
        (void)qf_err_set(err, QF_EINVAL, "TLS needs both a certificate and a key file");
    else if (start(http, err))
        return http;
    return qw_http_free(http);
}

int qw_http_port(const struct qw_http *http)
{
    return http->port;
}

struct qw_http *qw_http_free(struct qw_http *http)
{
    if (!http)
        return NULL;
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    free(http->cert);
    free(http->key);
    free(http);
    return NULL;
}
