/* wide.h - vectors of the processor at hand, where loops of plain C do not use them well enough.
 *
 * A function marked WIDE_AVX2 is compiled for AVX2 whatever the rest is compiled for, and may be
 * called where wide_avx2() says so; beside it is always one in plain C that gives the same. Where the
 * compiler or the machine is another, WIDE_AVX2 is not defined. */
#ifndef SEGMENTS_PARQUET_WIDE_H
#define SEGMENTS_PARQUET_WIDE_H

#include <stdbool.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define WIDE_AVX2 __attribute__((target("avx2")))

static inline bool wide_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#endif

#endif
