/* page_header.h - the header in front of a Parquet page.
 *
 * Arrow reads headers and pages in one go and hands out values only; whoever wants to decode a part of
 * a page has to know where it lies. */
#ifndef SEGMENTS_PARQUET_PAGE_HEADER_H
#define SEGMENTS_PARQUET_PAGE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parquet's own numbers. */
enum page_type { PAGE_DATA = 0, PAGE_INDEX = 1, PAGE_DICTIONARY = 2, PAGE_DATA_V2 = 3 };
enum page_encoding { PAGE_PLAIN = 0, PAGE_DELTA = 5, PAGE_SPLIT = 9 };

/* As the file says: nothing is checked but that no number is negative. */
struct page_header {
    int32_t type, encoding;
    uint32_t size, uncompressed_size; /* of what follows, levels included */
    uint32_t values;                  /* levels, those of empty rows and absent values included */
    uint32_t nulls;                   /* of them; version 2 only */
    uint32_t level_bytes;             /* in front of the values, never compressed; version 2 only */
    bool compressed;
};

/* Read the header at @bytes. *ret_size: how long it is. False if it is malformed. */
bool page_header_read(const char *bytes, size_t size, struct page_header *ret_header,
                      size_t *ret_size);

#endif
