#include "queue/core/message.h"

static const char *check_entries(const struct qc_message *message)
{
    uint64_t term = message->index_term;

    if (message->count > QC_ENTRIES_MAX || (message->count && !message->entries))
        return "wrong number of entries";
    for (uint32_t i = 0; i < message->count; i++) {
        const struct ql_entry *entry = &message->entries[i];
        struct qc_members members;

        if (entry->index != message->index + 1 + i)
            return "entries that do not follow each other";
        if (!entry->term || entry->term < term || entry->term > message->term)
            return "an entry of an impossible term";
        if (entry->type != QL_NOOP && entry->type != QL_CHANGE && entry->type != QL_COMMAND)
            return "an entry of an unknown type";
        if (entry->type == QL_CHANGE && qc_members_decode(entry->data, &members) != QF_OK)
            return "a configuration that cannot be read";
        term = entry->term;
    }
    return NULL;
}

/* index 0 has no term, any other has one that is not newer than the message. */
static bool position_ok(const struct qc_message *message)
{
    return (message->index == 0) == (message->index_term == 0) &&
           message->index_term <= message->term && message->index < UINT64_MAX / 2;
}

const char *qc_message_check(const struct qc_message *message)
{
    if (!message->from || !message->to || message->from == message->to)
        return "wrong sender or receiver";
    if (!message->term || message->term >= UINT64_MAX / 2)
        return "wrong term";
    switch (message->kind) {
    case QC_APPEND:
        return !position_ok(message) ? "wrong position" : check_entries(message);
    case QC_VOTE:
        return position_ok(message) ? NULL : "wrong position";
    case QC_INSTALL:
    case QC_TIMEOUT_NOW:
        return position_ok(message) && message->index ? NULL : "wrong position";
    case QC_APPEND_RESULT:
        return message->index < UINT64_MAX / 2 && message->rejected < UINT64_MAX / 2
                   ? NULL
                   : "wrong position";
    case QC_VOTE_RESULT:
        return NULL;
    case QC_CONFIRM:
    case QC_CONFIRM_RESULT:
        return message->nonce ? NULL : "no nonce";
    case QC_MESSAGE__COUNT:
        break;
    }
    return "unknown kind";
}
