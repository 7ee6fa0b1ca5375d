/* upkeep.c - condensation and retention of one environment: walk and list, then change what was listed. */
#include "statemap/store/upkeep.h"

#include <string.h>

#include "statemap/core/bytes.h"
#include "statemap/core/range.h"
#include "statemap/store/env_int.h"

struct pass {
    struct sm_txn *txn;
    struct sm_txn probe; /* the same transaction, with a cursor of its own */
    struct sm_cutoffs cutoffs;
    struct sm_upkeep result;
    struct qf_strbuf drops; /* stored keys, each with its length (2) in front */
    struct qf_strbuf puts;  /* key and value by turns, each with its length (4) in front */
};

static void list(struct qf_strbuf *items, struct qf_str bytes, int length_bytes)
{
    unsigned char len[4];

    sm_write_be(len, bytes.len, length_bytes);
    qf_strbuf_add(items, len, (size_t)length_bytes);
    qf_strbuf_str(items, bytes);
}

static bool unlist(struct qf_str *items, int length_bytes, MDB_val *ret_item)
{
    size_t len;

    if (items->len == 0)
        return false;
    len = sm_read_be(items->data, length_bytes);
    *ret_item = (MDB_val){ len, (char *)items->data + length_bytes };
    *items = qf_str_sub(*items, (size_t)length_bytes + len, items->len);
    return true;
}

static void drop(struct pass *pass, struct qf_str stored_key)
{
    list(&pass->drops, stored_key, 2);
    pass->result.dropped++;
}

static qf_rc apply(struct pass *pass, struct qf_err *err)
{
    struct qf_str drops = qf_strbuf_view(&pass->drops), puts = qf_strbuf_view(&pass->puts);
    struct sm_env *env = pass->txn->env;
    MDB_val key, value;
    int code = 0;

    while (!code && unlist(&drops, 2, &key))
        code = mdb_del(pass->txn->lmdb, env->rows, &key, NULL);
    while (!code && unlist(&puts, 4, &key) && unlist(&puts, 4, &value))
        code = mdb_put(pass->txn->lmdb, env->rows, &key, &value, 0);
    qf_strbuf_reset(&pass->drops);
    qf_strbuf_reset(&pass->puts);
    return code ? sm_lmdb_failed(env, code, "cannot let go of rows", err) : QF_OK;
}

/* Whether another range decides with the effective times of @row's. */
static qf_rc contested(struct pass *pass, const struct sm_row *row, bool *ret_contested,
                       struct qf_err *err)
{
    uint64_t width = sm_range_width(row->from, row->to);
    struct sm_stored stored;
    struct sm_place place;
    struct sm_row other;
    unsigned char key[1 + 8];
    qf_rc rc;

    *ret_contested = false;
    if (!sm_kind_ranged(pass->txn->env->layout.kind))
        return QF_OK;
    key[0] = (unsigned char)sm_range_level(row->from, row->to);
    sm_write_be(key + 1, sm_ordered(sm_minus(row->from, width)), 8);
    rc = sm_seek(&pass->probe, (struct qf_str){ (char *)key, sizeof(key) }, &stored, err);
    while (rc == QF_OK && stored.found && !*ret_contested) {
        if ((unsigned char)stored.key.data[0] != key[0])
            break;
        rc = sm_stored_decode(&pass->probe, &stored, &other, &place, err);
        if (rc != QF_OK || other.from > row->to)
            break;
        *ret_contested = sm_range_contends(row, &other);
        rc = sm_step(&pass->probe, MDB_NEXT, &stored, err);
    }
    return rc;
}

/* Rows with effective times: each with the one before it that stays. */
static qf_rc walk_times(struct pass *pass, struct qf_err *err)
{
    const struct sm_layout *layout = &pass->txn->env->layout;
    struct sm_stored former = { 0 }, latter;
    struct sm_row former_row, row;
    struct sm_place place;
    qf_rc rc = sm_step(pass->txn, MDB_FIRST, &latter, err);

    for (; rc == QF_OK && latter.found; rc = sm_step(pass->txn, MDB_NEXT, &latter, err)) {
        size_t subject = sm_subject_len(layout, latter.key);
        enum sm_fate fate = SM_KEEP_BOTH;
        bool in_use = false;

        pass->result.examined++;
        rc = sm_stored_decode(pass->txn, &latter, &row, &place, err);
        if (rc == QF_OK && former.found && former.key.len == latter.key.len &&
            memcmp(former.key.data, latter.key.data, subject) == 0)
            fate = sm_rows_fate(&former_row, &row, false, pass->cutoffs);
        if (rc == QF_OK && fate == SM_DROP_LATTER)
            rc = contested(pass, &row, &in_use, err);
        if (rc != QF_OK)
            return rc;
        if (fate == SM_DROP_LATTER && !in_use) {
            drop(pass, latter.key);
        } else {
            if (fate == SM_DROP_FORMER)
                drop(pass, former.key);
            former = latter;
            former_row = row;
        }
        pass->result.more = pass->result.dropped >= SM_DROPS_MAX;
        if (pass->result.more)
            break;
    }
    return rc;
}

/* All sessions of spans that ended before the retention. */
static qf_rc walk_retention(struct pass *pass, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf key = QF_STRBUF_INIT;
    uint64_t dropped = pass->result.dropped; /* before this span */
    size_t listed = 0;
    struct sm_span span = { 0 };
    struct sm_stored stored;
    struct sm_place place;
    struct sm_row row;
    qf_rc rc = sm_step(pass->txn, MDB_FIRST, &stored, err);

    for (;; rc = sm_step(pass->txn, MDB_NEXT, &stored, err)) {
        if (rc == QF_OK && stored.found)
            rc = sm_stored_decode(pass->txn, &stored, &row, &place, err);
        if (rc != QF_OK)
            return rc;
        if (!stored.found || !qf_str_eq(qf_strbuf_view(&key), row.key) ||
            !sm_span_join(&span, &row)) {
            if (!sm_span_retired(&span, pass->cutoffs)) {
                pass->drops.len = listed; /* they stay */
                pass->result.dropped = dropped;
            }
            dropped = pass->result.dropped;
            listed = pass->drops.len;
            pass->result.more = dropped >= SM_DROPS_MAX;
            if (!stored.found || pass->result.more)
                return QF_OK;
            span = (struct sm_span){ row.time, row.end };
            qf_strbuf_reset(&key);
            qf_strbuf_str(&key, row.key);
        }
        pass->result.examined++;
        drop(pass, stored.key);
    }
}

/* Several sessions that become one: the first of them, and what they are together. */
struct candidate {
    struct sm_stored first; /* none: not found */
    struct qf_str key;
    struct sm_span span;
    bool several;
};

static void flush(struct pass *pass, struct candidate *c)
{
    unsigned char stored_key[SM_STORED_KEY_MAX];
    size_t subject;

    if (c->first.found && c->several) {
        subject = sm_subject_len(&pass->txn->env->layout, c->first.key);
        memcpy(stored_key, c->first.key.data, subject);
        sm_write_be(stored_key + subject, sm_ordered(c->span.start), 8);
        sm_write_be(stored_key + subject + 8, sm_ordered(c->span.end), 8);
        drop(pass, c->first.key);
        pass->result.dropped--; /* one stays */
        list(&pass->puts, (struct qf_str){ (char *)stored_key, subject + 16 }, 4);
        list(&pass->puts, c->first.value, 4);
        if (sm_range_width(c->span.start, c->span.end) > pass->txn->longest) {
            pass->txn->longest = sm_range_width(c->span.start, c->span.end);
            pass->txn->about_changed = true;
        }
    }
    *c = (struct candidate){ 0 };
}

static qf_rc walk_condensation(struct pass *pass, struct qf_err *err)
{
    struct candidate c = { 0 };
    struct sm_stored stored;
    struct sm_place place;
    struct sm_row row;
    qf_rc rc = sm_step(pass->txn, MDB_FIRST, &stored, err);

    for (; rc == QF_OK && stored.found; rc = sm_step(pass->txn, MDB_NEXT, &stored, err)) {
        pass->result.examined++;
        rc = sm_stored_decode(pass->txn, &stored, &row, &place, err);
        if (rc != QF_OK)
            return rc;
        if (c.first.found && !qf_str_eq(c.key, row.key))
            flush(pass, &c);
        if (!sm_session_condensable(&row, pass->cutoffs))
            continue;
        if (c.first.found && sm_span_join(&c.span, &row)) {
            drop(pass, stored.key);
            c.several = true;
            continue;
        }
        flush(pass, &c);
        pass->result.more = pass->result.dropped >= SM_DROPS_MAX;
        if (pass->result.more)
            return QF_OK;
        c = (struct candidate){ stored, row.key, { row.time, row.end }, false };
    }
    flush(pass, &c);
    return rc;
}

static qf_rc walk_sessions(struct pass *pass, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    if (pass->cutoffs.retain != INT64_MIN)
        rc = walk_retention(pass, err);
    if (rc == QF_OK)
        rc = apply(pass, err);
    if (rc == QF_OK && !pass->result.more && pass->cutoffs.condense != INT64_MIN)
        rc = walk_condensation(pass, err);
    return rc;
}

static qf_rc run(struct pass *pass, struct qf_err *err)
{
    enum sm_kind kind = pass->txn->env->layout.kind;
    qf_rc rc = kind == SM_SESSION    ? walk_sessions(pass, err)
               : sm_kind_timed(kind) ? walk_times(pass, err)
                                     : QF_OK;

    return rc == QF_OK ? apply(pass, err) : rc;
}

qf_rc sm_upkeep(struct sm_env *env, struct sm_cutoffs cutoffs, struct sm_upkeep *ret_upkeep,
                struct qf_err *err)
{
    struct pass pass = { .cutoffs = cutoffs };
    qf_rc rc = sm_write_begin(env, &pass.txn, err);
    int code;

    if (rc != QF_OK)
        return rc;
    pass.probe = *pass.txn;
    code = mdb_cursor_open(pass.txn->lmdb, env->rows, &pass.probe.cursor);
    rc = code ? sm_lmdb_failed(env, code, "cannot begin", err) : run(&pass, err);
    if (!code)
        mdb_cursor_close(pass.probe.cursor);
    if (rc == QF_OK && (pass.result.dropped || pass.txn->about_changed))
        rc = sm_commit(QF_TAKE(pass.txn), err);
    (void)sm_end(pass.txn);
    qf_strbuf_done(&pass.drops);
    qf_strbuf_done(&pass.puts);
    if (rc == QF_OK)
        *ret_upkeep = pass.result;
    return rc;
}
