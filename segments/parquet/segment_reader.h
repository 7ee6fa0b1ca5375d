/* segment_reader.h - open a segment and look at its metadata; read it through a source.
 *
 * An open reader is immutable: it holds the file descriptor and the parsed footer, and any number
 * of sources on any threads may read through it at once. Keep readers of hot files open. Files are
 * read with pread, never mapped: a file cut short under a reader is an error, not a signal. */
#ifndef SEGMENTS_PARQUET_SEGMENT_READER_H
#define SEGMENTS_PARQUET_SEGMENT_READER_H

#include <stdatomic.h>

#include "promql/source.h"
#include "segments/parquet/segment.h"

struct sg_reader;

/* Open the local file at @path; the name is kept for messages. NULL and @err filled on failure:
 * QF_ENOTFOUND, QF_EIO, QF_ECORRUPT (not a whole segment), QF_EUNSUPPORTED (a newer schema or
 * unknown columns), QF_ELIMIT (its footer would take too much memory). The footer is verified;
 * the data are verified as they are read. The file may be unlinked or renamed while the reader
 * is open. */
struct sg_reader *sg_reader_open(const char *path, struct qf_err *err);
/* The same for a file that is open; @fd is taken, also on failure, and @name is for messages. */
struct sg_reader *sg_reader_open_fd(int fd, const char *name, struct qf_err *err);
struct sg_reader *sg_reader_free(struct sg_reader *reader); /* Accepts NULL, returns NULL. */

/* Borrowed from the reader. */
const struct sg_meta *sg_reader_meta(const struct sg_reader *reader);
/* Bytes of heap the open reader holds (footer, label summary). */
size_t sg_reader_memory(const struct sg_reader *reader);

/* -- Files of which not all is here ------------------------------------------------------------ *
 * A row group is verified when it is read, and so a file may have holes where groups are that nobody
 * reads. What a scan reads beside the groups it may match is the end of the file: seal and footer. */

/* How many of the last bytes of a file opening needs, by the last of them, @tail: *ret_need is 0 if they
 * are all there and have the right checksum. QF_ECORRUPT. */
QF_MUST_CHECK qf_rc sg_tail_need(struct qf_str tail, uint64_t file_size, uint64_t *ret_need,
                                 struct qf_err *err);
/* The bytes in front of the first row group, the same in every file. */
#define SG_FILE_START "PAR1"

size_t sg_reader_group_count(const struct sg_reader *reader);
/* Where a row group lies: [*ret_start, *ret_end). The first begins behind SG_FILE_START, each where the
 * one before ends. */
void sg_reader_group_span(const struct sg_reader *reader, size_t group, uint64_t *ret_start,
                          uint64_t *ret_end);
/* Will a source with @select read of this group? */
bool sg_reader_group_wanted(const struct sg_reader *reader, size_t group,
                            const struct pq_select *select);

/* Read everything and check checksums, order of series and samples, counts, shard and time range
 * against the metadata. QF_ECORRUPT names the file and what is wrong. */
QF_MUST_CHECK qf_rc sg_reader_verify(struct sg_reader *reader, struct qf_err *err);

/* The selected series of several segments of one shard, merged, as a leaf wants them: sorted by
 * qf_labels_cmp, each series once, samples ascending, times cut to the selection. Where segments
 * overlap, of equal timestamps the one from the newest file (generation, then id, of the metadata)
 * counts; order of @readers does not matter.
 *
 * @readers and the matchers (with their strings and regexes) are borrowed until close; the arrays
 * are copied.
 * @cancel may be NULL; once it is true the source stops with QF_ECANCELED at its next row group.
 * @memory_limit bounds decoded and compressed bytes held at once (0: none but that of a chunk);
 * over it QF_ELIMIT, also if a file only says that it will take more. A scan holds at most one row
 * group per segment. QF_ECORRUPT names the file, and the error is about its index in @readers.
 *
 * The source belongs to one thread. close() frees it. Never NULL. */
struct pq_source *sg_source_new(struct sg_reader *const *readers, size_t reader_count,
                                const struct pq_select *select, const atomic_bool *cancel,
                                uint64_t memory_limit);

/* Nobody wants to know more than which series have samples in the selected time. Each comes with one
 * sample or more that it has there, and values that mean nothing; whether it has any is told by the
 * first and last time of its rows. Samples are read only of rows that begin before and end after the
 * selection. To be said before the first series is asked for. */
void sg_source_presence_only(struct pq_source *source);

/* What a source has read so far, for metrics and limits. */
struct sg_source_stats {
    uint64_t samples;           /* decoded */
    uint64_t series;            /* returned */
    uint64_t bytes;             /* read from files */
    uint64_t row_groups_read;   /* whose labels were looked at */
    uint64_t row_groups_pruned; /* skipped thanks to statistics */
    uint64_t memory_peak;
};
struct sg_source_stats sg_source_stats(const struct pq_source *source);

#endif
