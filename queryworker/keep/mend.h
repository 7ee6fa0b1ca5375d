/* mend.h - a keeper compares what it holds with what the manifests name: fetches what it lacks, lets go of garbage.
 *
 * One thread. Each pass asks the leaders what changed; blobs of slots that this node owns and does not hold are
 * marked (ring/core/repair.h), and fetched with the next pass if they are missing still: puts under way come by
 * themselves. A mark that cannot be mended backs off. What no manifest names and nobody put for a day goes (ring/core/keep.h),
 * if it was not named a few minutes ago either: queries that were planned before it was merged still read it.
 *
 * So a keeper that was away, lost a blob or found it damaged gets it back by itself, whoever else is up, as long as one
 * other owner has it. Documents are compared with those of the other owners (even.h). */
#ifndef QUERYWORKER_KEEP_MEND_H
#define QUERYWORKER_KEEP_MEND_H

#include "ring/keeper/keeper.h"
#include "queryworker/keep/even.h"
#include "segments/store/ring.h"

struct qw_mend;

struct qw_mend_options {
    struct kp_keeper *keeper; /* borrowed, as are: */
    struct sg_keep_client *client;
    struct sg_store *store; /* the ring */
    const char *name;       /* of this node on it */
    int64_t every_ms;       /* between passes; 0: 10 s */
};

struct qw_mend_figures {
    atomic_uint_fast64_t passes, failures; /* failures: passes that learned nothing */
    atomic_uint_fast64_t marks;            /* blobs, or whole slots, that wait to be fetched, now */
    atomic_uint_fast64_t mended, garbage;
};

/* NULL: no thread could be had. */
struct qw_mend *qw_mend_start(const struct qw_mend_options *options);
/* Accepts NULL, returns NULL. */
struct qw_mend *qw_mend_stop(struct qw_mend *mend);
struct qw_mend_figures *qw_mend_figures(struct qw_mend *mend);
const struct qw_even *qw_mend_even(const struct qw_mend *mend); /* its figures */

#endif
