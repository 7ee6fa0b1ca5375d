/* handoff_int.h - what the files of hand-off share. */
#ifndef INGEST_RING_HANDOFF_INT_H
#define INGEST_RING_HANDOFF_INT_H

#include <stdatomic.h>

#include "base/pure/vec.h"
#include "base/sys/pool.h"
#include "base/sys/thread.h"
#include "ingest/ring/handoff.h"
#include "ring/core/repair.h"
#include "ring/core/ring.h"
#include "ring/spool/spool.h"

/* A storage node, by its number. */
struct in_target {
    char name[RG_NAME_MAX + 1]; /* empty: none has the number */
    char url[RG_URL_MAX + 1];
    bool up;      /* as the core was told */
    bool away;    /* it did not answer the last look */
    bool looking; /* a look is under way */
    bool failing; /* the last send failed, and was logged */
    unsigned sending;
    int64_t due_ms, wait_ms; /* of looks; monotonic */
};

/* What a start found, until the ring is known. */
struct in_early {
    char *node, *name;
    struct sp_part part;
    int64_t time_ms;
    bool whole;
};

struct in_handoff {
    struct in_handoff_options options;
    struct rg_board *board;
    struct sp_spool *spool;
    struct sg_store *store; /* its own: the ring's manifests and client */
    struct sg_ring_handoff hooks;
    int64_t clock_ms; /* from the monotonic clock to that of references, fixed at the start */
    atomic_bool stopping;
    struct qf_pool *senders, *lookers;
    struct qf_thread *ticker, *mender;
    int64_t listed_ms; /* the mender's: when it asked the manifests last; 0: never */

    struct qf_lock *adding; /* one reference is written at a time; taken before: */
    struct qf_lock *lock;   /* of the rest */
    struct rg_handoff *core;
    struct rg_repair *repair;
    in_handoff_document *document; /* or NULL */
    void *document_ctx;
    struct rg_ring *ring; /* NULL: not known yet */
    uint64_t applied;
    struct in_target nodes[RG_NODES_MAX];
    QF_VEC(struct in_early) early;
    struct qf_str pinned; /* files of this blob stay; empty: of none */

    atomic_uint_fast64_t sent_bytes, failures, needless, disk_failures, damaged, marked, repaired;
    atomic_uint_fast64_t refused;
};

/* handoff.c. Each with the lock. */
int64_t in_handoff_now(const struct in_handoff *handoff);
/* Feed @event, with the time of now, and do what comes of it. */
qf_rc in_handoff_step(struct in_handoff *handoff, struct rg_handoff_event event);
/* @node lacks @name: it is asked to fetch it. */
void in_handoff_mark(struct in_handoff *handoff, uint8_t node, uint32_t slot, struct qf_str name);

/* handoff_send.c. With the lock. */
void in_handoff_send(struct in_handoff *handoff, const struct rg_handoff_effect *effect);
/* Look at nodes whose time has come. */
void in_handoff_look(struct in_handoff *handoff);

/* handoff_mend.c: a thread's body. */
void in_handoff_mend(void *arg);

#endif
