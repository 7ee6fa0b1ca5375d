/* routes.h - the HTTP of the ingest role: samples, queues, their administration, metrics, probes. */
#ifndef INGEST_HTTP_ROUTES_H
#define INGEST_HTTP_ROUTES_H

#include <stdatomic.h>

#include "base/http/listener.h"
#include "base/http/tenants.h"
#include "base/sys/pool.h"
#include "ingest/metrics.h"
#include "queue/node/node.h"

struct in_accept;
struct in_fresh;
struct in_heads;
struct in_partition_figures;
struct qp_peers;
struct in_driver;
struct in_state;
struct in_handoff;
struct in_documents;
struct rg_board;
struct rg_tenants;

struct in_routes {
    struct qn_node *node;
    struct in_accept *accept;
    struct in_fresh *fresh;
    struct rg_board *ring;       /* as this node knows it */
    struct rg_tenants *settings; /* of tenants, likewise */
    struct in_driver *driver;    /* of migrations */
    struct in_handoff *handoff;  /* NULL: there is none */
    struct in_documents *documents;
    struct in_heads *heads;
    const char *name;    /* of this node */
    char http_base[256]; /* where others reach its HTTP; before peers are there: nowhere */
    struct in_partition_figures *partitions;
    const atomic_bool *leads;                   /* by partition: this node leads it */
    struct qf_pool *pool;                       /* turns records into JSON */
    struct in_state *state;                     /* maps */
    struct qf_pool *state_reads, *state_writes; /* what is asked of them */
    struct in_metrics *metrics;
    struct qh_tenants *tenants;
    uint64_t record_bytes_max;
    int64_t query_timeout_ms; /* what a query was planned with stays readable for so long */
    atomic_bool ready, draining;
    atomic_uint watches;
    /* Once there is a transport. Requests of the first moments may not see them: they are refused. */
    struct qp_peers *_Atomic peers;
    const char *_Atomic token; /* what peers show to fetch a snapshot */
};

/* For struct qh_listener_options: @ctx is a struct in_routes. */
bool in_routes_admit(void *ctx, struct qh_request *request, struct qh_stream *stream);
void in_routes_handle(void *ctx, struct qh_request *request, struct qh_stream *stream);
/* Can this node serve as far as others are concerned? */
bool in_routes_ready(struct in_routes *routes);
void in_routes_finished(void *ctx, struct qh_request *request, const struct qh_outcome *outcome);

#endif
