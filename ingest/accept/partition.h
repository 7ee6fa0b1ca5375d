/* partition.h - what the log of a queue metrics-N means to an ingest node: the application of these
 * queues (queue/node/application.h).
 *
 *     applied records   the ledger, then the head
 *     QN_WRITE          an encoded record (ingest/core/record.h): SAMPLES with every series fresh is a
 *                       request, of which the leader makes a record of its own (ingest/core/intake.h)
 *                       and answers an encoded outcome; SEAL closes the tenant's range; SEALED and
 *                       FLOOR are appended if it is their turn; BELOW is answered with the generation
 *                       that is settled, which may be less than was asked for, in decimal digits;
 *                       PIN is answered with the position, in decimal digits, as of which the request is
 *                       enriched;
 *                       ELECT is answered with 1 if the replica's samples are to be written, else 0
 *     QN_QUESTION       the first byte says what: the role's own handlers answer (options.answer)
 *
 * The leader closes ranges by age and size and moves the floor, once a second. Everything here runs
 * on the node's thread, figures aside. */
#ifndef INGEST_ACCEPT_PARTITION_H
#define INGEST_ACCEPT_PARTITION_H

#include <stdatomic.h>

#include "ingest/core/intake.h"
#include "queue/node/node.h"

struct in_head;
struct qf_limits_file;

/* Counted on the node's thread, read by anyone. */
struct in_partition_figures {
    atomic_uint_fast64_t samples, histograms, exemplars; /* applied by this node, led or not */
    atomic_uint_fast64_t taken, refused;                 /* samples, by this node as a leader */
    atomic_uint_fast64_t repeated;                       /* requests that were written before */
    atomic_uint_fast64_t seals, sealed, floors, belows;  /* records applied */
    atomic_uint_fast64_t failovers; /* replicas of senders replaced, by this node as a leader */
    atomic_uint_fast64_t bad;       /* records that counted for nothing */
    /* Of partitions led, now: series that are numbered, that are active; ranges that are open. */
    atomic_uint_fast64_t series, active, open;
    atomic_uint_fast64_t limited[QF_WRITE_LIMITS]; /* samples refused as a leader, by limit */
};

struct in_partitions_options {
    struct in_intake_limits limits;
    struct qf_limits_file *tenants; /* what each may have; borrowed */
    int64_t seal_age_ms;            /* of an open range */
    uint64_t seal_bytes;            /* of log, of an open range */
    int64_t floor_age_ms;    /* behind the leader's clock, if nothing older waits; 0: no floor */
    uint64_t data_bytes_max; /* of what waits to be sealed; 0: no bound */
    /* Bytes on the disk that count for data_bytes_max; may be NULL. */
    uint64_t (*data_bytes)(void *ctx);
    /* Memory of heads: beyond it ranges are closed early, beyond twice as much samples are refused;
     * 0: no bound. What it is now; may be NULL. */
    uint64_t head_bytes_max;
    uint64_t (*head_bytes)(void *ctx);
    /* The head of a partition, made when its queue is opened; may be NULL, or give NULL. */
    struct in_head *(*open_head)(void *ctx, uint32_t partition, uint64_t queue_id);
    /* Answer the @question about @partition that @ask has, with what the ledger says. */
    void (*answer)(void *ctx, uint32_t partition, uint64_t queue_id, const struct in_ledger *ledger,
                   struct qf_str question, struct qn_ask *ask);
    /* Who of the members of @ask's partition is not known to know @records (IN_RECORDS_...): its name, in
     * @ret_name, and false. NULL: all do. */
    bool (*all_know)(void *ctx, const struct qn_ask *ask, uint32_t records,
                     char ret_name[QC_NAME_SIZE]);
    /* This node leads the partition from now on, or does not; may be NULL. */
    void (*leads)(void *ctx, uint32_t partition, uint64_t queue_id, bool leads);
    void *ctx;
};

struct in_partitions;

struct in_partitions *in_partitions_new(const struct in_partitions_options *options);
/* After the node. Accepts NULL, returns NULL. */
struct in_partitions *in_partitions_free(struct in_partitions *partitions);
/* For qn_options.applications. */
struct qn_applications in_partitions_applications(struct in_partitions *partitions);
/* Once there is one: without it nothing is closed by age. */
void in_partitions_set_node(struct in_partitions *partitions, struct qn_node *node);
/* Close all open ranges of partitions that this node leads, with the next second. Any thread. */
void in_partitions_seal_all(struct in_partitions *partitions);

struct in_partition_figures *in_partitions_figures(struct in_partitions *partitions);

/* An ask to write @bytes to a partition: an encoded record. */
struct qn_ask *in_partition_ask(uint32_t partition, struct qf_str bytes);

#endif
