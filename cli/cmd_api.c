/* cmd_api.c - promfabric api: the API role as a process. */
#include <string.h>

#include "base/net/address.h"
#include "base/pure/alloc.h"
#include "base/sys/log.h"
#include "cli/daemon.h"
#include "queryapi/api.h"

int cli_api(int argc, char **argv);

static struct qa_api_options o;
static struct cli_list workers, features, hosts, ingest;
static const char *discovery, *ingest_discovery;
static struct cli_log log_flags;
static uint64_t http_threads, eval_threads, connections_max, address_connections_max,
    quarantine_after;

static const struct cli_flag flags[] = {
    { "store", CLI_FLAG_STR, &o.store_url, "URL", "./store",
      "where segments live: a folder or s3://bucket/prefix" },
    { "http-listen", CLI_FLAG_STR, &o.listen, "HOST:PORT", "127.0.0.1:8080",
      "queries, metrics and probes; port 0 takes a free one" },
    { "discovery", CLI_FLAG_STR, &discovery, "KIND", "static",
      "how workers are found: static, file, dns, kubernetes or ecs" },
    { "worker", CLI_FLAG_LIST, &workers, "HOST:PORT", NULL,
      "control address of a worker (static) or name of several (dns); repeatable" },
    { "workers-file", CLI_FLAG_STR, &o.discovery.workers_file, "FILE", NULL,
      "a line HOST:PORT for each worker, # for comments; read again every --discovery-interval "
      "(file)" },
    { "discovery-interval", CLI_FLAG_DURATION, &o.discovery.interval_ms, "DURATION", "2s",
      "how often a file is read, and dns, kubernetes and ecs are asked" },
    { "kubernetes-service", CLI_FLAG_STR, &o.discovery.kubernetes_service, "NAME", NULL,
      "headless service of the workers" },
    { "kubernetes-port", CLI_FLAG_STR, &o.discovery.kubernetes_port, "NAME", "control",
      "name of its control port" },
    { "kubernetes-namespace", CLI_FLAG_STR, &o.discovery.kubernetes_namespace, "NAME", NULL,
      "its namespace; the pod's own if absent" },
    { "kubernetes-server", CLI_FLAG_STR, &o.discovery.kubernetes_server, "URL", NULL,
      "API server; the pod's own if absent" },
    { "kubernetes-secrets", CLI_FLAG_STR, &o.discovery.kubernetes_secrets, "DIR", NULL,
      "folder of token, ca.crt and namespace; the pod's own if absent" },
    { "ecs-cluster", CLI_FLAG_STR, &o.discovery.ecs_cluster, "NAME", NULL,
      "cluster of the workers' service" },
    { "ecs-service", CLI_FLAG_STR, &o.discovery.ecs_service, "NAME", NULL,
      "service whose running tasks are the workers" },
    { "ecs-port", CLI_FLAG_STR, &o.discovery.ecs_port, "PORT", "8082",
      "control port of its tasks" },
    { "ecs-endpoint", CLI_FLAG_STR, &o.discovery.ecs_endpoint, "URL", NULL,
      "ECS API; Amazon's for AWS_REGION if absent" },
    { "ingest", CLI_FLAG_LIST, &ingest, "HOST:PORT", NULL,
      "HTTP address of an ingest node (static) or name of several (dns); repeatable. Queries then "
      "have what these acknowledged, or fail" },
    { "ingest-discovery", CLI_FLAG_STR, &ingest_discovery, "KIND", "static",
      "how ingest nodes are found: static or dns" },
    { "ingest-key", CLI_FLAG_STR, &o.ingest_key_file, "FILE", NULL,
      "a line with the operator's key of the ingest nodes" },
    { "ingest-tls-ca", CLI_FLAG_STR, &o.ingest_ca_file, "FILE", NULL,
      "ingest nodes are asked over TLS and must show a certificate signed by one of these (PEM)" },
    { "state-age-max", CLI_FLAG_DURATION, &o.state_age_ms_max, "DURATION", "5m",
      "queries that read a state map as info series fail if what is known of it is older" },
    { "spool", CLI_FLAG_STR, &o.spool_dir, "DIR", NULL,
      "folder of this API alone, for fetched artifacts; below $TMPDIR if absent" },
    { "spool-bytes", CLI_FLAG_BYTES, &o.spool_bytes, "BYTES", "8GiB",
      "artifacts of all queries together" },
    { "artifact-memory", CLI_FLAG_BYTES, &o.artifact_memory_bytes, "BYTES", "64MiB",
      "artifacts up to 1 MiB stay in memory while the spool holds less; 0B: all are files" },
    { "api-id", CLI_FLAG_STR, &o.api_id, "NAME", NULL,
      "name of this API in query ids and workers' logs; made up if absent" },
    { "query-timeout", CLI_FLAG_DURATION, &o.query_timeout_ms, "DURATION", "2m",
      "the longest a query may take, waiting included" },
    { "worker-wait", CLI_FLAG_DURATION, &o.worker_wait_ms, "DURATION", "30s",
      "how long a query waits for any worker to appear" },
    { "queries-active", CLI_FLAG_U64, &o.queries_active_max, "N", "64",
      "queries that plan, wait for workers or evaluate at once" },
    { "queries-max", CLI_FLAG_U64, &o.queries_max, "N", "1024",
      "queries alive at once, waiting ones and slow readers included; beyond it 503" },
    { "tenant-queue", CLI_FLAG_U64, &o.tenant_queue_max, "N", "512",
      "queries of one tenant that wait; beyond it 429" },
    { "tenant-queries", CLI_FLAG_U64, &o.tenant_queries_max, "N", "0",
      "queries of one tenant that are active at once; its others wait. 0: three quarters of "
      "--queries-active with --api-keys, else all" },
    { "tenant-streams", CLI_FLAG_U64, &o.tenant_streams_max, "N", "256",
      "answers of one tenant that wait for slow readers; beyond it 429. 0: no limit" },
    { "tenant-work", CLI_FLAG_U64, &o.tenant_work_max, "N", "4096",
      "work items of one tenant that workers have at once; its others wait. 0: no limit" },
    { "tenant-memory", CLI_FLAG_BYTES, &o.tenant_memory_bytes, "BYTES", "0",
      "memory that queries of one tenant may use together; beyond it 429. 0: three quarters of "
      "--queries-memory with --api-keys, else all" },
    { "tenant-spool", CLI_FLAG_BYTES, &o.tenant_spool_bytes, "BYTES", "0",
      "artifacts of one tenant's queries together; beyond it 429. 0: three quarters of "
      "--spool-bytes with --api-keys, else all" },
    { "tenant-limits", CLI_FLAG_STR, &o.limits_file, "FILE", NULL,
      "lines of \"TENANT NAME=VALUE...\" for tenants that may have more or less: queries, queued, "
      "streams, work, samples, memory, spool, retention; read again when it changes" },
    { "tenant-settings-age", CLI_FLAG_DURATION, &o.settings_age_ms, "DURATION", "5m",
      "with --ingest: settings of tenants that were not confirmed for longer are stale; they go on "
      "counting, but nothing "
      "is deleted by them" },
    { "retention", CLI_FLAG_DURATION, &o.retention_ms, "DURATION", "0s",
      "samples older than this are not read, and segments that have no others are deleted; 0s: all "
      "are kept" },
    { "retention-slack", CLI_FLAG_DURATION, &o.retention_slack_ms, "DURATION", "1h",
      "how much longer their segments are kept: for running queries, clocks that differ, and to "
      "notice a retention that was set by mistake; at least --query-timeout" },
    { "compact", CLI_FLAG_BOOL, &o.compact, NULL, NULL,
      "have workers merge small segments, as background work (--background-slots of the workers); "
      "of "
      "several APIs one at a time does" },
    { "compact-interval", CLI_FLAG_DURATION, &o.compact_interval_ms, "DURATION", "10m",
      "how often to look for segments to merge, once all were merged" },
    { "compact-settle", CLI_FLAG_DURATION, &o.compact_settle_ms, "DURATION", "1h",
      "merge a segment only when it was written, and its time window ended, this long ago; at "
      "most 1h" },
    { "compact-grace", CLI_FLAG_DURATION, &o.compact_grace_ms, "DURATION", "2h",
      "delete replaced segments this much later; must be longer than any query, and than "
      "listing the store twice" },
    { "compact-file-size", CLI_FLAG_BYTES, &o.compact_file_bytes, "BYTES", "512MiB",
      "segments of this size are not merged any further" },
    { "compact-memory", CLI_FLAG_BYTES, &o.compact_memory_bytes, "BYTES", "256MiB",
      "memory that a job may need; no more than --background-memory of the workers" },
    { "compact-jobs", CLI_FLAG_U64, &o.compact_jobs, "N", "0",
      "merges that workers do at once; 0: as many as they have slots for" },
    { "compact-wakes-workers", CLI_FLAG_BOOL, &o.compact_wakes, NULL, NULL,
      "count merges as work in /monitor/scaling, so that an autoscaler starts and keeps workers "
      "for them; else they wait for workers that queries started" },
    { "query-memory", CLI_FLAG_BYTES, &o.query_memory_bytes, "BYTES", "1GiB",
      "memory one query may use in this process; beyond it 422" },
    { "queries-memory", CLI_FLAG_BYTES, &o.queries_memory_bytes, "BYTES", "0",
      "memory of all queries together; beyond it 503. 0: half of the machine's or container's" },
    { "query-samples", CLI_FLAG_U64, &o.query_samples_max, "N", "50000000",
      "samples one query may hold at once" },
    { "query-series", CLI_FLAG_U64, &o.query_series_max, "N", "1000000",
      "series of one leaf or of an answer" },
    { "query-points", CLI_FLAG_U64, &o.points_max, "N", "11000", "steps of a range query" },
    { "query-work-items", CLI_FLAG_U64, &o.items_max, "N", "4096", "work items of one query" },
    { "query-cost-max", CLI_FLAG_DURATION, &o.query_cost_max_ms, "DURATION", "0s",
      "queries whose scans are estimated to take longer, added up over all workers, are refused "
      "with the estimate (422); 0s: none" },
    { "small-scan", CLI_FLAG_DURATION, &o.small_scan_ms, "DURATION", "2ms",
      "scans estimated below this run on one worker, longer ones in pieces that take about this or "
      "a "
      "shard; 0s: every shard is a piece" },
    { "hedge-after", CLI_FLAG_DOUBLE, &o.hedge_after, "FACTOR", "0",
      "a work item that takes FACTOR times as long as expected is sent to a second worker; 0: "
      "never" },
    { "quarantine-after", CLI_FLAG_U64, &quarantine_after, "N", "2",
      "a segment that N workers died of is not read for --quarantine-time; 0: it is always read" },
    { "quarantine-time", CLI_FLAG_DURATION, &o.quarantine_ms, "DURATION", "10m",
      "how long such a segment is not read" },
    { "query-artifact-bytes", CLI_FLAG_BYTES, &o.query_artifact_bytes, "BYTES", "2GiB",
      "artifacts of one query" },
    { "enable-feature", CLI_FLAG_LIST, &features, "NAME", NULL,
      "promql-experimental-functions, promql-extended-range-selectors, "
      "promql-binop-fill-modifiers, "
      "promql-delayed-name-removal, use-start-timestamps; repeatable" },
    { "slow-query", CLI_FLAG_DURATION, &o.slow_query_ms, "DURATION", "10s",
      "queries that take longer are logged with their plan" },
    { "fetch-concurrency", CLI_FLAG_U64, &o.fetch_concurrency, "N", "16",
      "artifacts fetched at once" },
    { "catalog-refresh", CLI_FLAG_DURATION, &o.catalog_interval_ms, "DURATION", "5s",
      "how often the store is listed" },
    { "http-threads", CLI_FLAG_U64, &http_threads, "N", "4", "threads of the HTTP server" },
    { "eval-threads", CLI_FLAG_U64, &eval_threads, "N", "0",
      "threads that plan and evaluate; 0: one more than there are cores" },
    { "http-connections", CLI_FLAG_U64, &connections_max, "N", "2048", "open connections" },
    { "http-connections-per-address", CLI_FLAG_U64, &address_connections_max, "N", "1024",
      "open connections of one client address; further ones are closed. 0: no limit" },
    { "http-bodies-bytes", CLI_FLAG_BYTES, &o.bodies_bytes_max, "BYTES", "256MiB",
      "bodies of all requests together; beyond it 503" },
    { "http-body-bytes", CLI_FLAG_BYTES, &o.body_bytes_max, "BYTES", "2MiB",
      "size of one request's body; beyond it 413" },
    { "http-header-bytes", CLI_FLAG_BYTES, &o.header_bytes_max, "BYTES", "64KiB",
      "request line and headers of one request; beyond it 414 or 431. Every open connection has "
      "memory for it" },
    { "http-idle-timeout", CLI_FLAG_DURATION, &o.idle_timeout_ms, "DURATION", "30s",
      "connections without progress are closed" },
    { "sse-keepalive", CLI_FLAG_DURATION, &o.keepalive_ms, "DURATION", "5s",
      "comment lines on idle event streams" },
    { "cors-origin", CLI_FLAG_STR, &o.cors_origin, "ORIGIN", NULL,
      "browser pages that may ask: one origin, or *" },
    { "http-host", CLI_FLAG_LIST, &hosts, "NAME", NULL,
      "name in requests' Host that is taken besides addresses and localhost, where --http-listen "
      "is "
      "on the loopback (a proxy may send one); repeatable" },
    { "api-keys", CLI_FLAG_STR, &o.key_file, "FILE", NULL,
      "lines of \"KEY TENANT [NAME]\", KEY as it is or as sha256:HEX; requests then need "
      "Authorization: Bearer KEY" },
    { "audit-log", CLI_FLAG_STR, &o.audit_file, "FILE", NULL,
      "a line of JSON per request: tenant, name of the key, status, query and what it cost; - is "
      "stdout. Opened again when it was moved away, or on SIGHUP" },
    { "http-tls-cert", CLI_FLAG_STR, &o.tls_cert_file, "FILE", NULL,
      "certificate of the HTTP server (PEM)" },
    { "http-tls-key", CLI_FLAG_STR, &o.tls_key_file, "FILE", NULL, "its key (PEM)" },
    { "control-tls-ca", CLI_FLAG_STR, &o.control_ca_file, "FILE", NULL,
      "workers must show a certificate signed by one of these (PEM), for artifacts too" },
    { "control-tls-cert", CLI_FLAG_STR, &o.control_cert_file, "FILE", NULL,
      "certificate shown to workers (PEM)" },
    { "control-tls-key", CLI_FLAG_STR, &o.control_key_file, "FILE", NULL, "its key (PEM)" },
    { "control-tls-server-name", CLI_FLAG_STR, &o.control_server_name, "NAME", NULL,
      "the name in workers' certificates, where discovery finds them by address" },
    { "drain-timeout", CLI_FLAG_DURATION, &o.drain_timeout_ms, "DURATION", "60s",
      "after SIGTERM: how long running queries may take to finish" },
    CLI_LOG_FLAGS(log_flags),
};

static const struct cli_spec spec = {
    .usage = "promfabric api [FLAG...]",
    .summary = "Answers queries: plans them, has workers run their leaves, merges and evaluates.\n"
               "SIGTERM drains: no new queries, running ones finish, then it exits.",
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
};

static bool loopback(const char *listen)
{
    QF_CLEANUP(qf_freep) char *host = NULL;
    uint16_t port;

    return qf_address_split(listen, &host, &port, NULL) == QF_OK && qf_host_is_loopback(host);
}

static bool check_options(void)
{
    if (!qa_discovery_parse_kind(discovery, &o.discovery.kind))
        return cli_bad("--discovery: expected static, file, dns, kubernetes or ecs");
    if (o.discovery.kind <= QA_DISCOVERY_DNS && workers.count == 0)
        return cli_bad("--worker: at least one is needed");
    if ((o.discovery.kind == QA_DISCOVERY_FILE) != (o.discovery.workers_file != NULL))
        return cli_bad("--workers-file and --discovery file go together");
    if (!qa_discovery_parse_kind(ingest_discovery, &o.ingest.kind) ||
        o.ingest.kind > QA_DISCOVERY_DNS)
        return cli_bad("--ingest-discovery: expected static or dns");
    if (o.api_id && strlen(o.api_id) > 63)
        return cli_bad("--api-id: at most 63 bytes");
    if (o.queries_max < 1 || o.queries_max > 65535 || o.queries_active_max < 1)
        return cli_bad("--queries-max and --queries-active: expected 1 to 65535");
    if (!(o.hedge_after == 0 || (o.hedge_after >= 1 && o.hedge_after <= 1e6)))
        return cli_bad("--hedge-after: expected 0, or 1 to 1000000");
    if (quarantine_after > 1000 || o.quarantine_ms < 1)
        return cli_bad("--quarantine-after: at most 1000; --quarantine-time: more than 0");
    if (o.compact_settle_ms > 3600000 || o.compact_settle_ms < 0 || o.compact_interval_ms < 1)
        return cli_bad("--compact-settle: at most 1h; --compact-interval: more than 0");
    if (!o.compact_file_bytes || o.compact_memory_bytes < (UINT64_C(16) << 20) ||
        o.compact_jobs > 65535)
        return cli_bad("--compact-file-size: not 0; --compact-memory: at least 16MiB; "
                       "--compact-jobs: at most 65535");
    if (o.header_bytes_max < 4096 || o.header_bytes_max > UINT64_C(1) << 20)
        return cli_bad("--http-header-bytes: 4KiB to 1MiB");
    if (!o.tls_cert_file != !o.tls_key_file)
        return cli_bad("--http-tls-cert and --http-tls-key go together");
    if (!o.control_cert_file != !o.control_key_file || (o.control_cert_file && !o.control_ca_file))
        return cli_bad("--control-tls-cert, --control-tls-key and --control-tls-ca go together");
    for (size_t i = 0; i < features.count; i++)
        if (!qa_features_enable(&o.features, features.items[i]))
            return cli_bad("--enable-feature: unknown feature; try --help");
    o.discovery.workers = workers.items;
    o.discovery.worker_count = workers.count;
    o.check_host = loopback(o.listen);
    o.hosts = hosts.items;
    o.host_count = hosts.count;
    o.ingest.workers = ingest.items;
    o.ingest.worker_count = ingest.count;
    o.ingest.interval_ms = o.discovery.interval_ms;
    o.http_threads = http_threads;
    o.eval_threads = eval_threads;
    o.quarantine_after = (uint32_t)quarantine_after;
    o.connections_max = connections_max;
    o.address_connections_max = address_connections_max;
    return true;
}

/* Off the loopback, what is open should be open on purpose. */
static void warn_if_open(void)
{
    if (loopback(o.listen))
        return;
    if (!o.tls_cert_file)
        QF_LOG_WARN("HTTP without TLS on a public address", QF_KV_STR("listen", o.listen));
    if (!o.key_file)
        QF_LOG_WARN("no API keys on a public address: X-Scope-OrgID chooses the tenant",
                    QF_KV_STR("listen", o.listen));
    if (!o.control_ca_file)
        QF_LOG_WARN("control streams without TLS");
}

static int run(int signal_fd)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf shown = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    warn_if_open();
    cli_flags_json(&spec, &shown);
    o.flags_json = qf_strbuf_cstr(&shown);
    if (qa_api_run(&o, signal_fd, &err) == QF_OK)
        return 0;
    (void)cli_bad(err.msg);
    return err.rc == QF_EINVAL ? 2 : 1;
}

int cli_api(int argc, char **argv)
{
    static const struct cli_daemon daemon = {
        .name = "api", .spec = &spec, .log = &log_flags, .check = check_options, .run = run
    };

    return cli_daemon_main(&daemon, argc, argv);
}
