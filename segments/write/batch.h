/* batch.h - samples in any order in, segments in a store out: all of them or none.
 *
 *     struct sg_batch *batch = sg_batch_new(&options, &err);
 *     rc = sg_batch_add(batch, labels, samples, count, &err);   any number of times, any order
 *     rc = sg_batch_commit(batch, &err);                        only now the store changes
 *     batch = sg_batch_free(batch);                             without a commit nothing stays
 *
 * Whoever has samples to store uses a batch: the import of text, the sealer of ingested samples,
 * compaction. A sample is whole: a float or a native histogram, with its start timestamp if that is
 * known. The batch cuts time into windows and series into shards, and writes one segment
 * (parquet/segment.h) per window and shard that has samples. Of samples with equal series and
 * timestamp the one added last counts.
 *
 * Memory. options.memory_bytes bounds everything that grows with the samples, whatever their number
 * and shape, sorting and merging included, but for the names of the segments put (some 200 bytes
 * each). When it is full, the samples go sorted to a run: a file in a temporary folder, 16 bytes a
 * sample and the labels. Commit merges the runs. The bound is kept as far as malloc() gives large
 * blocks back to the system, for which the program sees to (M_MMAP_THRESHOLD).
 *
 * What commit guarantees:
 *
 *   content names   A segment's name holds its time range, shard, generation and a hash of its
 *                   series and samples (parquet/segment_name.h).
 *   idempotence     A segment whose range, shard and hash the store already has is not put again,
 *                   so that committing the same samples twice changes nothing, not even which of
 *                   two overlapping segments wins. Before it succeeds, commit looks whether the
 *                   segments it relied on are still there: another writer may have rolled back.
 *   whole objects   A reader sees a segment completely or not at all (store.h).
 *   generation      All segments carry options.generation; where segments overlap, readers take the
 *                   sample of the newest generation.
 *   notes           In a store that cannot tell what changed, commit leaves notes of the folders it
 *                   touched (catalog/changes.h), once a second and at the end, so that readers see
 *                   the segments within their refresh interval.
 *   roll-back       If a segment cannot be put, the cancel flag is set or the claim is gone, the segments put before
 *                   are deleted again. Readers may have seen them meanwhile. What the store would
 *                   not delete is counted in summary.segments_left: commit the same samples again,
 *                   and the store is as if nothing had failed.
 *
 * A process that dies in the middle leaves its temporary folder and the segments put so far;
 * sweep.h removes the former, committing again completes the latter.
 *
 * One thread owns a batch. After an error the batch is of no use any more: each further call
 * answers with the same error, until sg_batch_free(). */
#ifndef SEGMENTS_WRITE_BATCH_H
#define SEGMENTS_WRITE_BATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/labels.h"
#include "promql/value.h"
#include "segments/store/store.h"

struct sg_claim;

struct sg_batch_summary {
    uint64_t samples;                /* added */
    uint64_t series, stored_samples; /* in segments, duplicates dropped; a series counts once in
                                            each of its segments */
    uint64_t merged_samples;         /* how far commit has come: of `samples`, less duplicates */
    uint64_t segments, segments_present; /* put; already there */
    uint64_t bytes;                      /* of segments put */
    uint64_t segments_left;              /* after a failure: put and not deleted again */
    uint64_t runs;                       /* times the memory was full, and the last one */
    int64_t min_ts, max_ts;              /* of the samples added; INT64_MAX, INT64_MIN if none */
};

struct sg_batch_options {
    struct sg_store *store; /* borrowed */
    struct qf_str tenant;
    uint32_t shard_count;    /* a power of two up to SG_SHARDS_MAX */
    int64_t window_ms;       /* segments start at multiples of it */
    uint64_t generation;     /* of the segments: wall clock in microseconds */
    uint64_t memory_bytes;   /* at least SG_BATCH_MEMORY_MIN */
    uint64_t reserved_bytes; /* of these, for the caller's own use; at most half of them */
    const char *temp_dir;    /* NULL: $TMPDIR, else /tmp */
    /* Who else may put or merge files meanwhile (claim.h), borrowed: a commit whose claim was broken rolls
     * back. NULL: nobody does. */
    struct sg_claim *claim;
    uint32_t names_max; /* on our own nodes: segments named in one step; 0: SG_CLAIM_NAMES_MAX */

    /* Set by another thread or a signal handler to end the batch with QF_ECANCELED; may be NULL. */
    const atomic_bool *cancel;
    /* Called now and then during commit, and after each segment; may be NULL. */
    void (*on_progress)(void *ctx, const struct sg_batch_summary *summary);
    void *ctx;
};

#define SG_BATCH_MEMORY_MIN (UINT64_C(16) << 20)

struct sg_batch;

/* NULL and @err filled: QF_EINVAL for options that cannot be, QF_EIO if there is no place for the
 * temporary folder. */
struct sg_batch *sg_batch_new(const struct sg_batch_options *options, struct qf_err *err);
struct sg_batch *sg_batch_free(struct sg_batch *batch); /* Accepts NULL, returns NULL. */

struct sg_sample {
    int64_t ts;                           /* milliseconds */
    int64_t start_ts;                     /* 0: not known */
    double value;                         /* exact bits, stale markers included */
    const struct pq_histogram *histogram; /* NULL: the sample is the float `value` */
};

/* Add samples of a series; everything is copied. QF_ENOSPC and QF_EIO if they do not go to disk,
 * QF_ECANCELED. */
QF_MUST_CHECK qf_rc sg_batch_add(struct sg_batch *batch, struct qf_labels labels,
                                 const struct sg_sample *samples, size_t count, struct qf_err *err);

/* For callers that add one sample at a time and know their series by something shorter than its
 * labels: ask for the number of a series once, then add by number. A number is good until samples
 * go to disk, of which the batch tells (below). */
uint32_t sg_batch_series(struct sg_batch *batch, struct qf_labels labels);
QF_MUST_CHECK qf_rc sg_batch_add_one(struct sg_batch *batch, uint32_t series,
                                     const struct sg_sample *sample, struct qf_err *err);
/* Call @fn whenever samples are about to go to disk: numbers of series are void from then on, and
 * memory told of with sg_batch_hold() must be given back. */
void sg_batch_on_spill(struct sg_batch *batch, void (*fn)(void *ctx), void *ctx);
/* The caller holds @bytes beside the samples, until the next spill: they count as the batch's. */
void sg_batch_hold(struct sg_batch *batch, uint64_t bytes);

/* Put everything into the store, once. Errors of store.h, QF_ENOSPC and QF_EIO for the temporary
 * folder, QF_ENOTFOUND if a segment that was there already is gone, QF_ECANCELED; after any of them
 * everything is rolled back as said above. */
QF_MUST_CHECK qf_rc sg_batch_commit(struct sg_batch *batch, struct qf_err *err);

struct sg_batch_summary sg_batch_summary(const struct sg_batch *batch);

#endif
