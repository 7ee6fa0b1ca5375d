/* disk_posix.h - a disk (queue/log/disk.h) of real files. */
#ifndef QUEUE_POSIX_DISK_POSIX_H
#define QUEUE_POSIX_DISK_POSIX_H

#include "queue/log/disk.h"

/* Real files in @folder, which exists. */
QF_MUST_CHECK qf_rc ql_posix_new(const char *folder, struct ql_disk **ret_disk, struct qf_err *err);
/* @disk may be NULL; no file of it is open any more. Returns NULL. */
struct ql_disk *ql_posix_free(struct ql_disk *disk);

#endif
