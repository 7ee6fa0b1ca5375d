/* decimals.c - doubles that are decimals as integers with one scale. */
#include "segments/parquet/decimals.h"

#include <math.h>

#include "base/pure/number.h"
#include "segments/parquet/wide.h"

static const double powers[DECIMALS_SCALE_MAX + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* Packed differences wider than this gain nothing over doubles, which compress then. */
#define BITS_MAX 44

/* The integer of @value at @scale; false if it is not exact. */
static inline bool encode_one(double value, int scale, int64_t *out)
{
    double scaled = value * powers[scale];
    int64_t number;

    if (!(fabs(scaled) <= (double)DECIMALS_MAX)) /* NaN too */
        return false;
    if (fabs(scaled) < (double)(DECIMALS_MAX / 2)) /* beyond it there are only whole numbers */
        scaled += scaled < 0 ? -0.5 : 0.5;
    number = (int64_t)scaled;
    *out = number;
    return qf_double_bits((double)number / powers[scale]) == qf_double_bits(value);
}

/* What the differences take when they are packed, in bits: those of 32 as wide as the widest. */
static uint64_t packed_bits(const int64_t *numbers, size_t count)
{
    uint64_t bits = 0;

    for (size_t i = 1; i < count; i += 32) {
        size_t end = i + 32 < count ? i + 32 : count;
        int64_t least = INT64_MAX, most = INT64_MIN;

        for (size_t k = i; k < end; k++) {
            int64_t diff = numbers[k] - numbers[k - 1]; /* both within 2^53 */

            least = diff < least ? diff : least;
            most = diff > most ? diff : most;
        }
        if (most > least)
            bits += (end - i) * (64 - (unsigned)__builtin_clzll((uint64_t)(most - least)));
    }
    return bits;
}

/* From the highest to the lowest bit in which the doubles differ: what compression leaves of each at
 * most. Whole pages of memory are such that differ in few. */
static unsigned span_bits(const double *values, size_t count)
{
    uint64_t differ = 0;

    for (size_t i = 1; i < count; i++)
        differ |= qf_double_bits(values[i]) ^ qf_double_bits(values[0]);
    return differ ? 64 - (unsigned)__builtin_clzll(differ) - (unsigned)__builtin_ctzll(differ) : 0;
}

static bool packs_well(const double *values, const int64_t *numbers, size_t count)
{
    uint64_t bits = packed_bits(numbers, count);

    return bits <= (uint64_t)count * BITS_MAX && bits <= (uint64_t)count * span_bits(values, count);
}

bool decimals_encode(const double *values, size_t count, int64_t *out, int *ret_scale)
{
    int scale = 0;

    for (size_t i = 0; i < count; i++)
        while (!encode_one(values[i], scale, &out[i]))
            if (isnan(values[i]) || ++scale > DECIMALS_SCALE_MAX)
                return false;
    /* Those before the scale was known once more: a decimal of few digits is one of many too, as long
     * as it does not become too large. */
    for (size_t i = 0; i < count && scale > 0; i++)
        if (!encode_one(values[i], scale, &out[i]))
            return false;
    *ret_scale = scale;
    return packs_well(values, out, count);
}

/* Adding this to an integer of less than 51 bits and taking the sum for a double's bits gives that
 * double plus 1.5 * 2^52: a conversion for which every processor has vectors. */
#define MAGIC_BITS INT64_C(0x4338000000000000)
#define MAGIC 6755399441055744.0

static void decode_each(const int64_t *in, size_t count, double power, double *out)
{
    for (size_t i = 0; i < count; i++) {
        int64_t number = in[i];

        out[i] = (double)number / power;
    }
}

#ifdef WIDE_AVX2
/* Four at a time, as long as all of them are small; how many were done. */
WIDE_AVX2 static size_t decode_avx2(const int64_t *in, size_t count, double power, double *out)
{
    const __m256i middle = _mm256_set1_epi64x(INT64_C(1) << 50);
    const __m256i magic_bits = _mm256_set1_epi64x(MAGIC_BITS);
    const __m256d magic = _mm256_set1_pd(MAGIC), divisor = _mm256_set1_pd(power);
    bool whole = power == 1;
    size_t i;

    for (i = 0; i + 4 <= count; i += 4) {
        __m256i numbers = _mm256_loadu_si256((const __m256i *)(const void *)(in + i));
        __m256i wide = _mm256_srli_epi64(_mm256_add_epi64(numbers, middle), 51);
        __m256d values = _mm256_castsi256_pd(_mm256_add_epi64(numbers, magic_bits));

        if (!_mm256_testz_si256(wide, wide))
            return i;
        values = _mm256_sub_pd(values, magic);
        _mm256_storeu_pd(out + i, whole ? values : _mm256_div_pd(values, divisor));
    }
    return i;
}
#endif

void decimals_decode(const int64_t *in, size_t count, int scale, double *out)
{
    size_t done = 0;

#ifdef WIDE_AVX2
    if (wide_avx2())
        done = decode_avx2(in, count, powers[scale], out);
#endif
    decode_each(in + done, count - done, powers[scale], out + done);
}
