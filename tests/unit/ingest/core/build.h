/* build.h - protobuf messages for tests, field by field. */
#ifndef TESTS_UNIT_INGEST_CORE_BUILD_H
#define TESTS_UNIT_INGEST_CORE_BUILD_H

#include <stdint.h>
#include <string.h>

#include "base/pure/strbuf.h"
#include "base/pure/varint.h"

static inline void put_varint(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, bytes, qf_varint_put(bytes, value));
}

static inline void put_fixed64(struct qf_strbuf *buf, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    for (int i = 0; i < 8; i++)
        qf_strbuf_putc(buf, (char)(bits >> (8 * i)));
}

static inline void put_number(struct qf_strbuf *buf, uint32_t field, uint64_t value)
{
    put_varint(buf, field << 3);
    put_varint(buf, value);
}

static inline void put_double(struct qf_strbuf *buf, uint32_t field, double value)
{
    put_varint(buf, field << 3 | 1);
    put_fixed64(buf, value);
}

static inline void put_bytes(struct qf_strbuf *buf, uint32_t field, struct qf_str bytes)
{
    put_varint(buf, field << 3 | 2);
    put_varint(buf, bytes.len);
    qf_strbuf_str(buf, bytes);
}

/* A field with the message in @inner, which is empty after. */
static inline void put_message(struct qf_strbuf *buf, uint32_t field, struct qf_strbuf *inner)
{
    put_bytes(buf, field, qf_strbuf_view(inner));
    qf_strbuf_reset(inner);
}

static inline void put_text(struct qf_strbuf *buf, uint32_t field, const char *text)
{
    put_bytes(buf, field, qf_str_from(text));
}

/* Field 1 of a series of version 1.0. */
static inline void put_label(struct qf_strbuf *series, const char *name, const char *value)
{
    struct qf_strbuf label = QF_STRBUF_INIT;

    put_text(&label, 1, name);
    put_text(&label, 2, value);
    put_message(series, 1, &label);
    qf_strbuf_done(&label);
}

/* Field 2 of a series, of both versions. */
static inline void put_sample(struct qf_strbuf *series, double value, int64_t ts)
{
    struct qf_strbuf sample = QF_STRBUF_INIT;

    put_double(&sample, 1, value);
    put_number(&sample, 2, (uint64_t)ts);
    put_message(series, 2, &sample);
    qf_strbuf_done(&sample);
}

#endif
