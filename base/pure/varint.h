/* varint.h - unsigned LEB128 and zigzag, the integers of our compact encodings. */
#ifndef BASE_PURE_VARINT_H
#define BASE_PURE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/slice.h"

#define QF_VARINT_MAX 10

static inline size_t qf_varint_put(unsigned char *out, uint64_t value)
{
    size_t len = 0;

    while (value >= 0x80) {
        out[len++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    out[len++] = (unsigned char)value;
    return len;
}

/* Returns the bytes used, 0 if @bytes is cut short or the number needs more than 64 bits. */
static inline size_t qf_varint_get(struct qf_str bytes, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (bytes.len && (unsigned char)bytes.data[0] < 0x80) { /* most are short */
        *ret_value = (unsigned char)bytes.data[0];
        return 1;
    }
    for (size_t i = 0; i < bytes.len && i < QF_VARINT_MAX; i++) {
        uint64_t c = (unsigned char)bytes.data[i];

        if (i == QF_VARINT_MAX - 1 && c > 1)
            return 0;
        value |= (c & 0x7f) << (7 * i);
        if (c < 0x80) {
            *ret_value = value;
            return i + 1;
        }
    }
    return 0;
}

/* Take a number off the beginning of @rest. False: there is none, and @rest is what it was. */
static inline bool qf_varint_take(struct qf_str *rest, uint64_t *ret_value)
{
    size_t used = qf_varint_get(*rest, ret_value);

    *rest = qf_str_sub(*rest, used, rest->len);
    return used > 0;
}

static inline uint64_t qf_zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t qf_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

#endif
