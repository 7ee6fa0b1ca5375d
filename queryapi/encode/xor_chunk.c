/* xor_chunk.c - bits of times and values. */
#include "queryapi/encode/xor_chunk.h"

#include "base/pure/number.h"
#include "base/pure/varint.h"

struct bits {
    struct qf_strbuf *buf;
    unsigned free; /* bits of the last byte that are not used yet */
};

/* The low @count bits of @value, the highest of them first. */
static void put(struct bits *bits, uint64_t value, unsigned count)
{
    while (count) {
        unsigned take;

        if (!bits->free) {
            qf_strbuf_putc(bits->buf, '\0');
            bits->free = 8;
        }
        take = count < bits->free ? count : bits->free;
        bits->buf->data[bits->buf->len - 1] |=
            (char)(((value >> (count - take)) & ((1u << take) - 1)) << (bits->free - take));
        bits->free -= take;
        count -= take;
    }
}

static void put_varint(struct bits *bits, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(bits, (value & 0x7f) | 0x80, 8);
    put(bits, value, 8);
}

/* Does @value fit @width bits of two's complement, with the lowest one left out? */
static bool fits(int64_t value, unsigned width)
{
    int64_t half = (int64_t)1 << (width - 1);

    return value >= 1 - half && value <= half;
}

/* How much the distance between two times has changed. */
static void put_change(struct bits *bits, int64_t change)
{
    if (change == 0) {
        put(bits, 0, 1);
    } else if (fits(change, 14)) {
        put(bits, 2, 2);
        put(bits, (uint64_t)change, 14);
    } else if (fits(change, 17)) {
        put(bits, 6, 3);
        put(bits, (uint64_t)change, 17);
    } else if (fits(change, 20)) {
        put(bits, 14, 4);
        put(bits, (uint64_t)change, 20);
    } else {
        put(bits, 15, 4);
        put(bits, (uint64_t)change, 64);
    }
}

/* Where the bits that differ were, the last time this was said. */
struct span {
    unsigned leading, trailing;
    bool known;
};

static void put_difference(struct bits *bits, struct span *span, uint64_t differs)
{
    unsigned leading, trailing;

    if (!differs) {
        put(bits, 0, 1);
        return;
    }
    put(bits, 1, 1);
    leading = (unsigned)__builtin_clzll(differs);
    trailing = (unsigned)__builtin_ctzll(differs);
    leading = leading > 31 ? 31 : leading; /* five bits */
    if (span->known && leading >= span->leading && trailing >= span->trailing) {
        put(bits, 0, 1);
    } else {
        *span = (struct span){ leading, trailing, true };
        put(bits, 1, 1);
        put(bits, leading, 5);
        put(bits, (64 - leading - trailing) & 63, 6); /* 64 is written as 0 */
    }
    put(bits, differs >> span->trailing, 64 - span->leading - span->trailing);
}

void qa_xor_chunk(const int64_t *ts, const double *values, size_t count, struct qf_strbuf *buf)
{
    struct bits bits = { .buf = buf };
    struct span span = { 0 };
    uint64_t distance = 0;

    put(&bits, count, 16);
    for (size_t i = 0; i < count; i++) {
        uint64_t step = i ? (uint64_t)ts[i] - (uint64_t)ts[i - 1] : 0;

        if (i == 0)
            put_varint(&bits, qf_zigzag(ts[0]));
        else if (i == 1)
            put_varint(&bits, step);
        else
            put_change(&bits, (int64_t)(step - distance));
        if (i == 0)
            put(&bits, qf_double_bits(values[0]), 64);
        else
            put_difference(&bits, &span, qf_double_bits(values[i]) ^ qf_double_bits(values[i - 1]));
        distance = step;
    }
}
