/* needs.h - which segments of a batch need the optional columns. */
#ifndef SEGMENTS_WRITE_NEEDS_H
#define SEGMENTS_WRITE_NEEDS_H

#include "base/pure/arena.h"
#include "base/pure/map.h"

/* The columns of a segment are fixed when its first series is written. So sorting notes, by window
 * and shard, which segments will need the optional ones. */
struct needs {
    struct qf_map segments;
    struct qf_arena *arena;
};
void needs_init(struct needs *needs);
void needs_done(struct needs *needs);

enum { NEEDS_START_TS = 1, NEEDS_HISTOGRAMS = 2 };

/* Add @what (a set of the above) to what the segment needs. */
void needs_add(struct needs *needs, int64_t window, uint32_t shard, unsigned what);
unsigned needs_get(const struct needs *needs, int64_t window, uint32_t shard);

#endif
