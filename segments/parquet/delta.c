/* delta.c - read any part of a column in Parquet's DELTA_BINARY_PACKED. */
#include "segments/parquet/delta.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "segments/parquet/wide.h"

#define MINIS 4u

struct in {
    const unsigned char *at, *end;
    bool bad;
};

static uint64_t varint(struct in *in)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        unsigned next = *in->at++;

        value |= (uint64_t)(next & 127) << shift;
        if (next < 128)
            return value;
    }
    in->bad = true;
    return 0;
}

static uint64_t unzigzag(uint64_t value)
{
    return (value >> 1) ^ -(value & 1);
}

/* Step over a block of which @used miniblocks are there. */
static void skip_block(struct in *in, size_t mini, size_t used)
{
    size_t size = 0;

    (void)varint(in);
    if ((size_t)(in->end - in->at) < MINIS) {
        in->bad = true;
        return;
    }
    for (size_t i = 0; i < used; i++) {
        in->bad |= in->at[i] > 64;
        size += (size_t)in->at[i] * (mini / 8);
    }
    in->at += MINIS;
    if (in->bad || (size_t)(in->end - in->at) < size)
        in->bad = true;
    else
        in->at += size;
}

/* The header in front of the blocks. */
static bool read_header(struct delta *d, struct in *in, size_t count_max)
{
    uint64_t block = varint(in);
    bool known =
        (block == 2 * DELTA_MINI_MAX || block == 4 * DELTA_MINI_MAX) && varint(in) == MINIS;

    d->mini = block / MINIS;
    d->count = varint(in);
    d->first = (int64_t)unzigzag(varint(in));
    if (!known || in->bad || d->count == 0 || d->count > count_max)
        return false;
    d->block_count = (d->count - 1 + block - 1) / block;
    /* A block has a least difference and widths: no memory is taken for more than can be there. */
    return d->size <= UINT32_MAX && d->block_count <= d->size / (1 + MINIS);
}

bool delta_open(struct delta *delta, const char *bytes, size_t size, size_t count_max)
{
    const unsigned char *start = (const unsigned char *)bytes;
    struct in in = { start, start + size, false };
    struct delta d = { .bytes = start, .size = size };
    size_t left;

    if (!read_header(&d, &in, count_max))
        return false;
    left = d.count - 1;
    d.blocks = qf_xcalloc(d.block_count + 1, sizeof(*d.blocks));
    for (size_t i = 0; i < d.block_count && !in.bad; i++) {
        size_t here = left < d.mini * MINIS ? left : d.mini * MINIS;

        d.blocks[i] = (uint32_t)(in.at - start);
        skip_block(&in, d.mini, (here + d.mini - 1) / d.mini);
        left -= here;
    }
    if (in.bad || in.at != in.end) {
        free(d.blocks);
        return false;
    }
    *delta = d;
    return true;
}

void delta_close(struct delta *delta)
{
    free(delta->blocks);
    *delta = (struct delta){ 0 };
}

/* -- Unpacking -------------------------------------------------------------------------------- */

struct block {
    uint64_t least;
    const unsigned char *widths;
    const unsigned char *minis[MINIS];
};

static inline struct block block_at(const struct delta *delta, size_t index)
{
    struct in in = { delta->bytes + delta->blocks[index], delta->bytes + delta->size, false };
    struct block block = { .least = unzigzag(varint(&in)), .widths = in.at };
    const unsigned char *at = in.at + MINIS;

    for (size_t i = 0; i < MINIS; i++) {
        block.minis[i] = at;
        at += (size_t)block.widths[i] * (delta->mini / 8);
    }
    return block;
}

static inline uint64_t load64(const unsigned char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word)); /* little endian, as all machines we run on */
    return word;
}

/* The first @count differences of a miniblock, one after another. Reads up to 8 bytes behind it. */
static void unpack_each(const unsigned char *in, unsigned width, uint64_t least, size_t count,
                        uint64_t *out)
{
    uint64_t mask = width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX;

    for (size_t i = 0; i < count; i++) {
        size_t bit = i * width;
        uint64_t low = load64(in + bit / 8) >> (bit % 8);
        /* The ninth byte of a value that has one. */
        uint64_t high = width > 56 ? ((uint64_t)in[bit / 8 + 8] << 8) << (56 - bit % 8) : 0;

        out[i] = least + ((low | high) & mask);
    }
}

#ifdef WIDE_AVX2
/* How values of one width lie. Eight of them take as many bytes as one has bits, so every eight lie
 * alike; two and the bits in front of them are within 16 bytes, from which each lane of 64 bits picks
 * its eight. */
struct plan {
    unsigned width;  /* 0: none yet */
    size_t start[4]; /* of each pair of values */
    __m256i picks[2], shifts[2];
};

WIDE_AVX2 static void plan_make(struct plan *plan, unsigned width)
{
    const __m256i own = _mm256_set_epi8(7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4,
                                        3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m256i lowest = _mm256_set_epi64x(0x0808080808080808, 0, 0x0808080808080808, 0);
    __m256i number = _mm256_set_epi64x(3, 2, 1, 0);

    plan->width = width;
    for (unsigned half = 0; half < 2; half++) {
        __m256i bit = _mm256_mul_epu32(number, _mm256_set1_epi64x((int64_t)width));
        __m256i at = _mm256_srli_epi64(bit, 3);
        __m256i first = _mm256_permute4x64_epi64(at, 0xa0); /* of each pair */
        __m256i behind = _mm256_shuffle_epi8(_mm256_sub_epi64(at, first), lowest);

        plan->picks[half] = _mm256_add_epi8(own, behind);
        plan->shifts[half] = _mm256_and_si256(bit, _mm256_set1_epi64x(7));
        plan->start[half * 2] = (size_t)(half * 4) * width / 8;
        plan->start[half * 2 + 1] = (size_t)(half * 4 + 2) * width / 8;
        number = _mm256_add_epi64(number, _mm256_set1_epi64x(4));
    }
}

WIDE_AVX2 static void unpack_avx2(const struct plan *plan, const unsigned char *in, uint64_t least,
                                  size_t count, uint64_t *out)
{
    const __m256i mask = _mm256_set1_epi64x((int64_t)((UINT64_C(1) << plan->width) - 1));
    const __m256i add = _mm256_set1_epi64x((int64_t)least);

    for (size_t i = 0; i < count; i += 8, in += plan->width)
        for (unsigned half = 0; half < 2; half++) {
            const __m128i *low = (const __m128i *)(const void *)(in + plan->start[half * 2]);
            const __m128i *high = (const __m128i *)(const void *)(in + plan->start[half * 2 + 1]);
            __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                                   _mm_loadu_si128(high), 1);
            __m256i values =
                _mm256_srlv_epi64(_mm256_shuffle_epi8(both, plan->picks[half]), plan->shifts[half]);

            values = _mm256_add_epi64(_mm256_and_si256(values, mask), add);
            _mm256_storeu_si256((__m256i *)(void *)(out + i + half * 4), values);
        }
}
#else
struct plan {
    unsigned width;
};
#endif

/* The first @count differences of a miniblock; room for all of them is written to. @plan is kept from
 * one to the next: most have the same width. */
static inline void unpack(struct plan *plan, const unsigned char *in, unsigned width,
                          uint64_t least, size_t count, uint64_t *out)
{
    if (width == 0) {
        for (size_t i = 0; i < count; i++)
            out[i] = least;
        return;
    }
#ifdef WIDE_AVX2
    if (width <= 56 && wide_avx2()) {
        if (plan->width != width)
            plan_make(plan, width);
        unpack_avx2(plan, in, least, count, out);
        return;
    }
#endif
    (void)plan;
    unpack_each(in, width, least, count, out);
}

void delta_read(const struct delta *delta, int64_t *out)
{
    uint64_t value = (uint64_t)delta->first, diffs[DELTA_MINI_MAX];
    struct plan plan;
    size_t at = 1;

    plan.width = 0;
    out[0] = delta->first;
    for (size_t b = 0; b < delta->block_count; b++) {
        struct block block = block_at(delta, b);

        for (size_t m = 0; m < MINIS && at < delta->count; m++) {
            size_t left = delta->count - at, count = left < delta->mini ? left : delta->mini;

            unpack(&plan, block.minis[m], block.widths[m], block.least, count, diffs);
            for (size_t i = 0; i < count; i++)
                out[at++] = (int64_t)(value += diffs[i]);
        }
    }
}

void delta_read_i32(const struct delta *delta, int32_t *out)
{
    uint64_t diffs[DELTA_MINI_MAX];
    uint32_t value = (uint32_t)(uint64_t)delta->first;
    struct plan plan;
    size_t at = 1;

    plan.width = 0;
    out[0] = (int32_t)value;
    for (size_t b = 0; b < delta->block_count; b++) {
        struct block block = block_at(delta, b);

        for (size_t m = 0; m < MINIS && at < delta->count; m++) {
            size_t left = delta->count - at, count = left < delta->mini ? left : delta->mini;

            unpack(&plan, block.minis[m], block.widths[m], block.least, count, diffs);
            for (size_t i = 0; i < count; i++)
                out[at++] = (int32_t)(value += (uint32_t)diffs[i]);
        }
    }
}

/* Values [from, to) of the column, which lie in one miniblock but for the one before them: each is
 * the one after it less a difference. *value is that at @to and becomes the one at @from. */
static inline void walk_back(const uint64_t *diffs, size_t count, uint64_t *value, int64_t *out)
{
    uint64_t v = *value;

    for (size_t i = count; i > 0; i--) {
        v -= diffs[i - 1];
        out[i - 1] = (int64_t)v;
    }
    *value = v;
}

static inline void walk_back_evenly(uint64_t diff, size_t count, uint64_t *value, int64_t *out)
{
    uint64_t v = *value - diff * count;

    *value = v;
    for (size_t i = 0; i < count; i++)
        out[i] = (int64_t)(v + diff * i);
}

void delta_read_back(const struct delta *delta, size_t start, size_t count, int64_t last,
                     int64_t *out)
{
    uint64_t value = (uint64_t)last, diffs[DELTA_MINI_MAX];
    /* Difference i is between values i and i + 1; those from @start to @end are needed. */
    size_t end = start + count - 1, mini = delta->mini, size = mini * MINIS;
    struct plan plan;

    plan.width = 0;
    out[count - 1] = last;
    for (size_t b = (end + size - 1) / size; end > start; b--) {
        struct block block = block_at(delta, b - 1);

        for (size_t m = (end - 1) % size / mini + 1; m > 0 && end > start; m--) {
            size_t first = (b - 1) * size + (m - 1) * mini;
            size_t from = first > start ? first : start;

            if (block.widths[m - 1] == 0) {
                walk_back_evenly(block.least, end - from, &value, out + (from - start));
            } else {
                unpack(&plan, block.minis[m - 1], block.widths[m - 1], block.least, end - first,
                       diffs);
                walk_back(diffs + (from - first), end - from, &value, out + (from - start));
            }
            end = from;
        }
    }
}
