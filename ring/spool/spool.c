/* spool.c - payloads and references are written, read and removed. */
#include "ring/spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "ring/spool/spool_int.h"
#include "segments/store/keep_client.h"

#define COPY_BYTES ((size_t)1 << 20)

static qf_rc fail(const char *what, struct qf_err *err)
{
    bool full = errno == ENOSPC || errno == EDQUOT;

    return qf_err_set(err, full ? QF_ENOSPC : QF_EIO, "hand-off: cannot %s: %s", what,
                      strerror(errno));
}

static bool write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t wrote = write(fd, data, len);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        data += wrote;
        len -= (size_t)wrote;
    }
    return true;
}

/* All of @bytes to @fd. */
static qf_rc copy(const struct sg_store_bytes *bytes, int fd, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *chunk = bytes->data ? NULL : qf_xmalloc(COPY_BYTES);
    uint64_t offset = 0;

    if (bytes->data)
        return write_all(fd, bytes->data, bytes->size) ? QF_OK : fail("write", err);
    while (offset < bytes->size) {
        size_t want = (size_t)QF_MIN(bytes->size - offset, (uint64_t)COPY_BYTES);
        ssize_t got = pread(bytes->fd, chunk, want, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            return qf_err_set(err, QF_ECORRUPT, "hand-off: the bytes end too early");
        if (got < 0 || !write_all(fd, chunk, (size_t)got))
            return fail(got < 0 ? "read" : "write", err);
        offset += (uint64_t)got;
    }
    return QF_OK;
}

/* What can be written, is, and has its name once it is synced. */
static qf_rc write_file(struct sp_spool *spool, const struct sg_store_bytes *bytes,
                        const struct rg_sum *sum, const char *folder, const char *name,
                        struct qf_err *err)
{
    char from[48];
    struct rg_sum written;
    qf_rc rc;
    int fd, dir;

    (void)snprintf(from, sizeof(from), "tmp/%" PRIuFAST64, atomic_fetch_add(&spool->writes, 1));
    fd = openat(spool->root, from, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fail("write", err);
    rc = copy(bytes, fd, err);
    if (rc == QF_OK && sum) {
        rc = sg_keep_sum(&(struct sg_store_bytes){ .fd = fd, .size = bytes->size }, &written, err);
        if (rc == QF_OK && memcmp(&written, sum, sizeof(written)) != 0)
            rc = qf_err_set(err, QF_ECORRUPT, "hand-off: the bytes do not have their checksum");
    }
    if (rc == QF_OK && fsync(fd) != 0)
        rc = fail("sync", err);
    (void)close(fd);
    dir = rc == QF_OK ? openat(spool->root, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (rc == QF_OK && (dir < 0 || renameat(spool->root, from, dir, name) != 0 || fsync(dir) != 0))
        rc = fail("name what was written", err);
    if (dir >= 0)
        (void)close(dir);
    if (rc != QF_OK)
        (void)unlinkat(spool->root, from, 0);
    return rc;
}

static bool has_room(const struct sp_spool *spool, uint64_t bytes)
{
    struct statvfs disk;

    return fstatvfs(spool->root, &disk) != 0 ||
           (uint64_t)disk.f_bavail * disk.f_frsize >= bytes + spool->options.reserve_bytes;
}

qf_rc sp_store(struct sp_spool *spool, const struct sp_part *part,
               const struct sg_store_bytes *bytes, struct qf_err *err)
{
    char path[SP_PATH];
    struct stat seen;

    sp_payload_path(part->name, path);
    if (fstatat(spool->root, path, &seen, AT_SYMLINK_NOFOLLOW) == 0 &&
        (uint64_t)seen.st_size == part->bytes)
        return QF_OK;
    if (!has_room(spool, part->bytes))
        return qf_err_set(err, QF_ENOSPC, "hand-off: %s has no room", spool->options.dir);
    return write_file(spool, bytes, &part->sum, "store", strchr(path, '/') + 1, err);
}

/* The folder of a node's references, durably. */
static qf_rc make_refs(struct sp_spool *spool, const char *path, struct qf_err *err)
{
    int refs;
    bool ok;

    if (mkdirat(spool->root, path, 0700) != 0)
        return errno == EEXIST ? QF_OK : fail("make a folder", err);
    refs = openat(spool->root, "refs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ok = refs >= 0 && fsync(refs) == 0;
    if (refs >= 0)
        (void)close(refs);
    return ok ? QF_OK : fail("sync a folder", err);
}

qf_rc sp_refer(struct sp_spool *spool, const char *node, const struct sp_part *part,
               int64_t time_ms, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    char folder[SP_PATH], path[SP_PATH];
    struct stat seen;
    qf_rc rc;

    sp_refs_path(node, folder);
    sp_reference_path(node, part->name, path);
    if (fstatat(spool->root, path, &seen, AT_SYMLINK_NOFOLLOW) == 0)
        return QF_OK;
    sp_reference_encode(&bytes, part, time_ms);
    rc = make_refs(spool, folder, err);
    if (rc != QF_OK)
        return rc;
    return write_file(spool, &(struct sg_store_bytes){ bytes.data, -1, bytes.len }, NULL, folder,
                      strrchr(path, '/') + 1, err);
}

void sp_unrefer(struct sp_spool *spool, const char *node, struct qf_str name)
{
    char path[SP_PATH];

    sp_reference_path(node, name, path);
    (void)unlinkat(spool->root, path, 0);
}

void sp_drop(struct sp_spool *spool, struct qf_str name)
{
    char path[SP_PATH];

    sp_payload_path(name, path);
    (void)unlinkat(spool->root, path, 0);
}

/* Open and verified. */
static qf_rc open_payload(struct sp_spool *spool, const struct sp_part *part, int *ret_fd,
                          struct qf_err *err)
{
    char path[SP_PATH];
    struct rg_sum sum;
    struct stat seen;
    qf_rc rc;
    int fd;

    sp_payload_path(part->name, path);
    fd = openat(spool->root, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return qf_err_set(err, errno == ENOENT ? QF_ENOTFOUND : QF_EIO, "hand-off: %s: %s", path,
                          strerror(errno));
    if (fstat(fd, &seen) != 0 || (uint64_t)seen.st_size != part->bytes)
        rc = qf_err_set(err, QF_ECORRUPT, "hand-off: %s has another size", path);
    else
        rc = sg_keep_sum(&(struct sg_store_bytes){ .fd = fd, .size = part->bytes }, &sum, err);
    if (rc == QF_OK && memcmp(&sum, &part->sum, sizeof(sum)) != 0)
        rc = qf_err_set(err, QF_ECORRUPT, "hand-off: %s does not have its checksum", path);
    if (rc != QF_OK)
        (void)close(fd);
    else
        *ret_fd = fd;
    return rc;
}

qf_rc sp_take(struct sp_spool *spool, const char *node, struct qf_str name,
              struct sp_part *ret_part, int *ret_fd, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    char path[SP_PATH];
    int64_t time_ms;
    qf_rc rc;

    sp_reference_path(node, name, path);
    rc = sp_reference_read(spool, path, &bytes, ret_part, &time_ms, err);
    if (rc == QF_OK && !qf_str_eq(ret_part->name, name))
        rc = qf_err_set(err, QF_ECORRUPT, "hand-off: %s is of another blob", path);
    ret_part->name = name;
    return rc == QF_OK ? open_payload(spool, ret_part, ret_fd, err) : rc;
}
