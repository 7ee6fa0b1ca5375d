/* recover.c - reading a log after a start, and deciding what bad data means. */
#include <inttypes.h>

#include "queue/log/log_int.h"

static int by_number(const void *a, const void *b)
{
    const struct ql_file *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

/* Open the files of this generation, oldest first, and remove those of others: a snapshot has
 * replaced them, or was about to when the node stopped. */
static qf_rc find_files(struct ql_log *log, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf names = QF_STRBUF_INIT;
    struct ql_disk *disk = log->disk;
    qf_rc rc = disk->ops->list(disk, &names, err);

    for (size_t at = 0; rc == QF_OK && at < names.len; at += strlen(names.data + at) + 1) {
        const char *name = names.data + at;
        uint64_t generation;
        struct ql_file file = { 0 };

        if (!ql_log_file_parse(name, &generation, &file.number))
            continue;
        if (generation != log->options.generation) {
            rc = disk->ops->remove(disk, name, err);
            continue;
        }
        rc = disk->ops->open(disk, name, false, &file.handle, err);
        if (rc == QF_OK)
            QF_VEC_PUSH(&log->files, file);
    }
    if (log->files.count)
        qsort(log->files.items, log->files.count, sizeof(log->files.items[0]), by_number);
    return rc;
}

static qf_rc damaged(const struct ql_log *log, const struct ql_file *file, uint64_t offset,
                     struct qf_err *err)
{
    char name[QL_NAME_SIZE];

    ql_log_file_name(name, log->options.generation, file->number);
    return qf_err_set(err, QF_ECORRUPT,
                      "%s/%s is damaged at byte %" PRIu64
                      ", in data that was synced: remove this node from the cluster, empty the "
                      "folder and add it as a new node, so that its peers rebuild it",
                      log->disk->label, name, offset);
}

/* Is there a frame behind @at that says that frame @number was durable? */
static bool marked_behind(const struct ql_log *log, struct qf_str bytes, size_t at, uint64_t number)
{
    for (at += QL_ALIGN; at + QL_FRAME_HEADER <= bytes.len; at += QL_ALIGN) {
        struct ql_frame frame;

        if (ql_frame_peek(qf_str_sub(bytes, at, bytes.len), log->options.salt, &frame) &&
            frame.synced >= number)
            return true;
    }
    return false;
}

/* The frames of a file whose header is good; returns where the good ones end. */
static qf_rc read_frames(struct ql_log *log, struct ql_file *file, struct qf_str bytes,
                         struct ql_recovery *recovery, size_t *ret_end, struct qf_err *err)
{
    size_t at = QL_FILE_HEADER;
    struct ql_frame frame;

    while (at < bytes.len &&
           ql_frame_get(qf_str_sub(bytes, at, bytes.len), log->chain, log->options.salt, &frame)) {
        size_t body = at + QL_FRAME_HEADER;

        /* The hash says that we wrote it: entries that do not fit are a bug or a forgery. */
        if (frame.number != log->frames + 1 || frame.synced > log->frames ||
            !ql_log_enter(log, file, body, qf_str_sub(bytes, body, body + (size_t)frame.body),
                          frame.count))
            return damaged(log, file, at, err);
        log->chain = frame.chain;
        log->frames = frame.number;
        if (frame.count)
            log->frames_filled = frame.number;
        log->frames_marked = log->mark_written = frame.synced;
        recovery->frames++;
        at = body + (size_t)frame.body;
    }
    *ret_end = at;
    return QF_OK;
}

/* Cut bad data off the newest file, durably: what is appended next must not be followed by it. */
static qf_rc cut(struct ql_log *log, struct ql_file *file, size_t end, struct qf_err *err)
{
    qf_rc rc = log->disk->ops->truncate(log->disk, file->handle, end, err);

    return rc == QF_OK ? log->disk->ops->sync(log->disk, file->handle, err) : rc;
}

static qf_rc read_header(struct ql_log *log, struct ql_file *file, struct qf_str bytes,
                         struct qf_err *err)
{
    struct ql_file_header header;
    qf_rc rc = bytes.len < QL_FILE_HEADER ? QF_ECORRUPT
                                          : ql_file_header_get((const unsigned char *)bytes.data,
                                                               log->options.salt, &header);
    bool oldest = file == log->files.items;

    if (rc == QF_EUNSUPPORTED)
        return qf_err_set(err, rc, "the log of %s was written by a newer version: start that one",
                          log->disk->label);
    if (rc != QF_OK || header.generation != log->options.generation ||
        header.number != file->number ||
        (!oldest && (header.first_frame != log->frames + 1 || header.chain.low != log->chain.low ||
                     header.chain.high != log->chain.high)))
        return damaged(log, file, 0, err);
    if (oldest) {
        log->frames = header.first_frame - 1;
        log->chain = header.chain;
    }
    return QF_OK;
}

/* A file that was being made when the node stopped: its header is synced before anything else is
 * written to it, so one without a whole header holds nothing. */
static qf_rc forget_newest(struct ql_log *log, struct qf_err *err)
{
    struct ql_file *file = &log->files.items[log->files.count - 1];
    char name[QL_NAME_SIZE];

    ql_log_file_name(name, log->options.generation, file->number);
    log->disk->ops->close(log->disk, file->handle);
    log->files.count--;
    return log->disk->ops->remove(log->disk, name, err);
}

static qf_rc load(struct ql_log *log, struct ql_file *file, struct qf_strbuf *buf,
                  struct qf_err *err)
{
    uint64_t size;
    qf_rc rc = log->disk->ops->size(log->disk, file->handle, &size, err);

    qf_strbuf_reset(buf);
    if (rc == QF_OK && size > log->options.file_bytes + QL_BATCH_MAX)
        return damaged(log, file, log->options.file_bytes, err);
    if (rc == QF_OK && size) {
        char *into = qf_strbuf_reserve(buf, (size_t)size);

        rc = log->disk->ops->read(log->disk, file->handle, 0, into, (size_t)size, err);
        if (rc == QF_OK)
            buf->len = (size_t)size;
    }
    return rc;
}

static qf_rc read_file(struct ql_log *log, size_t i, struct qf_str bytes,
                       struct ql_recovery *recovery, struct qf_err *err)
{
    struct ql_file *file = &log->files.items[i];
    bool is_newest = i + 1 == log->files.count;
    size_t end;
    qf_rc rc = read_header(log, file, bytes, err);

    if (rc == QF_OK)
        rc = read_frames(log, file, bytes, recovery, &end, err);
    if (rc != QF_OK)
        return rc;
    file->size = end;
    if (end == bytes.len)
        return QF_OK;
    if (!(log->options.unsafe & QL_UNSAFE_CUT_ANYWHERE) &&
        (!is_newest || marked_behind(log, bytes, end, log->frames + 1)))
        return damaged(log, file, end, err);
    recovery->cut_bytes += bytes.len - end;
    return cut(log, file, end, err);
}

/* Write what no mark covers once more, and sync. Whole frames that were read may be nowhere but in
 * the page cache: of a killed process, or of one whose sync failed, after which Linux calls the pages
 * clean and the next sync succeeds without them. Only a new write makes them dirty again. */
static qf_rc rewrite_tail(struct ql_log *log, struct ql_file *file, struct qf_str bytes,
                          struct qf_err *err)
{
    size_t at = QL_FILE_HEADER;
    struct ql_frame frame;
    qf_rc rc = QF_OK;

    if (log->options.unsafe & QL_UNSAFE_NO_REWRITE)
        return QF_OK;
    while (at < file->size &&
           ql_frame_peek(qf_str_sub(bytes, at, bytes.len), log->options.salt, &frame) &&
           frame.number <= log->frames_marked)
        at += QL_FRAME_HEADER + (size_t)frame.body;
    /* Without a marked frame the header may be as new. */
    if (at == QL_FILE_HEADER)
        at = 0;
    if (at < file->size)
        rc = log->disk->ops->write(log->disk, file->handle, at, bytes.data + at,
                                   (size_t)file->size - at, err);
    if (rc == QF_OK)
        rc = log->disk->ops->sync(log->disk, file->handle, err);
    return rc == QF_OK ? log->disk->ops->sync_folder(log->disk, err) : rc;
}

static bool unfinished(struct qf_str bytes, uint64_t salt)
{
    struct ql_file_header header;

    return bytes.len < QL_FILE_HEADER ||
           (bytes.len == QL_FILE_HEADER &&
            ql_file_header_get((const unsigned char *)bytes.data, salt, &header) == QF_ECORRUPT);
}

static qf_rc read_files(struct ql_log *log, struct ql_recovery *recovery, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    qf_rc rc = QF_OK;

    for (size_t i = 0; rc == QF_OK && i < log->files.count; i++) {
        struct ql_file *file = &log->files.items[i];

        if (i > 0 && file->number != file[-1].number + 1)
            return damaged(log, file, 0, err);
        rc = load(log, file, &buf, err);
        if (rc == QF_OK && i + 1 == log->files.count &&
            unfinished(qf_strbuf_view(&buf), log->options.salt))
            return forget_newest(log, err);
        if (rc == QF_OK)
            rc = read_file(log, i, qf_strbuf_view(&buf), recovery, err);
        if (rc == QF_OK && i + 1 == log->files.count)
            rc = rewrite_tail(log, &log->files.items[i], qf_strbuf_view(&buf), err);
    }
    return rc;
}

qf_rc ql_recover(struct ql_log *log, struct ql_recovery *recovery, struct qf_err *err)
{
    qf_rc rc = find_files(log, err);

    if (rc == QF_OK)
        rc = read_files(log, recovery, err);
    if (rc != QF_OK)
        return rc;
    recovery->files = log->files.count;
    recovery->entries = log->entries.count;
    log->frames_synced = log->frames;
    return rc;
}
