/* bundle.h - a snapshot and the log entries that belong to it, as one file for a peer to fetch.
 *
 *     magic 8  version 8  snapshot length 8  entry count 8, then the snapshot (ql_snapshot_encode),
 *     then the entries as in a log frame (queue/log/frame.h), then the last link of a hash
 *     chain over the head and each entry, 16
 *
 * Written by whoever owns the log, served by HTTP, fetched by qp_fetch(), opened by the owner of the
 * log that it replaces. */
#ifndef QUEUE_PEER_BUNDLE_H
#define QUEUE_PEER_BUNDLE_H

#include "queue/log/store.h"

enum { QP_BUNDLE_VERSION = 1, QP_BUNDLE_HEADER = 32, QP_BUNDLE_TRAILER = 16 };

/* Write the snapshot of @store, with the log's entries from @first (or the log's first) to its index,
 * to file @path: a temporary file, synced and renamed. QF_ENOTFOUND: there is no snapshot; QF_EIO,
 * QF_ENOSPC, QF_ECORRUPT (what the log says). */
QF_MUST_CHECK qf_rc qp_bundle_write(struct ql_store *store, uint64_t first, const char *path,
                                    struct qf_err *err);

struct qp_bundle {
    struct ql_snapshot snapshot;
    struct ql_entry *entries;
    size_t count;
    void *map;
    size_t map_len;
};

/* Open a bundle and check all of it; it borrows from the file until it is closed. QF_ECORRUPT,
 * QF_EUNSUPPORTED (a newer version), QF_ENOTFOUND, QF_EIO. */
QF_MUST_CHECK qf_rc qp_bundle_open(const char *path, struct qp_bundle *ret_bundle,
                                   struct qf_err *err);
void qp_bundle_close(struct qp_bundle *bundle);

#endif
