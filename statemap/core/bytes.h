/* bytes.h - numbers as bytes whose order is that of the numbers: big-endian, the sign flipped. Pure. */
#ifndef STATEMAP_CORE_BYTES_H
#define STATEMAP_CORE_BYTES_H

#include <stdint.h>

/* Unsigned numbers in the order of the signed ones. */
static inline uint64_t sm_ordered(int64_t value)
{
    return (uint64_t)value ^ (UINT64_C(1) << 63);
}

static inline int64_t sm_unordered(uint64_t value)
{
    return (int64_t)(value ^ (UINT64_C(1) << 63));
}

/* @value less @width, as far as there are numbers. */
static inline int64_t sm_minus(int64_t value, uint64_t width)
{
    uint64_t at = sm_ordered(value);

    return sm_unordered(at > width ? at - width : 0);
}

static inline void sm_write_be(unsigned char *out, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--, value >>= 8)
        out[i] = (unsigned char)value;
}

static inline uint64_t sm_read_be(const void *from, int bytes)
{
    const unsigned char *in = from;
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++)
        value = value << 8 | in[i];
    return value;
}

#endif
