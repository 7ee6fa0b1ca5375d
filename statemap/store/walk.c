/* walk.c - from row to row, and which rows are asked for. */
#include <string.h>

#include "base/pure/number.h"
#include "statemap/core/bytes.h"
#include "statemap/core/keep.h"
#include "statemap/core/range.h"
#include "statemap/store/env_int.h"

static qf_rc at(struct sm_txn *txn, int code, const MDB_val *key, const MDB_val *value,
                struct sm_stored *ret_row, struct qf_err *err)
{
    *ret_row = (struct sm_stored){ 0 };
    if (code == MDB_NOTFOUND)
        return QF_OK;
    if (code)
        return sm_lmdb_failed(txn->env, code, "cannot read", err);
    *ret_row = (struct sm_stored){
        .found = true,
        .key = { key->mv_data, key->mv_size },
        .value = { value->mv_data, value->mv_size },
    };
    return QF_OK;
}

qf_rc sm_step(struct sm_txn *txn, MDB_cursor_op op, struct sm_stored *ret_row, struct qf_err *err)
{
    MDB_val key, value;
    int code = mdb_cursor_get(txn->cursor, &key, &value, op);

    return at(txn, code, &key, &value, ret_row, err);
}

qf_rc sm_seek(struct sm_txn *txn, struct qf_str key, struct sm_stored *ret_row, struct qf_err *err)
{
    MDB_val where = { key.len, (void *)key.data }, value;
    int code = mdb_cursor_get(txn->cursor, &where, &value, MDB_SET_RANGE);

    return at(txn, code, &where, &value, ret_row, err);
}

qf_rc sm_stored_decode(const struct sm_txn *txn, const struct sm_stored *stored,
                       struct sm_row *ret_row, struct sm_place *ret_place, struct qf_err *err)
{
    qf_rc rc =
        sm_row_decode(&txn->env->layout, stored->key, stored->value, ret_row, ret_place, err);

    return rc == QF_OK ? rc : qf_err_prefix(err, rc, "map %s", txn->env->name);
}

qf_rc sm_find_place(struct sm_txn *txn, struct qf_str key, bool *ret_found,
                    struct sm_place *ret_place, struct sm_stored *ret_stored, struct qf_err *err)
{
    struct sm_place place = { txn->env->hash(key), 0 }, other;
    uint32_t unused = UINT32_MAX;
    struct sm_row row;
    qf_rc rc;

    *ret_found = false;
    for (; place.clash < SM_CLASHES_MAX; place.clash = other.clash + 1) {
        unsigned char at_key[12];

        sm_write_be(at_key, place.hash, 8);
        sm_write_be(at_key + 8, place.clash, 4);
        rc = sm_seek(txn, (struct qf_str){ (char *)at_key, sizeof(at_key) }, ret_stored, err);
        if (rc == QF_OK && ret_stored->found)
            rc = sm_stored_decode(txn, ret_stored, &row, &other, err);
        if (rc != QF_OK)
            return rc;
        if (!ret_stored->found || other.hash != place.hash)
            break;
        if (other.clash != place.clash && unused == UINT32_MAX)
            unused = place.clash; /* its keys went */
        if (qf_str_eq(row.key, key)) {
            *ret_found = true;
            *ret_place = other;
            return QF_OK;
        }
    }
    if (unused != UINT32_MAX)
        place.clash = unused;
    if (place.clash >= SM_CLASHES_MAX)
        return qf_err_set(err, QF_ELIMIT, "map %s: more than %d keys have the same hash",
                          txn->env->name, SM_CLASHES_MAX);
    *ret_place = place;
    return QF_OK;
}

/* Whether it is about the same as @like, a stored key of which the first @subject bytes say that. */
static bool is_about(const struct sm_stored *stored, struct qf_str like, size_t subject)
{
    return stored->found && stored->key.len == like.len &&
           memcmp(stored->key.data, like.data, subject) == 0;
}

/* The last row of what @like is about, at its time or before: *ret_found. *ret_more, which may be NULL: later ones lie behind. */
static qf_rc last_until(struct sm_txn *txn, const struct sm_row *like, struct sm_place place,
                        bool *ret_found, struct sm_row *ret_row, bool *ret_more, struct qf_err *err)
{
    unsigned char key[SM_STORED_KEY_MAX];
    struct qf_str wanted = { (char *)key, sm_row_key(&txn->env->layout, like, place, key) };
    size_t subject = sm_subject_len(&txn->env->layout, wanted);
    struct sm_stored stored;
    qf_rc rc = sm_seek(txn, wanted, &stored, err);

    *ret_found = false;
    if (ret_more)
        *ret_more = rc == QF_OK && is_about(&stored, wanted, subject);
    if (rc == QF_OK && (!stored.found || !qf_str_eq(stored.key, wanted)))
        rc = sm_step(txn, stored.found ? MDB_PREV : MDB_LAST, &stored, err);
    while (rc == QF_OK && is_about(&stored, wanted, subject)) {
        rc = sm_as_it_was(txn, &stored, err);
        if (rc == QF_OK && stored.found) {
            rc = sm_stored_decode(txn, &stored, ret_row, &place, err);
            *ret_found = rc == QF_OK;
            return rc;
        }
        if (rc == QF_OK)
            rc = sm_step(txn, MDB_PREV, &stored, err);
    }
    return rc;
}

/* The next row in the direction of @op that was there as of what is read, from @stored on. */
static qf_rc pass_later(struct sm_txn *txn, MDB_cursor_op op, struct sm_stored *stored,
                        struct qf_err *err)
{
    qf_rc rc = QF_OK;

    while (rc == QF_OK && stored->found) {
        rc = sm_as_it_was(txn, stored, err);
        if (rc != QF_OK || stored->found)
            return rc;
        rc = sm_step(txn, op, stored, err);
    }
    return rc;
}

/* Backwards from @row, the last session that starts at @time or before; see keep.h for what a span is. */
static qf_rc span_before(struct sm_txn *txn, struct sm_row row, int64_t time, bool *ret_found,
                         struct sm_span *span, struct qf_err *err)
{
    struct qf_str key = row.key;
    uint64_t longest = txn->longest;
    struct sm_stored stored;
    struct sm_place place;
    qf_rc rc;

    *ret_found = false;
    for (;;) {
        if (row.end > time || (*ret_found && row.end >= span->start)) {
            span->end = *ret_found && span->end > row.end ? span->end : row.end;
            span->start = row.time;
            *ret_found = true;
        }
        rc = sm_step(txn, MDB_PREV, &stored, err);
        if (rc == QF_OK)
            rc = pass_later(txn, MDB_PREV, &stored, err);
        if (rc != QF_OK || !stored.found)
            return rc;
        rc = sm_stored_decode(txn, &stored, &row, &place, err);
        if (rc != QF_OK || !qf_str_eq(row.key, key) ||
            row.time < sm_minus(*ret_found ? span->start : time, longest))
            return rc;
    }
}

/* Forwards from the first session of @key behind @time. */
static qf_rc span_behind(struct sm_txn *txn, struct sm_row like, struct sm_place place,
                         struct sm_span *span, struct qf_err *err)
{
    unsigned char key[SM_STORED_KEY_MAX];
    struct qf_str from = { (char *)key, sm_row_key(&txn->env->layout, &like, place, key) };
    struct sm_stored stored;
    struct sm_row row;
    qf_rc rc = sm_seek(txn, from, &stored, err);

    if (rc == QF_OK)
        rc = pass_later(txn, MDB_NEXT, &stored, err);
    while (rc == QF_OK && stored.found) {
        rc = sm_stored_decode(txn, &stored, &row, &place, err);
        if (rc != QF_OK || !qf_str_eq(row.key, like.key) || !sm_span_join(span, &row))
            break;
        rc = sm_step(txn, MDB_NEXT, &stored, err);
        if (rc == QF_OK)
            rc = pass_later(txn, MDB_NEXT, &stored, err);
    }
    return rc;
}

/* Where the key of @like lies, and its last row at its time or before. A key is nearly always the only one of its hash, and so in
 * the first place: its rows are looked for there before anybody looks whose place it is. */
static qf_rc last_of_key(struct sm_txn *txn, const struct sm_row *like, struct sm_place *place,
                         bool *ret_found, struct sm_row *ret_row, bool *ret_more,
                         struct qf_err *err)
{
    struct sm_stored stored;
    qf_rc rc;

    *place = (struct sm_place){ 0 };
    if (!txn->env->layout.direct) {
        place->hash = txn->env->hash(like->key);
        /* Not in a map that is read as it was: another key may have been there. */
        if (!txn->undone) {
            rc = last_until(txn, like, *place, ret_found, ret_row, ret_more, err);
            if (rc != QF_OK || (*ret_found && qf_str_eq(ret_row->key, like->key)))
                return rc;
        }
        rc = sm_find_place(txn, like->key, ret_found, place, &stored, err);
        if (rc != QF_OK || !*ret_found)
            return rc;
    }
    return last_until(txn, like, *place, ret_found, ret_row, ret_more, err);
}

static qf_rc find_session(struct sm_txn *txn, struct sm_row like, bool *ret_found,
                          struct sm_row *ret_row, struct qf_err *err)
{
    struct sm_span span = { 0 };
    struct sm_place place;
    struct sm_row last;
    bool more;
    qf_rc rc;

    like.end = INT64_MAX;
    rc = last_of_key(txn, &like, &place, ret_found, &last, &more, err);
    if (rc == QF_OK && *ret_found)
        rc = span_before(txn, last, like.time, ret_found, &span, err);
    if (rc == QF_OK && *ret_found && more)
        rc = span_behind(txn, like, place, &span, err);
    if (rc != QF_OK || !*ret_found)
        return rc;
    *ret_row = (struct sm_row){ .key = last.key, .time = span.start, .end = span.end };
    return QF_OK;
}

/* The row of @key that was found at @stored. Another key may have been there, in a map that is read as it was. */
static qf_rc state_row(struct sm_txn *txn, struct qf_str key, struct sm_stored *stored,
                       bool *ret_found, struct sm_row *ret_row, struct qf_err *err)
{
    struct sm_place place;
    qf_rc rc = sm_as_it_was(txn, stored, err);

    *ret_found = rc == QF_OK && stored->found;
    if (!*ret_found)
        return rc;
    rc = sm_stored_decode(txn, stored, ret_row, &place, err);
    *ret_found = rc == QF_OK && qf_str_eq(ret_row->key, key);
    return rc;
}

/* A look-up is seldom near the one before: from where that one ended LMDB would look at both ends of its page first, which no
 * cache holds in a large map. */
static void leave_place(struct sm_txn *txn)
{
    if (!txn->writing)
        (void)mdb_cursor_renew(txn->lmdb, txn->cursor);
}

static qf_rc find_state(struct sm_txn *txn, struct qf_str key, bool *ret_found,
                        struct sm_row *ret_row, struct qf_err *err)
{
    struct sm_stored stored;
    struct sm_place place;
    qf_rc rc = sm_find_place(txn, key, ret_found, &place, &stored, err);

    if (rc != QF_OK || !*ret_found)
        return rc;
    return state_row(txn, key, &stored, ret_found, ret_row, err);
}

qf_rc sm_find(struct sm_txn *txn, struct qf_str key, int64_t time, bool *ret_found,
              struct sm_row *ret_row, struct qf_err *err)
{
    struct sm_row like = { .key = key, .time = time };
    const struct sm_layout *layout = &txn->env->layout;
    struct sm_place place;
    qf_rc rc;

    *ret_found = false;
    if (!sm_kind_keyed(layout->kind))
        return qf_err_set(err, QF_EINVAL, "map %s is asked for numbers", txn->env->name);
    if (key.len == 0 || key.len > sm_key_max(layout))
        return QF_OK; /* no row has it */
    leave_place(txn);
    if (layout->kind == SM_SESSION)
        rc = find_session(txn, like, ret_found, ret_row, err);
    else if (layout->kind == SM_STATE && !layout->direct)
        rc = find_state(txn, key, ret_found, ret_row, err);
    else
        rc = last_of_key(txn, &like, &place, ret_found, ret_row, NULL, err);
    if (rc != QF_ELIMIT)
        return rc;
    *ret_found = false; /* as many as there may be, and it is not among them */
    return QF_OK;
}

/* The best of the rows of @range, which lies at @stored, that are effective at @time becomes *best. */
static qf_rc try_range(struct sm_txn *txn, struct sm_stored stored, const struct sm_row *range,
                       int64_t time, bool *found, struct sm_row *best, struct qf_err *err)
{
    struct sm_row like = { .from = range->from, .to = range->to, .time = time }, row = *range;
    struct sm_place place = { 0 };
    bool effective = true;
    qf_rc rc = QF_OK;

    if (sm_kind_timed(txn->env->layout.kind)) {
        rc = last_until(txn, &like, place, &effective, &row, NULL, err);
    } else if (txn->undone) {
        rc = sm_as_it_was(txn, &stored, err);
        effective = stored.found;
        if (rc == QF_OK && effective)
            rc = sm_stored_decode(txn, &stored, &row, &place, err);
    }
    if (rc == QF_OK && effective && (!*found || sm_range_better(&row, best))) {
        *best = row;
        *found = true;
    }
    return rc;
}

/* The first range of @level behind @from to @to, or one of a wider level. */
static qf_rc next_range(struct sm_txn *txn, unsigned level, int64_t from, int64_t to,
                        struct sm_stored *ret_stored, struct qf_err *err)
{
    unsigned char key[1 + 8 + 8 + 8];

    key[0] = (unsigned char)level;
    sm_write_be(key + 1, sm_ordered(from), 8);
    sm_write_be(key + 9, sm_ordered(to), 8);
    /* Behind all times of that range, if there are times: none is so late. */
    sm_write_be(key + 17, UINT64_MAX, 8);
    return sm_seek(txn, (struct qf_str){ (char *)key, sizeof(key) }, ret_stored, err);
}

/* Ranges of one level that hold @number, from *stored on, which is behind them then. */
static qf_rc try_level(struct sm_txn *txn, unsigned level, int64_t number, int64_t time,
                       struct sm_stored *stored, bool *found, struct sm_row *best,
                       struct qf_err *err)
{
    qf_rc rc = QF_OK;

    while (rc == QF_OK && stored->found && (unsigned char)stored->key.data[0] == level) {
        struct sm_place place;
        struct sm_row range;

        rc = sm_stored_decode(txn, stored, &range, &place, err);
        if (rc != QF_OK || range.from > number)
            return rc;
        if (range.to >= number)
            rc = try_range(txn, *stored, &range, time, found, best, err);
        if (rc == QF_OK)
            rc = next_range(txn, level, range.from, range.to, stored, err);
    }
    return rc;
}

/* The first range of @level that may hold @number, or one of a wider level. */
static qf_rc enter_level(struct sm_txn *txn, unsigned level, int64_t number,
                         struct sm_stored *ret_stored, struct qf_err *err)
{
    unsigned char key[1 + 8];

    key[0] = (unsigned char)level;
    sm_write_be(key + 1, sm_ordered(sm_level_begin(level, number)), 8);
    return sm_seek(txn, (struct qf_str){ (char *)key, sizeof(key) }, ret_stored, err);
}

qf_rc sm_find_number(struct sm_txn *txn, int64_t number, int64_t time, bool *ret_found,
                     struct sm_row *ret_row, struct qf_err *err)
{
    struct sm_stored stored;
    unsigned level = 0;

    *ret_found = false;
    if (!sm_kind_ranged(txn->env->layout.kind))
        return qf_err_set(err, QF_EINVAL, "map %s is asked for keys, not for numbers",
                          txn->env->name);
    leave_place(txn);
    while (level < SM_LEVELS && !*ret_found) {
        qf_rc rc = enter_level(txn, level, number, &stored, err);

        if (rc == QF_OK)
            rc = try_level(txn, level, number, time, &stored, ret_found, ret_row, err);
        if (rc != QF_OK)
            return rc;
        /* Levels without ranges cost nothing. */
        if (stored.found && (unsigned char)stored.key.data[0] > level)
            level = (unsigned char)stored.key.data[0];
        else
            level++;
        if (!stored.found)
            break;
    }
    return QF_OK;
}

qf_rc sm_find_text(struct sm_txn *txn, struct qf_str key, int64_t time, bool *ret_found,
                   struct sm_row *ret_row, struct qf_err *err)
{
    int64_t number;

    *ret_found = false;
    if (!sm_kind_ranged(txn->env->layout.kind))
        return sm_find(txn, key, time, ret_found, ret_row, err);
    if (!qf_parse_i64(key, &number))
        return qf_err_set(err, QF_EINVAL, "%.*s is no integer: map %s is asked for numbers",
                          (int)QF_MIN(key.len, (size_t)40), key.len ? key.data : "",
                          txn->env->name);
    return sm_find_number(txn, number, time, ret_found, ret_row, err);
}

/* A walk has come to @stored. */
static void take_row(struct sm_rows *rows, const struct sm_stored *stored)
{
    rows->begun = true;
    memcpy(rows->after, stored->key.data, stored->key.len);
    rows->after_len = stored->key.len;
}

qf_rc sm_rows_next(struct sm_rows *rows, bool *ret_found, struct sm_row *ret_row,
                   struct qf_err *err)
{
    struct qf_str after = { (char *)rows->after, rows->after_len };
    struct sm_stored stored;
    struct sm_place place;
    qf_rc rc;

    *ret_found = false;
    if (rows->begun) {
        rc = sm_step(rows->txn, MDB_NEXT, &stored, err);
    } else if (after.len) {
        rc = sm_seek(rows->txn, after, &stored, err);
        if (rc == QF_OK && stored.found && qf_str_eq(stored.key, after))
            rc = sm_step(rows->txn, MDB_NEXT, &stored, err);
    } else {
        rc = sm_step(rows->txn, MDB_FIRST, &stored, err);
    }
    rows->begun = true;
    if (rc != QF_OK || !stored.found)
        return rc;
    rc = sm_stored_decode(rows->txn, &stored, ret_row, &place, err);
    if (rc != QF_OK)
        return rc;
    take_row(rows, &stored);
    *ret_found = true;
    return QF_OK;
}

qf_rc sm_rows_of(struct sm_rows *rows, struct qf_str key, bool *ret_found, struct sm_row *ret_row,
                 struct qf_err *err)
{
    const struct sm_layout *layout = &rows->txn->env->layout;
    struct sm_row first = { .key = key, .time = INT64_MIN, .end = INT64_MIN };
    unsigned char at_key[SM_STORED_KEY_MAX];
    struct sm_place place = { 0 };
    struct sm_stored stored = { 0 };
    qf_rc rc = QF_OK;

    *ret_found = false;
    if (key.len == 0 || key.len > sm_key_max(layout))
        return QF_OK; /* no row has it */
    if (layout->direct) {
        struct qf_str from = { (char *)at_key, sm_row_key(layout, &first, place, at_key) };

        rc = sm_seek(rows->txn, from, &stored, err);
        *ret_found = rc == QF_OK && stored.found;
    } else {
        rc = sm_find_place(rows->txn, key, ret_found, &place, &stored, err);
    }
    if (rc == QF_ELIMIT) { /* as many as there may be, and it is not among them */
        *ret_found = false;
        if (err)
            *err = (struct qf_err){ 0 };
        return QF_OK;
    }
    if (rc == QF_OK && *ret_found)
        rc = sm_stored_decode(rows->txn, &stored, ret_row, &place, err);
    *ret_found = rc == QF_OK && *ret_found && qf_str_eq(ret_row->key, key);
    if (*ret_found)
        take_row(rows, &stored);
    return rc;
}
