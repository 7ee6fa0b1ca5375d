/* stream.c - the samples of a series as bytes: appended by the one, read by the others. */
#include <string.h>

#include "base/pure/varint.h"
#include "ingest/head/memory_int.h"
#include "promql/histogram/codec.h"

/* The first byte of a sample: what follows, and how its value is written. */
enum {
    MOVES = 1,     /* its position is not that of the sample before */
    STEPS = 2,     /* time does not go on as before */
    STARTS = 4,    /* the start timestamp has changed */
    VALUE = 3 << 3 /* one of these: */
};
enum { VALUE_SAME = 0 << 3, VALUE_WHOLE = 1 << 3, VALUE_BYTES = 2 << 3, VALUE_HISTOGRAM = 3 << 3 };

/* Of all but a histogram: flags, four varints or fewer, a value. */
enum { SAMPLE_BYTES_MAX = 1 + 3 * QF_VARINT_MAX + QF_VARINT_MAX };
#define WHOLE_MAX 9007199254740992.0 /* 2^53 */

/* Differences wrap, and unwrap when they are read. */
static int64_t difference(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static double to_double(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}
static uint64_t to_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* A whole number that fits 54 bits; minus zero is none. */
static bool is_whole(uint64_t bits)
{
    double value = to_double(bits);

    return value >= -WHOLE_MAX && value <= WHOLE_MAX && to_bits((double)(int64_t)value) == bits;
}

/* --- writing --- */

static void append(struct in_memory *memory, struct in_memory_series *series, uint32_t *len,
                   const void *data, size_t count)
{
    const unsigned char *from = data;

    while (count) {
        uint32_t at = *len % IN_BLOCK_BYTES;
        size_t part = QF_MIN(count, (size_t)(IN_BLOCK_BYTES - at));

        if (at == 0) {
            struct in_block *block = qf_arena_alloc(memory->arena, sizeof(*block));

            block->next = NULL;
            if (series->last)
                series->last->next = block;
            else
                series->first = block;
            series->last = block;
            in_memory_count(memory);
        }
        memcpy(series->last->bytes + at, from, part);
        from += part;
        count -= part;
        *len += (uint32_t)part;
    }
}

/* Only the bytes between the zeros at both ends of what differs. */
static size_t put_bytes(unsigned char *out, uint64_t differs)
{
    unsigned low = (unsigned)__builtin_ctzll(differs) / 8;
    unsigned count = 8 - (unsigned)__builtin_clzll(differs) / 8 - low;

    out[0] = (unsigned char)(low << 4 | count);
    for (unsigned i = 0; i < count; i++)
        out[1 + i] = (unsigned char)(differs >> (8 * (low + i)));
    return 1 + count;
}

static size_t put_float(struct in_memory_series *series, uint64_t bits, unsigned char *flags,
                        unsigned char *out)
{
    uint64_t before = series->value;
    bool was_whole = series->is_whole;

    series->value = bits;
    if (bits == before)
        return 0; /* VALUE_SAME; it is as whole as it was */
    series->is_whole = is_whole(bits);
    if (!was_whole || !series->is_whole) {
        *flags |= VALUE_BYTES;
        return put_bytes(out, bits ^ before);
    }
    *flags |= VALUE_WHOLE;
    return qf_varint_put(out, qf_zigzag((int64_t)to_double(bits) - (int64_t)to_double(before)));
}

/* All before the value. */
static size_t put_head(struct in_memory_series *series, uint64_t position,
                       const struct in_sample *sample, unsigned char *flags, unsigned char *out)
{
    int64_t step = difference(sample->ts, series->ts);
    size_t len = 0;

    if (position != series->position) {
        *flags |= MOVES;
        len += qf_varint_put(out + len, position - series->position);
    }
    if (step != series->step) {
        *flags |= STEPS;
        len += qf_varint_put(out + len, qf_zigzag(difference(step, series->step)));
    }
    if (sample->start_ts != series->start_ts) {
        *flags |= STARTS;
        len += qf_varint_put(out + len, qf_zigzag(difference(sample->start_ts, series->start_ts)));
    }
    series->position = position;
    series->step = step;
    series->ts = sample->ts;
    series->start_ts = sample->start_ts;
    return len;
}

static void append_histogram(struct in_memory *memory, struct in_memory_series *series,
                             uint32_t *len, const struct pq_histogram *histogram)
{
    struct qf_strbuf bytes = QF_STRBUF_INIT;
    unsigned char count[QF_VARINT_MAX];

    pq_histogram_encode(&bytes, histogram);
    append(memory, series, len, count, qf_varint_put(count, bytes.len));
    append(memory, series, len, bytes.data, bytes.len);
    qf_strbuf_done(&bytes);
}

void in_series_append(struct in_memory *memory, struct in_memory_series *series, uint64_t position,
                      const struct in_sample *sample)
{
    uint32_t len = atomic_load_explicit(&series->len, memory_order_relaxed);
    unsigned char out[SAMPLE_BYTES_MAX], flags = 0, has = 0;
    size_t count;

    if (len == 0)
        series->is_whole = 1; /* every stream begins at zero */
    count = 1 + put_head(series, position, sample, &flags, out + 1);
    if (sample->histogram)
        flags |= VALUE_HISTOGRAM;
    else
        count += put_float(series, to_bits(sample->value), &flags, out + count);
    out[0] = flags;
    has = (unsigned char)((sample->histogram ? IN_HAS_HISTOGRAMS : 0) |
                          (sample->start_ts ? IN_HAS_STARTS : 0));
    if (has & ~atomic_load_explicit(&series->has, memory_order_relaxed))
        atomic_fetch_or_explicit(&series->has, has, memory_order_relaxed);
    append(memory, series, &len, out, count);
    if (sample->histogram)
        append_histogram(memory, series, &len, sample->histogram);
    atomic_store_explicit(&series->len, len, memory_order_release);
    atomic_store_explicit(&memory->samples, in_memory_samples(memory) + 1, memory_order_relaxed);
}

/* --- reading --- */

struct in_stream in_stream_of(const struct in_memory_series *series)
{
    uint32_t left = atomic_load_explicit(&series->len, memory_order_acquire);

    return (struct in_stream){ .block = left ? series->first : NULL, .left = left };
}

static unsigned char next_byte(struct in_stream *stream)
{
    unsigned char byte;

    if (stream->at == IN_BLOCK_BYTES) {
        stream->block = stream->block->next;
        stream->at = 0;
    }
    byte = stream->block->bytes[stream->at++];
    stream->left--;
    return byte;
}

static uint64_t next_varint(struct in_stream *stream)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = next_byte(stream);

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

static void next_bytes(struct in_stream *stream, struct qf_strbuf *out, size_t count)
{
    while (count) {
        size_t part = QF_MIN(count, (size_t)(IN_BLOCK_BYTES - stream->at));

        if (part == 0) {
            stream->block = stream->block->next;
            stream->at = 0;
            continue;
        }
        qf_strbuf_add(out, stream->block->bytes + stream->at, part);
        stream->at += (uint32_t)part;
        stream->left -= (uint32_t)part;
        count -= part;
    }
}

static uint64_t next_differing(struct in_stream *stream)
{
    unsigned char shape = next_byte(stream);
    uint64_t differs = 0;

    for (unsigned i = 0; i < (shape & 15u); i++)
        differs |= (uint64_t)next_byte(stream) << (8 * (i + (shape >> 4)));
    return differs;
}

bool in_stream_next(struct in_stream *stream, struct qf_strbuf *histograms,
                    size_t *ret_histogram_len)
{
    unsigned char flags;

    if (!stream->left)
        return false;
    flags = next_byte(stream);
    if (flags & MOVES)
        stream->position += next_varint(stream);
    if (flags & STEPS)
        stream->step = plus(stream->step, qf_unzigzag(next_varint(stream)));
    if (flags & STARTS)
        stream->start_ts = plus(stream->start_ts, qf_unzigzag(next_varint(stream)));
    stream->ts = plus(stream->ts, stream->step);
    *ret_histogram_len = 0;
    switch (flags & VALUE) {
    case VALUE_WHOLE:
        stream->value =
            to_bits((double)((int64_t)to_double(stream->value) + qf_unzigzag(next_varint(stream))));
        break;
    case VALUE_BYTES:
        stream->value ^= next_differing(stream);
        break;
    case VALUE_HISTOGRAM:
        *ret_histogram_len = next_varint(stream);
        next_bytes(stream, histograms, *ret_histogram_len);
        break;
    default: /* VALUE_SAME */
        break;
    }
    return true;
}
