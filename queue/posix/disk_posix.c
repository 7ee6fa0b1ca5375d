/* disk_posix.c - a folder of real files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "queue/posix/disk_posix.h"

struct posix_disk {
    struct ql_disk disk;
    int folder;
    char *path;
};

static struct posix_disk *self(struct ql_disk *disk)
{
    return (struct posix_disk *)disk;
}

/* What errno says about @name, in one line. */
static qf_rc failed(struct ql_disk *disk, const char *what, const char *name, struct qf_err *err)
{
    int number = errno;
    qf_rc rc = number == ENOENT                       ? QF_ENOTFOUND
               : number == ENOSPC || number == EDQUOT ? QF_ENOSPC
                                                      : QF_EIO;

    return qf_err_set(err, rc, "%s %s/%s: %s", what, disk->label, name, strerror(number));
}

static qf_rc posix_open(struct ql_disk *disk, const char *name, bool create, int *ret_file,
                        struct qf_err *err)
{
    int file = openat(self(disk)->folder, name, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0640);

    if (file < 0)
        return failed(disk, "cannot open", name, err);
    *ret_file = file;
    return QF_OK;
}

static void posix_close(struct ql_disk *disk, int file)
{
    (void)disk;
    (void)close(file);
}

static qf_rc posix_size(struct ql_disk *disk, int file, uint64_t *ret_size, struct qf_err *err)
{
    struct stat status;

    if (fstat(file, &status) < 0)
        return failed(disk, "cannot read the size of a file of", ".", err);
    *ret_size = (uint64_t)status.st_size;
    return QF_OK;
}

static qf_rc posix_read(struct ql_disk *disk, int file, uint64_t offset, void *data, size_t len,
                        struct qf_err *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(file, (char *)data + done, len - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failed(disk, "cannot read a file of", ".", err);
        if (got == 0)
            return qf_err_set(err, QF_EIO, "a file of %s is shorter than it was", disk->label);
        done += (size_t)got;
    }
    return QF_OK;
}

static qf_rc posix_write(struct ql_disk *disk, int file, uint64_t offset, const void *data,
                         size_t len, struct qf_err *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t put = pwrite(file, (const char *)data + done, len - done, (off_t)(offset + done));

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return failed(disk, "cannot write a file of", ".", err);
        done += (size_t)put;
    }
    return QF_OK;
}

static qf_rc posix_truncate(struct ql_disk *disk, int file, uint64_t size, struct qf_err *err)
{
    return ftruncate(file, (off_t)size) < 0 ? failed(disk, "cannot cut a file of", ".", err)
                                            : QF_OK;
}

static qf_rc posix_sync(struct ql_disk *disk, int file, struct qf_err *err)
{
    return fdatasync(file) < 0 ? failed(disk, "cannot sync a file of", ".", err) : QF_OK;
}

static qf_rc posix_rename(struct ql_disk *disk, const char *from, const char *to,
                          struct qf_err *err)
{
    int folder = self(disk)->folder;

    return renameat(folder, from, folder, to) < 0 ? failed(disk, "cannot rename", from, err)
                                                  : QF_OK;
}

static qf_rc posix_remove(struct ql_disk *disk, const char *name, struct qf_err *err)
{
    return unlinkat(self(disk)->folder, name, 0) < 0 ? failed(disk, "cannot remove", name, err)
                                                     : QF_OK;
}

static qf_rc posix_sync_folder(struct ql_disk *disk, struct qf_err *err)
{
    return fsync(self(disk)->folder) < 0 ? failed(disk, "cannot sync", ".", err) : QF_OK;
}

static qf_rc posix_list(struct ql_disk *disk, struct qf_strbuf *names, struct qf_err *err)
{
    DIR *folder = opendir(self(disk)->path);
    struct dirent *entry;

    if (!folder)
        return failed(disk, "cannot list", ".", err);
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < QL_NAME_SIZE)
            qf_strbuf_add(names, entry->d_name, strlen(entry->d_name) + 1);
    (void)closedir(folder);
    return QF_OK;
}

static qf_rc posix_space(struct ql_disk *disk, uint64_t *ret_bytes, struct qf_err *err)
{
    struct statvfs status;

    if (fstatvfs(self(disk)->folder, &status) < 0)
        return failed(disk, "cannot ask for the free space of", ".", err);
    *ret_bytes = (uint64_t)status.f_bavail * status.f_frsize;
    return QF_OK;
}

static const struct ql_disk_ops posix_ops = {
    .open = posix_open,
    .close = posix_close,
    .size = posix_size,
    .read = posix_read,
    .write = posix_write,
    .truncate = posix_truncate,
    .sync = posix_sync,
    .rename = posix_rename,
    .remove = posix_remove,
    .sync_folder = posix_sync_folder,
    .list = posix_list,
    .space = posix_space,
};

qf_rc ql_posix_new(const char *folder, struct ql_disk **ret_disk, struct qf_err *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct posix_disk *disk;

    if (fd < 0)
        return qf_err_set(err, errno == ENOENT ? QF_ENOTFOUND : QF_EIO, "cannot open %s: %s",
                          folder, strerror(errno));
    disk = qf_xcalloc(1, sizeof(*disk));
    disk->folder = fd;
    disk->path = qf_xstrdup(folder);
    disk->disk = (struct ql_disk){ &posix_ops, disk->path };
    *ret_disk = &disk->disk;
    return QF_OK;
}

struct ql_disk *ql_posix_free(struct ql_disk *disk)
{
    if (disk) {
        (void)close(self(disk)->folder);
        free(self(disk)->path);
        free(disk);
    }
    return NULL;
}
