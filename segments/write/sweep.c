/* sweep.c - what writers left behind that died. */
#include "segments/write/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "segments/catalog/changes.h"
#include "segments/store/lease.h"

/* The same in all versions, so that each finds what others left. */
#define FOLDER_PREFIX "promfabric-import-"
/* Younger folders may not be locked yet by their owner. */
#define FOLDER_AGE_MS 60000

static const char *temp_root(const char *temp_dir)
{
    const char *root = temp_dir ? temp_dir : getenv("TMPDIR");

    return root && *root ? root : "/tmp";
}

char *sg_sweep_make_folder(const char *temp_dir, int *ret_fd, struct qf_err *err)
{
    struct qf_strbuf path = QF_STRBUF_INIT;
    int fd;

    qf_strbuf_printf(&path, "%s/" FOLDER_PREFIX "XXXXXX", temp_root(temp_dir));
    fd = mkdtemp(path.data) ? open(path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        /* On a file system without locks this fails; sweeps cannot lock folders there either and
         * leave them alone. */
        (void)flock(fd, LOCK_EX | LOCK_NB);
        *ret_fd = fd;
        return qf_strbuf_take(&path);
    }
    (void)qf_err_set(err, QF_EIO, "%s: cannot create a temporary folder: %s", path.data,
                     strerror(errno));
    qf_strbuf_done(&path);
    return NULL;
}

static void close_dir(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

/* Batches put files into their folder and nothing else. */
static bool remove_folder(int root, const char *name, int fd)
{
    QF_CLEANUP(close_dir) DIR *dir = NULL;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    struct dirent *entry;

    dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir) {
        if (copy >= 0)
            (void)close(copy);
        return false;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(fd, entry->d_name, 0);
    }
    return unlinkat(root, name, AT_REMOVEDIR) == 0;
}

/* Ours, old enough, and nobody holds the lock. */
static bool sweep_folder(int root, const char *name, int64_t age_ms, bool dry_run)
{
    int fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    bool removed = false;

    if (fd < 0)
        return false;
    if (fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
        qf_clock_wall_ms() - (int64_t)status.st_mtim.tv_sec * 1000 >= age_ms &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        removed = dry_run || remove_folder(root, name, fd);
    (void)close(fd);
    return removed;
}

static size_t sweep_folders(const char *temp_dir, int64_t age_ms, bool dry_run)
{
    QF_CLEANUP(close_dir) DIR *dir = opendir(temp_root(temp_dir));
    struct dirent *entry;
    size_t removed = 0;

    while (dir && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, FOLDER_PREFIX, sizeof(FOLDER_PREFIX) - 1) == 0)
            removed += sweep_folder(dirfd(dir), entry->d_name, age_ms, dry_run);
    }
    return removed;
}

void sg_sweep_folders(const char *temp_dir)
{
    (void)sweep_folders(temp_dir, 0, false);
}

qf_rc sg_sweep(const struct sg_sweep_options *options, const struct sg_store_call *call,
               struct sg_sweep *ret_sweep, struct qf_err *ret_why, struct qf_err *err)
{
    struct sg_store *store = options->store;
    bool dry_run = options->dry_run;
    qf_rc rc;

    *ret_sweep = (struct sg_sweep){ 0 };
    rc = sg_changes_expire(store, dry_run, call, &ret_sweep->notes, err);
    if (rc == QF_OK)
        rc = sg_lease_expire(store, dry_run, call, &ret_sweep->leases, err);
    if (rc != QF_OK)
        return rc;
    ret_sweep->folders = sweep_folders(options->temp_dir, FOLDER_AGE_MS, dry_run);
    if (sg_store_sweep(store, options->age_ms ? options->age_ms : SG_SWEEP_AGE_MS, dry_run, call,
                       &ret_sweep->in_store, ret_why) == QF_OK)
        ret_why->rc = QF_OK;
    return QF_OK;
}
