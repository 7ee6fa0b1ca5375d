/* place.h - a store in a temporary folder for a test, and what is in it as text. */
#ifndef TESTS_LIB_SEGMENTS_PLACE_H
#define TESTS_LIB_SEGMENTS_PLACE_H

#include "base/pure/vec.h"
#include "segments/parquet/segment_reader.h"
#include "segments/store/store.h"

struct place {
    char root[64], store_path[80];
    char temp[80];  /* for temporary files; exists */
    char input[80]; /* a file the test may write */
    struct sg_store *store;
};

/* Checks fail if it cannot be made. */
struct place place_make(void);
void place_done(struct place *place); /* Removes everything. */

/* A folder without entries but hidden ones. */
bool place_is_empty(const char *dir);

/* Readers of all segments in the store, each verified. */
struct place_readers {
    QF_VEC(struct sg_reader *) items;
};
struct place_readers place_readers(const struct place *place);
void place_readers_done(struct place_readers *readers);

/* Compare with everything in the store, as lines "series ts=value ts=value", shards merged.
 * Histograms are written as sg_histogram_text_print() does, start timestamps as "~5". */
void place_check(const struct place *place, size_t segments, const char *want);
/* The same text, the caller's to free(). */
char *place_dump(const struct place *place, size_t *ret_segments);

#endif
