/* segment_writer.h - write one segment: series in label order, each with its samples.
 *
 *     struct sg_writer *w = sg_writer_new(&options, &err);
 *     while (...) rc = sg_writer_add(w, labels, ts, values, count, &err);
 *     rc = sg_writer_finish(w, &name, &err);      the file at options.path is complete and synced
 *     w = sg_writer_free(w);                      removes the file unless it was finished
 *
 * The file is written where the caller says, under a name no reader looks for; moving it to
 * its key in a store (store.h's put) is what makes it visible, at once and whole. Memory is bounded
 * by one row group (SG_ROW_GROUP_SAMPLES) plus the label summary. After an error only free is
 * allowed. */
#ifndef SEGMENTS_PARQUET_SEGMENT_WRITER_H
#define SEGMENTS_PARQUET_SEGMENT_WRITER_H

#include "segments/parquet/segment.h"

/* Samples in a row group, give or take the last series: what one scan holds in memory per file. */
#define SG_ROW_GROUP_SAMPLES (128u << 10)
/* A row group of at least this size ends where the metric changes. */
#define SG_ROW_GROUP_SAMPLES_MIN (16u << 10)
/* Series in a row group, however short they are. */
#define SG_ROW_GROUP_SERIES 8192u
/* Bytes of encoded histograms in a row group, give or take the last one; decoded up to eight times
 * as many. */
#define SG_ROW_GROUP_HISTOGRAM_BYTES (1u << 20)

struct sg_writer_options {
    const char *path; /* of the local file to write; must not exist */
    struct qf_str tenant;
    uint32_t shard, shard_count;
    uint64_t generation;     /* wall clock in microseconds: newer files win */
    uint32_t schema_version; /* 0: SG_SCHEMA_VERSION */
    /* The file gets the optional columns; without them it can hold neither start timestamps nor
     * histograms. */
    bool start_ts, histograms;
    bool unsynced; /* the file need not outlive a crash of the machine */
};

/* Samples of one series, columns side by side. */
struct sg_samples {
    const int64_t *ts;
    const double *values; /* 0 where there is a histogram */
    size_t count;
    const int64_t *start_ts; /* NULL, or per sample; 0: not known */
    const struct qf_str
        *histograms; /* NULL, or per sample as pq_histogram_encode() wrote it; empty:
                                        a float */
};

struct sg_writer;

/* QF_EINVAL for a bad tenant, shard or version, QF_EEXIST, QF_EIO. NULL and @err filled on failure. */
struct sg_writer *sg_writer_new(const struct sg_writer_options *options, struct qf_err *err);
/* @writer may be NULL. Returns NULL. */
struct sg_writer *sg_writer_free(struct sg_writer *writer);

/* Add a series with @count > 0 samples, timestamps strictly ascending. Label sets must come
 * strictly ascending (qf_labels_cmp), or equal to the one before with later timestamps. QF_EINVAL
 * if they do not or if the series belongs to another shard; QF_ENOSPC, QF_EIO. Nothing is kept of
 * the arguments. */
QF_MUST_CHECK qf_rc sg_writer_add(struct sg_writer *writer, struct qf_labels labels,
                                  const int64_t *ts, const double *values, size_t count,
                                  struct qf_err *err);
/* The same for samples with start timestamps and histograms. QF_EINVAL also if the file lacks the
 * column for them. */
QF_MUST_CHECK qf_rc sg_writer_add_samples(struct sg_writer *writer, struct qf_labels labels,
                                          const struct sg_samples *samples, struct qf_err *err);

uint64_t sg_writer_series(const struct sg_writer *writer); /* added so far */
uint64_t sg_writer_bytes(const struct sg_writer *writer); /* in the file so far: whole row groups */

/* What the file will say of itself (struct sg_meta): texts for sg_names_next(), copied. To be called before
 * sg_writer_finish(). */
void sg_writer_replaces(struct sg_writer *writer, struct qf_str replaces, struct qf_str beside);

/* Write the footer and, unless it is to be unsynced, sync the file. @ret_name's tenant borrows from the writer. QF_EINVAL if
 * nothing was added. */
QF_MUST_CHECK qf_rc sg_writer_finish(struct sg_writer *writer, struct sg_segment_name *ret_name,
                                     struct qf_err *err);

#endif
