/* log.c - appending, syncing and reading. */
#include <assert.h>
#include <inttypes.h>

#include "queue/log/log_int.h"

/* So much of what was written last is kept in memory at least, twice as much at most. */
#define TAIL_BYTES ((size_t)2 << 20)

void ql_log_file_name(char out[QL_NAME_SIZE], uint64_t generation, uint64_t number)
{
    snprintf(out, QL_NAME_SIZE, "log-%016" PRIx64 "-%016" PRIx64 ".dat", generation, number);
}

bool ql_log_file_parse(const char *name, uint64_t *ret_generation, uint64_t *ret_number)
{
    char again[QL_NAME_SIZE];
    uint64_t generation, number;

    if (sscanf(name, "log-%16" SCNx64 "-%16" SCNx64, &generation, &number) != 2)
        return false;
    ql_log_file_name(again, generation, number);
    if (strcmp(again, name) != 0)
        return false;
    *ret_generation = generation;
    *ret_number = number;
    return true;
}

struct ql_log *ql_log_begin(struct ql_disk *disk, const struct ql_options *options,
                            uint64_t generation, uint64_t first_index)
{
    struct ql_log *log = qf_xcalloc(1, sizeof(*log));

    log->disk = disk;
    log->options = *options;
    log->options.generation = generation;
    if (!log->options.file_bytes)
        log->options.file_bytes = 64 << 20;
    if (!log->options.entries_max)
        log->options.entries_max = 16 << 20;
    log->first = first_index;
    return log;
}

qf_rc ql_log_open(struct ql_disk *disk, const struct ql_options *options, uint64_t first_index,
                  struct ql_log **ret_log, struct ql_recovery *ret_recovery, struct qf_err *err)
{
    struct ql_log *log = ql_log_begin(disk, options, options->generation, first_index);
    struct ql_recovery recovery = { 0 };
    qf_rc rc = ql_recover(log, &recovery, err);

    if (rc != QF_OK) {
        (void)ql_log_free(log);
        return rc;
    }
    *ret_log = log;
    if (ret_recovery)
        *ret_recovery = recovery;
    return QF_OK;
}

struct ql_log *ql_log_free(struct ql_log *log)
{
    if (log) {
        for (size_t i = 0; i < log->files.count; i++)
            log->disk->ops->close(log->disk, log->files.items[i].handle);
        QF_VEC_DONE(&log->files);
        QF_VEC_DONE(&log->entries);
        qf_strbuf_done(&log->tail);
        free(log);
    }
    return NULL;
}

uint64_t ql_log_first(const struct ql_log *log)
{
    return log->first;
}

/* Of what is written, shown or not. */
static uint64_t written_last(const struct ql_log *log)
{
    return log->first + log->entries.count - 1;
}

uint64_t ql_log_last(const struct ql_log *log)
{
    uint64_t last = written_last(log);

    return log->hidden && log->hidden <= last ? QF_MAX(log->hidden, log->first) - 1 : last;
}

void ql_log_hide(struct ql_log *log, uint64_t from)
{
    log->hidden = from;
}

const struct ql_position *ql_log_position(const struct ql_log *log, uint64_t index)
{
    if (index < log->first || index > ql_log_last(log))
        return NULL;
    return &log->entries.items[index - log->first];
}

uint64_t ql_log_term(const struct ql_log *log, uint64_t index)
{
    const struct ql_position *position = ql_log_position(log, index);

    return position ? position->term : 0;
}

enum ql_type ql_log_type(const struct ql_log *log, uint64_t index)
{
    const struct ql_position *position = ql_log_position(log, index);

    assert(position);
    return (enum ql_type)position->type;
}

uint32_t ql_log_length(const struct ql_log *log, uint64_t index)
{
    const struct ql_position *position = ql_log_position(log, index);

    return position ? position->len : 0;
}

bool ql_log_dirty(const struct ql_log *log)
{
    return log->frames > log->frames_synced;
}

uint64_t ql_log_bytes(const struct ql_log *log)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < log->files.count; i++)
        bytes += log->files.items[i].size;
    return bytes;
}

uint64_t ql_log_bytes_from(const struct ql_log *log, uint64_t index)
{
    const struct ql_position *position = ql_log_position(log, index);
    uint64_t bytes = 0;

    for (size_t i = log->files.count; position && i > 0; i--) {
        const struct ql_file *file = &log->files.items[i - 1];

        if (file->number == position->file)
            return bytes + file->size - position->offset;
        bytes += file->size;
    }
    return bytes;
}

static struct ql_file *newest(const struct ql_log *log)
{
    return log->files.count ? &log->files.items[log->files.count - 1] : NULL;
}

/* A log that failed stays so: what is on the disk now is anybody's guess. */
static qf_rc check_alive(const struct ql_log *log, struct qf_err *err)
{
    if (!log->failed)
        return QF_OK;
    return qf_err_set(err, QF_EIO, "%s: an earlier write or sync failed: restart this node",
                      log->disk->label);
}

static qf_rc give_up(struct ql_log *log, qf_rc rc)
{
    if (!(log->options.unsafe & QL_UNSAFE_SYNC_AGAIN))
        log->failed = true;
    return rc;
}

/* Make the next file. Its header and its name are durable before a frame goes into it. */
static qf_rc start_file(struct ql_log *log, struct qf_err *err)
{
    struct ql_disk *disk = log->disk;
    struct ql_file *last = newest(log);
    struct ql_file file = { .number = last ? last->number + 1 : 1, .size = QL_FILE_HEADER };
    struct ql_file_header header = { .generation = log->options.generation,
                                     .number = file.number,
                                     .first_frame = log->frames + 1,
                                     .chain = log->chain };
    unsigned char bytes[QL_FILE_HEADER];
    char name[QL_NAME_SIZE];
    qf_rc rc;

    ql_file_header_put(bytes, &header, log->options.salt);
    ql_log_file_name(name, log->options.generation, file.number);
    rc = disk->ops->open(disk, name, true, &file.handle, err);
    if (rc != QF_OK)
        return rc == QF_ENOSPC ? rc : give_up(log, rc);
    rc = disk->ops->write(disk, file.handle, 0, bytes, sizeof(bytes), err);
    if (rc == QF_ENOSPC) {
        disk->ops->close(disk, file.handle);
        return rc; /* the empty file is taken again the next time */
    }
    if (rc == QF_OK)
        rc = disk->ops->sync(disk, file.handle, err);
    if (rc == QF_OK && !(log->options.unsafe & QL_UNSAFE_NO_FILE_SYNC))
        rc = disk->ops->sync_folder(disk, err);
    QF_VEC_PUSH(&log->files, file);
    log->synced_end = log->synced_mark_end = log->marked_end = QL_FILE_HEADER;
    return rc == QF_OK ? QF_OK : give_up(log, rc);
}

/* False if it does not fit the log. */
static bool enter_one(struct ql_log *log, struct ql_file *file, uint64_t offset,
                      const struct ql_entry *entry)
{
    /* Older files are gone: the first entry that is left says where the log begins, and so does
     * one that replaces entries of files that are gone. */
    if (log->files.items[0].number > 1 && (!log->entries.count || entry->index < log->first)) {
        log->entries.count = 0;
        log->first = entry->index;
    }
    if (entry->index < log->first || entry->index > written_last(log) + 1)
        return false;
    log->entries.count = entry->index - log->first;
    QF_VEC_PUSH(&log->entries, (struct ql_position){ .term = entry->term,
                                                     .offset = offset,
                                                     .file = file->number,
                                                     .len = (uint32_t)entry->data.len,
                                                     .type = entry->type });
    if (entry->index > file->last_index)
        file->last_index = entry->index;
    return true;
}

bool ql_log_enter(struct ql_log *log, struct ql_file *file, uint64_t offset, struct qf_str body,
                  uint32_t count)
{
    size_t at = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct ql_entry entry;
        size_t next = ql_entry_get(body, at, &entry);

        if (!next || !entry.term || (i > 0 && entry.index != written_last(log) + 1) ||
            !enter_one(log, file, offset + at, &entry))
            return false;
        at = next;
    }
    return at == body.len;
}

/* Room for one more frame at the end of the tail, which follows the newest file's end. */
static void begin_tail(struct ql_log *log, const struct ql_file *file)
{
    struct qf_strbuf *tail = &log->tail;

    if (tail->capacity > 4 * TAIL_BYTES) /* a very large batch has passed */
        qf_strbuf_done(tail);
    if (log->tail_file != file->number || log->tail_offset + tail->len != file->size) {
        tail->len = 0;
        log->tail_file = file->number;
        log->tail_offset = file->size;
    }
    if (tail->len > 2 * TAIL_BYTES) {
        size_t gone = tail->len - TAIL_BYTES;

        memmove(tail->data, tail->data + gone, TAIL_BYTES);
        tail->len = TAIL_BYTES;
        log->tail_offset += gone;
    }
}

/* Write one frame at the end of the newest file. */
static qf_rc write_frame(struct ql_log *log, const struct ql_entry *entries, size_t count,
                         struct qf_err *err)
{
    struct ql_file *file = newest(log);
    uint64_t offset = file->size + QL_FRAME_HEADER;
    struct ql_chain chain;
    size_t start;
    qf_rc rc;

    begin_tail(log, file);
    start = log->tail.len;
    chain = ql_frame_put(&log->tail, log->frames + 1, log->frames_synced, entries, count,
                         log->chain, log->options.salt);
    rc = log->disk->ops->write(log->disk, file->handle, file->size, log->tail.data + start,
                               log->tail.len - start, err);
    if (rc != QF_OK) {
        log->tail.len = start;
        return rc == QF_ENOSPC ? rc : give_up(log, rc);
    }
    for (size_t i = 0; i < count; i++) {
        bool fits = enter_one(log, file, offset, &entries[i]);

        assert(fits);
        offset += ql_entry_bytes(entries[i].data.len);
    }
    file->size += log->tail.len - start;
    log->chain = chain;
    log->frames++;
    if (count)
        log->frames_filled = log->frames;
    log->mark_written = log->frames_synced;
    log->marked_end = log->synced_end;
    return QF_OK;
}

static qf_rc check_batch(const struct ql_log *log, const struct ql_entry *entries, size_t count,
                         uint64_t *ret_bytes, struct qf_err *err)
{
    uint64_t bytes = QL_FRAME_HEADER;

    for (size_t i = 0; i < count; i++) {
        if (entries[i].data.len > QL_ENTRY_MAX)
            return qf_err_set(err, QF_ELIMIT, "an entry of %zu bytes; at most %d",
                              entries[i].data.len, QL_ENTRY_MAX);
        if (!entries[i].term || entries[i].index != entries[0].index + i)
            return qf_err_set(err, QF_EINVAL, "entries of a batch do not follow each other");
        bytes += ql_entry_bytes(entries[i].data.len);
    }
    if (!count || entries[0].index < log->first || entries[0].index > written_last(log) + 1)
        return qf_err_set(err, QF_EINVAL, "a batch that does not continue the log");
    if (bytes > QL_BATCH_MAX || entries[count - 1].index - log->first >= log->options.entries_max)
        return qf_err_set(err, QF_ELIMIT, "the log of %s is full", log->disk->label);
    *ret_bytes = bytes;
    return QF_OK;
}

static qf_rc check_space(struct ql_log *log, uint64_t bytes, struct qf_err *err)
{
    uint64_t space;
    qf_rc rc = log->disk->ops->space(log->disk, &space, err);

    if (rc == QF_OK && space < log->options.reserve_bytes + bytes)
        rc = qf_err_set(err, QF_ENOSPC,
                        "%s has %" PRIu64 " bytes left; the last %" PRIu64 " are reserved",
                        log->disk->label, space, log->options.reserve_bytes);
    return rc;
}

/* A file is full: all of it is durable before the next one begins, so that damage in any but the
 * newest file is damage below a sync mark. */
static qf_rc make_room(struct ql_log *log, uint64_t bytes, struct qf_err *err)
{
    struct ql_file *file = newest(log);
    qf_rc rc;

    if (file && (file->size == QL_FILE_HEADER || file->size + bytes <= log->options.file_bytes))
        return QF_OK;
    rc = file ? ql_log_sync(log, err) : QF_OK;
    return rc == QF_OK ? start_file(log, err) : rc;
}

qf_rc ql_log_append(struct ql_log *log, const struct ql_entry *entries, size_t count, bool urgent,
                    struct qf_err *err)
{
    uint64_t bytes;
    qf_rc rc = check_alive(log, err);

    if (rc == QF_OK)
        rc = check_batch(log, entries, count, &bytes, err);
    if (rc == QF_OK && !urgent)
        rc = check_space(log, bytes, err);
    if (rc == QF_OK)
        rc = make_room(log, bytes, err);
    return rc == QF_OK ? write_frame(log, entries, count, err) : rc;
}

bool ql_log_sync_begin(const struct ql_log *log, struct ql_sync *ret_sync)
{
    const struct ql_file *file = newest(log);

    if (log->failed || !file || !ql_log_dirty(log))
        return false;
    *ret_sync = (struct ql_sync){ .file = file->handle,
                                  .index = ql_log_last(log),
                                  .term = ql_log_term(log, ql_log_last(log)),
                                  .frames = log->frames,
                                  .mark = log->mark_written,
                                  .end = file->size,
                                  .mark_end = log->marked_end };
    return true;
}

qf_rc ql_log_sync_end(struct ql_log *log, const struct ql_sync *sync, qf_rc rc)
{
    if (rc != QF_OK)
        return give_up(log, rc);
    /* A new file was begun meanwhile: all of this one was synced then. */
    if (sync->frames <= log->frames_synced)
        return QF_OK;
    log->frames_synced = sync->frames;
    log->frames_marked = sync->mark;
    log->synced_mark_end = sync->mark_end;
    log->synced_end = sync->end;
    return QF_OK;
}

qf_rc ql_log_sync(struct ql_log *log, struct qf_err *err)
{
    struct ql_sync sync;
    qf_rc rc = check_alive(log, err);

    if (rc != QF_OK || !ql_log_sync_begin(log, &sync))
        return rc;
    return ql_log_sync_end(log, &sync, log->disk->ops->sync(log->disk, sync.file, err));
}

bool ql_log_mark_due(const struct ql_log *log)
{
    return !ql_log_dirty(log) && log->frames_filled > log->frames_marked;
}

qf_rc ql_log_mark_write(struct ql_log *log, struct qf_err *err)
{
    qf_rc rc = check_alive(log, err);

    if (rc == QF_OK && ql_log_mark_due(log)) {
        rc = write_frame(log, NULL, 0, err);
        qf_strbuf_done(&log->tail); /* the log is idle */
    }
    return rc;
}

qf_rc ql_log_mark(struct ql_log *log, struct qf_err *err)
{
    bool due = ql_log_mark_due(log);
    qf_rc rc = ql_log_mark_write(log, err);

    return rc == QF_OK && due ? ql_log_sync(log, err) : rc;
}

bool ql_log_marked(const struct ql_log *log, char ret_name[QL_NAME_SIZE], uint64_t *ret_end)
{
    if (!log->files.count || log->synced_mark_end <= QL_FILE_HEADER)
        return false;
    ql_log_file_name(ret_name, log->options.generation,
                     log->files.items[log->files.count - 1].number);
    *ret_end = log->synced_mark_end;
    return true;
}

/* The oldest file holds nothing that is still needed, neither entries nor the end of the log. */
static bool oldest_is_spent(const struct ql_log *log, uint64_t index)
{
    return log->files.count > 1 && log->files.items[0].last_index < index &&
           (log->entries.count == 0 || log->files.items[0].last_index < written_last(log));
}

qf_rc ql_log_drop_before(struct ql_log *log, uint64_t index, struct qf_err *err)
{
    qf_rc rc = check_alive(log, err);

    while (rc == QF_OK && oldest_is_spent(log, index)) {
        uint64_t gone = log->files.items[0].last_index; /* 0: it has marks only */
        size_t count = gone >= log->first ? (size_t)(gone - log->first + 1) : 0;
        char name[QL_NAME_SIZE];

        ql_log_file_name(name, log->options.generation, log->files.items[0].number);
        log->disk->ops->close(log->disk, log->files.items[0].handle);
        log->files.count--;
        memmove(log->files.items, log->files.items + 1,
                log->files.count * sizeof(log->files.items[0]));
        log->entries.count -= count;
        memmove(log->entries.items, log->entries.items + count,
                log->entries.count * sizeof(log->entries.items[0]));
        log->first += count;
        rc = log->disk->ops->remove(log->disk, name, err);
        if (rc == QF_OK)
            rc = log->disk->ops->sync_folder(log->disk, err);
        if (rc != QF_OK)
            rc = give_up(log, rc);
    }
    return rc;
}
