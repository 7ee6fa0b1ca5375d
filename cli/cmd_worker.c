/* cmd_worker.c - promfabric worker: the worker role as a process. */
#include <string.h>

#include "base/sys/memory.h"
#include "cli/daemon.h"
#include "proto/codec/control.h"
#include "queryworker/worker.h"
#include "workcoord/lane_worker.h"

int cli_worker(int argc, char **argv);

static struct qw_options o;
static struct cli_log log_flags;

static const struct cli_flag flags[] = {
    { "store", CLI_FLAG_STR, &o.store, "URL", "./store",
      "where segments live: a folder, s3://bucket/prefix or ring://HOST:PORT[,...]" },
    { "spool", CLI_FLAG_STR, &o.spool, "DIR", "./spool",
      "folder of this worker alone, for artifacts and cached segments" },
    { "http-listen", CLI_FLAG_STR, &o.http_listen, "HOST:PORT", "127.0.0.1:8081",
      "artifacts, metrics and probes; port 0 takes a free one" },
    { "control-listen", CLI_FLAG_STR, &o.control_listen, "HOST:PORT", "127.0.0.1:8082",
      "the control stream (gRPC); port 0 takes a free one" },
    { "advertise-url", CLI_FLAG_STR, &o.advertise_url, "URL", NULL,
      "how APIs reach --http-listen; made from it if absent" },
    { "worker-id", CLI_FLAG_STR, &o.worker_id, "NAME", NULL,
      "name of this worker; keep it stable: it decides which data it caches; host name and port if "
      "absent" },
    { "slots", CLI_FLAG_U64, &o.slots, "N", "0", "works that run at once; 0: one per core" },
    { "works-max", CLI_FLAG_U64, &o.works_max, "N", "16384",
      "works queued, running and kept as artifacts together" },
    { "queue-memory", CLI_FLAG_BYTES, &o.queue_memory, "BYTES", "256MiB",
      "memory of works accepted and not yet finished; beyond it none are accepted" },
    { "downloads", CLI_FLAG_U64, &o.downloads, "N", "8", "segments downloaded at once" },
    { "partial-from", CLI_FLAG_BYTES, &o.partial_from, "BYTES", "8MiB",
      "segments in a bucket of at least this size are copied in parts, as works read them; 0B: "
      "always whole" },
    { "work-samples-max", CLI_FLAG_U64, &o.work_samples_max, "N", "50000000",
      "samples one work may hold at once" },
    { "work-memory-max", CLI_FLAG_BYTES, &o.work_memory_max, "BYTES", "1GiB",
      "memory one work may use to read, and again for its result" },
    { "artifact-bytes-max", CLI_FLAG_BYTES, &o.artifact_bytes_max, "BYTES", "1GiB",
      "size of one artifact" },
    { "artifact-memory", CLI_FLAG_BYTES, &o.artifact_memory, "BYTES", "32MiB",
      "artifacts up to 1 MiB stay in memory until this is full; 0B: all are files" },
    { "artifact-ttl", CLI_FLAG_DURATION, &o.artifact_ttl_ms, "DURATION", "10m",
      "how long an artifact waits for its acknowledgement" },
    { "artifact-ttl-after-ack", CLI_FLAG_DURATION, &o.artifact_ack_ttl_ms, "DURATION", "30s",
      "how long it stays after that" },
    { "disk-budget", CLI_FLAG_BYTES, &o.disk_budget, "BYTES", "10GiB",
      "disk that artifacts and cached segments may use together" },
    { "disk-floor", CLI_FLAG_BYTES, &o.disk_floor, "BYTES", "1GiB",
      "part of the budget that cached segments leave to artifacts; at most half" },
    { "disk-high", CLI_FLAG_U64, &o.disk_high, "PERCENT", "90",
      "use of the budget at which eviction begins" },
    { "disk-low", CLI_FLAG_U64, &o.disk_low, "PERCENT", "75", "use at which it ends" },
    { "open-segments-max", CLI_FLAG_U64, &o.open_segments_max, "N", "512",
      "segment files kept open between works" },
    { "open-segments-memory", CLI_FLAG_BYTES, &o.open_segments_memory, "BYTES", "256MiB",
      "memory their footers may take" },
    { "hot-memory", CLI_FLAG_BYTES, &o.hot_memory, "BYTES", "256MiB",
      "memory for parts of segments that were read, for works that read them again; 0B: none" },
    { "result-memory", CLI_FLAG_BYTES, &o.result_memory, "BYTES", "0B",
      "memory for results that are kept for dashboards that ask the same again a little later; "
      "0B: none" },
    { "background-slots", CLI_FLAG_U64, &o.background_slots, "N", "1",
      "background jobs (compaction) that run at once; works of queries go first. 0: none" },
    { "background-memory", CLI_FLAG_BYTES, &o.background_memory, "BYTES", "256MiB",
      "memory one of them may use to read" },
    { "background-rate", CLI_FLAG_BYTES, &o.background_rate, "BYTES", "64MiB",
      "what all of them may read and write in a second; 0B: no limit" },
    { "drain-timeout", CLI_FLAG_DURATION, &o.drain_timeout_ms, "DURATION", "60s",
      "after SIGTERM: the longest wait for accepted work to finish and be fetched" },
    { "control-tls-cert", CLI_FLAG_STR, &o.control_tls_cert, "FILE", NULL,
      "certificate of the control stream (PEM)" },
    { "control-tls-key", CLI_FLAG_STR, &o.control_tls_key, "FILE", NULL, "its key (PEM)" },
    { "control-tls-client-ca", CLI_FLAG_STR, &o.control_tls_client_ca, "FILE", NULL,
      "APIs must show a certificate signed by one of these (PEM), for artifacts over TLS too" },
    { "control-tls-client-name", CLI_FLAG_STR, &o.control_tls_client_name, "NAME", NULL,
      "a name that the APIs' certificates must have: keeps workers, whose CA may be the same, "
      "from giving work" },
    { "http-tls-cert", CLI_FLAG_STR, &o.http_tls_cert, "FILE", NULL,
      "certificate of the HTTP server (PEM)" },
    { "http-tls-key", CLI_FLAG_STR, &o.http_tls_key, "FILE", NULL, "its key (PEM)" },
    { "ingest-key", CLI_FLAG_STR, &o.ingest_key_file, "FILE", NULL,
      "a line with the operator's key of the ingest nodes, for what is in no segment yet" },
    { "ingest-tls-ca", CLI_FLAG_STR, &o.ingest_ca_file, "FILE", NULL,
      "who signs the certificates of ingest nodes (PEM); the system's authorities if absent" },
    { "keep", CLI_FLAG_STR, &o.keep, "DIR", NULL,
      "be a keeper: hold blobs of the ring in this folder, for this worker alone" },
    { "keep-keys", CLI_FLAG_STR, &o.keep_keys_file, "FILE", NULL,
      "keys that a keeper takes requests with, each for all tenants (\"*\"); without, anybody's" },
    { "keep-tls-cert", CLI_FLAG_STR, &o.keep_tls_cert, "FILE", NULL,
      "certificate that a keeper shows to other keepers (PEM)" },
    { "keep-tls-key", CLI_FLAG_STR, &o.keep_tls_key, "FILE", NULL, "its key (PEM)" },
    { "keep-reserve", CLI_FLAG_BYTES, &o.keep_reserve, "BYTES", "1GiB",
      "free bytes that a keeper leaves on its disk; beyond it puts are 507" },
    { "keep-scrub-rate", CLI_FLAG_BYTES, &o.keep_scrub_rate, "BYTES", "4MiB",
      "how much of what it holds a keeper verifies in a second; 0B: nothing" },
    { "keep-mend-every", CLI_FLAG_DURATION, &o.keep_mend_ms, "DURATION", "10s",
      "how often a keeper looks for blobs that it should hold and does not" },
    CLI_LOG_FLAGS(log_flags),
};

static const struct cli_spec spec = {
    .usage = "promfabric worker [FLAG...]",
    .summary = "Executes parts of queries over segments and serves the results to the API, which\n"
               "dials in. SIGTERM drains: running work ends and is fetched, then the worker exits.",
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
};

static bool check_options(void)
{
    if (o.slots > 1024 || o.downloads == 0 || o.downloads > 1024)
        return cli_bad("--slots: at most 1024; --downloads: 1 to 1024");
    if (o.background_slots > WC_LANE_SLOTS_MAX || o.background_memory < (UINT64_C(16) << 20))
        return cli_bad("--background-slots: at most 64; --background-memory: at least 16MiB");
    if (o.works_max == 0 || o.works_max > 1048576)
        return cli_bad("--works-max: 1 to 1048576");
    if (o.queue_memory < QW_QUEUE_MEMORY_MIN)
        return cli_bad("--queue-memory: at least 192MiB");
    if (o.disk_low > o.disk_high || o.disk_high > 100)
        return cli_bad(
            "--disk-low and --disk-high: percentages, the low one not above the high one");
    if (!o.work_samples_max || !o.work_memory_max || !o.artifact_bytes_max)
        return cli_bad("--work-samples-max, --work-memory-max, --artifact-bytes-max: not 0");
    if (!o.artifact_ttl_ms || !o.artifact_ack_ttl_ms)
        return cli_bad("--artifact-ttl, --artifact-ttl-after-ack: not 0");
    if (o.worker_id && strlen(o.worker_id) > PB_ID_BYTES_MAX)
        return cli_bad("--worker-id: at most 128 bytes");
    return true;
}

static int run(int signal_fd)
{
    struct qf_err err = { 0 };

    if (o.background_slots)
        qf_memory_apart();
    if (qw_worker_run(&o, signal_fd, &err) == QF_OK)
        return 0;
    (void)cli_bad(err.msg);
    return err.rc == QF_EINVAL ? 2 : 1;
}

int cli_worker(int argc, char **argv)
{
    static const struct cli_daemon daemon = {
        .name = "worker", .spec = &spec, .log = &log_flags, .check = check_options, .run = run
    };

    return cli_daemon_main(&daemon, argc, argv);
}
