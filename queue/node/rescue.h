/* rescue.h - a cluster of one node, out of a folder whose cluster is gone for good.
 *
 * Two moments need it: a majority of the voters is lost for ever, folders included; and a folder was
 * put back from a backup while the nodes of its time are no more. What the folder holds becomes the
 * truth: its log, records included that were never known to be committed. What only others had is
 * lost. Which nodes vote is written anew, this one alone, and the cluster gets another number, so that
 * whoever comes back of the old one is refused: two clusters with one past would each say what the
 * other denies.
 *
 * It may be ended at any moment and run again: until it is done the node does not start. */
#ifndef QUEUE_NODE_RESCUE_H
#define QUEUE_NODE_RESCUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/err.h"

/* One queue of the folder, before anything was changed. Of several folders the one whose log ends with
 * the greatest term, and at the greatest index in it, knows most. */
struct qn_rescued {
    const char *folder; /* "meta", or "q-" and the queue's number: the same on all nodes */
    uint64_t term, index;
    uint64_t bytes; /* of its log */
};

typedef void qn_rescued_fn(void *ctx, const struct qn_rescued *queue);

/* Make the node with the data @path, which is called @name from now on, the only one of a new cluster;
 * @tell hears of each queue. Only look if @write is false.
 * QF_EBUSY: a process has the folder; QF_ENOTFOUND: no data of a node, or of one in no cluster;
 * QF_ECORRUPT, QF_EUNSUPPORTED, QF_EIO, QF_ENOSPC: @err says which file. */
QF_MUST_CHECK qf_rc qn_rescue(const char *path, const char *name, bool write, qn_rescued_fn *tell,
                              void *ctx, struct qf_err *err);

#endif
