/* delta.h - read any part of a column in Parquet's DELTA_BINARY_PACKED without the parts before.
 *
 * The encoding is a header (block size, miniblocks per block, number of values, first value) and
 * blocks of 128 or 256 differences: the least one, a width for each of four miniblocks, and the
 * differences less the least one, packed. Where a block lies follows from the widths of those before, and what
 * its values are from any one of them: so a reader that knows where each block begins and one value
 * of a row (its last) unpacks that row alone. */
#ifndef SEGMENTS_PARQUET_DELTA_H
#define SEGMENTS_PARQUET_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELTA_MINI_MAX 64u
/* Bytes that must be readable behind the encoded ones; what they hold does not matter. */
#define DELTA_PADDING 24u

struct delta {
    const unsigned char *bytes; /* borrowed */
    size_t size;
    uint32_t *blocks; /* where each begins */
    size_t mini;      /* differences in a miniblock */
    size_t block_count;
    size_t count; /* of values */
    int64_t first;
};

/* Look over @size bytes that hold values and nothing else. False, with nothing taken, if they are
 * malformed, hold no value or more than @count_max, or use blocks of another size. */
bool delta_open(struct delta *delta, const char *bytes, size_t size, size_t count_max);
void delta_close(struct delta *delta);

/* All values, from the first on. */
void delta_read(const struct delta *delta, int64_t *out);
/* The same of a column of 32 bits. */
void delta_read_i32(const struct delta *delta, int32_t *out);
/* Values [@start, @start + @count), of which the last is taken to be @last: only the differences
 * between them are read. @count > 0. */
void delta_read_back(const struct delta *delta, size_t start, size_t count, int64_t last,
                     int64_t *out);

#endif
