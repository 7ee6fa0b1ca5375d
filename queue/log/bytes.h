/* bytes.h - fixed-width little-endian integers, and the checksums of this folder's files. */
#ifndef QUEUE_LOG_BYTES_H
#define QUEUE_LOG_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline void ql_put(unsigned char *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(value >> (8 * i));
}

static inline uint64_t ql_get(const unsigned char *in, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)in[i] << (8 * i);
    return value;
}

struct ql_chain {
    uint64_t low, high;
};

/* XXH3, 64 bits, of @len bytes under @salt. */
uint64_t ql_check(const void *data, size_t len, uint64_t salt);

/* The next link of a hash chain: XXH3, 128 bits, of @before and of two runs of bytes. */
struct ql_chain ql_chain_next(struct ql_chain before, const void *a, size_t a_len, const void *b,
                              size_t b_len);

#endif
