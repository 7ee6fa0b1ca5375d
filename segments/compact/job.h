/* job.h - some files of a shard and a window become one. Blocks on the store.
 *
 * The inputs are read series by series, merged as a query merges them (of equal timestamps the sample of the newest file
 * counts), and written as the newest version of the format. Then, and only then, the store changes:
 *
 *   1. the job has its turn before or after removals of segments (segments/store/turn.h);
 *   2. the inputs are looked at once more: if one is gone, somebody else was quicker, or its samples were to go;
 *   3. outputs are put, the last of which says what they replace (segments/parquet/segment.h) and so makes them count;
 *   4. a note of the change is left for readers (segments/catalog/changes.h).
 *
 * Inputs are not deleted here: that comes later than any listing that may have missed the outputs (pass.h). Names of outputs
 * hold times, shard, the greatest generation of the inputs and a hash of the content: the same job again, anywhere, changes
 * nothing, and a job that ends between two steps leaves a store that gives the same answers.
 *
 * On our own nodes steps 1 to 4 are one: outputs are traded for inputs in the log, and the inputs are gone (trade.h).
 *
 * Memory: a row group of each input, the longest series, and a row group of the output. */
#ifndef SEGMENTS_COMPACT_JOB_H
#define SEGMENTS_COMPACT_JOB_H

#include <stdatomic.h>

#include "segments/store/store.h"

struct sg_job {
    struct qf_str tenant;
    const struct qf_str *inputs; /* names in the store */
    size_t input_count;
    const struct qf_str *dead; /* that inputs replaced before: named again */
    size_t dead_count;
    int64_t window_ms; /* outputs do not reach over the ends of windows */
    uint32_t shard, shard_count;
    uint64_t generation; /* of the outputs */
};

struct sg_job_result {
    uint64_t series, samples;           /* written; a series counts once in each output */
    uint64_t bytes_read, bytes_written; /* sizes of inputs and outputs */
    size_t outputs, present;            /* put; that the store had already */
};

struct sg_job_options {
    struct sg_store *store; /* borrowed */
    const char *temp_dir;   /* NULL: $TMPDIR, else /tmp */
    uint64_t memory_bytes;  /* that reading may hold */
    uint64_t file_bytes;    /* an output that has reached this size is followed by another */
    const atomic_bool *cancel;
    /* Called now and then with what was done so far; may be NULL. */
    void (*on_progress)(void *ctx, const struct sg_job_result *so_far);
    /* Called after an input was fetched and before an output is put, with its size, and between two series with 0; may
     * block: that is how a job is slowed down. May be NULL. */
    void (*pace)(void *ctx, uint64_t bytes);
    void *ctx;
};

/* QF_ECORRUPT, QF_EUNSUPPORTED: an input cannot be read, and @err is about its index: leave it alone and plan again.
 * QF_ENOTFOUND: an input is gone: plan again. QF_EBUSY: segments of its times are being removed: later. QF_ELIMIT: more memory is needed. Else the errors of the store, QF_ENOSPC and
 * QF_EIO for temporary files, QF_ECANCELED. Outputs put before an error stay: they change no answer. */
QF_MUST_CHECK qf_rc sg_job_run(const struct sg_job *job, const struct sg_job_options *options,
                               struct sg_job_result *ret_result, struct qf_err *err);

#endif
