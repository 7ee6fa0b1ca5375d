/* route_write.c - what senders of samples post: remote write, OTLP, text and lines of Influx. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "ingest/accept/accept.h"
#include "ingest/http/routes_int.h"
#include "ingest/otlp/otlp.h"

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

/* When to try again, if that may help: whole seconds, rounded up. */
static void add_retry(struct qh_stream *stream, const struct in_written *result)
{
    char text[24];

    if (result->status != 503 && result->status != 429)
        return;
    (void)snprintf(text, sizeof(text), "%" PRId64,
                   QF_MAX((result->wait_ms + 999) / 1000, INT64_C(1)));
    qh_stream_header(stream, "Retry-After", text);
}

static const char *otlp_type(bool json)
{
    return json ? "application/json" : "application/x-protobuf";
}

/* An exporter hears in its own coding: what was refused is a partial success, since what is valid is
 * written and nothing of it is to be sent again. */
static void answer_otlp(struct sender *sender, const struct in_written *result)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    const struct in_amounts *refused = &result->outcome.refused;
    bool json = sender->protocol == IN_PROTOCOL_OTLP_JSON;
    bool ok = !result->whole && (result->status == 204 || result->status == 400);

    if (ok)
        in_otlp_put_response(&body, json, refused->samples + refused->histograms,
                             qf_str_from(result->message));
    else
        in_otlp_put_status(&body, json, result->status, qf_str_from(result->message));
    add_retry(sender->stream, result);
    qh_stream_answer(sender->stream, ok ? 200 : result->status, otlp_type(json),
                     qf_strbuf_view(&body));
}

static void answer_text(struct sender *sender, const struct in_written *result)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;

    if (result->message[0])
        qf_strbuf_printf(&body, "%s\n", result->message);
    if (sender->protocol == IN_PROTOCOL_WRITE_2)
        add_counts(sender->stream, &result->outcome.accepted);
    add_retry(sender->stream, result);
    qh_stream_answer(sender->stream, result->status,
                     result->status == 204 ? NULL : "text/plain; charset=utf-8",
                     qf_strbuf_view(&body));
}

static void written(void *ctx, const struct in_written *result)
{
    struct sender *sender = ctx;

    if (sender->protocol == IN_PROTOCOL_OTLP || sender->protocol == IN_PROTOCOL_OTLP_JSON)
        answer_otlp(sender, result);
    else
        answer_text(sender, result);
    qf_metric_observe(sender->routes->metrics->write_seconds,
                      (double)(qf_clock_mono_ns() - sender->began_ns) / 1e9);
    (void)qh_stream_drop(sender->stream);
    free(sender);
}

static void submit_with(struct qh_visit *visit, enum in_protocol protocol,
                        enum in_body_coding coding, enum in_influx_precision precision)
{
    struct in_routes *routes = in_routes_of(visit);
    struct qf_str key = qh_request_header(visit->request, "Idempotency-Key");
    struct in_write write = { .protocol = protocol,
                              .coding = coding,
                              .tenant = visit->tenant,
                              .body = visit->request->body,
                              .key = key,
                              .precision = precision };
    struct sender *sender;

    if (atomic_load(&routes->draining)) {
        /* The next connection of a sender, through a service, is one to another node. */
        qh_stream_header(visit->stream, "Connection", "close");
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

static void submit(struct qh_visit *visit, enum in_protocol protocol, enum in_body_coding coding)
{
    submit_with(visit, protocol, coding, IN_INFLUX_NS);
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
    if (equals(encoding, "snappy"))
        submit(visit, protocol, IN_BODY_SNAPPY);
    else if (equals(encoding, "zstd") && protocol == IN_PROTOCOL_WRITE_1)
        submit(visit, protocol, IN_BODY_ZSTD); /* of vmagent */
    else
        refuse(visit, 415,
               "expected Content-Encoding snappy (the block format), or zstd for version 1.0");
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

static void handle_influx(struct qh_visit *visit)
{
    struct qf_str encoding = qh_request_header(visit->request, "Content-Encoding");
    enum in_influx_precision precision;

    if (encoding.len && !equals(encoding, "gzip") && !equals(encoding, "identity"))
        refuse(visit, 415, "expected Content-Encoding gzip, or none");
    else if (!in_influx_precision_parse(qh_visit_param(visit, "precision"), &precision))
        refuse(visit, 400, "invalid parameter \"precision\": expected ns, us, ms, s, m or h");
    else
        submit_with(visit, IN_PROTOCOL_INFLUX,
                    equals(encoding, "gzip") ? IN_BODY_GZIP : IN_BODY_PLAIN, precision);
}

static void handle_otlp(struct qh_visit *visit)
{
    struct qf_str encoding = qh_request_header(visit->request, "Content-Encoding");
    bool json = qf_str_is(visit->request->content_type, "application/json");

    if (!json && !qf_str_is(visit->request->content_type, "application/x-protobuf"))
        refuse(visit, 415, "expected Content-Type application/x-protobuf or application/json");
    else if (encoding.len && !equals(encoding, "gzip") && !equals(encoding, "identity"))
        refuse(visit, 415, "expected Content-Encoding gzip, or none");
    else
        submit(visit, json ? IN_PROTOCOL_OTLP_JSON : IN_PROTOCOL_OTLP,
               equals(encoding, "gzip") ? IN_BODY_GZIP : IN_BODY_PLAIN);
}

static const struct qh_route routes[] = {
    { "/api/v1/write", QH_METHOD_POST, false, handle_write, refuse_as },
    { "/api/v1/import/prometheus", QH_METHOD_POST, false, handle_text, refuse_as },
    { "/api/v1/otlp/v1/metrics", QH_METHOD_POST, false, handle_otlp, refuse_as },
    { "/write", QH_METHOD_POST, false, handle_influx, refuse_as },
    { "/api/v2/write", QH_METHOD_POST, false, handle_influx, refuse_as },
    { "/v1/metrics", QH_METHOD_POST, false, handle_otlp, refuse_as },
};
const struct qh_routes in_write_routes = { routes, QF_COUNT_OF(routes) };
