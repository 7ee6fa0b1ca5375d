/* decimals.h - doubles that are decimals as integers with one scale, exact to the last bit.
 *
 * Counters are whole, most gauges were printed with a few digits: as integers, value * 10^scale, they
 * differ by little from sample to sample where their doubles differ in most bits. Value = integer /
 * 10^scale is one division of two exact doubles, so it is the double nearest to the decimal, which is
 * what the text it came from was read as; whoever encodes checks every one of them. */
#ifndef SEGMENTS_PARQUET_DECIMALS_H
#define SEGMENTS_PARQUET_DECIMALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 10^22 is the largest power of ten that is a double. */
#define DECIMALS_SCALE_MAX 22
/* Integers up to here are doubles. */
#define DECIMALS_MAX (INT64_C(1) << 53)

/* Turn @count doubles into integers with the least scale they all have. False if there is none, or if
 * the integers would take about as much room as the doubles: *ret_scale and @out are not to be used
 * then. NaN, infinities, and -0 are no decimals. */
bool decimals_encode(const double *values, size_t count, int64_t *out, int *ret_scale);

/* The doubles of @count integers; @out may be the same memory. Integers beyond DECIMALS_MAX, which
 * nobody writes, come out as some double. 0 <= @scale <= DECIMALS_SCALE_MAX. */
void decimals_decode(const int64_t *in, size_t count, int scale, double *out);

#endif
