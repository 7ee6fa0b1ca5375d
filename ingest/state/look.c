/* look.c - what maps say: of keys, and row by row. */
#include <inttypes.h>

#include "base/pure/hex.h"
#include "ingest/state/state_int.h"
#include "statemap/core/print.h"

/* Rows that one request looks at: a filter that finds nothing ends there, and says where to go on. */
enum { ROWS_LOOKED_AT = 200000 };

/* A map that has no rows yet is none to be read: @ret_reading->txn is NULL. */
static qf_rc begin(struct in_state *state, struct qf_str tenant, struct qf_str map,
                   struct sm_store **ret_store, struct sm_definition *ret_definition,
                   struct sm_reading *ret_reading, struct qf_err *err)
{
    qf_rc rc = in_state_store(state, tenant, ret_store, err);

    *ret_reading = (struct sm_reading){ 0 };
    if (rc == QF_OK)
        rc = sm_store_definition(*ret_store, map, ret_definition, err);
    if (rc != QF_OK)
        return rc;
    rc = sm_reading_begin(*ret_store, map, ret_reading, err);
    if (rc == QF_ENOTFOUND) {
        *err = (struct qf_err){ 0 };
        rc = QF_OK;
    }
    return rc;
}

static void add_row(struct qf_strbuf *json, const struct sm_definition *definition,
                    const struct sm_row *row)
{
    if (row)
        sm_row_print(json, definition->name, definition->layout.kind, row);
    else
        qf_strbuf_puts(json, "null");
}

static qf_rc too_long(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "the answer would have more than %d MiB: ask for fewer keys",
                      (int)(IN_STATE_ANSWER_MAX >> 20));
}

/* --- keys --- */

static qf_rc add_keys(const struct in_state_keys *keys, const struct sm_definition *definition,
                      struct sm_txn *txn, struct in_state_found *found, struct qf_strbuf *json,
                      struct qf_err *err)
{
    for (size_t i = 0; i < keys->count; i++) {
        struct sm_row row;
        bool any = false;
        qf_rc rc = txn ? sm_find_text(txn, keys->keys[i], keys->time, &any, &row, err) : QF_OK;

        if (rc != QF_OK)
            return rc;
        if (i)
            qf_strbuf_putc(json, ',');
        add_row(json, definition, any ? &row : NULL);
        found->found += any;
        if (json->len > IN_STATE_ANSWER_MAX)
            return too_long(err);
    }
    return QF_OK;
}

qf_rc in_state_look_up(struct in_state *state, const struct in_state_keys *keys,
                       struct in_state_found *ret_found, struct qf_strbuf *json, struct qf_err *err)
{
    struct sm_definition definition;
    struct sm_reading reading;
    struct sm_store *store;
    qf_rc rc = begin(state, keys->tenant, keys->map, &store, &definition, &reading, err);

    *ret_found = (struct in_state_found){ 0 };
    if (rc != QF_OK)
        return rc;
    ret_found->version = reading.txn ? sm_about(reading.txn).version : 0;
    rc = add_keys(keys, &definition, reading.txn, ret_found, json, err);
    sm_reading_end(store, &reading);
    atomic_fetch_add(&state->look_ups, rc == QF_OK ? keys->count : 0);
    return rc;
}

/* --- rows --- */

static void add_cursor(struct qf_strbuf *json, const struct sm_rows *rows)
{
    qf_strbuf_puts(json, ",\"next\":\"");
    qf_strbuf_hex(json, rows->after, rows->after_len);
    qf_strbuf_putc(json, '"');
}

static bool read_cursor(struct qf_str text, struct sm_rows *rows)
{
    if (text.len / 2 > sizeof(rows->after) || !qf_hex_decode(text, rows->after))
        return false;
    rows->after_len = text.len / 2;
    return true;
}

/* A page of one key begins with its first row. */
static qf_rc next_row(const struct in_state_page *page, struct sm_rows *rows, bool *ret_found,
                      struct sm_row *ret_row, struct qf_err *err)
{
    if (page->filter.key.len && !rows->begun && !rows->after_len)
        return sm_rows_of(rows, page->filter.key, ret_found, ret_row, err);
    return sm_rows_next(rows, ret_found, ret_row, err);
}

/* *ret_more: there may be rows behind those that were told. */
static qf_rc add_rows(const struct in_state_page *page, const struct sm_definition *definition,
                      struct sm_rows *rows, bool *ret_more, struct qf_strbuf *json,
                      struct qf_err *err)
{
    enum sm_kind kind = definition->layout.kind;
    uint64_t told = 0;

    *ret_more = true;
    for (uint64_t i = 0; i < ROWS_LOOKED_AT && told < page->limit; i++) {
        struct sm_row row;
        qf_rc rc = next_row(page, rows, ret_more, &row, err);

        if (rc != QF_OK)
            return rc;
        /* Rows of a key follow each other. */
        *ret_more &= !page->filter.key.len || qf_str_eq(row.key, page->filter.key);
        if (!*ret_more)
            return QF_OK;
        if (!sm_filter_passes(&page->filter, kind, &row))
            continue;
        if (told++)
            qf_strbuf_putc(json, ',');
        add_row(json, definition, &row);
        if (json->len > IN_STATE_ANSWER_MAX) /* one row more than there is room for does no harm */
            return QF_OK;
    }
    return QF_OK;
}

static qf_rc add_page(const struct in_state_page *page, const struct sm_definition *definition,
                      struct sm_txn *txn, struct qf_strbuf *json, struct qf_err *err)
{
    struct sm_rows rows = { .txn = txn };
    bool more = txn != NULL;
    qf_rc rc = QF_OK;

    if (!read_cursor(page->after, &rows))
        return qf_err_set(err, QF_EINVAL, "\"after\" is not what \"next\" of a page said");
    qf_strbuf_printf(json, "{\"version\":%" PRIu64 ",\"rows\":[", txn ? sm_about(txn).version : 0);
    if (more)
        rc = add_rows(page, definition, &rows, &more, json, err);
    qf_strbuf_putc(json, ']');
    if (more)
        add_cursor(json, &rows);
    qf_strbuf_putc(json, '}');
    return rc;
}

qf_rc in_state_rows(struct in_state *state, const struct in_state_page *page,
                    struct qf_strbuf *json, struct qf_err *err)
{
    struct sm_definition definition;
    struct sm_reading reading;
    struct sm_store *store;
    qf_rc rc = begin(state, page->tenant, page->map, &store, &definition, &reading, err);

    if (rc != QF_OK)
        return rc;
    rc = sm_filter_check(&page->filter, definition.layout.kind, err);
    if (rc == QF_OK)
        rc = add_page(page, &definition, reading.txn, json, err);
    sm_reading_end(store, &reading);
    return rc;
}
