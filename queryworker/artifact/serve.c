/* serve.c - the worker's HTTP server. */
#include "queryworker/artifact/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/http/listener.h"
#include "base/http/range.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"

#define HTTP_THREADS 2
/* Nobody sends a worker a body or long headers. */
#define HEADER_BYTES_MAX ((size_t)16 << 10)
#define BODY_BYTES_MAX ((size_t)64 << 10)

struct qw_http {
    struct qw_http_options options;
    struct qh_listener *listener;
};

static void reply_text(struct qh_stream *stream, int status, const char *text)
{
    qh_stream_answer(stream, status, "text/plain; charset=utf-8", qf_str_from(text));
}

static void reply_metrics(struct qw_http *http, struct qh_stream *stream)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_metrics_print(http->options.metrics->registry, &text);
    qh_stream_answer(stream, 200, "text/plain; version=0.0.4; charset=utf-8",
                     qf_strbuf_view(&text));
    qf_strbuf_done(&text);
}

static void drop_item(void *item)
{
    qw_shelf_drop(item);
}

/* An artifact's bytes, in memory or in a file, as a body of @ret_size bytes. */
static bool find_artifact(struct qw_spool *spool, struct qf_str token, struct qh_body *ret_body,
                          uint64_t *ret_size)
{
    struct qw_shelf_item *item = qw_spool_find(spool, token);
    struct stat info;
    int fd;

    if (item) {
        *ret_body = (struct qh_body){
            .fd = -1, .bytes = qw_shelf_bytes(item), .release = drop_item, .owner = item
        };
        *ret_size = ret_body->bytes.len;
        return true;
    }
    fd = qw_spool_open_artifact(spool, token);
    if (fd < 0)
        return false;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)close(fd);
        return false;
    }
    *ret_body = (struct qh_body){ .fd = fd };
    *ret_size = (uint64_t)info.st_size;
    return true;
}

static void reply_unsatisfiable(struct qh_stream *stream, uint64_t size)
{
    char range[64];

    (void)snprintf(range, sizeof(range), "bytes */%llu", (unsigned long long)size);
    qh_stream_header(stream, "Content-Range", range);
    qh_stream_answer(stream, 416, NULL, QF_STR(""));
}

/* The whole artifact or a part of it. Returns how many bytes go out. */
static uint64_t reply_bytes(struct qh_stream *stream, struct qf_str range_header,
                            struct qh_body body, uint64_t size)
{
    uint64_t offset = 0, length = size;
    enum qh_range range = qh_range_parse(range_header, size, &offset, &length);
    char text[96];

    if (range == QH_RANGE_UNSATISFIABLE) {
        qh_body_done(&body);
        reply_unsatisfiable(stream, size);
        return 0;
    }
    qh_stream_header(stream, "Accept-Ranges", "bytes");
    qh_stream_header(stream, "Cache-Control", "no-store");
    if (range == QH_RANGE_PART) {
        (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)offset,
                       (unsigned long long)(offset + length - 1), (unsigned long long)size);
        qh_stream_header(stream, "Content-Range", text);
    }
    body.offset = offset;
    body.length = length;
    if (body.fd < 0)
        body.bytes = qf_str_sub(body.bytes, offset, offset + length);
    qh_stream_send(stream, range == QH_RANGE_PART ? 206 : 200, "application/vnd.apache.parquet",
                   &body);
    return length;
}

static void reply_artifact(struct qw_http *http, struct qh_request *request, struct qf_str token,
                           struct qh_stream *stream)
{
    struct qw_fetch *fetch = NULL;
    struct qh_body body;
    uint64_t size, bytes;

    if (!find_artifact(http->options.spool, token, &body, &size)) {
        reply_text(stream, 404, "no such artifact\n");
        return;
    }
    if (request->method == QH_METHOD_GET) { /* only what carries bytes is a fetch */
        request->note = fetch = qf_xcalloc(1, sizeof(*fetch));
        fetch->message.kind = QW_MESSAGE_FETCH;
        memcpy(fetch->token.text, token.data, QW_TOKEN_LEN);
        fetch->started_ns = qf_clock_mono_ns();
    }
    bytes = reply_bytes(stream, qh_request_header(request, "Range"), body, size);
    if (fetch)
        fetch->bytes = bytes;
}

static void handle(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    struct qw_http *http = ctx;
    const struct qw_http_state *state = http->options.state;
    struct qf_str path = request->path;

    if (request->method != QH_METHOD_GET && request->method != QH_METHOD_HEAD) {
        qh_stream_header(stream, "Allow", "GET, HEAD");
        reply_text(stream, 405, "only GET and HEAD\n");
    } else if (qf_str_starts(path, QF_STR(QW_ARTIFACT_PATH)) && !request->peer_verified) {
        reply_text(stream, 403, "artifacts are for those who show a certificate\n");
    } else if (qf_str_starts(path, QF_STR(QW_ARTIFACT_PATH))) {
        reply_artifact(http, request, qf_str_sub(path, sizeof(QW_ARTIFACT_PATH) - 1, path.len),
                       stream);
    } else if (qf_str_is(path, "/metrics")) {
        reply_metrics(http, stream);
    } else if (qf_str_is(path, "/livez") || qf_str_is(path, "/-/healthy")) {
        if (qf_clock_mono_ms() - atomic_load(&state->alive_ms) < QW_LIVE_MS)
            reply_text(stream, 200, "ok\n");
        else
            reply_text(stream, 503, "the coordinator is stuck\n");
    } else if (qf_str_is(path, "/readyz") || qf_str_is(path, "/-/ready")) {
        if (atomic_load(&state->ready))
            reply_text(stream, 200, "ok\n");
        else
            reply_text(stream, 503, "not accepting work\n");
    } else {
        reply_text(stream, 404, "not found\n");
    }
}

static void finished(void *ctx, struct qh_request *request, const struct qh_outcome *outcome)
{
    struct qw_http *http = ctx;
    struct qw_fetch *fetch = request->note;

    if (outcome->status)
        qf_metric_add(http->options.metrics->http_requests, (size_t)outcome->status / 100 - 1, 1);
    if (!fetch)
        return;
    fetch->ended_ns = qf_clock_mono_ns();
    fetch->complete = outcome->complete;
    /* Only figures hang on it: when the coordinator is that busy they may be lost. */
    if (!qf_mailbox_try_send(http->options.mailbox, fetch))
        free(fetch);
}

struct qw_http *qw_http_new(const struct qw_http_options *options, struct qf_err *err)
{
    struct qw_http *http = qf_xcalloc(1, sizeof(*http));

    http->options = *options;
    http->listener =
        qh_listener_new(&(struct qh_listener_options){ .listen = options->listen,
                                                       .threads = HTTP_THREADS,
                                                       .connections_max = QW_HTTP_CONNECTIONS_MAX,
                                                       .header_bytes_max = HEADER_BYTES_MAX,
                                                       .body_bytes_max = BODY_BYTES_MAX,
                                                       .idle_timeout_ms = QW_HTTP_IDLE_MS,
                                                       .tls_cert_file = options->tls_cert,
                                                       .tls_key_file = options->tls_key,
                                                       .tls_client_ca_file = options->tls_client_ca,
                                                       .handle = handle,
                                                       .finished = finished,
                                                       .ctx = http },
                        err);
    return http->listener ? http : qw_http_free(http);
}

int qw_http_port(const struct qw_http *http)
{
    return qh_listener_port(http->listener);
}

struct qw_http *qw_http_free(struct qw_http *http)
{
    if (!http)
        return NULL;
    (void)qh_listener_free(http->listener);
    free(http);
    return NULL;
}
