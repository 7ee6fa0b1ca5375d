/* read.c - entries out of a log: from memory if they were just written, else from their file. */
#include <inttypes.h>

#include "queue/log/log_int.h"

bool ql_log_recent(const struct ql_log *log, uint64_t index, struct ql_entry *ret_entry)
{
    const struct ql_position *position = ql_log_position(log, index);
    uint64_t end = log->tail_offset + log->tail.len;

    if (!position || position->file != log->tail_file || position->offset < log->tail_offset ||
        position->offset + ql_entry_bytes(position->len) > end)
        return false;
    *ret_entry = (struct ql_entry){
        .term = position->term,
        .index = index,
        .type = (enum ql_type)position->type,
        .data = { log->tail.data + (position->offset - log->tail_offset) + QL_ENTRY_HEADER,
                  position->len }
    };
    return true;
}

static struct ql_file *file_of(struct ql_log *log, uint64_t number)
{
    return &log->files.items[number - log->files.items[0].number];
}

qf_rc ql_log_read(struct ql_log *log, uint64_t index, struct qf_strbuf *buf,
                  struct ql_entry *ret_entry, struct qf_err *err)
{
    const struct ql_position *position = ql_log_position(log, index);
    size_t len, start = buf->len;
    char *into;
    qf_rc rc;

    if (!position)
        return qf_err_set(err, QF_ENOTFOUND, "entry %" PRIu64 " is not in the log", index);
    len = ql_entry_bytes(position->len);
    into = qf_strbuf_reserve(buf, len);
    rc = log->disk->ops->read(log->disk, file_of(log, position->file)->handle, position->offset,
                              into, len, err);
    if (rc != QF_OK)
        return rc;
    buf->len += len;
    if (!ql_entry_get(qf_strbuf_view(buf), start, ret_entry) || ret_entry->index != index ||
        ret_entry->term != position->term) {
        char name[QL_NAME_SIZE];

        ql_log_file_name(name, log->options.generation, position->file);
        return qf_err_set(err, QF_ECORRUPT,
                          "%s/%s: entry %" PRIu64 " is damaged: restart this node",
                          log->disk->label, name, index);
    }
    return QF_OK;
}

struct ql_log *ql_log_view(const struct ql_log *log, uint64_t first, uint64_t last,
                           struct qf_err *err)
{
    struct ql_log *view = ql_log_begin(log->disk, &log->options, log->options.generation, first);

    view->failed = true; /* nothing is written through it */
    for (uint64_t i = first; i <= last && ql_log_position(log, i); i++)
        QF_VEC_PUSH(&view->entries, *ql_log_position(log, i));
    for (size_t i = 0; view->entries.count && i < log->files.count; i++) {
        struct ql_file file = log->files.items[i];
        char name[QL_NAME_SIZE];

        if (file.number < view->entries.items[0].file)
            continue;
        ql_log_file_name(name, log->options.generation, file.number);
        if (log->disk->ops->open(log->disk, name, false, &file.handle, err) != QF_OK)
            return ql_log_free(view);
        QF_VEC_PUSH(&view->files, file);
    }
    return view;
}
