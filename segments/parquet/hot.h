/* hot.h - what scans read of segments, kept in memory for the scans that come after.
 *
 * A part is the series table of a row group, or one of its columns of numbers: read, verified and
 * decompressed, but not decoded further than random access needs (column_file.h), so that a sample
 * takes about a byte. Parts never change; several works on several threads share them. A part is
 * kept when it is read for the first time. Parts that were asked for again are kept apart, in up to
 * four fifths of the memory, and one long scan over everything does not push them out: it takes the
 * place of what was read once.
 *
 * What a scan is using stays alive while it does, kept or not, and counts as the scan's memory too. */
#ifndef SEGMENTS_PARQUET_HOT_H
#define SEGMENTS_PARQUET_HOT_H

#include <stdint.h>

struct sg_hot;
struct sg_reader;

/* Keep up to @bytes_max bytes. */
struct sg_hot *sg_hot_new(uint64_t bytes_max);
/* No reader may be left that keeps its parts there. Accepts NULL, returns NULL. */
struct sg_hot *sg_hot_free(struct sg_hot *hot);

/* Let scans of @reader keep their parts in @hot, which must outlive it. To be said before any other
 * thread sees the reader; once. Freeing the reader lets go of its parts. */
void sg_hot_join(struct sg_hot *hot, struct sg_reader *reader);

struct sg_hot_stats {
    uint64_t bytes, parts;          /* now */
    uint64_t hits, misses, evicted; /* of parts, so far */
};
struct sg_hot_stats sg_hot_stats(struct sg_hot *hot);

#endif
