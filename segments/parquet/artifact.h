/* artifact.h - leaf results as Parquet: what a worker sends and the API reads.
 *
 * Schema version 2. One row per result row, sorted by (timestamp, series):
 *
 *     ts        int64
 *     series    int32       index into the series table
 *     <columns> double      those of the kind (leaf_result.h), one to five
 *     histogram binary      optional; only there if some row has a native histogram
 *
 * Rows with histograms of a sum or an average are addends (partial/natives.h): there may be several
 * of a timestamp and series, behind the row of the floats.
 *
 * The rows come in row groups of at most SG_ARTIFACT_ROW_GROUP_ROWS rows; up to a thousand without
 * histograms are plain numbers (plain_file.h), of others timestamps and series are differences. The series table (labels
 * in canonical encoding), the notes, the kind by name, samples_read and points travel in the
 * key/value metadata. Every byte is covered by a checksum (column_file.h), on top of the one the
 * transport checks. Equal results give equal bytes.
 *
 * Reading trusts nothing: malformed input is QF_ECORRUPT with the file's name. */
#ifndef SEGMENTS_PARQUET_ARTIFACT_H
#define SEGMENTS_PARQUET_ARTIFACT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/purse.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"
#include "promql/leaf_result.h"

#define SG_ARTIFACT_SCHEMA_VERSION 2
#define SG_ARTIFACT_ROW_GROUP_ROWS (64u << 10)

/* What WorkReady tells about an artifact. */
struct sg_artifact_info {
    uint64_t size_bytes;
    uint64_t row_count;
    int64_t min_ts, max_ts; /* both 0 if there is no row */
    uint32_t schema_version;
    char checksum[5 + 32 + 1]; /* "xxh3:" and 32 hex digits: XXH3-128 of all bytes */
};

/* Write @result to the new file @path (not synced, not renamed: the spool does that), or append it
 * to @buf. QF_EEXIST, QF_ENOSPC, QF_EIO, QF_ECANCELED once @canceled (may be NULL) is set; on
 * failure the file is removed. @ret_info may be NULL. */
QF_MUST_CHECK qf_rc sg_artifact_write_file(const struct pq_leaf_result *result, const char *path,
                                           const atomic_bool *canceled,
                                           struct sg_artifact_info *ret_info, struct qf_err *err);
QF_MUST_CHECK qf_rc sg_artifact_write_memory(const struct pq_leaf_result *result,
                                             struct qf_strbuf *buf,
                                             struct sg_artifact_info *ret_info, struct qf_err *err);

/* Open for reading; NULL and @err filled on failure (QF_ENOTFOUND, QF_EIO, QF_ECORRUPT,
 * QF_EUNSUPPORTED for a newer schema); messages about what is in a file do not say where it is. The reader's close() frees it. In memory @bytes are borrowed
 * until close and @name is for messages. A reader belongs to one thread and holds one row group;
 * for what it holds @purse pays (NULL: nobody), and QF_ELIMIT is the end of that. */
struct pq_leaf_reader *sg_artifact_open_file(const char *path, struct qf_purse *purse,
                                             struct qf_err *err);
struct pq_leaf_reader *sg_artifact_open_memory(struct qf_str bytes, const char *name,
                                               struct qf_purse *purse, struct qf_err *err);

/* "xxh3:<32 hex digits>" of @bytes; @out has room for 38 bytes. */
void sg_artifact_checksum(struct qf_str bytes, char *out);

#endif
