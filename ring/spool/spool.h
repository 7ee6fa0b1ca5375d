/* spool.h - hand-off on the disk: payloads once, a small reference for each node that lacks one.
 *
 *   DIR/store/KEY        the bytes of a blob. KEY is 32 hex digits of its name, which never changes its content
 *   DIR/refs/NODE/KEY    NODE lacks it: its name, slot, size and checksum, since when
 *   DIR/tmp/             what is being written; emptied at a start
 *   DIR/lock             one process at a time
 *
 * Whatever a call has written is durable when it returns, and has its name only then: file, then folder are synced. All calls
 * are idempotent. A payload goes after its last reference, a reference comes after its payload; so what a crash leaves is a payload
 * without references, which the next start sweeps, or a reference more than is needed, whose receiver has the blob already. What
 * decides about all that is ring/handoff/handoff.h.
 *
 * Calls block on the disk; any thread, except that of one name one writer is at work at a time. */
#ifndef RING_SPOOL_SPOOL_H
#define RING_SPOOL_SPOOL_H

#include "base/pure/err.h"
#include "ring/wire/keeper.h"
#include "segments/store/call.h"

struct sp_spool;

struct sp_options {
    const char *dir;
    uint64_t reserve_bytes; /* of the disk that payloads leave free */
};

/* A blob that some node lacks. */
struct sp_part {
    struct qf_str name; /* rg_blob_name_valid() */
    uint32_t slot;
    uint64_t bytes;
    struct rg_sum sum;
};

/* A reference that a start found. @whole: its payload is there, with its size. Else the reference is gone already. Borrowed. */
typedef void sp_found(void *ctx, const char *node, const struct sp_part *part, int64_t time_ms,
                      bool whole);

/* Make or open the folder, sweep it, tell what is in it. References that cannot be read are removed and counted in
 * @ret_damaged. QF_EIO, QF_EDENIED: the folder cannot be used, or another process does. */
QF_MUST_CHECK qf_rc sp_open(const struct sp_options *options, sp_found *found, void *ctx,
                            uint64_t *ret_damaged, struct sp_spool **ret_spool, struct qf_err *err);
/* Accepts NULL, returns NULL. */
struct sp_spool *sp_close(struct sp_spool *spool);

/* Have the payload of @part, once: one of this name and size that is there stays. QF_ENOSPC: less than the reserve would be
 * free; QF_ECORRUPT: @bytes do not have the checksum; QF_EIO. */
QF_MUST_CHECK qf_rc sp_store(struct sp_spool *spool, const struct sp_part *part,
                             const struct sg_store_bytes *bytes, struct qf_err *err);
/* @node lacks it since @time_ms of the wall clock. QF_ENOSPC, QF_EIO. */
QF_MUST_CHECK qf_rc sp_refer(struct sp_spool *spool, const char *node, const struct sp_part *part,
                             int64_t time_ms, struct qf_err *err);
/* The reference goes; the payload goes. What is not there is fine. */
void sp_unrefer(struct sp_spool *spool, const char *node, struct qf_str name);
void sp_drop(struct sp_spool *spool, struct qf_str name);

/* The payload that @node lacks, to be read; close() it. Its checksum was verified. ret_part->name is @name.
 * QF_ENOTFOUND: reference or payload is not there; QF_ECORRUPT: one of them is damaged; QF_EIO. */
QF_MUST_CHECK qf_rc sp_take(struct sp_spool *spool, const char *node, struct qf_str name,
                            struct sp_part *ret_part, int *ret_fd, struct qf_err *err);

#endif
