/* even.h - a keeper compares its documents with those of the other owners, and takes what it lacks.
 *
 * Part of each pass of mend.h. Digests come first: one of each slot, made again where something changed. Every sixth pass the
 * other owners' are asked for, one request each. Where a slot differed with the comparison before, too (writes under way come by
 * themselves), checksums are compared document by document, and those that differ are fetched and joined (ring/core/sheet.h)
 * under the condition that nobody was quicker. The other owner does the same, and both have the sum. At most QW_EVEN_BYTES are
 * fetched, and as many read for digests, with each pass.
 *
 * So a disk that was wiped gets its documents back without a read, and an owner that was away what nobody could keep for it. */
#ifndef QUERYWORKER_KEEP_EVEN_H
#define QUERYWORKER_KEEP_EVEN_H

#include "ring/core/ring.h"
#include "ring/keeper/keeper.h"

enum {
    QW_EVEN_PASSES = 6, /* of mend.h; with one of them digests are compared */
    QW_EVEN_BYTES = 16 << 20,
};

struct qw_even {
    struct kp_keeper *keeper; /* borrowed, as are: */
    struct sg_keep_client *client;
    const atomic_bool *stop;
    rg_nodes differed[RG_SLOTS]; /* owners with another digest, as of the last comparison */
    uint64_t passes;
    uint64_t left;               /* bytes that this pass may still fetch */
    atomic_uint_fast64_t mended; /* documents */
    atomic_uint_fast64_t
        behind; /* slots that differ from another owner's, as of the last comparison */
    atomic_uint_fast64_t unreadable; /* documents of others that were passed over */
};

/* One pass, as @node of @ring. Blocks. */
void qw_even_pass(struct qw_even *even, const struct rg_ring *ring, uint8_t node);

#endif
