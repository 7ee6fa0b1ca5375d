/* env.c - one map's rows in an LMDB environment: opening, transactions, walking. */
#include "statemap/store/env.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "statemap/core/bytes.h"
#include "statemap/store/env_int.h"

/* The one record beside the rows: what they are, and what is known of them. */
enum { ABOUT_FORMAT = 1, ABOUT_BYTES = 24 };
#define ABOUT_KEY "about"

qf_rc sm_lmdb_failed(const struct sm_env *env, int code, const char *what, struct qf_err *err)
{
    switch (code) {
    case MDB_MAP_FULL:
        return qf_err_set(err, QF_ENOSPC, "map %s is full: it may have %llu bytes", env->name,
                          (unsigned long long)env->map_bytes);
    case ENOSPC:
    case EDQUOT:
        return qf_err_set(err, QF_ENOSPC, "map %s: the disk is full", env->name);
    case MDB_READERS_FULL:
        return qf_err_set(err, QF_EBUSY, "map %s: it has as many readers as it may have",
                          env->name);
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
    case MDB_PANIC:
        return qf_err_set(err, QF_ECORRUPT, "map %s is damaged: %s", env->name, mdb_strerror(code));
    default:
        return qf_err_set(err, QF_EIO, "map %s: %s: %s", env->name, what, mdb_strerror(code));
    }
}

/* A file that lost its end would end the process as soon as somebody looks there. */
static qf_rc check_size(struct sm_env *env, const char *file, struct qf_err *err)
{
    struct stat seen = { 0 };
    MDB_envinfo info;
    MDB_stat stat_of;

    (void)mdb_env_info(env->lmdb, &info);
    (void)mdb_env_stat(env->lmdb, &stat_of);
    if (stat(file, &seen) < 0)
        return qf_err_set(err, QF_EIO, "%s: %s", file, strerror(errno));
    if ((uint64_t)seen.st_size < (info.me_last_pgno + 1) * stat_of.ms_psize)
        return qf_err_set(err, QF_ECORRUPT, "map %s is damaged: %s is shorter than it was",
                          env->name, file);
    return QF_OK;
}

static qf_rc read_about(struct sm_env *env, MDB_txn *txn, bool *ret_found, uint64_t *ret_version,
                        uint64_t *ret_longest, struct qf_err *err)
{
    MDB_val key = { sizeof(ABOUT_KEY) - 1, ABOUT_KEY }, value;
    int code = mdb_get(txn, env->about, &key, &value);
    const unsigned char *bytes = value.mv_data;

    *ret_found = code == 0;
    if (code == MDB_NOTFOUND)
        return QF_OK;
    if (code)
        return sm_lmdb_failed(env, code, "cannot read", err);
    if (value.mv_size != ABOUT_BYTES || sm_read_be(bytes, 4) != ABOUT_FORMAT)
        return qf_err_set(err, QF_EUNSUPPORTED, "map %s was written by another release", env->name);
    if (bytes[4] != env->layout.kind || bytes[5] != env->layout.direct)
        return qf_err_set(err, QF_EUNSUPPORTED, "map %s is stored as a %s map%s", env->name,
                          bytes[4] < SM_KIND__COUNT ? sm_kind_name((enum sm_kind)bytes[4]) : "?",
                          bytes[5] ? " with short keys" : "");
    *ret_version = sm_read_be(bytes + 8, 8);
    *ret_longest = sm_read_be(bytes + 16, 8);
    return QF_OK;
}

static qf_rc write_about(struct sm_txn *txn, struct qf_err *err)
{
    struct sm_env *env = txn->env;
    unsigned char bytes[ABOUT_BYTES] = { 0 };
    MDB_val key = { sizeof(ABOUT_KEY) - 1, ABOUT_KEY }, value = { sizeof(bytes), bytes };
    int code;

    sm_write_be(bytes, ABOUT_FORMAT, 4);
    bytes[4] = (unsigned char)env->layout.kind;
    bytes[5] = env->layout.direct;
    sm_write_be(bytes + 8, txn->version, 8);
    sm_write_be(bytes + 16, txn->longest, 8);
    code = mdb_put(txn->lmdb, env->about, &key, &value, 0);
    return code ? sm_lmdb_failed(env, code, "cannot write", err) : QF_OK;
}

static int open_undo_in(struct sm_env *env, unsigned txn_flags, unsigned flags)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(env->lmdb, NULL, txn_flags, &txn);

    if (code)
        return code;
    code = mdb_dbi_open(txn, "undo", flags, &env->undo);
    if (code)
        mdb_txn_abort(txn);
    else
        code = mdb_txn_commit(txn);
    return code;
}

/* The table of what rows were, which maps of older releases lack. Who cannot make it does not write. */
static void open_undo(struct sm_env *env, bool fixed)
{
    int code = open_undo_in(env, MDB_RDONLY, 0);

    if (code == MDB_NOTFOUND && !fixed)
        code = open_undo_in(env, 0, MDB_CREATE);
    env->has_undo = code == 0;
}

/* Both tables, and the record about them: made, or looked at. */
static qf_rc open_tables(struct sm_env *env, bool create, struct qf_err *err)
{
    struct sm_txn txn = { .env = env };
    unsigned flags = create ? MDB_CREATE : 0;
    bool found = false;
    qf_rc rc;
    int code = mdb_txn_begin(env->lmdb, NULL, create ? 0 : MDB_RDONLY, &txn.lmdb);

    if (code)
        return sm_lmdb_failed(env, code, "cannot begin", err);
    code = mdb_dbi_open(txn.lmdb, "rows", flags, &env->rows);
    if (!code)
        code = mdb_dbi_open(txn.lmdb, "about", flags, &env->about);
    rc = code == MDB_NOTFOUND
             ? qf_err_set(err, QF_ECORRUPT, "map %s is damaged: no tables", env->name)
         : code ? sm_lmdb_failed(env, code, "cannot open", err)
                : read_about(env, txn.lmdb, &found, &txn.version, &txn.longest, err);
    if (rc == QF_OK && !found)
        rc = create ? write_about(&txn, err)
                    : qf_err_set(err, QF_ECORRUPT, "map %s is damaged: no record of it", env->name);
    if (rc != QF_OK) {
        mdb_txn_abort(txn.lmdb);
        return rc;
    }
    code = mdb_txn_commit(txn.lmdb);
    return code ? sm_lmdb_failed(env, code, "cannot open", err) : QF_OK;
}

/* @file: the one that has it all. */
static qf_rc open_lmdb(struct sm_env *env, const struct sm_env_options *options, const char *file,
                       struct qf_err *err)
{
    unsigned flags = MDB_NOTLS | MDB_NORDAHEAD;
    int dead, code = mdb_env_create(&env->lmdb);

    if (options->alone)
        flags |= MDB_NOLOCK | MDB_NOSYNC;
    if (options->fixed)
        flags |= MDB_NOLOCK | MDB_RDONLY;
    if (options->file)
        flags |= MDB_NOSUBDIR;
    if (!code)
        code = mdb_env_set_maxdbs(env->lmdb, 3);
    if (!code)
        code = mdb_env_set_mapsize(env->lmdb, env->map_bytes);
    if (!code)
        code = mdb_env_set_maxreaders(env->lmdb,
                                      options->readers ? options->readers : SM_READERS_DEFAULT);
    if (!code)
        code = mdb_env_open(env->lmdb, options->file ? file : options->folder, flags, 0640);
    if (code)
        return sm_lmdb_failed(env, code, "cannot open", err);
    assert(mdb_env_get_maxkeysize(env->lmdb) >= SM_STORED_KEY_MAX);
    (void)mdb_reader_check(env->lmdb, &dead); /* of processes that died */
    return check_size(env, file, err);
}

qf_rc sm_env_open(const struct sm_env_options *options, struct sm_env **ret_env, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf file = QF_STRBUF_INIT;
    struct sm_env *env;
    struct stat seen;
    qf_rc rc;

    assert(!options->file || (options->fixed && !options->create));
    if (options->file)
        qf_strbuf_puts(&file, options->file);
    else
        qf_strbuf_printf(&file, "%s/%s", options->folder, SM_DATA_FILE);
    if (!options->create && stat(qf_strbuf_cstr(&file), &seen) < 0)
        return qf_err_set(err, errno == ENOENT ? QF_ENOTFOUND : QF_EIO, "map %s: %s: %s",
                          options->name, qf_strbuf_cstr(&file), strerror(errno));
    env = qf_xcalloc(1, sizeof(*env));
    env->layout = options->layout;
    env->hash = options->hash ? options->hash : qf_hash_bytes;
    env->name = qf_xstrdup(options->name);
    env->map_bytes = options->map_bytes ? options->map_bytes : SM_MAP_BYTES_DEFAULT;
    rc = open_lmdb(env, options, qf_strbuf_cstr(&file), err);
    if (rc == QF_OK)
        rc = open_tables(env, options->create, err);
    if (rc == QF_OK)
        open_undo(env, options->fixed);
    if (rc != QF_OK) {
        (void)sm_env_close(env);
        return rc;
    }
    *ret_env = env;
    return QF_OK;
}

struct sm_env *sm_env_close(struct sm_env *env)
{
    if (!env)
        return NULL;
    if (env->lmdb)
        mdb_env_close(env->lmdb);
    free(env->name);
    free(env);
    return NULL;
}

static qf_rc begin(struct sm_env *env, bool writing, struct sm_txn **ret_txn, struct qf_err *err)
{
    struct sm_txn *txn = qf_xcalloc(1, sizeof(*txn));
    bool found;
    qf_rc rc;
    int code;

    *txn = (struct sm_txn){ .env = env, .writing = writing };
    code = mdb_txn_begin(env->lmdb, NULL, writing ? 0 : MDB_RDONLY, &txn->lmdb);
    if (!code)
        code = mdb_cursor_open(txn->lmdb, env->rows, &txn->cursor);
    rc = code ? sm_lmdb_failed(env, code, "cannot begin", err)
              : read_about(env, txn->lmdb, &found, &txn->version, &txn->longest, err);
    if (rc != QF_OK) {
        (void)sm_end(txn);
        return rc;
    }
    *ret_txn = txn;
    return QF_OK;
}

qf_rc sm_read_begin(struct sm_env *env, struct sm_txn **ret_txn, struct qf_err *err)
{
    return begin(env, false, ret_txn, err);
}

qf_rc sm_write_begin(struct sm_env *env, struct sm_txn **ret_txn, struct qf_err *err)
{
    return begin(env, true, ret_txn, err);
}

struct sm_txn *sm_end(struct sm_txn *txn)
{
    if (!txn)
        return NULL;
    if (txn->cursor)
        mdb_cursor_close(txn->cursor);
    if (txn->undone)
        mdb_cursor_close(txn->undone);
    if (txn->lmdb)
        mdb_txn_abort(txn->lmdb);
    qf_strbuf_done(&txn->room);
    free(txn);
    return NULL;
}

qf_rc sm_commit(struct sm_txn *txn, struct qf_err *err)
{
    struct sm_env *env = txn->env;
    qf_rc rc = QF_OK;
    int code = 0;

    assert(txn->writing);
    if (txn->about_changed)
        rc = write_about(txn, err);
    if (rc == QF_OK) {
        mdb_cursor_close(QF_TAKE(txn->cursor));
        code = mdb_txn_commit(QF_TAKE(txn->lmdb));
    }
    (void)sm_end(txn);
    return code ? sm_lmdb_failed(env, code, "cannot commit", err) : rc;
}

/* Of a table, in bytes. */
static uint64_t table_bytes(const struct sm_txn *txn, MDB_dbi table)
{
    MDB_stat stat_of = { 0 };

    (void)mdb_stat(txn->lmdb, table, &stat_of);
    return (stat_of.ms_branch_pages + stat_of.ms_leaf_pages + stat_of.ms_overflow_pages) *
           stat_of.ms_psize;
}

struct sm_about sm_about(const struct sm_txn *txn)
{
    const struct sm_env *env = txn->env;
    struct sm_about about = { .version = txn->version,
                              .longest = txn->longest,
                              .bytes_max = env->map_bytes };
    MDB_envinfo info;
    MDB_stat stat_of;

    (void)mdb_stat(txn->lmdb, env->rows, &stat_of);
    (void)mdb_env_info(env->lmdb, &info);
    about.rows = stat_of.ms_entries;
    about.bytes_used = (info.me_last_pgno + 1) * stat_of.ms_psize;
    about.bytes_needed = table_bytes(txn, env->rows) + table_bytes(txn, env->about) +
                         (env->has_undo ? table_bytes(txn, env->undo) : 0);
    about.bytes_needed = QF_MIN(about.bytes_needed, about.bytes_used);
    return about;
}

void sm_set_version(struct sm_txn *txn, uint64_t version)
{
    txn->version = version;
    txn->about_changed = true;
}

const struct sm_layout *sm_layout_of(const struct sm_txn *txn)
{
    return &txn->env->layout;
}

qf_rc sm_env_sync(struct sm_env *env, struct qf_err *err)
{
    int code = mdb_env_sync(env->lmdb, 1);

    return code ? sm_lmdb_failed(env, code, "cannot sync", err) : QF_OK;
}

qf_rc sm_env_copy(struct sm_env *env, const char *folder, struct qf_err *err)
{
    int code = mdb_env_copy2(env->lmdb, folder, MDB_CP_COMPACT);

    return code ? sm_lmdb_failed(env, code, "cannot copy", err) : QF_OK;
}
