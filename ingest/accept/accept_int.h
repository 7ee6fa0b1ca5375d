/* accept_int.h - a request on its way, shared by accept.c (taken, decoded) and write.c (to its partitions,
 * and what its sender hears). */
#ifndef INGEST_ACCEPT_ACCEPT_INT_H
#define INGEST_ACCEPT_ACCEPT_INT_H

#include "base/pure/tenant.h"
#include "base/sys/pool.h"
#include "base/sys/thread.h"
#include "ingest/accept/accept.h"
#include "ingest/core/ha.h"
#include "ingest/core/record.h"

struct in_accept {
    struct in_accept_options options;
    struct in_accept_figures figures;
    struct in_door door;
    struct qf_lock *lock; /* of who goes on, which other threads say, against the end of the pool */
    struct qf_pool *pool;
    bool halted;
};

/* What was asked and answered: by one partition of samples, or by the one that elects a replica. */
struct in_slot {
    struct in_job *job;
    bool asked;
    struct in_group *group; /* of an election; else NULL */
    qf_rc rc;
    char why[QF_ERR_MSG_SIZE];
    struct in_outcome outcome;
};

/* Series of one request that are written together or not at all: those of one replica, or of none. */
struct in_group {
    struct in_amounts amounts;
    /* By partition: what is asked once the replica turns out to be the elected one; NULL: nothing. */
    struct qn_ask **held;
};

/* A request that was decoded and is on its way to be written. */
struct in_decoded {
    struct qf_strbuf bytes;
    struct qf_arena *arena, *added; /* of what was sent, and of what enrichment added */
    struct in_request request;
    uint32_t partitions;
    uint64_t position; /* of the log of state maps; 0: there is no enrichment */
};

/* One request from its arrival to its answer. */
struct in_job {
    struct in_accept *accept;
    enum in_protocol protocol;
    enum in_body_coding coding;
    enum in_influx_precision precision;
    char tenant[QF_TENANT_MAX + 1];
    struct in_request_key key;
    struct in_decoded *decoded; /* while its position is asked for */
    char *body;
    size_t body_len;
    uint64_t counted; /* bytes of memory_bytes */
    in_written_fn *done;
    void *ctx;
    struct in_outcome checked; /* what was refused before any partition was asked */
    uint32_t partitions;
    struct in_group *groups; /* the first is that of no replica */
    uint32_t group_count;
    struct in_slot *slots; /* by group and partition, then the elections by group */
    uint32_t slot_count;
    atomic_uint_fast32_t open; /* slots that have not answered, and whoever still asks */
};

static inline void in_count(atomic_uint_fast64_t *figure, uint64_t amount)
{
    atomic_fetch_add_explicit(figure, amount, memory_order_relaxed);
}

/* accept.c */
struct in_decoded *in_decoded_free(struct in_decoded *decoded); /* Accepts NULL, returns NULL. */
/* It goes on, on the pool, as of @position. */
void in_job_go_on(struct in_job *job, uint64_t position);
/* write.c: ask as of which position @job is enriched: that of now is @position. Then in_job_go_on(), or it fails. */
void in_job_pin(struct in_job *job, uint32_t partitions, uint64_t position);
/* write.c: write a request that was decoded and checked to @partitions, and answer. */
void in_job_write(struct in_job *job, const struct in_request *request, const struct in_ha *ha,
                  uint32_t partitions);
/* Answer that nothing was written, and why. */
void in_job_fail(struct in_job *job, int status, const char *why);

#endif
