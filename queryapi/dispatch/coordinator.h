/* coordinator.h - the one thread that owns all queries, all work and all control streams.
 *
 * Everything reaches it as a message: new queries, ends of turns, room in a stream, gRPC tags,
 * fetched artifacts, discovered endpoints. It steps the state machine of core_workcoord and
 * performs its effects. It never waits for anything but its mailbox. */
#ifndef QUERYAPI_DISPATCH_COORDINATOR_H
#define QUERYAPI_DISPATCH_COORDINATOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/stream.h"
#include "base/pure/err.h"
#include "base/sys/pool.h"
#include "queryapi/metrics.h"
#include "queryapi/query/query.h"
#include "queryapi/query/store_name.h"

struct qa_coord;

struct qa_coord_options {
    const char *api_id;
    struct qf_pool *pool; /* runs turns; borrowed. Its queue has room for queries_max * 2 tasks */
    struct qa_metrics *metrics;
    const char *spool_dir;
    uint64_t spool_bytes_max;
    uint64_t artifact_memory_bytes;    /* see qa_fetcher_options.memory_bytes_max */
    uint64_t query_artifact_bytes_max; /* of one query in the spool */
    size_t queries_max;                /* alive at once, 1..65535; beyond it 503 */
    size_t queries_active_max;         /* planning, working or evaluating */
    size_t tenant_queue_max;           /* waiting queries of one tenant; beyond it 429 */
    int64_t query_timeout_ms;
    int64_t worker_wait_ms;
    double hedge_after;        /* see wc_api_limits.hedge_after; 0: no hedges */
    uint32_t quarantine_after; /* workers that a segment may cost; 0: any number */
    int64_t quarantine_ms;     /* how long it is not read then */
    int64_t slow_query_ms;     /* < 0: none */
    uint32_t
        jobs_sent_max; /* background jobs with workers at once; 0: as many as they have slots */
    bool jobs_wake;    /* those that wait for a worker count as work that needs one */
    size_t fetch_concurrency_max;
    const struct qa_store_name *store_name; /* workers of other stores are refused; or NULL */
    struct sg_catalog *catalog; /* where what ingest nodes tell of segments goes; borrowed */
    bool ingest;                /* there are ingest nodes: queries ask them what is fresh */
    int64_t state_age_ms_max;   /* see qa_query_env */
    const char *ingest_key_file, *ingest_ca_file;           /* see qa_asker_options; or NULL */
    const char *tls_ca_file, *tls_cert_file, *tls_key_file; /* of the control streams, or NULL */
    const char *tls_server_name; /* in workers' certificates instead of their address; or NULL */
};

/* Start the thread. NULL and @err filled on failure. */
struct qa_coord *qa_coord_new(const struct qa_coord_options *options, struct qf_err *err);
/* Cancel what is left, close every stream, stop. The pool must still run. */
struct qa_coord *qa_coord_free(struct qa_coord *coord);

/* The rest may be called from any thread but the coordinator's; each may wait a moment for room in
 * the mailbox. */

/* Run @query, which is taken over. Refusals are answered through its stream. */
void qa_coord_submit(struct qa_coord *coord, struct qa_query *query);
/* DELETE /api/v1/queries/<name>: answers 200 or 404 through @stream. Queries of other tenants than
 * @tenant are not found, unless it is empty. */
void qa_coord_cancel(struct qa_coord *coord, struct qf_str name, struct qf_str tenant,
                     struct qh_stream *stream);

/* DELETE /api/v1/quarantine/<segment>: answers 200 or 404 through @stream. */
void qa_coord_lift(struct qa_coord *coord, struct qf_str segment, struct qh_stream *stream);

enum qa_inspect {
    QA_INSPECT_WORKERS,
    QA_INSPECT_QUERIES,
    QA_INSPECT_FINISHED, /* queries that are over, the newest first */
    QA_INSPECT_SCALING,
    QA_INSPECT_QUARANTINE,
    QA_INSPECT_COMPACTION, /* background jobs, and what plans them */
};
#define QA_INSPECT_MAX 1000
/* Answer with what is going on now, as JSON: at most @limit workers or queries, and no more than
 * QA_INSPECT_MAX. Of queries those of @tenant, or of all if it is empty. */
void qa_coord_inspect(struct qa_coord *coord, enum qa_inspect what, struct qf_str tenant,
                      size_t limit, struct qh_stream *stream);

/* WORKERS or QUERIES as a stream of events, told again whenever they changed, at most twice a second:
 *
 *     queries   [...]: those alive now
 *     finished  [...]: those that are over and were not told before, the newest first
 *     workers   [...]
 *     scaling   {...}: the document of /monitor/scaling, with workers
 *     ingest    [...]: what ingest nodes say of themselves, with workers, once they have
 *
 * Ends when the API drains. Too many who watch: 429. */
void qa_coord_watch(struct qa_coord *coord, enum qa_inspect what, struct qf_str tenant,
                    size_t limit, struct qh_stream *stream);

/* Where workers can be reached now ("host:port"); what is missing is removed. Copied. */
void qa_coord_endpoints(struct qa_coord *coord, const char *const *addresses, size_t count);

/* Who asks ingest nodes; NULL if there are none. Where they are is told to it. */
struct qa_asker *qa_coord_asker(struct qa_coord *coord);

/* Take no new queries. */
void qa_coord_drain(struct qa_coord *coord);
/* And end those that run: their clients are told. */
void qa_coord_cut(struct qa_coord *coord);
/* Queries alive. */
size_t qa_coord_query_count(const struct qa_coord *coord);

#endif
