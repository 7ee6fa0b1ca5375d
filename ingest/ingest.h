/* ingest.h - the ingest role: a node of the cluster that keeps queues (queue/node), and its HTTP.
 *
 * Threads: the caller's, which looks after time and signals; the node's owner and the one that waits
 * for the disk; two that turn records into JSON; those that decode samples;
 * one that makes files of closed ranges, one that seals them, those that read heads for queries; those of the HTTP server;
 * the transport's. */
#ifndef INGEST_INGEST_H
#define INGEST_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"

struct in_options {
    const char *data;      /* folder of this node alone */
    const char *ingest_id; /* NULL: the host name */
    bool bootstrap;
    const char *const *peers; /* "NAME=HOST:PORT" */
    size_t peer_count;
    const char *http_listen, *peer_listen;
    const char *advertise_url; /* how peers reach http_listen; NULL: made from it */
    const char *key_file;
    const char *http_tls_cert, *http_tls_key;
    const char *peer_tls_ca, *peer_tls_cert, *peer_tls_key, *peer_tls_name;
    uint64_t record_bytes_max, body_bytes_max, bodies_bytes_max;
    uint64_t http_threads, connections_max;
    uint64_t reserve_bytes, log_file_bytes;
    uint64_t requests_max;
    uint64_t partitions;     /* 0: as many as the cluster has */
    uint64_t new_partitions; /* of a new cluster, if `partitions` is 0 */
    uint64_t request_bytes_max, write_memory_bytes, write_threads;
    uint64_t labels_max, label_name_bytes_max, label_value_bytes_max;
    uint64_t tenant_series_max, tenant_samples_rate, tenant_bytes_rate; /* 0: no limit */
    const char *limits_file; /* tenants' limits (base/pure/limits.h), or NULL */
    int64_t series_idle_ms;
    bool ha_pairs; /* of tenants that the file says nothing of */
    const char *ha_cluster_label, *ha_replica_label;
    int64_t ha_failover_ms;
    int64_t out_of_order_ms, future_ms, seal_age_ms, floor_age_ms, write_leader_wait_ms;
    uint64_t seal_bytes, data_bytes_max, head_bytes_max;
    const char *store; /* of segments; NULL: nothing is sealed */
    const char *keep_key_file,
        *keep_ca_file; /* for storage nodes (ring/coord/lead.h); NULL: none, the system's */
    const char *keep_tls_cert, *keep_tls_key; /* shown to them (PEM); NULL: none */
    const char *move_rate; /* bytes a second that come to their new owners (ring/core/hours.h) */
    int64_t node_dead_ms;  /* a storage node that is down so long is replaced; 0: never */
    /* Of ring/handoff, if the store is a ring. */
    const char *handoff_dir; /* NULL: below data */
    uint64_t handoff_node_bytes, handoff_store_bytes, handoff_quantum, handoff_rate;
    int64_t handoff_pause_ms;
    int64_t state_upkeep_ms; /* condensation and retention of state maps, so often; 0: never */
    bool handoff_backpressure;
    uint64_t segment_shards;  /* a power of two */
    int64_t query_timeout_ms; /* the longest that a query may take */
    uint64_t head_read_threads, head_reads_max, head_read_bytes;
    int64_t leader_wait_ms, drain_timeout_ms, election_ms, idle_timeout_ms;
};

/* Is @text a move_rate? QF_EINVAL and why not. */
QF_MUST_CHECK qf_rc in_check_move_rate(const char *text, struct qf_err *err);

/* Run until SIGTERM or SIGINT, then drain: leadership is handed over, requests under way are answered,
 * at most drain_timeout_ms; a second signal ends that too. Prints one line "listening http=HOST:PORT
 * peer=PORT ingest_id=NAME" to stdout. QF_OK, or why it could not start. */
QF_MUST_CHECK qf_rc in_ingest_run(const struct in_options *options, int signal_fd,
                                  struct qf_err *err);

#endif
