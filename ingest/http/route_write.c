/* route_write.c - what senders of samples post: remote write and text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "ingest/accept/accept.h"
#include "ingest/http/routes_int.h"

#define KEY_BYTES_MAX 256
#define PROTO_1 "prometheus.WriteRequest"
#define PROTO_2 "io.prometheus.write.v2.Request"

/* A request that is being written. */
struct sender {
    struct in_routes *routes;
    struct qh_stream *stream;
    enum in_protocol protocol;
    int64_t began_ns;
};

/* Senders log the first line: it says what is wrong. */
static void refuse(struct qh_visit *visit, int status, const char *why)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;

    qf_strbuf_printf(&body, "%s\n", why);
    if (status == 503 || status == 429)
        qh_stream_header(visit->stream, "Retry-After", "1");
    qh_stream_answer(visit->stream, status, "text/plain; charset=utf-8", qf_strbuf_view(&body));
}

static void refuse_as(struct qh_visit *visit, const struct qf_err *err)
{
    refuse(visit, qf_rc_http_status(err->rc), err->msg);
}

/* How much was written, also if something was not: without these a sender of 2.0 takes the receiver for
 * one of 1.0. */
static void add_counts(struct qh_stream *stream, const struct in_amounts *accepted)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, accepted->samples);
    qh_stream_header(stream, "X-Prometheus-Remote-Write-Samples-Written", text);
    (void)snprintf(text, sizeof(text), "%" PRIu64, accepted->histograms);
    qh_stream_header(stream, "X-Prometheus-Remote-Write-Histograms-Written", text);
    (void)snprintf(text, sizeof(text), "%" PRIu64, accepted->exemplars);
    qh_stream_header(stream, "X-Prometheus-Remote-Write-Exemplars-Written", text);
}

static void written(void *ctx, const struct in_written *result)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct sender *sender = ctx;

    if (result->message[0])
        qf_strbuf_printf(&body, "%s\n", result->message);
    if (sender->protocol == IN_PROTOCOL_WRITE_2)
        add_counts(sender->stream, &result->outcome.accepted);
    if (result->status == 503 || result->status == 429)
        qh_stream_header(sender->stream, "Retry-After", "1");
    qh_stream_answer(sender->stream, result->status,
                     result->status == 204 ? NULL : "text/plain; charset=utf-8",
                     qf_strbuf_view(&body));
    qf_metric_observe(sender->routes->metrics->write_seconds,
                      (double)(qf_clock_mono_ns() - sender->began_ns) / 1e9);
    (void)qh_stream_drop(sender->stream);
    free(sender);
}

static void submit(struct qh_visit *visit, enum in_protocol protocol, enum in_body_coding coding)
{
    struct in_routes *routes = in_routes_of(visit);
    struct qf_str key = qh_request_header(visit->request, "Idempotency-Key");
    struct in_write write = { .protocol = protocol,
                              .coding = coding,
                              .tenant = visit->tenant,
                              .body = visit->request->body,
                              .key = key };
    struct sender *sender;

    if (atomic_load(&routes->draining)) {
        refuse(visit, 503, "this node is stopping: ask another one");
        return;
    }
    if (key.len > KEY_BYTES_MAX) {
        refuse(visit, 400, "the Idempotency-Key is longer than 256 bytes");
        return;
    }
    sender = qf_xcalloc(1, sizeof(*sender));
    *sender = (struct sender){ routes, qh_stream_ref(visit->stream), protocol, qf_clock_mono_ns() };
    in_accept_write(routes->accept, &write, written, sender);
}

static bool equals(struct qf_str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.data, word, text.len) == 0;
}

/* The value of @name among the parameters of a content type; empty if it is not there. */
static struct qf_str type_param(struct qf_str type, const char *name)
{
    const char *at = type.len ? memchr(type.data, ';', type.len) : NULL;

    while (at) {
        struct qf_str rest = qf_str_trim(qf_str_sub(type, (size_t)(at - type.data) + 1, type.len));
        const char *end = rest.len ? memchr(rest.data, ';', rest.len) : NULL;
        struct qf_str item =
            qf_str_trim(qf_str_sub(rest, 0, end ? (size_t)(end - rest.data) : rest.len));
        size_t len = strlen(name);

        if (item.len > len && item.data[len] == '=' && strncasecmp(item.data, name, len) == 0) {
            item = qf_str_sub(item, len + 1, item.len);
            if (item.len > 1 && item.data[0] == '"' && item.data[item.len - 1] == '"')
                item = qf_str_sub(item, 1, item.len - 1);
            return item;
        }
        at = end;
    }
    return QF_STR("");
}

/* Which version of remote write; false: none of them, and it was answered. */
static bool choose_version(struct qh_visit *visit, enum in_protocol *ret_protocol)
{
    struct qf_str type = qh_request_header(visit->request, "Content-Type");
    struct qf_str proto = type_param(type, "proto");

    *ret_protocol = IN_PROTOCOL_WRITE_1;
    if (qf_str_is(visit->request->content_type, "application/x-protobuf")) {
        if (!proto.len || qf_str_is(proto, PROTO_1))
            return true;
        *ret_protocol = IN_PROTOCOL_WRITE_2;
        if (qf_str_is(proto, PROTO_2))
            return true;
    }
    refuse(visit, 415,
           "expected Content-Type application/x-protobuf, with proto=" PROTO_1
           " (the default) or proto=" PROTO_2);
    return false;
}

static void handle_write(struct qh_visit *visit)
{
    struct qf_str encoding = qh_request_header(visit->request, "Content-Encoding");
    enum in_protocol protocol;

    if (!choose_version(visit, &protocol))
        return;
    if (!equals(encoding, "snappy"))
        refuse(visit, 415, "expected Content-Encoding snappy (the block format)");
    else
        submit(visit, protocol, IN_BODY_SNAPPY);
}

static void handle_text(struct qh_visit *visit)
{
    struct qf_str encoding = qh_request_header(visit->request, "Content-Encoding");
    bool open_metrics = qf_str_is(visit->request->content_type, "application/openmetrics-text");

    if (encoding.len && !equals(encoding, "gzip") && !equals(encoding, "identity"))
        refuse(visit, 415, "expected Content-Encoding gzip, or none");
    else
        submit(visit, open_metrics ? IN_PROTOCOL_OPEN_METRICS : IN_PROTOCOL_TEXT,
               equals(encoding, "gzip") ? IN_BODY_GZIP : IN_BODY_PLAIN);
}

static const struct qh_route routes[] = {
    { "/api/v1/write", QH_METHOD_POST, false, handle_write, refuse_as },
    { "/api/v1/import/prometheus", QH_METHOD_POST, false, handle_text, refuse_as },
};
const struct qh_routes in_write_routes = { routes, QF_COUNT_OF(routes) };
