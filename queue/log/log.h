/* log.h - the append-only log of one queue on one node: the only writer of its messages.
 *
 * Entries have consecutive indexes. Appending at an index that exists replaces it and all behind it
 * (what consensus calls truncation): as one more frame, never by cutting a file, so that a crash
 * leaves the old end or the new one. Files are `log-GENERATION-NUMBER.dat`; a snapshot that
 * replaces the log starts a new generation (store.h).
 *
 * Durable is what ql_log_sync() returned for. Many appends may share one sync (group commit). Each
 * frame says how far the log was synced before it was written. After a crash that decides what bad
 * data means: above the last sync mark it was never promised to anyone and is cut; below it the
 * disk lost what it had promised, and opening stops with the file's name. Whoever has not appended
 * for a while calls ql_log_mark(), so that the last batches get their mark too.
 *
 * A failed sync, or a failed write other than "no space", can never be tried again: what the kernel
 * dropped may look synced the next time. The log remembers it and refuses everything from then on;
 * the process must end.
 *
 * Not thread-safe: one thread owns a log. Memory: 40 bytes per entry, and up to 4 MiB of what was
 * written last while it is being written. */
#ifndef QUEUE_LOG_LOG_H
#define QUEUE_LOG_LOG_H

#include "queue/log/disk.h"
#include "queue/log/frame.h"

struct ql_options {
    uint64_t generation;    /* from the snapshot; 1 at first */
    uint64_t salt;          /* the same at every opening: the incarnation */
    uint64_t file_bytes;    /* a new file is started beyond; 0: 64 MiB */
    uint64_t reserve_bytes; /* of the disk, that only urgent entries may use */
    uint64_t entries_max;   /* in the log, 0: 16 million; appending more is QF_ELIMIT */
    uint64_t unsafe;        /* rules switched off, enum ql_unsafe: for the simulator alone */
};

/* What the simulator may take out to show what each rule is for. */
enum ql_unsafe {
    QL_UNSAFE_CUT_ANYWHERE = 1 << 0, /* bad data below a sync mark is cut as well */
    QL_UNSAFE_NO_FILE_SYNC = 1 << 1, /* a folder is not synced after a file was made in it */
    QL_UNSAFE_SYNC_AGAIN = 1 << 2,   /* a failed sync may be tried again */
    QL_UNSAFE_NO_REWRITE = 1 << 3    /* what recovery read is taken for durable */
};

/* Bounds of one entry and one batch. */
enum { QL_ENTRY_MAX = 32 << 20, QL_BATCH_MAX = 64 << 20 };

struct ql_log;

struct ql_recovery {
    uint64_t files, frames, entries;
    uint64_t cut_bytes; /* bad data above the last sync mark */
};

/* Open and recover the log; all that is read is durable when it returns. An empty disk is an empty
 * log that begins at @first_index.
 * QF_ECORRUPT: damage below a sync mark; @err names the file and what to do.
 * QF_EUNSUPPORTED: written by a newer version. */
QF_MUST_CHECK qf_rc ql_log_open(struct ql_disk *disk, const struct ql_options *options,
                                uint64_t first_index, struct ql_log **ret_log,
                                struct ql_recovery *ret_recovery, struct qf_err *err);
/* An empty log of @generation beside the present one, which begins at @first_index; no file of it
 * exists, and none is read or removed. Never fails. */
struct ql_log *ql_log_begin(struct ql_disk *disk, const struct ql_options *options,
                            uint64_t generation, uint64_t first_index);
/* @log may be NULL. Nothing is synced. Returns NULL. */
struct ql_log *ql_log_free(struct ql_log *log);

/* Write @count entries with consecutive indexes, the first of them from first to last + 1 of the
 * log. @urgent may use the reserve. QF_ENOSPC: nothing changed, try again when there is room;
 * QF_ELIMIT, QF_EINVAL: nothing changed; others: the process must end. */
QF_MUST_CHECK qf_rc ql_log_append(struct ql_log *log, const struct ql_entry *entries, size_t count,
                                  bool urgent, struct qf_err *err);
/* Make everything appended so far durable. Any error: the process must end. */
QF_MUST_CHECK qf_rc ql_log_sync(struct ql_log *log, struct qf_err *err);

/* The same in two halves, so that another thread can wait for the disk: what is appended so far, and
 * the file to be synced (disk->ops->sync). Between the halves the log may be read and appended to,
 * but nothing may be dropped, and the log neither replaced nor freed. */
struct ql_sync {
    int file;
    uint64_t index, term; /* the last entry it covers; 0 if the log is empty */
    uint64_t frames, mark, end, mark_end;
};
/* False: there is nothing to sync, or the log has failed. */
QF_MUST_CHECK bool ql_log_sync_begin(const struct ql_log *log, struct ql_sync *ret_sync);
/* @rc is what the sync said; it is returned. Any error: the process must end. */
qf_rc ql_log_sync_end(struct ql_log *log, const struct ql_sync *sync, qf_rc rc);

/* True if something is durable that no frame says so of. */
bool ql_log_mark_due(const struct ql_log *log);
/* Write and sync an empty frame with the mark. QF_ENOSPC as for append. */
QF_MUST_CHECK qf_rc ql_log_mark(struct ql_log *log, struct qf_err *err);
/* Only write it: the next sync makes it durable. */
QF_MUST_CHECK qf_rc ql_log_mark_write(struct ql_log *log, struct qf_err *err);

uint64_t ql_log_first(const struct ql_log *log);            /* first index, or where it begins */
uint64_t ql_log_last(const struct ql_log *log);             /* first - 1 if it is empty */
uint64_t ql_log_term(const struct ql_log *log, uint64_t i); /* 0 if it is not there */
enum ql_type ql_log_type(const struct ql_log *log, uint64_t index); /* of one that is there */
uint32_t ql_log_length(const struct ql_log *log, uint64_t index);   /* of the data; 0: not there */
bool ql_log_dirty(const struct ql_log *log);                        /* there is something to sync */
uint64_t ql_log_bytes(const struct ql_log *log);                    /* of all files */
/* Bytes of the files from entry @index on; 0 if it is not there. Greater indexes have fewer. */
uint64_t ql_log_bytes_from(const struct ql_log *log, uint64_t index);

/* Do not show entries from @from on: those that are to replace them wait for room on the disk. They
 * are as if they were not there for last, term, type, read and syncs, but not for appending. 0: show
 * all. Whoever keeps entries that found no room hides from the lowest index among them. */
void ql_log_hide(struct ql_log *log, uint64_t from);

/* Read entry @index, checked, into @buf, which @ret_entry borrows. QF_ENOTFOUND: it is not in the
 * log. QF_ECORRUPT: the disk changed it; the process must end, and opening will say more. */
QF_MUST_CHECK qf_rc ql_log_read(struct ql_log *log, uint64_t index, struct qf_strbuf *buf,
                                struct ql_entry *ret_entry, struct qf_err *err);

/* The same without the disk, if it was appended a short while ago: @ret_entry borrows from the log
 * until it is written to. False: it must be read. */
bool ql_log_recent(const struct ql_log *log, uint64_t index, struct ql_entry *ret_entry);

/* Entries @first to @last, which are there and will never be replaced, as a log of their own that
 * another thread may read while this one goes on, even after their files were dropped. ql_log_free()
 * it before the disk. NULL: @err says why a file could not be opened. */
struct ql_log *ql_log_view(const struct ql_log *log, uint64_t first, uint64_t last,
                           struct qf_err *err);

/* Forget entries before @index: whole files go, so that first may stay lower. */
QF_MUST_CHECK qf_rc ql_log_drop_before(struct ql_log *log, uint64_t index, struct qf_err *err);

/* Where the bytes of frames that have a sync mark behind them end in the newest file, and its name:
 * the simulator flips bits below. False if there are none. */
bool ql_log_marked(const struct ql_log *log, char ret_name[QL_NAME_SIZE], uint64_t *ret_end);

/* The name of a log file; and the reverse: false if @name is not one. */
void ql_log_file_name(char out[QL_NAME_SIZE], uint64_t generation, uint64_t number);
bool ql_log_file_parse(const char *name, uint64_t *ret_generation, uint64_t *ret_number);

#endif
