/* wire.c - messages of consensus as bytes. */
#include "queue/peer/wire.h"

#include "base/pure/vec.h"

enum {
    WORDS = 11,
    HEADER = 8 + 8 * WORDS,
    ENTRY_HEADER = 16,
    FLAG_PRE_VOTE = 1,
    FLAG_DISRUPT = 2,
    FLAG_GRANTED = 4,
    FLAGS = 7
};

size_t qp_message_bytes(const struct qc_message *message)
{
    size_t bytes = HEADER;

    for (uint32_t i = 0; i < message->count; i++)
        bytes += ENTRY_HEADER + message->entries[i].data.len;
    return bytes;
}

void qp_message_entry(struct qf_strbuf *buf, const struct ql_entry *entry)
{
    unsigned char header[ENTRY_HEADER];

    ql_put(header, entry->term, 8);
    ql_put(header + 8, entry->data.len, 4);
    ql_put(header + 12, entry->type, 4);
    qf_strbuf_add(buf, header, sizeof(header));
    qf_strbuf_str(buf, entry->data);
}

static void put_header(unsigned char header[HEADER], const struct qc_message *message)
{
    const uint64_t words[WORDS] = { message->cluster,      message->from,   message->to,
                                    message->term,         message->space,  message->index,
                                    message->index_term,   message->commit, message->rejected,
                                    message->change_index, message->nonce };

    memset(header, 0, HEADER);
    header[0] = (unsigned char)message->kind;
    header[1] = (unsigned char)((message->pre_vote ? FLAG_PRE_VOTE : 0) |
                                (message->disrupt ? FLAG_DISRUPT : 0) |
                                (message->granted ? FLAG_GRANTED : 0));
    ql_put(header + 4, message->count, 4);
    for (size_t i = 0; i < WORDS; i++)
        ql_put(header + 8 + 8 * i, words[i], 8);
}

void qp_message_begin(struct qf_strbuf *buf)
{
    static const unsigned char header[HEADER];

    qf_strbuf_reset(buf);
    qf_strbuf_add(buf, header, sizeof(header));
}

void qp_message_end(struct qf_strbuf *buf, const struct qc_message *message)
{
    put_header((unsigned char *)buf->data, message);
}

void qp_message_encode(struct qf_strbuf *buf, const struct qc_message *message)
{
    unsigned char header[HEADER];

    put_header(header, message);
    qf_strbuf_add(buf, header, sizeof(header));
    for (uint32_t i = 0; i < message->count; i++)
        qp_message_entry(buf, &message->entries[i]);
}

static void get_header(const unsigned char *in, struct qc_message *message)
{
    uint64_t *const words[WORDS] = { &message->cluster,      &message->from,   &message->to,
                                     &message->term,         &message->space,  &message->index,
                                     &message->index_term,   &message->commit, &message->rejected,
                                     &message->change_index, &message->nonce };

    *message = (struct qc_message){ .kind = (enum qc_message_kind)in[0],
                                    .pre_vote = in[1] & FLAG_PRE_VOTE,
                                    .disrupt = in[1] & FLAG_DISRUPT,
                                    .granted = in[1] & FLAG_GRANTED,
                                    .count = (uint32_t)ql_get(in + 4, 4) };
    for (size_t i = 0; i < WORDS; i++)
        *words[i] = ql_get(in + 8 + 8 * i, 8);
}

/* False unless the entries fill @bytes exactly. */
static bool get_entries(struct qf_str bytes, const struct qc_message *message,
                        struct qp_entries *scratch)
{
    const unsigned char *in = (const unsigned char *)bytes.data;
    size_t at = 0;

    scratch->count = 0;
    for (uint32_t i = 0; i < message->count; i++) {
        struct ql_entry entry = { .index = message->index + 1 + i };
        size_t len;

        if (bytes.len - at < ENTRY_HEADER)
            return false;
        len = (size_t)ql_get(in + at + 8, 4);
        entry.term = ql_get(in + at, 8);
        entry.type = (enum ql_type)ql_get(in + at + 12, 4);
        at += ENTRY_HEADER;
        if (len > bytes.len - at)
            return false;
        entry.data = (struct qf_str){ bytes.data + at, len };
        at += len;
        QF_VEC_PUSH(scratch, entry);
    }
    return at == bytes.len;
}

qf_rc qp_message_decode(struct qf_str bytes, struct qp_entries *scratch,
                        struct qc_message *ret_message, struct qf_err *err)
{
    const unsigned char *in = (const unsigned char *)bytes.data;
    struct qc_message message;
    const char *why;

    if (bytes.len < HEADER)
        return qf_err_set(err, QF_EPROTO, "a message of %zu bytes", bytes.len);
    get_header(in, &message);
    if ((in[1] & ~FLAGS) || in[2] || in[3])
        return qf_err_set(err, QF_EPROTO, "unknown flags");
    if (message.count > QC_ENTRIES_MAX || (message.count && message.kind != QC_APPEND))
        return qf_err_set(err, QF_EPROTO, "wrong number of entries");
    if (!get_entries((struct qf_str){ bytes.data + HEADER, bytes.len - HEADER }, &message, scratch))
        return qf_err_set(err, QF_EPROTO, "entries that do not fill the message");
    message.entries = message.count ? scratch->items : NULL;
    why = qc_message_check(&message);
    if (why)
        return qf_err_set(err, QF_EPROTO, "%s", why);
    *ret_message = message;
    return QF_OK;
}

void qp_entries_done(struct qp_entries *scratch)
{
    QF_VEC_DONE(scratch);
}
