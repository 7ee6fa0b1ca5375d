/* small_file.h - a file that is read whole, and read again when it is another one. */
#ifndef BASE_SYS_SMALL_FILE_H
#define BASE_SYS_SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/pure/err.h"
#include "base/pure/strbuf.h"

/* Add the bytes of the file @name to @text, and say in @ret_seen which file that was. @what is in it,
 * for messages. QF_EIO: it cannot be read, or is no file; QF_EINVAL: it has more than @bytes_max. */
QF_MUST_CHECK qf_rc qf_small_file_read(const char *name, const char *what, size_t bytes_max,
                                       struct qf_strbuf *text, struct stat *ret_seen,
                                       struct qf_err *err);

/* Whether @name is now another file than @seen, or has changed, or is gone. */
bool qf_small_file_changed(const char *name, const struct stat *seen);

#endif
