#include "queue/core/command.h"
#include "queue/log/bytes.h"

static void put_number(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[8];

    ql_put(bytes, value, 8);
    qf_strbuf_add(buf, bytes, sizeof(bytes));
}

void qc_command_encode(struct qf_strbuf *buf, const struct qc_command *command)
{
    qf_strbuf_putc(buf, (char)command->kind);
    switch (command->kind) {
    case QC_OFFER:
        qf_strbuf_str(buf, command->data);
        break;
    case QC_OFFSET:
        put_number(buf, command->offset);
        qf_strbuf_str(buf, command->data);
        break;
    case QC_CONSUME:
        put_number(buf, command->from);
        put_number(buf, command->to);
        break;
    case QC_TRIM:
        put_number(buf, command->offset);
        break;
    }
}

static uint64_t number_at(struct qf_str bytes, size_t at)
{
    return ql_get((const unsigned char *)bytes.data + at, 8);
}

qf_rc qc_command_decode(struct qf_str bytes, struct qc_command *ret_command)
{
    struct qc_command command = { 0 };

    if (!bytes.len)
        return QF_ECORRUPT;
    if (bytes.data[0] == QC_OFFER) {
        command.kind = QC_OFFER;
        command.data = qf_str_sub(bytes, 1, bytes.len);
    } else if (bytes.data[0] == QC_OFFSET && bytes.len > 9 && bytes.len < 9 + QC_CONSUMER_SIZE &&
               !memchr(bytes.data + 9, 0, bytes.len - 9)) {
        command.kind = QC_OFFSET;
        command.offset = number_at(bytes, 1);
        command.data = qf_str_sub(bytes, 9, bytes.len);
    } else if (bytes.data[0] == QC_CONSUME && bytes.len == 17 &&
               number_at(bytes, 1) <= number_at(bytes, 9)) {
        command.kind = QC_CONSUME;
        command.from = number_at(bytes, 1);
        command.to = number_at(bytes, 9);
    } else if (bytes.data[0] == QC_TRIM && bytes.len == 9) {
        command.kind = QC_TRIM;
        command.offset = number_at(bytes, 1);
    } else {
        return QF_ECORRUPT;
    }
    *ret_command = command;
    return QF_OK;
}

bool qc_command_urgent(struct qf_str bytes)
{
    return bytes.len && bytes.data[0] != QC_OFFER;
}
