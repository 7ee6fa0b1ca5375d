/* fresh_int.h - what fresh.c and reads.c share. */
#ifndef INGEST_FRESH_FRESH_INT_H
#define INGEST_FRESH_FRESH_INT_H

#include "base/sys/pool.h"
#include "base/sys/thread.h"
#include "ingest/fresh/fresh.h"

/* How many reads of a tenant wait or are under way; there is one as long as there are any. */
struct in_fresh_share {
    char tenant[QF_TENANT_MAX + 1];
    uint64_t reads;
    struct in_fresh_share *next;
};

struct in_fresh {
    struct in_fresh_options options;
    struct sg_store *store;
    struct in_sealer *sealer;

    struct qf_pool *pool;
    char *reads_dir;
    struct qf_lock *lock; /* of the shares; held for moments */
    struct in_fresh_share *shares;
    uint64_t waiting;
    atomic_uint_fast64_t serial, reads, refused, gone, samples, bytes;
};

qf_rc in_fresh_reads_start(struct in_fresh *fresh, struct qf_err *err);
void in_fresh_reads_stop(struct in_fresh *fresh);

#endif
