/* state_look.c - promfabric state get, rows: what maps say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/duration.h"
#include "base/sys/clock.h"
#include "cli/state.h"
#include "statemap/core/print.h"

/* One key: 0, 1 if the map lacks it, 2 if it cannot be asked for. */
static int get_one(struct sm_txn *txn, const char *map, const char *key, int64_t time,
                   struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf line = QF_STRBUF_INIT;
    enum sm_kind kind = sm_layout_of(txn)->kind;
    struct sm_row row = { 0 };
    bool found = false;
    qf_rc rc = sm_find_text(txn, qf_str_from(key), time, &found, &row, err);

    if (rc != QF_OK)
        return 2;
    if (!found) {
        fprintf(stderr, "map %s says nothing of %s\n", map, key);
        return 1;
    }
    sm_row_print(&line, map, kind, &row);
    printf("%s\n", qf_strbuf_cstr(&line));
    return 0;
}

int state_get(const struct state_cli *cli, struct sm_store *store, char **names, int count)
{
    int64_t time = qf_clock_wall_ms();
    char map[SM_NAME_MAX + 1] = "";
    struct sm_reading reading;
    struct qf_err err = { 0 };
    int code = 0;

    if (cli->time && !qf_time_parse_rfc3339(qf_str_from(cli->time), &time)) {
        fprintf(stderr, "error: --time is a time like 2026-01-31T23:59:58Z\n");
        return 2;
    }
    if (sm_reading_begin(store, qf_str_from(names[0]), &reading, &err) != QF_OK)
        return state_failed(&err);
    (void)sm_name_fold(qf_str_from(names[0]), map);
    for (int i = 1; i < count && code < 2; i++)
        code = QF_MAX(code, get_one(reading.txn, map, names[i], time, &err));
    sm_reading_end(store, &reading);
    return code < 2 ? code : state_failed(&err);
}

int state_rows(const struct state_cli *cli, struct sm_store *store, char **names, int count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf line = QF_STRBUF_INIT;
    struct qf_str prefix = qf_str_from(cli->prefix ? cli->prefix : "");
    char map[SM_NAME_MAX + 1] = "";
    struct sm_rows rows = { 0 };
    struct sm_reading reading;
    struct qf_err err = { 0 };
    uint64_t printed = 0;
    bool found = true;
    qf_rc rc;

    (void)count;
    if (sm_reading_begin(store, qf_str_from(names[0]), &reading, &err) != QF_OK)
        return state_failed(&err);
    (void)sm_name_fold(qf_str_from(names[0]), map);
    rows.txn = reading.txn;
    while (!cli->limit || printed < cli->limit) {
        struct sm_row row;

        rc = sm_rows_next(&rows, &found, &row, &err);
        if (rc != QF_OK || !found)
            break;
        if (prefix.len && !qf_str_starts(row.key, prefix))
            continue;
        qf_strbuf_reset(&line);
        sm_row_print(&line, map, sm_layout_of(reading.txn)->kind, &row);
        printf("%s\n", qf_strbuf_cstr(&line));
        printed++;
    }
    sm_reading_end(store, &reading);
    return err.rc == QF_OK ? 0 : state_failed(&err);
}
