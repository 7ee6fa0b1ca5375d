/* control.h - the messages of the control stream as plain structs, to and from bytes.
 *
 * proto/control.proto is the manual of every field. Decoding takes any bytes whatever: it allocates
 * from the caller's arena only, and returns QF_EPROTO for what is not a message or breaks a bound
 * below, QF_ELIMIT if the arena's budget is spent. Strings of a decoded message live in the arena;
 * an encoder borrows them. A body this version does not know decodes to kind ..._UNKNOWN, which
 * receivers count and ignore. */
#ifndef PROTO_CODEC_CONTROL_H
#define PROTO_CODEC_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

#define PB_PROTOCOL_VERSION 3 /* the one that is written down in control.proto */
#define PB_CONTROL_METHOD "/promfabric.control.v1.Control/Connect"

/* Bounds of a valid message, checked when decoding. */
#define PB_MESSAGE_BYTES_MAX (4u << 20) /* one encoded message; also the gRPC limit */
#define PB_ID_BYTES_MAX 128             /* query, worker, API and tenant names */
#define PB_TEXT_BYTES_MAX 4096          /* reasons, URLs, segment names */
#define PB_SPEC_BYTES_MAX (1u << 20)
#define PB_SEGMENTS_MAX 16384
#define PB_HEADS_MAX 4096  /* head inputs of one work */
#define PB_REPLICAS_MAX 16 /* of one head input */
#define PB_MAPS_MAX 256    /* state maps that one work reads */
#define PB_MAP_INTERVAL_MS_MAX 3600000
#define PB_JOB_INPUTS_MAX 1024          /* files that a job reads */
#define PB_JOB_DEAD_MAX 16384           /* that its inputs replaced */
#define PB_DECODE_BYTES_MAX (16u << 20) /* arena budget that every valid message fits in */

/* Versions that this build speaks: API and workers are upgraded one after the other, and go back, as long as
 * two of them have one in common. (version.c) */
extern const uint32_t pb_protocol_oldest, pb_protocol_newest;
/* Works with state maps are for workers that speak this, or a later one. */
#define PB_PROTOCOL_MAPS 3

/* The version to speak with a peer whose oldest is @oldest and newest @newest (0: the same): the newest that
 * both do; 0: there is none. */
uint32_t pb_protocol_agree(uint32_t oldest, uint32_t newest);

struct pb_hello {
    uint32_t protocol_version; /* the oldest */
    struct qf_str api_id;
    struct qf_str software;
    uint32_t protocol_newest;
};

struct pb_heartbeat {
    int64_t sent_us;
    bool echo;
};

struct pb_segment {
    struct qf_str name;
    uint64_t size_bytes;
    struct qf_str etag;
    int64_t mtime_ms;
    uint32_t shard;
    uint32_t shard_count;
    uint64_t generation;
};

struct pb_head {
    uint32_t partition;
    struct qf_str queue; /* never empty */
    uint64_t generation, cut;
    uint32_t shard, shard_count;   /* shard < shard_count */
    const struct qf_str *replicas; /* at least one */
    size_t replica_count;
};

struct pb_heads {
    const struct pb_head *inputs;
    size_t count;
    struct qf_str match; /* if there are inputs: never empty */
    int64_t min_ts, max_ts;
};

/* A copy of a state map. */
struct pb_map {
    struct qf_str name, kind, metric; /* never empty */
    bool short_keys;
    int64_t interval_ms;              /* more than 0 */
    uint64_t created, version, bytes; /* a version and some bytes */
};

struct pb_maps {
    const struct pb_map *inputs; /* by name, none twice */
    size_t count;
    const struct qf_str *nodes; /* if there are inputs: at least one */
    size_t node_count;
    uint32_t shard, shard_count; /* shard < shard_count, a power of two */
};

struct pb_limits { /* 0: the worker's own */
    uint64_t samples_max;
    uint64_t memory_bytes_max;
    uint64_t artifact_bytes_max;
};

struct pb_assign {
    struct qf_str query_id; /* never empty */
    uint32_t leaf_id;
    uint64_t work_id;
    uint32_t attempt;
    struct qf_str affinity_key;
    struct qf_str tenant;
    struct qf_str spec; /* bytes for pq_leaf_decode */
    struct pb_segment *segments;
    size_t segment_count;
    struct pb_heads heads;
    struct pb_maps maps;
    struct pb_limits limits;
    uint64_t timeout_ms;
    struct qf_str traceparent; /* well-formed or empty */
};

struct pb_cancel {
    uint64_t work_id;
    uint32_t attempt; /* 0: every attempt */
    struct qf_str reason;
};

struct pb_ack {
    uint64_t work_id;
    uint32_t attempt;
    struct qf_str artifact_checksum;
};

struct pb_job {
    uint64_t job_id;
    uint32_t attempt;
    struct qf_str tenant; /* never empty */
    const struct qf_str *inputs, *dead;
    size_t input_count, dead_count; /* at least one input */
    int64_t window_ms;              /* more than 0 */
    uint32_t shard, shard_count;    /* shard < shard_count */
    uint64_t generation, input_bytes, memory_bytes, file_bytes;
};

struct pb_job_cancel {
    uint64_t job_id;
    uint32_t attempt;
};

enum pb_api_kind {
    PB_API_UNKNOWN,
    PB_API_HELLO,
    PB_API_ASSIGN,
    PB_API_CANCEL,
    PB_API_ACK,
    PB_API_HEARTBEAT,
    PB_API_JOB,
    PB_API_JOB_CANCEL,
};

/* API to worker. */
struct pb_api_message {
    enum pb_api_kind kind;
    union {
        struct pb_hello hello;
        struct pb_assign assign;
        struct pb_cancel cancel;
        struct pb_ack ack;
        struct pb_heartbeat heartbeat;
        struct pb_job job;
        struct pb_job_cancel job_cancel;
    } u;
};

/* What a worker says of a store that carries no name. */
#define PB_STORE_NONE "none"

struct pb_status {
    uint32_t protocol_version; /* the oldest */
    struct qf_str worker_id;
    bool accepting_work;
    bool draining;
    uint32_t slots;
    uint32_t running;
    uint32_t queue_depth;
    struct qf_str artifact_base_url;
    struct qf_str software;
    struct pb_disk {
        uint64_t cache_bytes, bytes, bytes_max;
        uint32_t cache_segments;
    } disk;
    struct qf_str store_id; /* hex digits, PB_STORE_NONE, or empty: not known */
    uint32_t background_slots, background_running;
    uint32_t protocol_newest;
};

struct pb_accepted {
    uint64_t work_id;
    uint32_t attempt;
};

struct pb_rejected {
    uint64_t work_id;
    uint32_t attempt;
    struct qf_str reason;
};

struct pb_timings {
    uint64_t queued_us, download_us, scan_us, write_us, total_us;
};

struct pb_ready {
    uint64_t work_id;
    uint32_t attempt;
    struct qf_str artifact_url;
    uint64_t artifact_size_bytes;
    struct qf_str artifact_checksum;
    uint64_t row_count;
    int64_t min_ts, max_ts;
    uint32_t parquet_schema_version;
    struct pb_timings timings;
    uint64_t series_count;
    uint64_t samples_read;
    uint64_t download_bytes;
    uint32_t cache_hits, cache_misses;
    uint64_t head_samples, head_bytes;
};

struct pb_failed {
    uint64_t work_id;
    uint32_t attempt;
    struct qf_str code; /* qf_rc_from_name() */
    struct qf_str reason;
    bool retryable;
};

struct pb_job_rejected {
    uint64_t job_id;
    uint32_t attempt;
    struct qf_str reason;
};

struct pb_job_done {
    uint64_t job_id;
    uint32_t attempt;
    uint64_t series, samples, bytes_read, bytes_written;
    uint32_t outputs, present;
};

struct pb_job_failed {
    uint64_t job_id;
    uint32_t attempt;
    struct qf_str code; /* qf_rc_from_name() */
    struct qf_str reason;
    bool retryable;
    uint32_t input; /* as qf_err.subject */
};

struct pb_job_progress {
    uint64_t job_id;
    uint32_t attempt;
    uint64_t samples, bytes_read, paused_ms;
};

enum pb_worker_kind {
    PB_WORKER_UNKNOWN,
    PB_WORKER_STATUS,
    PB_WORKER_ACCEPTED,
    PB_WORKER_REJECTED,
    PB_WORKER_READY,
    PB_WORKER_FAILED,
    PB_WORKER_HEARTBEAT,
    PB_WORKER_JOB_REJECTED,
    PB_WORKER_JOB_DONE,
    PB_WORKER_JOB_FAILED,
    PB_WORKER_JOB_PROGRESS,
};

/* Worker to API. */
struct pb_worker_message {
    enum pb_worker_kind kind;
    union {
        struct pb_status status;
        struct pb_accepted accepted;
        struct pb_rejected rejected;
        struct pb_ready ready;
        struct pb_failed failed;
        struct pb_heartbeat heartbeat;
        struct pb_job_rejected job_rejected;
        struct pb_job_done job_done;
        struct pb_job_failed job_failed;
        struct pb_job_progress job_progress;
    } u;
};

/* Append the encoding of @message to @buf; its kind is not ..._UNKNOWN. */
void pb_api_encode(struct qf_strbuf *buf, const struct pb_api_message *message);
void pb_worker_encode(struct qf_strbuf *buf, const struct pb_worker_message *message);

QF_MUST_CHECK qf_rc pb_api_decode(struct qf_arena *arena, struct qf_str bytes,
                                  struct pb_api_message *ret_message, struct qf_err *err);
QF_MUST_CHECK qf_rc pb_worker_decode(struct qf_arena *arena, struct qf_str bytes,
                                     struct pb_worker_message *ret_message, struct qf_err *err);

/* Is @s a W3C traceparent of version 00: 00-<32 hex>-<16 hex>-<2 hex>, ids not all zero? */
bool pb_traceparent_valid(struct qf_str s);

#endif
