/* private_dir.c - folders for what nobody else may read or plant. */
#include "base/sys/private_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool foreign(const struct stat *st)
{
    return st->st_uid != geteuid() && st->st_uid != 0;
}

/* The folder is there already. */
static qf_rc check(const char *path, struct qf_err *err)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return qf_err_set(err, QF_EIO, "cannot look at %s: %s", path, strerror(errno));
    if (!foreign(&st) && S_ISLNK(st.st_mode) && stat(path, &st) != 0)
        return qf_err_set(err, QF_EIO, "cannot look at %s: %s", path, strerror(errno));
    if (foreign(&st))
        return qf_err_set(err, QF_EDENIED, "%s belongs to another user", path);
    if (!S_ISDIR(st.st_mode))
        return qf_err_set(err, QF_EDENIED, "%s is not a folder", path);
    if (st.st_uid != 0 && (st.st_mode & (S_IWGRP | S_IWOTH)))
        return qf_err_set(err, QF_EDENIED, "%s is writable by others: chmod go-w it", path);
    return QF_OK;
}

qf_rc qf_private_dir(const char *path, struct qf_err *err)
{
    if (mkdir(path, 0700) == 0)
        return QF_OK;
    if (errno == EEXIST)
        return check(path, err);
    return qf_err_set(err, QF_EIO, "cannot make %s: %s", path, strerror(errno));
}
