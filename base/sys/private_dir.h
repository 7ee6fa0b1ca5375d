/* private_dir.h - folders for what nobody else may read or plant. */
#ifndef BASE_SYS_PRIVATE_DIR_H
#define BASE_SYS_PRIVATE_DIR_H

#include "base/pure/err.h"

/* Make the folder @path (0700), or find it there: then it, and a symbolic link that leads to it,
 * must belong to this user or to root (a volume that was mounted for us), and, if it is ours, it
 * must be writable by nobody else. Anybody can make a folder in /tmp under a name that is easily
 * guessed; whoever owns it could read, replace or remove what we write. QF_EIO, QF_EDENIED. */
QF_MUST_CHECK qf_rc qf_private_dir(const char *path, struct qf_err *err);

#endif
