/* import.h - samples in any order in, segments in a store out.
 *
 *     struct import *import = import_new(&options, &err);
 *     rc = import_file(import, "metrics.om.gz", &err);     any number of files, or import_add()
 *     rc = import_commit(import, &err);                    only now the store changes
 *     import = import_free(import);                        what was not committed leaves no trace
 *
 * Memory is bounded by options.memory_bytes, whatever the size and shape of the input: when it is
 * full, the samples go sorted to a run on disk (16 bytes a sample and the labels), and commit
 * merges the runs into segments, one per window and shard. The bound counts everything that grows
 * with the input, sorting and merging included, but for the names of the segments put (some 200
 * bytes each) and for the window that a zstd file asks for. It is kept as far as malloc() gives
 * large blocks back, for which the program sees to (M_MMAP_THRESHOLD). Of samples with the same
 * series and timestamp the last one counts.
 *
 * Commit puts the segments one after another; if one cannot be put, those put before are deleted
 * again. A segment whose content the store already has (same range, shard and hash) is not put, so
 * importing a file again changes nothing. One thread owns an import. */
#ifndef SEGMENTS_IMPORT_IMPORT_H
#define SEGMENTS_IMPORT_IMPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/labels.h"
#include "segments/store/store.h"

/* What the text is. Auto looks at the first sample that has a timestamp: a line that starts with
 * '{' and names __name__ is a dump; a fraction, or a number below 1e11, is seconds and so
 * OpenMetrics; anything else Prometheus text. A file keeps its format. */
enum import_format {
    IMPORT_AUTO,
    IMPORT_OPENMETRICS, /* timestamps in seconds */
    IMPORT_PROMETHEUS,  /* timestamps in milliseconds */
    IMPORT_TSDB_DUMP,   /* promtool tsdb dump: {__name__="x", a="b"} 1 1767225600000 */
};

struct import_progress {
    const char *phase;                  /* "reading" or "writing" */
    uint64_t bytes_done, bytes_total;   /* of the inputs as stored; total 0: not known */
    uint64_t lines, samples, malformed; /* read */
    uint64_t samples_written, segments; /* to segments; segments that are in the store */
};

struct import_options {
    struct store *store; /* borrowed */
    struct qf_str tenant;
    uint32_t shard_count; /* a power of two */
    int64_t window_ms;    /* segments start at multiples of it */
    enum import_format format;
    bool skip_malformed;       /* else the first malformed line ends the import */
    uint64_t memory_bytes;     /* at least IMPORT_MEMORY_MIN */
    const char *temp_dir;      /* NULL: $TMPDIR, else /tmp */
    uint64_t generation;       /* of the segments: wall clock in microseconds */
    const atomic_bool *cancel; /* may be NULL */

    /* May be NULL. A malformed line: where it is and what is wrong with it. */
    void (*on_malformed)(void *ctx, const char *file, uint64_t line, const char *what);
    /* Called every few milliseconds of work. */
    void (*on_progress)(void *ctx, const struct import_progress *progress);
    void *ctx;
};

#define IMPORT_MEMORY_MIN (UINT64_C(16) << 20)
#define IMPORT_LINE_MAX (UINT64_C(1) << 20) /* a longer line is malformed */

struct import;

/* NULL and @err filled: QF_EINVAL for options that cannot be, QF_EIO if no temporary folder. */
struct import *import_new(const struct import_options *options, struct qf_err *err);
struct import *import_free(struct import *import); /* Accepts NULL, returns NULL. */

/* Read a file, or standard input for "-"; gzip and zstd are recognised by their first bytes.
 * QF_EPARSE names file and line of a malformed line (unless they are skipped); QF_ECORRUPT for
 * broken compression, QF_ENOTFOUND, QF_EIO, QF_ENOSPC, QF_ECANCELED. After an error only free is
 * allowed. */
QF_MUST_CHECK qf_rc import_file(struct import *import, const char *path, struct qf_err *err);
/* Add samples of a series directly, in any order. */
QF_MUST_CHECK qf_rc import_add(struct import *import, struct qf_labels labels, const int64_t *ts,
                               const double *values, size_t count, struct qf_err *err);
/* Put everything into the store. Errors of store.h, QF_ENOSPC, QF_EIO. */
QF_MUST_CHECK qf_rc import_commit(struct import *import, struct qf_err *err);

struct import_summary {
    uint64_t lines, samples, malformed; /* read */
    uint64_t series, stored_samples; /* after duplicates are dropped; series per window count once
                                        per segment */
    uint64_t segments, segments_present; /* put; already there */
    uint64_t bytes;                      /* of segments put */
    uint64_t segments_left;              /* after a failure: put and not taken back */
    uint64_t runs;                       /* times the memory was full */
    int64_t min_ts, max_ts;
};
struct import_summary import_summary(const struct import *import);

#endif
