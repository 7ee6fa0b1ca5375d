/* disk.h - the few things a queue's files need from a disk, behind a table of functions.
 *
 * One disk is one folder. There are two: real files (queue/posix) and the simulator's, which
 * loses, tears and reorders whatever was not synced. What a disk promises, and no more:
 *
 *   write, truncate   visible to reads at once; after a power loss any part of what was not synced
 *                     may be missing, also the earlier part
 *   sync              what was written to this file before is durable
 *   create, rename,   visible at once; durable, in order, after sync_folder
 *   remove
 *
 * Names have no '/'. Errors: QF_ENOTFOUND (open without create, rename, remove), QF_ENOSPC (write,
 * create: nothing that counts was written), QF_EIO for the rest. A simulated
 * disk belongs to one thread. */
#ifndef QUEUE_LOG_DISK_H
#define QUEUE_LOG_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/strbuf.h"

enum { QL_NAME_SIZE = 64 };

struct ql_disk;

struct ql_disk_ops {
    /* @ret_file: a handle for the calls below, until close. */
    qf_rc (*open)(struct ql_disk *disk, const char *name, bool create, int *ret_file,
                  struct qf_err *err);
    void (*close)(struct ql_disk *disk, int file);
    qf_rc (*size)(struct ql_disk *disk, int file, uint64_t *ret_size, struct qf_err *err);
    /* All of @len bytes, or QF_EIO. */
    qf_rc (*read)(struct ql_disk *disk, int file, uint64_t offset, void *data, size_t len,
                  struct qf_err *err);
    qf_rc (*write)(struct ql_disk *disk, int file, uint64_t offset, const void *data, size_t len,
                   struct qf_err *err);
    qf_rc (*truncate)(struct ql_disk *disk, int file, uint64_t size, struct qf_err *err);
    qf_rc (*sync)(struct ql_disk *disk, int file, struct qf_err *err);
    qf_rc (*rename)(struct ql_disk *disk, const char *from, const char *to, struct qf_err *err);
    qf_rc (*remove)(struct ql_disk *disk, const char *name, struct qf_err *err);
    qf_rc (*sync_folder)(struct ql_disk *disk, struct qf_err *err);
    /* Append each file's name and a NUL to @names, in no order. */
    qf_rc (*list)(struct ql_disk *disk, struct qf_strbuf *names, struct qf_err *err);
    /* Bytes that can still be written. */
    qf_rc (*space)(struct ql_disk *disk, uint64_t *ret_bytes, struct qf_err *err);
};

struct ql_disk {
    const struct ql_disk_ops *ops;
    const char *label; /* for messages: the folder */
};

/* Write @len bytes as file @name so that after a crash there is the old file or the new one, whole:
 * a temporary file, synced, renamed, the folder synced. */
QF_MUST_CHECK qf_rc ql_disk_replace(struct ql_disk *disk, const char *name, const void *data,
                                    size_t len, struct qf_err *err);
/* Read all of file @name into @buf; QF_ELIMIT if it is longer than @limit. */
QF_MUST_CHECK qf_rc ql_disk_load(struct ql_disk *disk, const char *name, uint64_t limit,
                                 struct qf_strbuf *buf, struct qf_err *err);

#endif
