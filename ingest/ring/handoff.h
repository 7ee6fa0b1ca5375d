/* handoff.h - what storage nodes that were away still have to get, kept and sent by this ingest node.
 *
 * The hands of ring/handoff/handoff.h, which decides, and ring/spool/spool.h, which keeps. A put of this node that a majority
 * has leaves a reference for each owner that has it not (sg_ring_set_handoff()), durable before the put is done:
 *
 *   status    A node with references is looked at every second, less and less often while it does not answer. It is up once
 *             it answers and knows the epochs
 *   replay    Four threads send, one blob after the other to a node, to several nodes at a time in turns. With `rate` each node
 *             gets so much a second. A slot's owners are looked up before each send: who is none any more needs nothing
 *   manifests Are read each minute while there is something: what left them is not sent any more
 *   marks     What was dropped, is too old, damaged or fails is fetched by the node from other owners: it is asked to, with pauses
 *             that grow (ring/core/repair.h). Marks are in memory: a keeper compares itself with the manifests anyway
 *
 * Writes of documents (ingest/docs/replicas.h) are kept alike, under names of their own (rg_doc_part()): they are joined into what the
 * node has by then, no manifest names them, and what cannot be delivered is told to whoever repairs documents.
 *
 * The folder cannot be written: the node is marked; with backpressure the put fails. Any thread. */
#ifndef INGEST_RING_HANDOFF_H
#define INGEST_RING_HANDOFF_H

#include "ring/coord/board.h"
#include "ring/handoff/handoff.h"
#include "segments/store/ring.h"

struct in_handoff;

struct in_handoff_options {
    const char *dir;
    const char *store; /* ring://... */
    uint64_t node_bytes, store_bytes, reserve_bytes;
    enum rg_handoff_policy policy;
    uint32_t quantum;
    int64_t rest_ms;
    uint64_t rate; /* bytes a second to a node; 0: no bound */
};

/* QF_EINVAL: a store that cannot be; QF_EIO, QF_EDENIED: the folder; QF_EUNAVAILABLE: no threads. @board is borrowed. */
QF_MUST_CHECK qf_rc in_handoff_start(const struct in_handoff_options *options,
                                     struct rg_board *board, struct in_handoff **ret_handoff,
                                     struct qf_err *err);
/* When nobody puts any more. What is under way is given up: it is sent again. Accepts NULL, returns NULL. */
struct in_handoff *in_handoff_stop(struct in_handoff *handoff);

/* For the store that puts. NULL of NULL. */
const struct sg_ring_handoff *in_handoff_hooks(const struct in_handoff *handoff);

/* Who hears of documents that are not delivered: called with locks held, and does not wait. NULL: nobody, from the return on. */
typedef void in_handoff_document(void *ctx, uint32_t slot, const char *name);
void in_handoff_set_documents(struct in_handoff *handoff, in_handoff_document *fn, void *ctx);

struct in_handoff_figures {
    struct rg_handoff_figures of; /* delivered: those that had to be sent */
    int64_t oldest_ms;            /* how old the oldest reference is; 0: none */
    uint64_t sent_bytes, failures, needless, disk_failures, damaged, marked, repaired;
    uint64_t marks; /* now */
    uint64_t away;  /* nodes that lack something and do not answer, now */
};
/* Of NULL: nothing. */
void in_handoff_figures(struct in_handoff *handoff, struct in_handoff_figures *ret_figures);

#endif
