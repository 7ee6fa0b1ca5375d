/* folders.c - folders of queues on a real disk. */
#include "queue/node/folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/private_dir.h"
#include "queue/posix/disk_posix.h"

#define LOCK_FILE "lock"

struct qn_data {
    char *path;
    int folder, lock;
};

static qf_rc failed(const struct qn_data *data, const char *what, const char *name,
                    struct qf_err *err)
{
    return qf_err_set(err,
                      errno == ENOENT                      ? QF_ENOTFOUND
                      : errno == ENOSPC || errno == EDQUOT ? QF_ENOSPC
                                                           : QF_EIO,
                      "cannot %s %s/%s: %s", what, data->path, name, strerror(errno));
}

/* Two processes on one folder would both write its logs. */
static qf_rc take_lock(struct qn_data *data, struct qf_err *err)
{
    data->lock = openat(data->folder, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (data->lock < 0)
        return failed(data, "make", LOCK_FILE, err);
    if (flock(data->lock, LOCK_EX | LOCK_NB) == 0)
        return QF_OK;
    return qf_err_set(err, QF_EBUSY,
                      "%s is in use by another process: stop that one, or give this node a folder "
                      "of its own (--data)",
                      data->path);
}

qf_rc qn_data_open(const char *path, struct qn_data **ret_data, struct qf_err *err)
{
    struct qn_data *data;
    qf_rc rc = qf_private_dir(path, err);

    if (rc != QF_OK)
        return rc;
    data = qf_xcalloc(1, sizeof(*data));
    data->path = qf_xstrdup(path);
    data->lock = -1;
    data->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rc = data->folder < 0 ? failed(data, "open", ".", err) : take_lock(data, err);
    if (rc == QF_OK)
        *ret_data = data;
    else
        (void)qn_data_close(data);
    return rc;
}

struct qn_data *qn_data_close(struct qn_data *data)
{
    if (data) {
        if (data->lock >= 0)
            (void)close(data->lock);
        if (data->folder >= 0)
            (void)close(data->folder);
        free(data->path);
        free(data);
    }
    return NULL;
}

static void add_path(void *ctx, const char *folder, const char *name, struct qf_strbuf *buf)
{
    const struct qn_data *data = ctx;

    qf_strbuf_printf(buf, "%s/%s", data->path, folder);
    if (*name)
        qf_strbuf_printf(buf, "/%s", name);
}

static qf_rc open_folder(void *ctx, const char *folder, bool create, struct ql_disk **ret_disk,
                         struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct qn_data *data = ctx;

    if (create && mkdirat(data->folder, folder, 0700) == 0) {
        if (fsync(data->folder) < 0)
            return failed(data, "sync", ".", err);
    } else if (create && errno != EEXIST) {
        return failed(data, "make", folder, err);
    }
    add_path(data, folder, "", &path);
    return ql_posix_new(qf_strbuf_cstr(&path), ret_disk, err);
}

static void close_folder(void *ctx, struct ql_disk *disk)
{
    (void)ctx;
    (void)ql_posix_free(disk);
}

/* Its files, then itself. */
static qf_rc remove_folder(void *ctx, const char *folder, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct qn_data *data = ctx;
    struct dirent *entry;
    DIR *dir;

    add_path(data, folder, "", &path);
    dir = opendir(qf_strbuf_cstr(&path));
    if (!dir)
        return failed(data, "open", folder, err);
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    (void)closedir(dir);
    if (unlinkat(data->folder, folder, AT_REMOVEDIR) < 0)
        return failed(data, "remove", folder, err);
    return QF_OK;
}

struct qn_folders qn_data_folders(struct qn_data *data)
{
    return (struct qn_folders){ .ctx = data,
                                .open = open_folder,
                                .close = close_folder,
                                .remove = remove_folder,
                                .path = add_path };
}
