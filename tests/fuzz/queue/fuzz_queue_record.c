/* fuzz_queue_record.c - any bytes as what entries of queues say: commands, members, records of `meta`.
 *
 * The first byte chooses the decoder. Commands and members are taken only if they are what encoding them
 * would write; a table is the same after it was written as one record and read again. */
#include <stdint.h>
#include <stdlib.h>

#include "queue/core/command.h"
#include "queue/core/members.h"
#include "queue/node/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(struct qf_strbuf *again, struct qf_str bytes)
{
    if (!qf_str_eq(qf_strbuf_view(again), bytes))
        abort();
}

static void read_command(struct qf_str bytes)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf again = QF_STRBUF_INIT;
    struct qc_command command;

    if (qc_command_decode(bytes, &command) != QF_OK)
        return;
    qc_command_encode(&again, &command);
    same(&again, bytes);
}

static void read_members(struct qf_str bytes)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf again = QF_STRBUF_INIT;
    struct qc_members members;

    if (qc_members_decode(bytes, &members) != QF_OK)
        return;
    if (members.count > QC_MEMBERS_MAX)
        abort();
    qc_members_encode(&again, &members);
    same(&again, bytes);
}

/* Each line is a record. */
static void read_table(struct qf_str bytes)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf once = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf twice = QF_STRBUF_INIT;
    struct qn_table table = { 0 }, again = { 0 };
    uint64_t index = 1;

    for (size_t at = 0, end; at < bytes.len; at = end + 1) {
        for (end = at; end < bytes.len && bytes.data[end] != '\n'; end++)
            ;
        (void)qn_table_apply(&table, index++, qf_str_sub(bytes, at, end));
    }
    if (table.rows.count > QN_QUEUES_MAX)
        abort();
    for (size_t i = 0; i < table.rows.count; i++)
        if (!qn_name_valid(qf_str_from(table.rows.items[i].name)))
            abort();
    qn_record_table(&once, &table);
    (void)qn_table_apply(&again, index, qf_strbuf_view(&once));
    qn_record_table(&twice, &again);
    same(&twice, qf_strbuf_view(&once));
    qn_table_clear(&table);
    qn_table_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const read[])(struct qf_str) = { read_command, read_members, read_table };
    struct qf_str bytes = { (const char *)data + 1, size - 1 };

    if (size > 0)
        read[data[0] % QF_COUNT_OF(read)](bytes);
    return 0;
}
