/* segment.h - what is in a segment and what it says of itself.
 *
 * A segment is one immutable Parquet file: samples of one tenant, one shard and one time window.
 * One row holds one series, or a part of one whose samples would not fit a row group:
 *
 *     metric   string             the value of __name__, "" if there is none
 *     labels   map<string,string> the other labels, sorted by name
 *     samples  int32              how many it has, never 0
 *     min_ts   int64              first and last timestamp of the row
 *     max_ts   int64
 *     ts       list<int64>        milliseconds, strictly ascending
 *     value    list<double>       exact bits, stale markers included; 0 for a native histogram
 *
 * and, since version 2, where values that are decimals are kept as integers (decimals.h):
 *
 *     scale    int32              10^scale of them make one; -1: they are in value, else in digits
 *     last     int64              the row's last value in units of 10^-scale; 0 if scale is -1
 *     digits   list<int64>        the values in the same units, up to a number that is the same for
 *                                 all of the row: value[i] = (digits[i] - digits[n] + last) / 10^scale
 *
 * Of value and digits one is empty in each row. That number is chosen so that digits go on from row
 * to row without a jump; whoever knows the last value reads a row without those before it. And, only in files that need them, in this order:
 *
 *     start_ts   list<int64>      start timestamps, one per sample; 0: not known
 *     histogram  list<binary>     native histograms (histogram/codec.h), one per sample; empty: the
 *                                 sample is a float
 *
 * Rows are sorted by label set (qf_labels_cmp, with __name__ in its place); parts of one series are
 * neighbours in time order. A reader refuses a file that has columns it does not know, so that it
 * never answers with a part of the data.
 *
 * Key/value metadata (text): promfabric.schema_version, .tenant, .shard, .shards, .min_ts, .max_ts,
 * .series, .samples, .generation, .id (of its name, see segment_name.h; the id is XXH3 of series
 * and samples in order) and .summary (summary.h). The last output of a compaction has .replaces and
 * .beside too: the files whose samples it and the other outputs hold, and those other outputs; names
 * in a store, a line each, without their folder if that is its own.
 *
 * Every byte of the file is covered by a checksum (column_file.h): a changed or missing byte is
 * QF_ECORRUPT with the file's name, at open for the footer and at the first read elsewhere. */
#ifndef SEGMENTS_PARQUET_SEGMENT_H
#define SEGMENTS_PARQUET_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/labels.h"
#include "segments/parquet/segment_name.h"

#define SG_SCHEMA_VERSION 2 /* what is written; all versions up to it are read */
#define SG_SCHEMA_VERSION_MIN 1

/* What a file says of itself in its metadata. */
struct sg_meta {
    uint32_t schema_version;
    struct sg_segment_name name; /* as the metadata says, whatever the file is called */
    uint64_t series_count, sample_count;
    bool has_start_ts, has_histograms; /* the optional columns are there; set by a reader only */
    struct qf_str summary;             /* text for sg_summary_parse(); empty if there is none */
    struct qf_str contents;            /* text for sg_contents_parse(), likewise */
    struct qf_str replaces, beside;    /* for sg_names_next(); empty: it replaces nothing */
};

/* shard = XXH3(labels without __name__) mod shard_count (a power of two). */
uint32_t sg_shard_of(struct qf_labels labels, uint32_t shard_count);
/* A power of two from 1 to SG_SHARDS_MAX. */
bool sg_shard_count_valid(uint64_t shard_count);

/* Take the next of the names in *@names; false: there are no more. Those without a '/' are in the folder of the file that
 * says so. */
bool sg_names_next(struct qf_str *names, struct qf_str *ret_name);

/* How many bytes at the end of a file usually hold its metadata. */
#define SG_TAIL_BYTES (64u << 10)

/* Read the metadata from the end of a file that is not (wholly) here: @tail is its last bytes, all
 * of it if the file is shorter than that. *ret_need is 0 on success; if the tail was too short it
 * is the number of last bytes needed and nothing else is written (still QF_OK). Strings are copied
 * into @arena. @file is for messages. QF_ECORRUPT, QF_EUNSUPPORTED (newer schema), QF_ELIMIT
 * (arena). */
QF_MUST_CHECK qf_rc sg_meta_from_tail(struct qf_arena *arena, const char *file, struct qf_str tail,
                                      uint64_t file_size, struct sg_meta *ret_meta,
                                      uint64_t *ret_need, struct qf_err *err);

#endif
