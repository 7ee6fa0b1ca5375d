/* runs.h - the runs of a batch: kept few by merging them, level by level. */
#ifndef SEGMENTS_WRITE_RUNS_H
#define SEGMENTS_WRITE_RUNS_H

#include "base/pure/vec.h"
#include "segments/write/merge.h"

struct runs_item {
    char *path;
    unsigned level; /* how many times its samples were merged */
};

struct runs {
    const char *dir;                /* borrowed */
    const atomic_bool *cancel;      /* borrowed; may be NULL */
    QF_VEC(struct runs_item) items; /* oldest first; levels never grow towards the end */
    size_t number;
};

void runs_done(struct runs *runs); /* Deletes the files. A zeroed one is empty. */

/* A run is about to be written: its path, borrowed, where no file is yet. */
const char *runs_add(struct runs *runs);

/* How many runs may be merged at once with @memory_bytes, if no label set takes more than
 * @labels_bytes_max. */
size_t runs_fan_in(uint64_t memory_bytes, size_t labels_bytes_max);

/* As many runs of a level as may be merged at once become one of the next: so a sample is written
 * again only as often as the number of runs has digits. Errors of run.h; QF_ECANCELED. */
QF_MUST_CHECK qf_rc runs_settle(struct runs *runs, size_t fan_in, struct qf_err *err);

/* Hand the records of all runs to @fn, merged (merge.h). Errors as above, and those of @fn. */
QF_MUST_CHECK qf_rc runs_merge_all(struct runs *runs, size_t fan_in, merge_fn *fn, void *ctx,
                                   struct qf_err *err);

#endif
