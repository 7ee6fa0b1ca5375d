/* serve.c - the worker's HTTP server. */
#include "queryworker/artifact/serve.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/http/listener.h"
#include "base/http/range.h"
#include "base/http/router.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queryworker/keep/keep.h"

#define HTTP_THREADS 2
/* Nobody sends a worker a body or long headers, unless it is a keeper. */
#define HEADER_BYTES_MAX ((size_t)16 << 10)
#define BODY_BYTES_MAX ((size_t)64 << 10)
#define KEEP_BODY_BYTES_MAX ((size_t)RG_KEEP_PART_BYTES)

struct qw_http {
    struct qw_http_options options;
    struct qh_router router;
    struct qh_listener *listener;
};

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

static void handle_artifact(struct qh_visit *visit)
{
    struct qw_http *http = visit->role;
    struct qh_request *request = visit->request;
    struct qw_fetch *fetch = NULL;
    struct qh_body body;
    uint64_t size, bytes;

    if (!request->peer_verified) {
        qh_visit_text(visit, 403, "artifacts are for those who show a certificate\n");
        return;
    }
    if (!find_artifact(http->options.spool, visit->rest, &body, &size)) {
        qh_visit_text(visit, 404, "no such artifact\n");
        return;
    }
    if (request->method == QH_METHOD_GET) { /* only what carries bytes is a fetch */
        request->note = fetch = qf_xcalloc(1, sizeof(*fetch));
        fetch->message.kind = QW_MESSAGE_FETCH;
        memcpy(fetch->token.text, visit->rest.data, QW_TOKEN_LEN);
        fetch->started_ns = qf_clock_mono_ns();
    }
    qh_stream_header(visit->stream, "Cache-Control", "no-store");
    bytes = qh_range_send(visit->stream, qh_request_header(request, "Range"),
                          "application/vnd.apache.parquet", &body, size);
    if (fetch)
        fetch->bytes = bytes;
}

static void handle_metrics(struct qh_visit *visit)
{
    struct qw_http *http = visit->role;

    qh_visit_metrics(visit, http->options.metrics->registry);
}

static void handle_live(struct qh_visit *visit)
{
    struct qw_http *http = visit->role;

    if (qf_clock_mono_ms() - atomic_load(&http->options.state->alive_ms) < QW_LIVE_MS)
        qh_visit_text(visit, 200, "ok\n");
    else
        qh_visit_text(visit, 503, "the coordinator is stuck\n");
}

static void handle_ready(struct qh_visit *visit)
{
    struct qw_http *http = visit->role;

    if (atomic_load(&http->options.state->ready))
        qh_visit_text(visit, 200, "ok\n");
    else
        qh_visit_text(visit, 503, "not accepting work\n");
}

/* Open to whoever reaches the port; artifacts look at the certificate themselves. */
static const struct qh_route routes[] = {
    { QW_ARTIFACT_PATH "*", QH_GET, true, handle_artifact, NULL },
    { "/metrics", QH_GET, true, handle_metrics, NULL },
    { "/livez", QH_GET, true, handle_live, NULL },
    { "/-/healthy", QH_GET, true, handle_live, NULL },
    { "/readyz", QH_GET, true, handle_ready, NULL },
    { "/-/ready", QH_GET, true, handle_ready, NULL },
};

static const struct qh_routes family = { routes, QF_COUNT_OF(routes) };
/* Those of keepers are there if the worker is one. */
static const struct qh_routes *const families[] = { &family, &qw_keep_routes };

struct qw_keep *qw_http_keep(void *role)
{
    return ((struct qw_http *)role)->options.keep;
}

static bool admit(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    struct qw_http *http = ctx;

    return qh_router_admit(&http->router, request, stream);
}

static void handle(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    struct qw_http *http = ctx;

    qh_router_handle(&http->router, request, stream);
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
    /* Only figures hang on it: they may wait for the acknowledgement that follows, and when the
     * coordinator is that busy they may be lost. */
    if (!qf_mailbox_try_send_later(http->options.mailbox, fetch))
        free(fetch);
}

struct qw_http *qw_http_new(const struct qw_http_options *options, struct qf_err *err)
{
    struct qw_http *http = qf_xcalloc(1, sizeof(*http));

    http->options = *options;
    http->router =
        (struct qh_router){ .families = families,
                            .family_count = options->keep ? 2 : 1,
                            .tenants = options->keep ? qw_keep_tenants(options->keep) : NULL,
                            .cors_expose = "",
                            .role = http };
    http->listener = qh_listener_new(
        &(struct qh_listener_options){ .listen = options->listen,
                                       .threads = HTTP_THREADS,
                                       .connections_max = QW_HTTP_CONNECTIONS_MAX,
                                       .header_bytes_max = HEADER_BYTES_MAX,
                                       .body_bytes_max =
                                           options->keep ? KEEP_BODY_BYTES_MAX : BODY_BYTES_MAX,
                                       .idle_timeout_ms = QW_HTTP_IDLE_MS,
                                       .rest_timeout_ms = QW_HTTP_IDLE_MS,
                                       .tls_cert_file = options->tls_cert,
                                       .tls_key_file = options->tls_key,
                                       .tls_client_ca_file = options->tls_client_ca,
                                       .admit = admit,
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
