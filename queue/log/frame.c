#include "queue/log/frame.h"

#define FILE_MAGIC UINT64_C(0x31474f4c51504650) /* "PFPQLOG1" */
enum { FRAME_MAGIC = 0x4d524651, FRAME_CHECK_AT = 32, ENTRY_CHECK_AT = 24, FILE_CHECK_AT = 56 };

static size_t padded(size_t len)
{
    return (len + QL_ALIGN - 1) / QL_ALIGN * QL_ALIGN;
}

size_t ql_entry_bytes(size_t data_len)
{
    return QL_ENTRY_HEADER + padded(data_len);
}

void ql_file_header_put(unsigned char out[QL_FILE_HEADER], const struct ql_file_header *header,
                        uint64_t salt)
{
    const uint64_t words[] = { FILE_MAGIC,        QL_LOG_VERSION,      header->generation,
                               header->number,    header->first_frame, header->chain.low,
                               header->chain.high };

    for (size_t i = 0; i < QF_COUNT_OF(words); i++)
        ql_put(out + 8 * i, words[i], 8);
    ql_put(out + FILE_CHECK_AT, ql_check(out, FILE_CHECK_AT, salt), 8);
}

qf_rc ql_file_header_get(const unsigned char in[QL_FILE_HEADER], uint64_t salt,
                         struct ql_file_header *ret_header)
{
    if (ql_get(in, 8) != FILE_MAGIC ||
        ql_get(in + FILE_CHECK_AT, 8) != ql_check(in, FILE_CHECK_AT, salt))
        return QF_ECORRUPT;
    if (ql_get(in + 8, 8) != QL_LOG_VERSION)
        return QF_EUNSUPPORTED;
    *ret_header = (struct ql_file_header){ .generation = ql_get(in + 16, 8),
                                           .number = ql_get(in + 24, 8),
                                           .first_frame = ql_get(in + 32, 8),
                                           .chain = { ql_get(in + 40, 8), ql_get(in + 48, 8) } };
    return QF_OK;
}

void ql_entry_put(struct qf_strbuf *buf, const struct ql_entry *entry)
{
    static const unsigned char zeros[QL_ALIGN];
    unsigned char header[QL_ENTRY_HEADER];

    ql_put(header, entry->term, 8);
    ql_put(header + 8, entry->index, 8);
    ql_put(header + 16, entry->data.len, 4);
    ql_put(header + 20, entry->type, 4);
    ql_put(header + ENTRY_CHECK_AT,
           ql_check(entry->data.data, entry->data.len, ql_check(header, ENTRY_CHECK_AT, 0)), 8);
    qf_strbuf_add(buf, header, sizeof(header));
    qf_strbuf_str(buf, entry->data);
    qf_strbuf_add(buf, zeros, padded(entry->data.len) - entry->data.len);
}

struct ql_chain ql_frame_put(struct qf_strbuf *buf, uint64_t number, uint64_t synced,
                             const struct ql_entry *entries, size_t count, struct ql_chain before,
                             uint64_t salt)
{
    unsigned char header[QL_FRAME_HEADER] = { 0 };
    size_t start = buf->len, body;
    struct ql_chain chain;

    qf_strbuf_add(buf, header, sizeof(header));
    for (size_t i = 0; i < count; i++)
        ql_entry_put(buf, &entries[i]);
    body = buf->len - start - sizeof(header);
    ql_put(header, FRAME_MAGIC, 4);
    ql_put(header + 4, count, 4);
    ql_put(header + 8, number, 8);
    ql_put(header + 16, synced, 8);
    ql_put(header + 24, body, 8);
    ql_put(header + FRAME_CHECK_AT, ql_check(header, FRAME_CHECK_AT, salt), 8);
    chain =
        ql_chain_next(before, header, FRAME_CHECK_AT + 8, buf->data + start + sizeof(header), body);
    ql_put(header + 40, chain.low, 8);
    ql_put(header + 48, chain.high, 8);
    memcpy(buf->data + start, header, sizeof(header));
    return chain;
}

bool ql_frame_peek(struct qf_str bytes, uint64_t salt, struct ql_frame *ret_frame)
{
    const unsigned char *in = (const unsigned char *)bytes.data;

    if (bytes.len < QL_FRAME_HEADER || ql_get(in, 4) != FRAME_MAGIC ||
        ql_get(in + FRAME_CHECK_AT, 8) != ql_check(in, FRAME_CHECK_AT, salt))
        return false;
    *ret_frame = (struct ql_frame){ .count = (uint32_t)ql_get(in + 4, 4),
                                    .number = ql_get(in + 8, 8),
                                    .synced = ql_get(in + 16, 8),
                                    .body = ql_get(in + 24, 8),
                                    .chain = { ql_get(in + 40, 8), ql_get(in + 48, 8) } };
    return true;
}

bool ql_frame_get(struct qf_str bytes, struct ql_chain before, uint64_t salt,
                  struct ql_frame *ret_frame)
{
    struct ql_frame frame;
    struct ql_chain chain;

    if (!ql_frame_peek(bytes, salt, &frame) || frame.body > bytes.len - QL_FRAME_HEADER)
        return false;
    chain = ql_chain_next(before, bytes.data, FRAME_CHECK_AT + 8, bytes.data + QL_FRAME_HEADER,
                          (size_t)frame.body);
    if (chain.low != frame.chain.low || chain.high != frame.chain.high)
        return false;
    *ret_frame = frame;
    return true;
}

size_t ql_entry_get(struct qf_str body, size_t at, struct ql_entry *ret_entry)
{
    const unsigned char *in = (const unsigned char *)body.data + at;
    uint64_t type;
    size_t len;

    if (at > body.len || body.len - at < QL_ENTRY_HEADER)
        return 0;
    len = (size_t)ql_get(in + 16, 4);
    type = ql_get(in + 20, 4);
    if (padded(len) > body.len - at - QL_ENTRY_HEADER || type < QL_NOOP || type > QL_COMMAND ||
        ql_get(in + ENTRY_CHECK_AT, 8) !=
            ql_check(in + QL_ENTRY_HEADER, len, ql_check(in, ENTRY_CHECK_AT, 0)))
        return 0;
    *ret_entry = (struct ql_entry){ .term = ql_get(in, 8),
                                    .index = ql_get(in + 8, 8),
                                    .type = (enum ql_type)type,
                                    .data = { (const char *)in + QL_ENTRY_HEADER, len } };
    return at + ql_entry_bytes(len);
}
