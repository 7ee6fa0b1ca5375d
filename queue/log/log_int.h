/* log_int.h - the inside of a log, shared by log.c and recover.c. */
#ifndef QUEUE_LOG_LOG_INT_H
#define QUEUE_LOG_LOG_INT_H

#include "base/pure/vec.h"
#include "queue/log/log.h"

struct ql_position {
    uint64_t term;
    uint64_t offset; /* of the entry's header in its file */
    uint64_t file;   /* number */
    uint32_t len;    /* of the data */
    uint32_t type;
};

struct ql_file {
    uint64_t number;
    int handle;
    uint64_t size;       /* where the next frame goes */
    uint64_t last_index; /* greatest index that was ever written to it */
};

struct ql_log {
    struct ql_disk *disk;
    struct ql_options options;
    QF_VEC(struct ql_file) files; /* oldest first */
    QF_VEC(struct ql_position) entries;
    uint64_t first;         /* index of entries.items[0] */
    uint64_t hidden;        /* entries from here on are not shown; 0: all are */
    uint64_t frames;        /* number of the last frame */
    uint64_t frames_synced; /* number of the last durable one */
    uint64_t frames_marked; /* the greatest sync mark of a durable frame */
    uint64_t frames_filled; /* number of the last one with entries in it */
    uint64_t mark_written;  /* the sync mark of the last frame */
    struct ql_chain chain;
    /* Byte positions in the newest file: what is synced; what the last frame's mark covers; what
     * the last synced frame's mark covers. */
    uint64_t synced_end, marked_end, synced_mark_end;
    bool failed;
    /* The end of the newest file as it was written, from byte `tail_offset` of file `tail_file` on:
     * what was just appended is sent and applied without asking the disk. */
    struct qf_strbuf tail;
    uint64_t tail_file, tail_offset;
};

/* NULL: not there, or not shown. */
const struct ql_position *ql_log_position(const struct ql_log *log, uint64_t index);

/* recover.c: read all files of the generation. */
QF_MUST_CHECK qf_rc ql_recover(struct ql_log *log, struct ql_recovery *recovery,
                               struct qf_err *err);

/* log.c: enter the entries of a whole frame at @offset of @file; false if they do not fit. */
bool ql_log_enter(struct ql_log *log, struct ql_file *file, uint64_t offset, struct qf_str body,
                  uint32_t count);

#endif
