/* env.h - one map's rows in an LMDB environment: a folder, one writer at a time, readers beside it.
 *
 * A reader sees the rows as they were when it began, whatever is written meanwhile. What a writer put is there as a whole
 * with its commit, or not at all. An environment knows its version: the number of the last part that was merged into it.
 *
 * LMDB must not open a folder twice in a process: see store.h, which has a table of them. An environment may be used by
 * several threads; a transaction by one at a time. */
#ifndef STATEMAP_STORE_ENV_H
#define STATEMAP_STORE_ENV_H

#include "base/pure/err.h"
#include "statemap/core/row.h"

struct sm_env;
struct sm_txn;

#define SM_MAP_BYTES_DEFAULT (UINT64_C(10) << 30)
enum { SM_READERS_DEFAULT = 126 };

struct sm_env_options {
    const char *folder; /* it exists */
    const char *file;   /* or the file itself, of a copy: then `fixed` too */
    const char *name;   /* of the map, for messages */
    struct sm_layout layout;
    uint64_t map_bytes;                    /* 0: SM_MAP_BYTES_DEFAULT */
    unsigned readers;                      /* 0: SM_READERS_DEFAULT */
    uint64_t (*hash)(struct qf_str bytes); /* of keys; NULL: XXH3 */
    bool create;                           /* else QF_ENOTFOUND if the folder holds none */
    bool fixed;                            /* nobody writes to it any more: a snapshot */
    bool
        alone; /* nobody else opens it, and a crash may destroy it: a part that is being made or merged */
};

/* QF_ENOTFOUND; QF_EUNSUPPORTED: rows are of another layout; QF_ECORRUPT: it is damaged; QF_EIO. */
QF_MUST_CHECK qf_rc sm_env_open(const struct sm_env_options *options, struct sm_env **ret_env,
                                struct qf_err *err);
/* No transaction is left. @env may be NULL. Returns NULL. */
struct sm_env *sm_env_close(struct sm_env *env);

/* The file that has it all. */
#define SM_DATA_FILE "data.mdb"

/* What is known of an environment, as of a transaction. */
struct sm_about {
    uint64_t version; /* the last part merged; 0: none */
    uint64_t longest; /* no session is longer, in milliseconds */
    uint64_t rows;
    uint64_t bytes_used, bytes_max; /* of its file; what that may have */
    uint64_t bytes_needed; /* of it, about: the rest is of rows that went, and used again */
};

/* Begin to read. QF_EBUSY: there are as many readers as there may be. */
QF_MUST_CHECK qf_rc sm_read_begin(struct sm_env *env, struct sm_txn **ret_txn, struct qf_err *err);
/* Begin to write; waits for another writer. */
QF_MUST_CHECK qf_rc sm_write_begin(struct sm_env *env, struct sm_txn **ret_txn, struct qf_err *err);
/* Make what was written last; @txn is gone. QF_ENOSPC: disk or map is full, nothing was written. */
QF_MUST_CHECK qf_rc sm_commit(struct sm_txn *txn, struct qf_err *err);
/* Forget what was written, or end reading. @txn may be NULL. Returns NULL. */
struct sm_txn *sm_end(struct sm_txn *txn);

struct sm_about sm_about(const struct sm_txn *txn);
void sm_set_version(struct sm_txn *txn, uint64_t version);
const struct sm_layout *sm_layout_of(const struct sm_txn *txn);

/* Read the map as it was at @position, where it is behind that: sm_find(), sm_find_number() and sm_find_text() answer as they
 * would have then. *ret_any: it had rows. QF_EGONE: nobody kept what rows were (see sm_merge()), or it was too long ago. */
QF_MUST_CHECK qf_rc sm_as_of(struct sm_txn *txn, uint64_t position, bool *ret_any,
                             struct qf_err *err);

/* Put a row; one of the same key (and time, or range, or start and end) is replaced. QF_EINVAL: see sm_row_check();
 * QF_ELIMIT: too many keys have its hash; QF_ENOSPC: the map is full. After any other error than QF_EINVAL only sm_end() is left. */
QF_MUST_CHECK qf_rc sm_put(struct sm_txn *txn, const struct sm_row *row, struct qf_err *err);

/* What a keyed map says of @key at @time: *ret_found, and a row that borrows from @txn. State: its row. Temporal: the
 * latest one up to @time. Session: those that overlap or touch and hold @time, as one. */
QF_MUST_CHECK qf_rc sm_find(struct sm_txn *txn, struct qf_str key, int64_t time, bool *ret_found,
                            struct sm_row *ret_row, struct qf_err *err);
/* What a ranged map says of @number at @time. */
QF_MUST_CHECK qf_rc sm_find_number(struct sm_txn *txn, int64_t number, int64_t time,
                                   bool *ret_found, struct sm_row *ret_row, struct qf_err *err);

/* One of the two: a ranged map is asked for the number that @key is as text. QF_EINVAL: it is none. */
QF_MUST_CHECK qf_rc sm_find_text(struct sm_txn *txn, struct qf_str key, int64_t time,
                                 bool *ret_found, struct sm_row *ret_row, struct qf_err *err);

/* Rows in the order they are stored in, from the first one, or from behind @after (a stored key that another walk told, or that
 * anybody made up; empty: none). */
struct sm_rows {
    struct sm_txn *txn;
    bool begun;
    size_t after_len;
    unsigned char after[SM_STORED_KEY_MAX]; /* the stored key of the last row told */
};
QF_MUST_CHECK qf_rc sm_rows_next(struct sm_rows *rows, bool *ret_found, struct sm_row *ret_row,
                                 struct qf_err *err);
/* The first row of @key in a keyed map, instead of the first of all: those of the same key come next, in the order of their
 * times. *ret_found false: it has none. */
QF_MUST_CHECK qf_rc sm_rows_of(struct sm_rows *rows, struct qf_str key, bool *ret_found,
                               struct sm_row *ret_row, struct qf_err *err);

/* What was committed into one that is opened alone is on the disk now. */
QF_MUST_CHECK qf_rc sm_env_sync(struct sm_env *env, struct qf_err *err);

/* A copy of the map as @env has it now into @folder, which exists and is empty; compact, and synced. */
QF_MUST_CHECK qf_rc sm_env_copy(struct sm_env *env, const char *folder, struct qf_err *err);

/* Put all rows of @part, and set the version: a part of @position. Nothing is done if the version is that already, or a later
 * one. @now_ms: keep what rows were, for SM_UNDO_KEEP_MS at least; 0: do not. */
QF_MUST_CHECK qf_rc sm_merge(struct sm_env *env, struct sm_env *part, uint64_t position,
                             int64_t now_ms, struct qf_err *err);
/* @env has its first rows, as a part of @position. */
QF_MUST_CHECK qf_rc sm_number_first(struct sm_env *env, uint64_t position, struct qf_err *err);
/* Longer than a request's key is remembered (ingest/core/ledger.h). */
#define SM_UNDO_KEEP_MS (INT64_C(20) * 60 * 1000)

#endif
