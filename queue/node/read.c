/* read.c - records out of the log. */
#include "queue/log/bytes.h"
#include "queue/node/node_int.h"

/* Entries that are no records are passed over; of so many at most for one answer. */
#define SCAN_MAX 100000

bool qn_entry_record(const struct ql_entry *entry, struct qn_record *ret_record)
{
    struct qc_command command;

    if (entry->type != QL_COMMAND || qc_command_decode(entry->data, &command) != QF_OK ||
        command.kind != QC_OFFER || command.data.len < QN_ENVELOPE)
        return false;
    *ret_record =
        (struct qn_record){ .offset = entry->index,
                            .time_ms = (int64_t)ql_get((const unsigned char *)command.data.data,
                                                       QN_ENVELOPE),
                            .data = qf_str_sub(command.data, QN_ENVELOPE, command.data.len) };
    return true;
}

bool qn_record_at(struct qn_queue *queue, uint64_t index, uint64_t end, struct qf_strbuf *buf,
                  struct qn_record *ret_record)
{
    for (uint64_t i = index; i < end && i - index < SCAN_MAX; i++) {
        struct ql_entry entry;

        qf_strbuf_reset(buf);
        if (ql_log_read(queue->store.log, i, buf, &entry, NULL) == QF_OK &&
            qn_entry_record(&entry, ret_record))
            return true;
    }
    return false;
}

static void add_record(struct qn_answer *answer, const struct qn_record *record)
{
    struct qn_record copy = *record;

    copy.data.data = (const char *)answer->bytes.len; /* the buffer moves while it grows */
    qf_strbuf_str(&answer->bytes, record->data);
    QF_VEC_PUSH(&answer->records, copy);
}

static bool is_enough(const struct qn_ask *ask)
{
    return ask->answer.records.count >= ask->max || ask->answer.bytes.len >= QN_POLL_BYTES_MAX;
}

qf_rc qn_read(struct qn_queue *queue, struct qn_ask *ask, uint64_t from, uint64_t end)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qn_answer *answer = &ask->answer;
    uint64_t at = from;

    while (at < end && at - from < SCAN_MAX && !is_enough(ask)) {
        struct qf_err err = { 0 };
        struct qn_record record;
        struct ql_entry entry;
        qf_rc rc;

        qf_strbuf_reset(&buf);
        rc = ql_log_read(queue->store.log, at, &buf, &entry, &err);
        if (rc == QF_ECORRUPT)
            qn_fatal(queue->node, &err);
        if (rc != QF_OK)
            return rc;
        if (qn_entry_record(&entry, &record))
            add_record(answer, &record);
        at++;
    }
    answer->next = at;
    for (size_t i = 0; i < answer->records.count; i++)
        answer->records.items[i].data.data =
            answer->bytes.data + (size_t)answer->records.items[i].data.data;
    return QF_OK;
}
