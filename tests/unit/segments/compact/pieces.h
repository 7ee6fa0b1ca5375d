/* pieces.h - a store with pieces in it, written as an import writes them. */
#ifndef TESTS_UNIT_SEGMENTS_COMPACT_PIECES_H
#define TESTS_UNIT_SEGMENTS_COMPACT_PIECES_H

#include "base/pure/vec.h"
#include "segments/compact/job.h"
#include "tests/lib/segments/place.h"

#define HOUR INT64_C(3600000)

/* A piece of all kinds of samples, floats, histograms, start timestamps, stale markers, by @seed: @count of them from
 * @from_ms on, a minute apart, under @generation. */
void piece_put(const struct place *p, uint64_t seed, uint64_t generation, int64_t from_ms,
               int count);
/* With all options. */
struct piece {
    uint64_t seed, generation;
    int64_t from_ms, window_ms;
    int count, series;
    uint32_t shards;
};
void piece_put_as(const struct place *p, struct piece piece);

struct names {
    QF_VEC(char *) items;
};
struct names names_in(struct sg_store *store); /* of segments, sorted */
void names_done(struct names *names);

/* Flip a byte in the middle. */
void damage(const struct place *p, const char *name);

#endif
