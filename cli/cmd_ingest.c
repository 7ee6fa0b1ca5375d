/* cmd_ingest.c - promfabric ingest: the ingest role as a process. */
#include <stdio.h>
#include <string.h>

#include "cli/daemon.h"
#include "ingest/ingest.h"

int cli_ingest(int argc, char **argv);

static struct in_options o;
static struct cli_list peers;
static struct cli_log log_flags;
static uint64_t handoff_node_mb, handoff_store_mb;
static const char *handoff_policy;

static const struct cli_flag flags[] = {
    { "data", CLI_FLAG_STR, &o.data, "DIR", "./ingest",
      "folder of this node alone, for its queues" },
    { "ingest-id", CLI_FLAG_STR, &o.ingest_id, "NAME", NULL,
      "stable name of this node; the host name if absent" },
    { "bootstrap", CLI_FLAG_BOOL, &o.bootstrap, NULL, NULL,
      "make a new cluster of this node alone; does nothing if --data has one" },
    { "peer", CLI_FLAG_LIST, &peers, "NAME=HOST:PORT", NULL,
      "where another node of the cluster is dialled; repeatable. This node's own name is passed "
      "over" },
    { "http-listen", CLI_FLAG_STR, &o.http_listen, "HOST:PORT", "127.0.0.1:8083",
      "queues, administration, metrics and probes; port 0 takes a free one" },
    { "peer-listen", CLI_FLAG_STR, &o.peer_listen, "HOST:PORT", "127.0.0.1:8084",
      "streams of other ingest nodes (gRPC); port 0 takes a free one" },
    { "advertise-url", CLI_FLAG_STR, &o.advertise_url, "URL", NULL,
      "how other nodes reach --http-listen; made from it if absent" },
    { "api-keys", CLI_FLAG_STR, &o.key_file, "FILE", NULL,
      "lines of \"KEY TENANT [NAME]\", KEY as it is or as sha256:HEX; requests then need "
      "Authorization: Bearer KEY" },
    { "partitions", CLI_FLAG_U64, &o.partitions, "N", "0",
      "partitions of a new cluster, a power of two; 0: as many as the cluster has, 1 for a new "
      "one" },
    { "request-bytes", CLI_FLAG_BYTES, &o.request_bytes_max, "BYTES", "32MiB",
      "size of a request with samples, decompressed" },
    { "write-memory", CLI_FLAG_BYTES, &o.write_memory_bytes, "BYTES", "512MiB",
      "memory of all requests with samples that are being processed, roughly; further ones are "
      "refused" },
    { "write-threads", CLI_FLAG_U64, &o.write_threads, "N", "2",
      "threads that decode and check samples" },
    { "out-of-order", CLI_FLAG_DURATION, &o.out_of_order_ms, "DURATION", "2h",
      "how far behind a tenant's newest sample one may be" },
    { "future-limit", CLI_FLAG_DURATION, &o.future_ms, "DURATION", "10m",
      "how far ahead of the leader's clock a sample may be" },
    { "seal-age", CLI_FLAG_DURATION, &o.seal_age_ms, "DURATION", "5m",
      "a tenant's range of samples is closed after this, and goes to the store" },
    { "seal-bytes", CLI_FLAG_BYTES, &o.seal_bytes, "BYTES", "256MiB",
      "a tenant's range is closed when it has so much of the log" },
    { "store", CLI_FLAG_STR, &o.store, "URL", NULL,
      "where closed ranges go: a folder, s3://BUCKET/PREFIX or ring://HOST:PORT[,...]; if absent "
      "nothing is ever sealed" },
    { "segment-shards", CLI_FLAG_U64, &o.segment_shards, "N", "4",
      "series of a range are spread over so many segments, a power of two" },
    { "query-timeout", CLI_FLAG_DURATION, &o.query_timeout_ms, "DURATION", "2m",
      "at least --query-timeout of every API: what a query was planned with stays readable for "
      "this long" },
    { "head-read-threads", CLI_FLAG_U64, &o.head_read_threads, "N", "2",
      "threads that read fresh samples for queries" },
    { "head-reads", CLI_FLAG_U64, &o.head_reads_max, "N", "256",
      "reads of fresh samples that wait or run at once, at most half of them of one tenant; "
      "more are refused" },
    { "head-read-memory", CLI_FLAG_BYTES, &o.head_read_bytes, "BYTES", "256MiB",
      "memory of all reads of fresh samples together" },
    { "floor-age", CLI_FLAG_DURATION, &o.floor_age_ms, "DURATION", "24h",
      "samples older than this are refused once nothing older waits for the store, so that queries "
      "of older times need no ingest node; 0: never" },
    { "head-bytes", CLI_FLAG_BYTES, &o.head_bytes_max, "BYTES", "2GiB",
      "memory for what is not in the store yet: beyond it ranges are closed early, beyond twice as "
      "much samples are refused; 0: no bound" },
    { "data-bytes", CLI_FLAG_BYTES, &o.data_bytes_max, "BYTES", "64GiB",
      "if more than this in --data waits for the store, samples are refused" },
    { "tenant-series", CLI_FLAG_U64, &o.tenant_series_max, "N", "5000000",
      "active series of a tenant in the cluster; samples of more are refused; 0: no limit" },
    { "series-idle", CLI_FLAG_DURATION, &o.series_idle_ms, "DURATION", "10m",
      "a series without a sample for so long is not active any more" },
    { "tenant-samples-rate", CLI_FLAG_U64, &o.tenant_samples_rate, "N", "0",
      "samples a second of a tenant in the cluster; 0: no limit" },
    { "tenant-bytes-rate", CLI_FLAG_BYTES, &o.tenant_bytes_rate, "BYTES", "0",
      "of samples with their labels, decompressed, a second of a tenant in the cluster; 0: no "
      "limit" },
    { "keep-key-file", CLI_FLAG_STR, &o.keep_key_file, "FILE", NULL,
      "the key that storage nodes ask for is the first line of this file" },
    { "keep-ca", CLI_FLAG_STR, &o.keep_ca_file, "FILE", NULL,
      "who signs the certificates of storage nodes (PEM); the system's authorities if absent" },
    { "keep-tls-cert", CLI_FLAG_STR, &o.keep_tls_cert, "FILE", NULL,
      "certificate shown to storage nodes (PEM)" },
    { "keep-tls-key", CLI_FLAG_STR, &o.keep_tls_key, "FILE", NULL, "its key (PEM)" },
    { "move-rate", CLI_FLAG_STR, &o.move_rate, "BYTES[,HOURS=BYTES...]", "0B",
      "how much may come in a second to storage nodes that take over from others; 0B: no bound. "
      "Hours (UTC) with another rate follow, or with `off`, when nothing new begins: "
      "64MiB,8-20=8MiB,12-13=off" },
    { "node-dead-after", CLI_FLAG_DURATION, &o.node_dead_ms, "DURATION", "0s",
      "a storage node that does not answer for so long is removed, if the copies can be kept; 0s: "
      "never" },
    { "handoff-dir", CLI_FLAG_STR, &o.handoff_dir, "DIR", NULL,
      "with --store ring://: folder for what storage nodes miss while they are away; handoff in "
      "--data if absent" },
    { "handoff-max-size-mb", CLI_FLAG_U64, &handoff_node_mb, "MB", "1024",
      "the most that is kept for one storage node" },
    { "handoff-store-max-size-mb", CLI_FLAG_U64, &handoff_store_mb, "MB", "10240",
      "the most that is kept for all storage nodes" },
    { "handoff-policy", CLI_FLAG_STR, &handoff_policy, "POLICY", "drop-oldest",
      "at these bounds: drop-oldest, the node fetches it from others later; or backpressure, "
      "nothing "
      "is sealed until there is room, and samples are refused at --data-bytes" },
    { "handoff-quantum", CLI_FLAG_U64, &o.handoff_quantum, "N", "100",
      "a storage node that is back gets so many blobs, then it is the turn of others" },
    { "handoff-pause", CLI_FLAG_DURATION, &o.handoff_pause_ms, "DURATION", "1s",
      "between two turns of a storage node" },
    { "handoff-rate", CLI_FLAG_BYTES, &o.handoff_rate, "BYTES", "0B",
      "how much a storage node that is back gets in a second; 0B: no bound" },
    { "state-upkeep-every", CLI_FLAG_DURATION, &o.state_upkeep_ms, "DURATION", "10m",
      "condensation and retention of state maps, so often; 0s: never" },
    { "tenant-limits", CLI_FLAG_STR, &o.limits_file, "FILE", NULL,
      "lines of \"TENANT NAME=VALUE...\" for tenants that may have more or less: samples-rate, "
      "bytes-rate, series, labels, label-name-bytes, label-value-bytes, ha-pairs; read again when "
      "it changes; may be the API's" },
    { "ha-pairs", CLI_FLAG_BOOL, &o.ha_pairs, NULL, NULL,
      "of replicas that send the same series one is written; for one tenant: ha-pairs=on or off in "
      "--tenant-limits" },
    { "ha-cluster-label", CLI_FLAG_STR, &o.ha_cluster_label, "NAME", "cluster",
      "with --ha-pairs: replicas with the same value of this label send the same series" },
    { "ha-replica-label", CLI_FLAG_STR, &o.ha_replica_label, "NAME", "__replica__",
      "with --ha-pairs: the label that names the replica; it is not stored" },
    { "ha-failover", CLI_FLAG_DURATION, &o.ha_failover_ms, "DURATION", "30s",
      "another replica takes over when its samples are newer than the last of the elected one by "
      "this" },
    { "labels-max", CLI_FLAG_U64, &o.labels_max, "N", "64", "labels of a series" },
    { "label-name-bytes", CLI_FLAG_BYTES, &o.label_name_bytes_max, "BYTES", "1KiB",
      "size of a label's name, and of a metric's" },
    { "label-value-bytes", CLI_FLAG_BYTES, &o.label_value_bytes_max, "BYTES", "8KiB",
      "size of a label's value" },
    { "write-leader-wait", CLI_FLAG_DURATION, &o.write_leader_wait_ms, "DURATION", "800ms",
      "how long a request with samples waits for its partition to have a leader, and for that "
      "leader to reach a majority" },
    { "record-bytes-max", CLI_FLAG_BYTES, &o.record_bytes_max, "BYTES", "1MiB",
      "size of one record; at most 16MiB" },
    { "http-body-bytes", CLI_FLAG_BYTES, &o.body_bytes_max, "BYTES", "16MiB",
      "size of a request's body" },
    { "http-bodies-bytes", CLI_FLAG_BYTES, &o.bodies_bytes_max, "BYTES", "256MiB",
      "size of all bodies together that are being read or processed; further requests are "
      "refused" },
    { "http-threads", CLI_FLAG_U64, &o.http_threads, "N", "4", "threads of the HTTP server" },
    { "http-connections", CLI_FLAG_U64, &o.connections_max, "N", "2048", "connections at once" },
    { "http-idle-timeout", CLI_FLAG_DURATION, &o.idle_timeout_ms, "DURATION", "30s",
      "connections without progress are closed" },
    { "requests-max", CLI_FLAG_U64, &o.requests_max, "N", "8192",
      "requests about queues that wait at once; further ones are refused" },
    { "disk-reserve", CLI_FLAG_BYTES, &o.reserve_bytes, "BYTES", "64MiB",
      "disk space that logs leave free" },
    { "log-file-bytes", CLI_FLAG_BYTES, &o.log_file_bytes, "BYTES", "64MiB",
      "size of one file of a log; old records are deleted a whole file at a time" },
    { "leader-wait", CLI_FLAG_DURATION, &o.leader_wait_ms, "DURATION", "2s",
      "how long a request waits for a queue to have a leader" },
    { "election-timeout", CLI_FLAG_DURATION, &o.election_ms, "DURATION", "1s",
      "a leader that is silent for this long, up to twice as long, is replaced" },
    { "drain-timeout", CLI_FLAG_DURATION, &o.drain_timeout_ms, "DURATION", "20s",
      "after SIGTERM: the longest wait for requests under way" },
    { "http-tls-cert", CLI_FLAG_STR, &o.http_tls_cert, "FILE", NULL,
      "certificate of the HTTP server (PEM)" },
    { "http-tls-key", CLI_FLAG_STR, &o.http_tls_key, "FILE", NULL, "its key (PEM)" },
    { "peer-tls-ca", CLI_FLAG_STR, &o.peer_tls_ca, "FILE", NULL,
      "other nodes must show a certificate signed by one of these (PEM)" },
    { "peer-tls-cert", CLI_FLAG_STR, &o.peer_tls_cert, "FILE", NULL,
      "certificate shown to other nodes (PEM)" },
    { "peer-tls-key", CLI_FLAG_STR, &o.peer_tls_key, "FILE", NULL, "its key (PEM)" },
    { "peer-tls-name", CLI_FLAG_STR, &o.peer_tls_name, "NAME", NULL,
      "a name that the certificate of every ingest node has" },
    CLI_LOG_FLAGS(log_flags),
};

static const struct cli_spec spec = {
    .usage = "promfabric ingest [FLAG...]",
    .summary = "Takes samples (remote write, OTLP, text) and keeps them and other queues, durable, "
               "alone or\n"
               "with other nodes. Start the first node of a cluster\n"
               "with --bootstrap, the others without, and add them with promfabric queue members;\n"
               "or start all without, and make them a cluster with promfabric queue form.\n"
               "SIGTERM drains: leadership is handed over, requests are answered, then it exits.",
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
};

static bool check_peers(void)
{
    for (size_t i = 0; i < peers.count; i++) {
        const char *equals = strchr(peers.items[i], '=');

        if (!equals || equals == peers.items[i] || equals - peers.items[i] > 63 ||
            !strchr(equals, ':'))
            return cli_bad("--peer: expected NAME=HOST:PORT");
    }
    return true;
}

static bool check_head_options(void)
{
    if (o.data_bytes_max && o.data_bytes_max / 4 < o.log_file_bytes)
        return cli_bad("--data-bytes: at least four times --log-file-bytes, which go whole; or 0");
    if (o.segment_shards < 1 || o.segment_shards > 1024 ||
        (o.segment_shards & (o.segment_shards - 1)) != 0)
        return cli_bad("--segment-shards: a power of two, at most 1024");
    if (o.query_timeout_ms < 1000)
        return cli_bad("--query-timeout: at least 1s");
    if (o.head_read_threads < 1 || o.head_read_threads > 256)
        return cli_bad("--head-read-threads: 1 to 256");
    if (o.head_reads_max < 2 || o.head_reads_max > 65536)
        return cli_bad("--head-reads: 2 to 65536");
    if (o.head_read_bytes / o.head_read_threads < UINT64_C(1) << 20)
        return cli_bad("--head-read-memory: at least 1MiB for each of --head-read-threads");
    return true;
}

static bool check_write_options(void)
{
    if (o.partitions > 128 || (o.partitions & (o.partitions - 1)) != 0)
        return cli_bad("--partitions: a power of two, at most 128");
    o.new_partitions = 1;
    if (o.request_bytes_max < 1024 || o.request_bytes_max > UINT64_C(256) << 20)
        return cli_bad("--request-bytes: 1KiB to 256MiB");
    if (o.write_threads < 1 || o.write_threads > 256)
        return cli_bad("--write-threads: 1 to 256");
    if (o.labels_max < 1 || o.labels_max > 256 || o.label_name_bytes_max < 1 ||
        o.label_value_bytes_max < 1 || o.label_value_bytes_max > UINT64_C(1) << 20 ||
        o.label_name_bytes_max > UINT64_C(1) << 20)
        return cli_bad(
            "--labels-max: 1 to 256; --label-name-bytes, --label-value-bytes: 1 to 1MiB");
    if (!*o.ha_cluster_label || !*o.ha_replica_label ||
        strcmp(o.ha_cluster_label, o.ha_replica_label) == 0 ||
        strcmp(o.ha_replica_label, "__name__") == 0)
        return cli_bad("--ha-cluster-label, --ha-replica-label: two names of labels");
    if (o.ha_failover_ms < 1000 || o.ha_failover_ms > INT64_C(3600) * 1000)
        return cli_bad("--ha-failover: 1s to 1h");
    if (o.series_idle_ms < 1000 || o.series_idle_ms > INT64_C(24) * 3600 * 1000)
        return cli_bad("--series-idle: 1s to 24h");
    if (o.seal_age_ms < 1000)
        return cli_bad("--seal-age: at least 1s");
    if (o.seal_bytes < UINT64_C(1) << 16)
        return cli_bad("--seal-bytes: at least 64KiB");
    return check_head_options();
}

static bool check_move_rate(void)
{
    struct qf_err err = { 0 };
    char why[sizeof(err.msg) + 16];

    if (in_check_move_rate(o.move_rate, &err) == QF_OK)
        return true;
    (void)snprintf(why, sizeof(why), "--move-rate: %s", err.msg);
    return cli_bad(why);
}

static bool check_handoff_options(void)
{
    const uint64_t mb_max = UINT64_C(1) << 30;

    if (handoff_node_mb < 1 || handoff_node_mb > mb_max || handoff_store_mb < 1 ||
        handoff_store_mb > mb_max)
        return cli_bad("--handoff-max-size-mb, --handoff-store-max-size-mb: 1 to 1073741824");
    o.handoff_node_bytes = handoff_node_mb << 20;
    o.handoff_store_bytes = handoff_store_mb << 20;
    o.handoff_backpressure = strcmp(handoff_policy, "backpressure") == 0;
    if (!o.handoff_backpressure && strcmp(handoff_policy, "drop-oldest") != 0)
        return cli_bad("--handoff-policy: drop-oldest or backpressure");
    if (o.handoff_quantum < 1 || o.handoff_quantum > 65536)
        return cli_bad("--handoff-quantum: 1 to 65536");
    if (o.handoff_pause_ms < 1 || o.handoff_pause_ms > 3600000)
        return cli_bad("--handoff-pause: 1ms to 1h");
    return true;
}

static bool check_options(void)
{
    if (!check_peers() || !check_handoff_options() || !check_move_rate())
        return false;
    if (o.state_upkeep_ms < 0 || o.state_upkeep_ms > INT64_C(86400000))
        return cli_bad("--state-upkeep-every: at most 1d");
    if (o.record_bytes_max < 1 || o.record_bytes_max > UINT64_C(16) << 20)
        return cli_bad("--record-bytes-max: 1 byte to 16MiB");
    if (o.body_bytes_max < o.record_bytes_max || o.body_bytes_max > UINT64_C(20) << 20)
        return cli_bad("--http-body-bytes: at least --record-bytes-max, at most 20MiB");
    if (!check_write_options())
        return false;
    if (o.requests_max < 1 || o.requests_max > 65536)
        return cli_bad("--requests-max: 1 to 65536");
    if (o.election_ms < 100 || o.election_ms > 60000)
        return cli_bad("--election-timeout: 100ms to 60s");
    if (o.log_file_bytes < UINT64_C(1) << 20)
        return cli_bad("--log-file-bytes: at least 1MiB");
    if (o.http_threads < 1 || o.http_threads > 256 || o.connections_max < 1)
        return cli_bad("--http-threads: 1 to 256; --http-connections: not 0");
    if (!o.http_tls_cert != !o.http_tls_key)
        return cli_bad("--http-tls-cert and --http-tls-key go together");
    if (!o.peer_tls_cert != !o.peer_tls_key || !o.peer_tls_cert != !o.peer_tls_ca)
        return cli_bad("--peer-tls-ca, --peer-tls-cert and --peer-tls-key go together");
    o.peers = peers.items;
    o.peer_count = peers.count;
    return true;
}

static int run(int signal_fd)
{
    struct qf_err err = { 0 };

    if (in_ingest_run(&o, signal_fd, &err) == QF_OK)
        return 0;
    (void)cli_bad(err.msg);
    return err.rc == QF_EINVAL ? 2 : 1;
}

int cli_ingest(int argc, char **argv)
{
    static const struct cli_daemon daemon = {
        .name = "ingest", .spec = &spec, .log = &log_flags, .check = check_options, .run = run
    };

    return cli_daemon_main(&daemon, argc, argv);
}
