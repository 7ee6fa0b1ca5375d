/* memory_int.h - what memory.c and stream.c share. */
#ifndef INGEST_HEAD_MEMORY_INT_H
#define INGEST_HEAD_MEMORY_INT_H

#include "base/pure/arena.h"
#include "base/pure/vec.h"
#include "ingest/head/memory.h"

enum { IN_BLOCK_BYTES = 56, IN_STREAM_MAX = 1 << 30 };

struct in_block {
    struct in_block *next; /* may be followed only as far as series->len reaches */
    unsigned char bytes[IN_BLOCK_BYTES];
};

/* Items that never move, and a table of their pieces that is replaced when it is full; the old one
 * stays for whoever reads it. */
struct in_pieces {
    _Atomic(void **) table;
    size_t capacity; /* of the table */
    uint32_t added;  /* the writer's */
    atomic_uint count;
};

struct in_memory {
    atomic_uint refs;
    struct qf_arena *arena;
    struct in_pieces series, pairs;
    QF_VEC(struct in_memory_series *) numbers; /* NULL: not defined */
    uint32_t *slots;                           /* 1 + number of the pair, by hash; 0: free */
    uint32_t slot_count;
    char *text; /* room for small things, packed */
    size_t text_left;
    struct sg_annex *annex; /* NULL: nobody asked for it */
    atomic_uint_fast64_t bytes, samples;
};

/* Let readers know what it takes by now. */
void in_memory_count(struct in_memory *memory);
/* Append a sample to the stream of @series and let readers see it. */
void in_series_append(struct in_memory *memory, struct in_memory_series *series, uint64_t position,
                      const struct in_sample *sample);

#endif
