/* fresh.h - what an ingest node does with its heads: they are sealed, and queries read them.
 *
 * Reads have threads, memory and places of their own, and no tenant has all of them: neither the
 * node's thread nor the log waits for one. */
#ifndef INGEST_FRESH_FRESH_H
#define INGEST_FRESH_FRESH_H

#include "ingest/head/heads.h"
#include "ingest/seal/sealer.h"
#include "queue/node/node.h"
#include "segments/store/ring.h"

struct in_fresh;

struct in_fresh_options {
    struct in_heads *heads; /* borrowed, as are: */
    struct qn_node *node;
    const atomic_bool *leads;              /* by partition: this node leads it */
    const char *data;                      /* folder of the node: reads get one in it */
    const char *store;                     /* where ranges are sealed; NULL or "": nowhere */
    const struct sg_ring_handoff *handoff; /* if that is a ring; NULL: none */
    uint64_t read_threads;                 /* reads at once */
    uint64_t reads_max;                    /* waiting and under way; of one tenant half of them */
    uint64_t read_bytes;                   /* memory of all of them together */
};

/* QF_EINVAL: a store that cannot be; QF_EIO, QF_EDENIED: folders; QF_EUNAVAILABLE: no threads. */
QF_MUST_CHECK qf_rc in_fresh_start(const struct in_fresh_options *options,
                                   struct in_fresh **ret_fresh, struct qf_err *err);
/* No read may come any more; those under way are answered. Before the node ends. Accepts NULL, returns
 * NULL. */
struct in_fresh *in_fresh_stop(struct in_fresh *fresh);

/* --- reads --- */

struct in_fresh_read {
    struct in_head_ask ask; /* strings and matchers are in `arena`; path and cancel are set here */
    struct qf_arena *arena;
    uint32_t partition;
    uint64_t queue_id;
    atomic_bool cancel;

    /* Called once, on a thread of the reads: the answer, with the file open for reading (the
     * receiver's to close), or -1 if nothing matches; or an error. Then the receiver frees it. */
    void (*done)(struct in_fresh_read *read, int fd, const struct in_head_answer *answer,
                 const struct qf_err *err);
    void *ctx;
    struct in_fresh *fresh; /* set by in_fresh_read() */
};
struct in_fresh_read *in_fresh_read_new(void);
struct in_fresh_read *
in_fresh_read_free(struct in_fresh_read *read); /* Accepts NULL, returns NULL. */
/* Have it read. QF_ENOTFOUND: no such partition here, or another queue; QF_EBUSY: as many as may
 * wait do; QF_EUNAVAILABLE: it is stopping. After an error it stays the caller's. Never waits. */
QF_MUST_CHECK qf_rc in_fresh_read(struct in_fresh *fresh, struct in_fresh_read *read,
                                  struct qf_err *err);

struct in_fresh_figures {
    uint64_t ranges_sealed, files_put, files_present, bytes_put, seal_failures;
    uint64_t ranges_built, build_failures;
    bool store_away;
    uint64_t reads, reads_refused, reads_gone, read_samples, read_bytes;
    uint64_t reads_waiting; /* or under way, now */
};
struct in_fresh_figures in_fresh_figures(struct in_fresh *fresh);

#endif
