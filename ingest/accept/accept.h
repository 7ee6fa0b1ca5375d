/* accept.h - from the body of a request to what its sender hears.
 *
 *     decode                 on a pool of threads, within bounds of bytes and memory
 *     enrich                 by the tenant's rules and state maps, if it has rules: a request that is sent again
 *                            as of the same position as the first time
 *     check
 *     split by partition     by the hash that decides a series' shard
 *     elect                  of pairs of senders: whose samples they are (ingest/core/ha.h)
 *     write                  one ask per partition that is touched; the leader of each appends
 *     answer                 when every partition has committed, or one could not
 *
 * What is not valid is refused and the rest written; the sender hears of the first thing refused. A
 * request that is sent again, after whatever answer or none, writes only what is missing. */
#ifndef INGEST_ACCEPT_ACCEPT_H
#define INGEST_ACCEPT_ACCEPT_H

#include <stdatomic.h>

#include "ingest/accept/body.h"
#include "ingest/accept/door.h"
#include "ingest/core/ha.h"
#include "ingest/core/influx.h"
#include "ingest/core/outcome.h"
#include "queue/node/node.h"

/* What state maps have to say of samples; in_state_position() and in_state_enrich() of ingest/state are this. */
struct in_enricher {
    qf_rc (*position)(void *ctx, struct qf_str tenant, uint64_t *ret_position, struct qf_err *err);
    qf_rc (*enrich)(void *ctx, struct qf_str tenant, uint64_t position, struct in_request *request,
                    struct qf_arena *arena, struct qf_err *err);
    void *ctx;
};

struct in_accept_options {
    struct qn_node *node;
    uint64_t request_bytes_max;     /* of a body, decompressed */
    uint64_t memory_bytes_max;      /* of all requests that are worked on, about */
    struct qf_limits_file *tenants; /* what each may send; borrowed */
    struct in_ha_labels ha;         /* of tenants that have pairs of senders */
    struct in_enricher enricher;    /* NULLs: there is none */
    size_t threads, queue_max;
};

enum in_protocol {
    IN_PROTOCOL_WRITE_1,
    IN_PROTOCOL_WRITE_2,
    IN_PROTOCOL_TEXT,
    IN_PROTOCOL_OPEN_METRICS,
    IN_PROTOCOL_OTLP, /* protobuf */
    IN_PROTOCOL_OTLP_JSON,
    IN_PROTOCOL_INFLUX,
    IN_PROTOCOL__COUNT
};

struct in_write {
    enum in_protocol protocol;
    enum in_body_coding coding;
    struct qf_str tenant, body;
    struct qf_str key;                  /* Idempotency-Key; empty: none */
    enum in_influx_precision precision; /* of times; INFLUX */
};

/* What the sender hears. */
struct in_written {
    int status;                /* of HTTP */
    int64_t wait_ms;           /* 429, 503: when to try again; 0: soon */
    bool whole;                /* the request as a whole was refused, not parts of it */
    struct in_outcome outcome; /* of the whole request */
    char message[600];         /* "" if all is well */
};
/* On any thread; must not wait. */
typedef void in_written_fn(void *ctx, const struct in_written *written);

/* Counted here, read by anyone. */
struct in_accept_figures {
    atomic_uint_fast64_t requests[IN_PROTOCOL__COUNT];
    atomic_uint_fast64_t samples, histograms, exemplars; /* written, as senders were told */
    atomic_uint_fast64_t refused;                        /* samples and histograms */
    atomic_uint_fast64_t limited[QF_WRITE_LIMITS];       /* of these, here, by limit */
    atomic_uint_fast64_t turned_away; /* requests not looked at: the tenant was over its rates */
    atomic_uint_fast64_t ha_dropped; /* samples acknowledged and dropped: of replicas not elected */
    atomic_uint_fast64_t body_bytes, decoded_bytes;
    atomic_uint_fast64_t memory_bytes; /* now */
};

struct in_accept;

/* NULL: no threads. */
struct in_accept *in_accept_new(const struct in_accept_options *options);
/* Nothing more comes: wait for what is being decoded. Before the node is stopped. Accepts NULL. */
void in_accept_halt(struct in_accept *accept);
/* After the node, which answers all that was asked. Accepts NULL, returns NULL. */
struct in_accept *in_accept_free(struct in_accept *accept);

/* Write @write, whose texts are copied, and call @done exactly once. Any thread; does not wait. */
void in_accept_write(struct in_accept *accept, const struct in_write *write, in_written_fn *done,
                     void *ctx);

const struct in_accept_figures *in_accept_figures(const struct in_accept *accept);

#endif
