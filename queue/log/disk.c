/* disk.c - whole files over any disk. */
#include <inttypes.h>

#include "queue/log/disk.h"

static qf_rc write_synced(struct ql_disk *disk, int file, const void *data, size_t len,
                          struct qf_err *err)
{
    qf_rc rc = disk->ops->truncate(disk, file, 0, err);

    if (rc == QF_OK)
        rc = disk->ops->write(disk, file, 0, data, len, err);
    return rc == QF_OK ? disk->ops->sync(disk, file, err) : rc;
}

qf_rc ql_disk_replace(struct ql_disk *disk, const char *name, const void *data, size_t len,
                      struct qf_err *err)
{
    char temporary[QL_NAME_SIZE];
    int file;
    qf_rc rc;

    snprintf(temporary, sizeof(temporary), "%s.new", name);
    rc = disk->ops->open(disk, temporary, true, &file, err);
    if (rc != QF_OK)
        return rc;
    rc = write_synced(disk, file, data, len, err);
    disk->ops->close(disk, file);
    if (rc == QF_OK)
        rc = disk->ops->rename(disk, temporary, name, err);
    return rc == QF_OK ? disk->ops->sync_folder(disk, err) : rc;
}

qf_rc ql_disk_load(struct ql_disk *disk, const char *name, uint64_t limit, struct qf_strbuf *buf,
                   struct qf_err *err)
{
    uint64_t size;
    int file;
    qf_rc rc = disk->ops->open(disk, name, false, &file, err);

    if (rc != QF_OK)
        return rc;
    rc = disk->ops->size(disk, file, &size, err);
    if (rc == QF_OK && size > limit)
        rc = qf_err_set(err, QF_ELIMIT, "%s/%s has %" PRIu64 " bytes, more than %" PRIu64,
                        disk->label, name, size, limit);
    if (rc == QF_OK) {
        char *into = qf_strbuf_reserve(buf, (size_t)size);

        rc = disk->ops->read(disk, file, 0, into, (size_t)size, err);
        if (rc == QF_OK)
            buf->len += (size_t)size;
    }
    disk->ops->close(disk, file);
    return rc;
}
