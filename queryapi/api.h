/* api.h - the API role: everything wired together, run until a signal ends it. */
#ifndef QUERYAPI_API_H
#define QUERYAPI_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "queryapi/discovery/discovery.h"
#include "queryapi/query/query.h"

struct qa_api_options {
    const char *listen;
    const char *store_url;
    const char *spool_dir; /* NULL: a folder of its own below the temporary folder */
    const char *api_id;    /* NULL: made up */
    struct qa_discovery_options discovery; /* found and ctx are filled in */
    struct qa_discovery_options ingest;    /* likewise: where ingest nodes are; none: no ingest */
    const char *ingest_key_file, *ingest_ca_file; /* see qa_asker_options */
    const char *key_file;                         /* API keys, or NULL */
    const char *audit_file;                       /* "-": stdout; NULL: no audit log */
    const char *limits_file; /* tenants' limits (base/pure/limits.h), or NULL */
    int64_t
        settings_age_ms; /* settings of tenants that are older are stale: see qa_tenants_age_ms() */
    const char *cors_origin;
    const char *flags_json; /* what it was started with, for /api/v1/status/flags; or NULL */
    struct qa_features features;
    const char *tls_cert_file, *tls_key_file;                           /* HTTP */
    const char *control_ca_file, *control_cert_file, *control_key_file; /* control streams */
    const char *control_server_name; /* in workers' certificates instead of their address */

    size_t http_threads, eval_threads; /* 0: from the number of cores */
    size_t connections_max, address_connections_max;
    uint64_t bodies_bytes_max;
    uint64_t header_bytes_max;
    uint64_t body_bytes_max;
    uint64_t points_max;
    uint64_t queries_max, queries_active_max, tenant_queue_max, items_max;
    uint64_t queries_memory_bytes; /* of all queries; 0: half of the machine's */
    /* What a tenant may have that the file says nothing of. 0: any number of streams and works; of the
     * others three quarters of what there is, or all of it if there are no keys to tell tenants apart. */
    uint64_t tenant_queries_max, tenant_streams_max, tenant_work_max, tenant_memory_bytes,
        tenant_spool_bytes;
    uint64_t query_memory_bytes, query_samples_max, query_series_max;
    int64_t query_cost_max_ms; /* see qa_query_env.cost_max_ms */
    int64_t state_age_ms_max;  /* see qa_query_env.state_age_ms_max */
    int64_t small_scan_ms;     /* see qa_query_env.small_scan_us */
    double hedge_after;        /* see qa_coord_options.hedge_after */
    uint32_t quarantine_after; /* see qa_coord_options */
    int64_t quarantine_ms;
    uint64_t query_artifact_bytes, spool_bytes, artifact_memory_bytes;
    uint64_t fetch_concurrency;
    bool check_host; /* see qa_routes */
    const char *const *hosts;
    size_t host_count;
    int64_t query_timeout_ms, worker_wait_ms, drain_timeout_ms, slow_query_ms;
    int64_t retention_ms; /* of tenants that the file of limits says nothing of; 0: for ever */
    int64_t retention_slack_ms;  /* see retain/retainer.h; no less than query_timeout_ms */
    bool compact, compact_wakes; /* see compact/compactor.h, for the next lines too */
    int64_t compact_interval_ms, compact_settle_ms, compact_grace_ms;
    uint64_t compact_file_bytes, compact_memory_bytes, compact_jobs;
    int64_t catalog_interval_ms, keepalive_ms, idle_timeout_ms;
};

/* Run until SIGTERM or SIGINT, then drain: no new queries, those that run may finish for
 * drain_timeout_ms; a second signal ends that too. @signal_fd comes from qf_signals_setup(). QF_OK,
 * or why it could not start. */
QF_MUST_CHECK qf_rc qa_api_run(const struct qa_api_options *options, int signal_fd,
                               struct qf_err *err);

#endif
