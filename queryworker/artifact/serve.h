/* serve.h - the worker's HTTP server: artifacts, metrics and probes.
 *
 *     GET /artifacts/<token>      an artifact; one byte range if asked (also HEAD)
 *     GET /metrics                Prometheus text
 *     GET /livez  /-/healthy      200 as long as the coordinator turns its loop
 *     GET /readyz /-/ready        200 while work is accepted, else 503
 *     /v1/keep/...                of a keeper (ring/wire/keeper.h)
 *
 * It runs on its own threads, which read the spool's folder, the metrics and the flags below and
 * tell the coordinator by message which artifacts were fetched. */
#ifndef QUERYWORKER_ARTIFACT_SERVE_H
#define QUERYWORKER_ARTIFACT_SERVE_H

#include <stdatomic.h>

#include "base/sys/mailbox.h"
#include "queryworker/artifact/spool.h"
#include "queryworker/metrics.h"
#include "queryworker/work/message.h"

#define QW_ARTIFACT_PATH "/artifacts/"
#define QW_HTTP_CONNECTIONS_MAX 1024
#define QW_HTTP_IDLE_MS 60000
/* A coordinator silent for this long is stuck: /livez says so. */
#define QW_LIVE_MS 30000

struct qw_http_state { /* written by the coordinator */
    atomic_bool ready;
    _Atomic int64_t alive_ms; /* monotonic time of its last turn */
};

struct qw_http_options {
    const char *listen;             /* "host:port" or "[v6]:port"; port 0: any */
    const char *tls_cert, *tls_key; /* PEM files; NULL: plain HTTP */
    const char *tls_client_ca; /* PEM file; with TLS, who fetches artifacts shows its certificate */
    struct qw_spool *spool;
    struct qw_metrics *metrics;
    const struct qw_http_state *state;
    struct qf_mailbox *mailbox;
    struct qw_keep *keep; /* borrowed; NULL: this worker keeps nothing */
};

/* QW_MESSAGE_FETCH: a request for an artifact ended. free() it. */
struct qw_fetch {
    struct qw_message message;
    struct qw_token token;
    int64_t started_ns, ended_ns; /* monotonic */
    uint64_t bytes;
    bool complete; /* the client took all that it asked for */
};

struct qw_http;
struct qw_keep;

/* NULL and @err filled as qh_listener_new() says (base/http/listener.h). */
struct qw_http *qw_http_new(const struct qw_http_options *options, struct qf_err *err);
int qw_http_port(const struct qw_http *http);
/* Ends open connections. Accepts NULL, returns NULL. */
struct qw_http *qw_http_free(struct qw_http *http);

#endif
