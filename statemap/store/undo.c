/* undo.c - what rows were before the last merges, so that a map can be read as it was then.
 *
 *     table undo     HASH (of the stored key, 8) VERSION (8) CLASH (2) -> LENGTH (2) STORED KEY, 1 OLD VALUE or 0 (there was none)
 *     table about    "first": the version that made the map; "undo": since which one undo is whole; "v" VERSION: when that was merged
 *
 * The row of a key as of a version is what the oldest entry behind that version says, or else the row itself. */
#include <string.h>

#include "base/pure/map.h"
#include "statemap/core/bytes.h"
#include "statemap/store/env_int.h"

enum { UNDO_KEY = 8 + 8 + 2, TIME_KEY = 1 + 8 };
#define FIRST_KEY "first"
#define WHOLE_KEY "undo"

static qf_rc failed(const struct sm_txn *txn, int code, struct qf_err *err)
{
    return sm_lmdb_failed(txn->env, code, "cannot read or write what was", err);
}

/* --- numbers beside the rows --- */

static qf_rc get_number(struct sm_txn *txn, const char *name, bool *ret_found, uint64_t *ret_number,
                        struct qf_err *err)
{
    MDB_val key = { strlen(name), (void *)name }, value;
    int code = mdb_get(txn->lmdb, txn->env->about, &key, &value);

    *ret_found = code == 0 && value.mv_size == 8;
    *ret_number = *ret_found ? sm_read_be(value.mv_data, 8) : 0;
    return code && code != MDB_NOTFOUND ? failed(txn, code, err) : QF_OK;
}

static qf_rc put_number(struct sm_txn *txn, struct qf_str name, uint64_t number, struct qf_err *err)
{
    unsigned char bytes[8];
    MDB_val key = { name.len, (void *)name.data }, value = { sizeof(bytes), bytes };
    int code;

    sm_write_be(bytes, number, 8);
    code = mdb_put(txn->lmdb, txn->env->about, &key, &value, 0);
    return code ? failed(txn, code, err) : QF_OK;
}

qf_rc sm_undo_first(struct sm_txn *txn, uint64_t version, struct qf_err *err)
{
    qf_rc rc = put_number(txn, QF_STR(FIRST_KEY), version, err);

    return rc == QF_OK ? put_number(txn, QF_STR(WHOLE_KEY), version, err) : rc;
}

/* --- writing --- */

static void make_key(unsigned char out[UNDO_KEY], struct qf_str stored, uint64_t version,
                     unsigned clash)
{
    sm_write_be(out, qf_hash_bytes(stored), 8);
    sm_write_be(out + 8, version, 8);
    sm_write_be(out + 16, clash, 2);
}

static int put_entry(struct sm_txn *txn, struct qf_str stored, struct qf_str entry)
{
    unsigned char bytes[UNDO_KEY];
    int code = MDB_KEYEXIST;

    for (unsigned clash = 0; clash <= UINT16_MAX && code == MDB_KEYEXIST; clash++) {
        MDB_val key = { sizeof(bytes), bytes }, value = { entry.len, (void *)entry.data };

        make_key(bytes, stored, txn->undo_version, clash);
        code = mdb_put(txn->lmdb, txn->env->undo, &key, &value, MDB_NOOVERWRITE);
    }
    return code;
}

qf_rc sm_undo_put(struct sm_txn *txn, struct qf_str stored, struct qf_str value, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf entry = QF_STRBUF_INIT;
    MDB_val key = { stored.len, (void *)stored.data }, former;
    int code = mdb_get(txn->lmdb, txn->env->rows, &key, &former);
    unsigned char len[2];

    if (code && code != MDB_NOTFOUND)
        return failed(txn, code, err);
    if (!code && qf_str_eq(value, (struct qf_str){ former.mv_data, former.mv_size }))
        return QF_OK;
    sm_write_be(len, stored.len, 2);
    qf_strbuf_add(&entry, len, sizeof(len));
    qf_strbuf_str(&entry, stored);
    qf_strbuf_putc(&entry, code == 0);
    if (!code)
        qf_strbuf_add(&entry, former.mv_data, former.mv_size);
    code = put_entry(txn, stored, qf_strbuf_view(&entry));
    return code ? failed(txn, code, err) : QF_OK;
}

/* Entries of versions up to @version go. */
static qf_rc drop_until(struct sm_txn *txn, uint64_t version, struct qf_err *err)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    int code = mdb_cursor_open(txn->lmdb, txn->env->undo, &cursor);

    if (code)
        return failed(txn, code, err);
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
        if (key.mv_size == UNDO_KEY && sm_read_be((unsigned char *)key.mv_data + 8, 8) <= version &&
            (code = mdb_cursor_del(cursor, 0)) != 0)
            break;
    mdb_cursor_close(cursor);
    return code && code != MDB_NOTFOUND ? failed(txn, code, err) : QF_OK;
}

/* The times of merges, oldest first: those before @before_ms are dropped with @drop. *ret_version: the last of them, or 0;
 * *ret_oldest: when the first of all was. */
static qf_rc look_at_times(struct sm_txn *txn, int64_t before_ms, bool drop, uint64_t *ret_version,
                           int64_t *ret_oldest, struct qf_err *err)
{
    MDB_val key = { 1, "v" }, value;
    MDB_cursor *cursor;
    int code = mdb_cursor_open(txn->lmdb, txn->env->about, &cursor);

    *ret_version = 0;
    *ret_oldest = INT64_MAX;
    if (code)
        return failed(txn, code, err);
    for (code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
         code == 0 && key.mv_size == TIME_KEY && *(char *)key.mv_data == 'v' && value.mv_size == 8;
         code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        int64_t time_ms = (int64_t)sm_read_be(value.mv_data, 8);

        if (*ret_oldest == INT64_MAX)
            *ret_oldest = time_ms;
        if (time_ms >= before_ms)
            break;
        *ret_version = sm_read_be((unsigned char *)key.mv_data + 1, 8);
        if (drop && (code = mdb_cursor_del(cursor, 0)) != 0)
            break;
    }
    mdb_cursor_close(cursor);
    return code && code != MDB_NOTFOUND ? failed(txn, code, err) : QF_OK;
}

/* What is older than need be goes, together: each time all entries are looked at. */
static qf_rc trim(struct sm_txn *txn, int64_t now_ms, struct qf_err *err)
{
    uint64_t version;
    int64_t oldest;
    qf_rc rc = look_at_times(txn, now_ms - SM_UNDO_KEEP_MS, false, &version, &oldest, err);

    if (rc != QF_OK || !version || oldest >= now_ms - 2 * SM_UNDO_KEEP_MS)
        return rc;
    rc = look_at_times(txn, now_ms - SM_UNDO_KEEP_MS, true, &version, &oldest, err);
    if (rc == QF_OK)
        rc = drop_until(txn, version, err);
    return rc == QF_OK ? put_number(txn, QF_STR(WHOLE_KEY), version, err) : rc;
}

qf_rc sm_undo_begin(struct sm_txn *txn, uint64_t position, int64_t now_ms, struct qf_err *err)
{
    unsigned char time[TIME_KEY] = { 'v' };
    uint64_t whole;
    bool found;
    qf_rc rc = get_number(txn, WHOLE_KEY, &found, &whole, err);

    if (rc != QF_OK)
        return rc;
    if (!now_ms || !txn->env->has_undo) /* nobody wants to know what was before this merge */
        return found ? put_number(txn, QF_STR(WHOLE_KEY), position, err) : QF_OK;
    if (!found)
        rc = put_number(txn, QF_STR(WHOLE_KEY), txn->version, err);
    sm_write_be(time + 1, position, 8);
    if (rc == QF_OK)
        rc = trim(txn, now_ms, err);
    if (rc == QF_OK)
        rc = put_number(txn, (struct qf_str){ (char *)time, sizeof(time) }, (uint64_t)now_ms, err);
    txn->undo_version = position;
    return rc;
}

/* --- reading --- */

qf_rc sm_as_of(struct sm_txn *txn, uint64_t position, bool *ret_any, struct qf_err *err)
{
    uint64_t first, whole;
    bool found;
    qf_rc rc;

    *ret_any = txn->version > 0;
    if (position >= txn->version)
        return QF_OK;
    rc = get_number(txn, FIRST_KEY, &found, &first, err);
    if (rc == QF_OK && found && position < first) {
        *ret_any = false;
        return QF_OK;
    }
    if (rc == QF_OK)
        rc = get_number(txn, WHOLE_KEY, &found, &whole, err);
    if (rc == QF_OK && (!found || position < whole))
        rc = qf_err_set(err, QF_EGONE, "map %s is not known any more as it was then",
                        txn->env->name);
    if (rc == QF_OK) {
        int code = mdb_cursor_open(txn->lmdb, txn->env->undo, &txn->undone);

        txn->as_of = position;
        rc = code ? failed(txn, code, err) : QF_OK;
    }
    return rc;
}

/* What an entry says of @stored: false: it is of another key. */
static bool entry_of(const MDB_val *value, struct sm_stored *stored)
{
    struct qf_str bytes = { value->mv_data, value->mv_size };
    size_t len = bytes.len >= 2 ? (size_t)sm_read_be(bytes.data, 2) : 0;

    if (bytes.len < 3 + len || !qf_str_eq(stored->key, qf_str_sub(bytes, 2, 2 + len)))
        return false;
    stored->found = bytes.data[2 + len] == 1;
    stored->value = qf_str_sub(bytes, 3 + len, bytes.len);
    return true;
}

qf_rc sm_as_it_was(struct sm_txn *txn, struct sm_stored *stored, struct qf_err *err)
{
    unsigned char bytes[UNDO_KEY];
    MDB_val key = { sizeof(bytes), bytes }, value;
    int code;

    if (!txn->undone || !stored->found)
        return QF_OK;
    make_key(bytes, stored->key, txn->as_of + 1, 0);
    for (code = mdb_cursor_get(txn->undone, &key, &value, MDB_SET_RANGE);
         code == 0 && key.mv_size == UNDO_KEY && memcmp(key.mv_data, bytes, 8) == 0;
         code = mdb_cursor_get(txn->undone, &key, &value, MDB_NEXT))
        if (entry_of(&value, stored))
            return QF_OK;
    return code && code != MDB_NOTFOUND ? failed(txn, code, err) : QF_OK;
}
