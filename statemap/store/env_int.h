/* env_int.h - the inside of environments and transactions. */
#ifndef STATEMAP_STORE_ENV_INT_H
#define STATEMAP_STORE_ENV_INT_H

#include <lmdb.h>

#include "base/pure/strbuf.h"
#include "statemap/store/env.h"

struct sm_env {
    MDB_env *lmdb;
    MDB_dbi rows, about, undo;
    bool has_undo;
    struct sm_layout layout;
    uint64_t (*hash)(struct qf_str bytes);
    char *name;
    uint64_t map_bytes;
};

struct sm_txn {
    struct sm_env *env;
    MDB_txn *lmdb;
    MDB_cursor *cursor; /* over rows */
    bool writing;
    bool about_changed;
    uint64_t version, longest;
    struct qf_strbuf room; /* the stored value being put */
    uint64_t undo_version; /* writing: what rows were is kept, for this merge; 0: it is not */
    uint64_t as_of;        /* reading: as the map was at this version, if there is a cursor */
    MDB_cursor *undone;    /* over what rows were */
};

/* A row as it lies there; borrowed from the transaction. */
struct sm_stored {
    bool found;
    struct qf_str key, value;
};

/* What LMDB says, as an error of this map. */
qf_rc sm_lmdb_failed(const struct sm_env *env, int code, const char *what, struct qf_err *err);

/* The first row at @key or behind it. */
QF_MUST_CHECK qf_rc sm_seek(struct sm_txn *txn, struct qf_str key, struct sm_stored *ret_row,
                            struct qf_err *err);
/* From where the last call came to. */
QF_MUST_CHECK qf_rc sm_step(struct sm_txn *txn, MDB_cursor_op op, struct sm_stored *ret_row,
                            struct qf_err *err);

QF_MUST_CHECK qf_rc sm_stored_decode(const struct sm_txn *txn, const struct sm_stored *stored,
                                     struct sm_row *ret_row, struct sm_place *ret_place,
                                     struct qf_err *err);

/* Where @key lies, or would: *ret_found; *ret_stored is its first row then. QF_ELIMIT: too many keys have its hash. */
QF_MUST_CHECK qf_rc sm_find_place(struct sm_txn *txn, struct qf_str key, bool *ret_found,
                                  struct sm_place *ret_place, struct sm_stored *ret_stored,
                                  struct qf_err *err);

/* undo.c. A map begins with @version. */
QF_MUST_CHECK qf_rc sm_undo_first(struct sm_txn *txn, uint64_t version, struct qf_err *err);
/* The merge of @position begins: what rows were is kept from now on; 0, now_ms: it is not. */
QF_MUST_CHECK qf_rc sm_undo_begin(struct sm_txn *txn, uint64_t position, int64_t now_ms,
                                  struct qf_err *err);
/* @value is about to be put at @stored. */
QF_MUST_CHECK qf_rc sm_undo_put(struct sm_txn *txn, struct qf_str stored, struct qf_str value,
                                struct qf_err *err);
/* What was there as of the version that is read; nothing happens if it is the last one. */
QF_MUST_CHECK qf_rc sm_as_it_was(struct sm_txn *txn, struct sm_stored *stored, struct qf_err *err);

#endif
