/* fetch.c - open a segment of a store. */
#include "segments/compact/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "segments/store/ring.h"

static bool same_name(const struct sg_segment_name *a, const struct sg_segment_name *b)
{
    return qf_str_eq(a->tenant, b->tenant) && a->min_ts == b->min_ts && a->max_ts == b->max_ts &&
           a->shard == b->shard && a->shard_count == b->shard_count &&
           a->generation == b->generation && a->id == b->id;
}

static qf_rc open_object(struct sg_store *store, struct qf_str name, const char *dir,
                         const struct sg_store_call *call, int *ret_fd, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct qf_err why = { 0 };
    uint64_t size;
    qf_rc rc = sg_store_open_file(store, name, ret_fd, &why);

    /* A keeper need not have all of them. */
    if (rc != QF_EUNSUPPORTED && !(rc == QF_ENOTFOUND && sg_store_is_ring(store)))
        return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
    qf_strbuf_printf(&path, "%s/fetched", dir);
    *ret_fd = open(path.data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*ret_fd < 0)
        return qf_err_set(err, errno == ENOSPC ? QF_ENOSPC : QF_EIO, "%s: %s", path.data,
                          strerror(errno));
    (void)unlink(path.data);
    rc = sg_store_read_fd(store, name, *ret_fd, call, &size, err);
    if (rc)
        (void)close(*ret_fd);
    return rc;
}

struct sg_reader *sg_fetch(struct sg_store *store, struct qf_str name, const char *dir,
                           const struct sg_store_call *call, uint64_t *bytes, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *text = qf_xmemdup0(name.data, name.len);
    struct sg_segment_name parts;
    struct sg_reader *reader;
    struct stat status;
    int fd;

    if (open_object(store, name, dir, call, &fd, err))
        return NULL;
    if (bytes && fstat(fd, &status) == 0)
        *bytes += (uint64_t)status.st_size;
    reader = sg_reader_open_fd(fd, text, err);
    if (!reader ||
        (sg_segment_name_parse(name, &parts) && same_name(&parts, &sg_reader_meta(reader)->name)))
        return reader;
    (void)qf_err_set(err, QF_ECORRUPT, "%s: the name does not fit the content", text);
    return sg_reader_free(reader);
}

qf_rc sg_fetch_blame(struct sg_store *store, struct qf_str name, struct qf_err *err)
{
    struct qf_err why = *err;

    if (!sg_ring_is_local(store, name))
        return err->rc;
    sg_ring_suspect_local(store, name);
    *err = (struct qf_err){ 0 };
    return qf_err_set(err, QF_EIO, "on this disk: %s", why.msg);
}
