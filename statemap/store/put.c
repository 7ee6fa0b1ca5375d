/* put.c - rows into an environment: one by one, and parts. */
#include "statemap/core/range.h"
#include "statemap/store/env_int.h"

static qf_rc put_stored(struct sm_txn *txn, const struct sm_row *row, struct sm_place place,
                        struct qf_err *err)
{
    unsigned char key[SM_STORED_KEY_MAX];
    MDB_val at = { sm_row_key(&txn->env->layout, row, place, key), key }, value;
    int code;

    qf_strbuf_reset(&txn->room);
    sm_row_value(&txn->env->layout, row, &txn->room);
    value = (MDB_val){ txn->room.len, txn->room.data };
    if (txn->undo_version) {
        qf_rc rc = sm_undo_put(txn, (struct qf_str){ (char *)key, at.mv_size },
                               qf_strbuf_view(&txn->room), err);

        if (rc != QF_OK)
            return rc;
    }
    code = mdb_cursor_put(txn->cursor, &at, &value, 0);
    return code ? sm_lmdb_failed(txn->env, code, "cannot write", err) : QF_OK;
}

qf_rc sm_put(struct sm_txn *txn, const struct sm_row *row, struct qf_err *err)
{
    const struct sm_layout *layout = &txn->env->layout;
    struct sm_place place = { 0 };
    struct sm_stored stored;
    bool found;
    qf_rc rc = sm_row_check(layout, row, err);

    if (rc == QF_OK && sm_kind_keyed(layout->kind) && !layout->direct)
        rc = sm_find_place(txn, row->key, &found, &place, &stored, err);
    if (rc != QF_OK)
        return rc;
    if (layout->kind == SM_SESSION && sm_range_width(row->time, row->end) > txn->longest) {
        txn->longest = sm_range_width(row->time, row->end);
        txn->about_changed = true;
    }
    return put_stored(txn, row, place, err);
}

static qf_rc put_all(struct sm_txn *into, struct sm_txn *part, uint64_t position,
                     struct qf_err *err)
{
    struct sm_rows rows = { .txn = part };
    struct sm_row row;
    bool found;

    for (;;) {
        qf_rc rc = sm_rows_next(&rows, &found, &row, err);

        if (rc != QF_OK || !found)
            return rc;
        row.load = position;
        rc = sm_put(into, &row, err);
        if (rc != QF_OK)
            return rc;
    }
}

qf_rc sm_number_first(struct sm_env *env, uint64_t position, struct qf_err *err)
{
    struct sm_txn *txn = NULL;
    qf_rc rc = sm_write_begin(env, &txn, err);

    if (rc == QF_OK)
        rc = sm_undo_first(txn, position, err);
    if (rc == QF_OK) {
        sm_set_version(txn, position);
        rc = sm_commit(QF_TAKE(txn), err);
    }
    (void)sm_end(txn);
    return rc;
}

qf_rc sm_merge(struct sm_env *env, struct sm_env *part, uint64_t position, int64_t now_ms,
               struct qf_err *err)
{
    struct sm_txn *from = NULL, *into = NULL;
    qf_rc rc = sm_write_begin(env, &into, err);

    if (rc == QF_OK && into->version >= position) {
        (void)sm_end(into);
        return QF_OK;
    }
    if (rc == QF_OK)
        rc = sm_read_begin(part, &from, err);
    if (rc == QF_OK)
        rc = sm_undo_begin(into, position, now_ms, err);
    if (rc == QF_OK)
        rc = put_all(into, from, position, err);
    if (rc == QF_OK) {
        sm_set_version(into, position);
        rc = sm_commit(QF_TAKE(into), err);
    }
    (void)sm_end(from);
    (void)sm_end(into);
    return rc;
}
