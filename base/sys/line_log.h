/* line_log.h - lines for a file, written by a thread of their own.
 *
 * Whoever has a line never waits: it is copied into a bounded buffer, and lost if that is full. The
 * thread writes what is there; what the disk does not take is lost too. Both are counted. A file that
 * was renamed or removed is made anew within a second of the next line, or at once when told. */
#ifndef BASE_SYS_LINE_LOG_H
#define BASE_SYS_LINE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"

struct qf_line_log;

/* Append to @path, or write to stdout if it is "-"; at most @bytes_max wait. NULL and @err filled:
 * QF_EIO (it cannot be opened), QF_EUNAVAILABLE (no thread). */
struct qf_line_log *qf_line_log_new(const char *path, size_t bytes_max, struct qf_err *err);
/* Write what waits, and close. Accepts NULL, returns NULL. */
struct qf_line_log *qf_line_log_free(struct qf_line_log *log);

/* A line without its end. Any thread; never waits. */
void qf_line_log_add(struct qf_line_log *log, struct qf_str line);
/* Open the file again before the next line. Any thread. */
void qf_line_log_reopen(struct qf_line_log *log);

struct qf_line_log_stats {
    uint64_t written, lost;
};
struct qf_line_log_stats qf_line_log_stats(struct qf_line_log *log);

#endif
