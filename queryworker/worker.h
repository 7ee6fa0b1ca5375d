/* worker.h - the worker role: executes leaves of queries over segments and serves the artifacts.
 *
 * Threads: the caller's, which is the coordinator and owns all state; one that waits for gRPC; the
 * pool that scans; the pool that downloads; the pool for background jobs; those of the HTTP server. They meet in one mailbox. */
#ifndef QUERYWORKER_WORKER_H
#define QUERYWORKER_WORKER_H

#include <stdint.h>

#include "base/pure/err.h"

/* The least memory for queued work: one assignment may take an eighth of it, and any fits into that. */
#define QW_QUEUE_MEMORY_MIN (UINT64_C(192) << 20)

struct qw_options {
    const char *worker_id;      /* NULL or "": host name and control port */
    const char *store;          /* URL, see segments/store/store.h */
    const char *spool;          /* folder for artifacts and cached segments; made if missing */
    const char *http_listen;    /* host:port */
    const char *control_listen; /* host:port */
    const char *advertise_url;  /* how APIs reach http_listen; NULL or "": made from it */
    const char *control_tls_cert, *control_tls_key, *control_tls_client_ca; /* PEM files or NULL */
    const char *control_tls_client_name; /* in the APIs' certificates; NULL: any */
    const char *http_tls_cert, *http_tls_key;
    const char *ingest_key_file, *ingest_ca_file; /* for head inputs; see cache/head.h */

    uint64_t slots;        /* works that run at once; 0: one per core */
    uint64_t works_max;    /* accepted works and kept artifacts together */
    uint64_t queue_memory; /* of assignments not finished; at least QW_QUEUE_MEMORY_MIN */
    uint64_t downloads;    /* segments downloaded at once */
    uint64_t partial_from; /* segments of a bucket so large are copied in parts; 0: none */

    uint64_t work_samples_max; /* of one work, where the API does not ask for less */
    uint64_t work_memory_max;
    uint64_t artifact_bytes_max;
    uint64_t artifact_memory; /* of small artifacts in memory; 0: all are files */

    int64_t artifact_ttl_ms;     /* without acknowledgement */
    int64_t artifact_ack_ttl_ms; /* after it */
    int64_t drain_timeout_ms;

    uint64_t background_slots;  /* jobs that run at once beside works; 0: none are taken */
    uint64_t background_memory; /* of one */
    uint64_t background_rate;   /* bytes a second that all of them read and write; 0: any number */

    uint64_t disk_budget;         /* of spool and cache together */
    uint64_t disk_floor;          /* of it, kept for artifacts */
    uint64_t disk_high, disk_low; /* watermarks in percent */

    const char *keep; /* folder of a keeper (keep/keep.h); NULL: this worker keeps nothing */
    const char *keep_keys_file;               /* who may ask it; NULL: anybody */
    const char *keep_tls_cert, *keep_tls_key; /* shown to other keepers (PEM); NULL: none */
    uint64_t keep_reserve;                    /* of its disk, bytes that nothing new may use */
    uint64_t keep_scrub_rate;                 /* bytes a second; 0: never */
    int64_t keep_mend_ms;                     /* between two looks at what it lacks */

    uint64_t open_segments_max; /* readers kept open between works */
    uint64_t open_segments_memory;
    uint64_t hot_memory;    /* of parts of segments kept between works; 0: none */
    uint64_t result_memory; /* of results of works, likewise */
};

/* Run until drained after SIGTERM or SIGINT arrives at @signal_fd (base/sys/signals.h); a second
 * one ends it at once. Prints one line "listening http=HOST:PORT control=HOST:PORT worker_id=ID" to
 * stdout when both are open. QF_OK, or why it could not start. */
QF_MUST_CHECK qf_rc qw_worker_run(const struct qw_options *options, int signal_fd,
                                  struct qf_err *err);

#endif
