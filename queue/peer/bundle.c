/* bundle.c - a snapshot and its log entries as one file. */
#include "queue/peer/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"

#define MAGIC UINT64_C(0x31444e4251504650) /* "PFPQBND1" */
enum { BUFFER = 1 << 20, PATH_SIZE = 4096 };

/* A file being written; the first error sticks. */
struct writer {
    int fd;
    struct qf_strbuf buf;
    struct ql_chain chain;
    qf_rc rc;
    struct qf_err *err;
    const char *path;
};

static qf_rc io_error(struct qf_err *err, const char *what, const char *path)
{
    qf_rc rc = errno == ENOSPC ? QF_ENOSPC : errno == ENOENT ? QF_ENOTFOUND : QF_EIO;

    return qf_err_set(err, rc, "cannot %s %s: errno %d", what, path, errno);
}

static void flush(struct writer *writer)
{
    size_t at = 0;

    while (writer->rc == QF_OK && at < writer->buf.len) {
        ssize_t done = write(writer->fd, writer->buf.data + at, writer->buf.len - at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            writer->rc = io_error(writer->err, "write", writer->path);
        else
            at += (size_t)done;
    }
    qf_strbuf_reset(&writer->buf);
}

/* What was added to the buffer from @start on is one link of the chain. */
static void seal(struct writer *writer, size_t start)
{
    writer->chain =
        ql_chain_next(writer->chain, writer->buf.data + start, writer->buf.len - start, NULL, 0);
    if (writer->buf.len >= BUFFER)
        flush(writer);
}

static void put_head(struct writer *writer, const struct ql_snapshot *snapshot, uint64_t count)
{
    unsigned char header[QP_BUNDLE_HEADER];
    struct qf_strbuf bytes = QF_STRBUF_INIT;

    ql_snapshot_encode(&bytes, snapshot);
    ql_put(header, MAGIC, 8);
    ql_put(header + 8, QP_BUNDLE_VERSION, 8);
    ql_put(header + 16, bytes.len, 8);
    ql_put(header + 24, count, 8);
    qf_strbuf_add(&writer->buf, header, sizeof(header));
    qf_strbuf_str(&writer->buf, qf_strbuf_view(&bytes));
    seal(writer, 0);
    qf_strbuf_done(&bytes);
}

static void put_entries(struct writer *writer, struct ql_log *log, uint64_t first, uint64_t last)
{
    struct qf_strbuf data = QF_STRBUF_INIT;

    for (uint64_t i = first; writer->rc == QF_OK && i <= last; i++) {
        size_t start = writer->buf.len;
        struct ql_entry entry;

        qf_strbuf_reset(&data);
        writer->rc = ql_log_read(log, i, &data, &entry, writer->err);
        if (writer->rc != QF_OK)
            break;
        ql_entry_put(&writer->buf, &entry);
        seal(writer, start);
    }
    qf_strbuf_done(&data);
}

static void put_tail(struct writer *writer)
{
    unsigned char trailer[QP_BUNDLE_TRAILER];

    ql_put(trailer, writer->chain.low, 8);
    ql_put(trailer + 8, writer->chain.high, 8);
    qf_strbuf_add(&writer->buf, trailer, sizeof(trailer));
    flush(writer);
    if (writer->rc == QF_OK && fsync(writer->fd) != 0)
        writer->rc = io_error(writer->err, "sync", writer->path);
}

qf_rc qp_bundle_write(struct ql_store *store, uint64_t first, const char *path, struct qf_err *err)
{
    const struct ql_snapshot *snapshot = &store->snapshot;
    struct writer writer = { .err = err };
    char temporary[PATH_SIZE];

    if (!snapshot->index)
        return qf_err_set(err, QF_ENOTFOUND, "there is no snapshot");
    if ((size_t)snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= sizeof(temporary))
        return qf_err_set(err, QF_EINVAL, "too long a path");
    first = QF_MAX(first, ql_log_first(store->log));
    first = QF_MIN(first, snapshot->index + 1);
    writer.path = temporary;
    writer.fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (writer.fd < 0)
        return io_error(err, "make", temporary);
    put_head(&writer, snapshot, snapshot->index + 1 - first);
    put_entries(&writer, store->log, first, snapshot->index);
    put_tail(&writer);
    qf_strbuf_done(&writer.buf);
    (void)close(writer.fd);
    if (writer.rc == QF_OK && rename(temporary, path) != 0)
        writer.rc = io_error(err, "rename", temporary);
    if (writer.rc != QF_OK)
        (void)unlink(temporary);
    return writer.rc;
}

static qf_rc map(const char *path, struct qp_bundle *bundle, struct qf_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    qf_rc rc = QF_OK;

    if (fd < 0)
        return io_error(err, "open", path);
    if (fstat(fd, &stat) != 0)
        rc = io_error(err, "look at", path);
    else if (stat.st_size < QP_BUNDLE_HEADER + QP_BUNDLE_TRAILER)
        rc = qf_err_set(err, QF_ECORRUPT, "%s is too short", path);
    if (rc == QF_OK) {
        bundle->map_len = (size_t)stat.st_size;
        bundle->map = mmap(NULL, bundle->map_len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bundle->map == MAP_FAILED) {
            bundle->map = NULL;
            rc = io_error(err, "map", path);
        }
    }
    (void)close(fd);
    return rc;
}

/* The entries in @body, each following the one before and the last one at the snapshot's index. */
static bool get_entries(struct qp_bundle *bundle, struct qf_str body, uint64_t count,
                        struct ql_chain *chain)
{
    size_t at = 0;

    if (count > body.len / QL_ENTRY_HEADER || count > bundle->snapshot.index)
        return false;
    bundle->entries = qf_xcalloc((size_t)count + 1, sizeof(*bundle->entries));
    for (uint64_t i = 0; i < count; i++) {
        struct ql_entry *entry = &bundle->entries[i];
        size_t next = ql_entry_get(body, at, entry);

        if (!next || entry->index != bundle->snapshot.index - count + 1 + i ||
            entry->term > bundle->snapshot.term || (i && entry->term < entry[-1].term))
            return false;
        *chain = ql_chain_next(*chain, body.data + at, next - at, NULL, 0);
        at = next;
    }
    bundle->count = (size_t)count;
    return at == body.len;
}

static qf_rc check(struct qp_bundle *bundle)
{
    const unsigned char *in = bundle->map;
    size_t len = bundle->map_len - QP_BUNDLE_TRAILER;
    uint64_t snapshot = ql_get(in + 16, 8), count = ql_get(in + 24, 8);
    struct ql_chain chain = { 0 };
    struct qf_str body;
    qf_rc rc;

    if (ql_get(in, 8) != MAGIC)
        return QF_ECORRUPT;
    if (ql_get(in + 8, 8) != QP_BUNDLE_VERSION)
        return QF_EUNSUPPORTED;
    if (snapshot > len - QP_BUNDLE_HEADER)
        return QF_ECORRUPT;
    body = (struct qf_str){ (const char *)in + QP_BUNDLE_HEADER, (size_t)snapshot };
    rc = ql_snapshot_decode(body, &bundle->snapshot);
    if (rc != QF_OK)
        return rc;
    chain = ql_chain_next(chain, in, QP_BUNDLE_HEADER + (size_t)snapshot, NULL, 0);
    body.data += snapshot;
    body.len = len - QP_BUNDLE_HEADER - (size_t)snapshot;
    if (!get_entries(bundle, body, count, &chain) || chain.low != ql_get(in + len, 8) ||
        chain.high != ql_get(in + len + 8, 8))
        return QF_ECORRUPT;
    return QF_OK;
}

qf_rc qp_bundle_open(const char *path, struct qp_bundle *ret_bundle, struct qf_err *err)
{
    struct qp_bundle bundle = { 0 };
    qf_rc rc = map(path, &bundle, err);

    if (rc == QF_OK) {
        rc = check(&bundle);
        if (rc != QF_OK)
            (void)qf_err_set(err, rc,
                             rc == QF_EUNSUPPORTED ? "%s was written by a newer version"
                                                   : "%s is not a whole snapshot",
                             path);
    }
    if (rc == QF_OK)
        *ret_bundle = bundle;
    else
        qp_bundle_close(&bundle);
    return rc;
}

void qp_bundle_close(struct qp_bundle *bundle)
{
    free(bundle->entries);
    if (bundle->map)
        (void)munmap(bundle->map, bundle->map_len);
    *bundle = (struct qp_bundle){ 0 };
}
