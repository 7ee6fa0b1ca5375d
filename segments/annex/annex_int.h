/* annex_int.h - what reading and writing of annexes share. */
#ifndef SEGMENTS_ANNEX_ANNEX_INT_H
#define SEGMENTS_ANNEX_ANNEX_INT_H

#include "segments/annex/annex.h"

#define ANNEX_MAGIC "PFANNEX"
enum {
    ANNEX_VERSION = 1,
    /* Offsets in the header. */
    ANNEX_AT_VERSION = 7,
    ANNEX_AT_KIND = 8,
    ANNEX_AT_COUNT = 12,
    ANNEX_AT_MIN = 16,
    ANNEX_AT_MAX = 24,
    ANNEX_AT_LENGTH = 32,
    ANNEX_HEADER = 40,
    ANNEX_TRAILER = 8,
    /* No entry is shorter: an exemplar is a time, a value and a length; metadata is five numbers and a name. */
    ANNEX_EXEMPLAR_MIN = 10,
    ANNEX_METADATA_MIN = 6,
};

#define ANNEX_DAY_MS INT64_C(86400000)

/* When metadata of a generation was told. */
static inline int64_t annex_told_ms(uint64_t generation)
{
    return (int64_t)(generation / 1000);
}

/* Bytewise by series, then time, labels and the bits of the value. */
int annex_exemplar_cmp(const struct sg_exemplar *a, const struct sg_exemplar *b);

#endif
