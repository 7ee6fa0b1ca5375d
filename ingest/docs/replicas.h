/* replicas.h - a document at all of its keepers: asked for, joined, repaired.
 *
 * A round goes to all owners of the slot at once, old and new ones while it moves, with the slot's epoch, and is over when its
 * level is met or cannot be met any more (ring/core/tally.h); who is slower goes on behind it. To write is to read what a
 * keeper has, to join it with what is new, and to put that if nobody was quicker: so no order of writes and repairs loses
 * anything, and each may be done again.
 *
 *   breaker   a keeper that did not answer is not asked for half a second: requests need not wait for it one by one
 *   hand-off  what owners missed of a write that reached its level is kept on this node's disk and sent when they are back
 *             (ingest/ring/handoff.h), by a thread of its own, behind the request: it never counts for the level
 *   repairs   what cannot be handed off, or what a read saw to differ, is noted by name, at most IN_REPAIRS_MAX of them; one thread
 *             reads all owners, joins, and writes to those that lack something; with pauses that double up to a minute,
 *             IN_REPAIR_TRIES times. Notes are in memory: after a restart keepers find out themselves, comparing each other
 *
 * Calls block; any thread. */
#ifndef INGEST_DOCS_REPLICAS_H
#define INGEST_DOCS_REPLICAS_H

#include "ring/coord/board.h"
#include "ring/core/sheet.h"
#include "ring/core/tally.h"
#include "segments/store/keep_client.h"
#include "segments/store/ring.h"

enum {
    IN_REPAIRS_MAX = 4096,
    IN_REPAIR_TRIES = 20,
    IN_HANDING_MAX = 256, /* writes that wait to be handed off; more are noted */
    IN_REPLICAS_MAX = 2 * RG_COPIES_MAX,
    IN_REPLICA_TEXT = 160,
};

struct in_replicas;

/* NULL and @err: the key or the certificate cannot be read, or there are no threads. @board is borrowed, and so is
 * @handoff, where what owners miss is kept; NULL: nowhere. */
struct in_replicas *in_replicas_new(const struct sg_keep_client_options *options,
                                    const struct sg_ring_handoff *handoff, struct rg_board *board,
                                    struct qf_err *err);
/* Owners of the document @name in @slot lack something: have them repaired. Does not wait; any thread. */
void in_replicas_lacking(struct in_replicas *replicas, uint32_t slot, const char *name);
/* Rounds that are under way end now. */
void in_replicas_halt(struct in_replicas *replicas);
/* When nobody asks any more. Accepts NULL, returns NULL. */
struct in_replicas *in_replicas_free(struct in_replicas *replicas);

/* What came of a round. */
struct in_round_of {
    bool met;      /* the level is reached */
    unsigned have; /* owners that answered, or have it; of: */
    unsigned owners;
    /* What each owner said so far. */
    size_t count;
    struct in_replica {
        char node[RG_NAME_MAX + 1];
        bool ok;
        qf_rc rc; /* QF_ETIMEOUT: nothing yet */
        char text[IN_REPLICA_TEXT];
    } replicas[IN_REPLICAS_MAX];
};

/* Read @tenant's document @key: *ret_sheet is the sum of what the owners said; rg_sheet_done() it. QF_EUNAVAILABLE: there is no ring
 * yet, or its owners went on changing. A level that is not met is no error: ret_round says it. */
QF_MUST_CHECK qf_rc in_replicas_read(struct in_replicas *replicas, struct qf_str tenant,
                                     struct qf_str key, enum rg_level level,
                                     struct rg_sheet *ret_sheet, struct in_round_of *ret_round,
                                     struct qf_err *err);
/* Join @sheet into the document at its owners. As above. */
QF_MUST_CHECK qf_rc in_replicas_join(struct in_replicas *replicas, struct qf_str tenant,
                                     struct qf_str key, enum rg_level level,
                                     const struct rg_sheet *sheet, struct in_round_of *ret_round,
                                     struct qf_err *err);

/* Join @sheet into the document that @query names at the keeper @url. */
QF_MUST_CHECK qf_rc in_replica_join(struct sg_keep_client *client, const char *url,
                                    const struct rg_keep_query *query, const struct rg_sheet *sheet,
                                    const struct sg_store_limit *limit, int *ret_status,
                                    struct qf_err *err);

struct in_replicas_figures {
    uint64_t repairs; /* documents at owners that got something that way */
    uint64_t failed;  /* tries */
    uint64_t dropped; /* notes that found no room, or failed too often */
    uint64_t waiting; /* notes now */
    uint64_t handed;  /* for owners, one each */
};
void in_replicas_figures(struct in_replicas *replicas, struct in_replicas_figures *ret_figures);

#endif
