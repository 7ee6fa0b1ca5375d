/* fields.c - tags, varints, doubles and bytes. */
#include "queryapi/encode/fields.h"

#include "base/pure/number.h"
#include "base/pure/varint.h"

void qa_put_number(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, (const char *)bytes, qf_varint_put(bytes, value));
}

void qa_put_bits(struct qf_strbuf *buf, uint64_t value)
{
    char bytes[8];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(value >> 8 * i);
    qf_strbuf_add(buf, bytes, sizeof(bytes));
}

void qa_put_tag(struct qf_strbuf *buf, unsigned field, enum qa_wire_type type)
{
    qa_put_number(buf, field << 3 | (unsigned)type);
}

void qa_put_varint(struct qf_strbuf *buf, unsigned field, uint64_t value)
{
    qa_put_tag(buf, field, QA_WIRE_VARINT);
    qa_put_number(buf, value);
}

void qa_put_fixed(struct qf_strbuf *buf, unsigned field, double value)
{
    qa_put_tag(buf, field, QA_WIRE_FIXED64);
    qa_put_bits(buf, qf_double_bits(value));
}

void qa_put_bytes(struct qf_strbuf *buf, unsigned field, struct qf_str bytes)
{
    qa_put_tag(buf, field, QA_WIRE_BYTES);
    qa_put_number(buf, bytes.len);
    qf_strbuf_str(buf, bytes);
}

void qa_put_inner(struct qf_strbuf *buf, unsigned field, struct qf_strbuf *inner)
{
    qa_put_bytes(buf, field, qf_strbuf_view(inner));
    qf_strbuf_reset(inner);
}

void qa_put_uint(struct qf_strbuf *buf, unsigned field, uint64_t value)
{
    if (value)
        qa_put_varint(buf, field, value);
}

void qa_put_double(struct qf_strbuf *buf, unsigned field, double value)
{
    if (qf_double_bits(value))
        qa_put_fixed(buf, field, value);
}
