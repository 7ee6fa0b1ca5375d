/* publish.h - sorted records to segments in a store, all or nothing. */
#ifndef SEGMENTS_WRITE_PUBLISH_H
#define SEGMENTS_WRITE_PUBLISH_H

#include "segments/write/batch.h"
#include "segments/write/needs.h"
#include "segments/write/run.h"

struct publish_result {
    uint64_t segments, segments_present; /* put; found in the store with the same content */
    uint64_t bytes, series, samples;
};

struct publish;

/* All pointers are borrowed. */
struct publish_options {
    const struct sg_batch_options *batch;
    const struct needs *needs;
    const char *dir; /* for the segment being written */
    void (*on_segment)(void *ctx, const struct publish_result *result); /* after each segment */
    void *ctx;
};
struct publish *publish_new(const struct publish_options *options);
struct publish *publish_free(struct publish *publish); /* Accepts NULL, returns NULL. */

/* Take the next record; a new window or shard puts the segment before it. */
QF_MUST_CHECK qf_rc publish_record(struct publish *publish, const struct run_record *record,
                                   struct qf_err *err);
/* Put the last segment, and tell readers of a store that cannot tell by itself (changes.h). */
QF_MUST_CHECK qf_rc publish_finish(struct publish *publish, struct qf_err *err);
/* Delete the segments put so far; returns how many the store would not delete. */
size_t publish_roll_back(struct publish *publish);

#endif
