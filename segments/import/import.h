/* import.h - text in, segments in a store out: the formats of text on top of a batch.
 *
 *     struct sg_import *import = sg_import_new(&options, &err);
 *     rc = sg_import_file(import, "metrics.om.gz", &err);   any number of files
 *     rc = sg_import_commit(import, &err);                  only now the store changes
 *     import = sg_import_free(import);                      without a commit nothing stays
 *
 * What a commit guarantees, how much memory is used and what happens to duplicates is what
 * write/batch.h says of a batch. Reading takes a part of the batch's memory, but for the window
 * that a zstd file asks for. One thread owns an import.
 *
 * Exemplars, and what HELP, TYPE and UNIT say of metrics, go into annexes (segments/annex/annex.h), after the samples. They take an
 * eighth of the memory at most: of more, reading ends with QF_ELIMIT. */
#ifndef SEGMENTS_IMPORT_IMPORT_H
#define SEGMENTS_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "segments/write/batch.h"

/* What the text is. Auto looks at the first sample that has a timestamp: a line that starts with
 * '{' and names __name__ is a dump; a fraction, or a number below 1e11, is seconds and so
 * OpenMetrics; anything else Prometheus text. A file keeps its format. */
enum sg_import_format {
    SG_IMPORT_AUTO,
    SG_IMPORT_OPENMETRICS, /* timestamps in seconds */
    SG_IMPORT_PROMETHEUS,  /* timestamps in milliseconds */
    SG_IMPORT_TSDB_DUMP,   /* promtool tsdb dump: {__name__="x", a="b"} 1 1767225600000 */
};

struct sg_import_progress {
    uint64_t bytes_done, bytes_total;   /* of the inputs as stored; total 0: not known */
    uint64_t lines, samples, malformed; /* read */
};

/* What is to be said of a file when it is read. */
struct sg_import_read {
    const char *file;
    enum sg_import_format
        format;   /* SG_IMPORT_AUTO: no sample had a time, so there was no need to know */
    bool guessed; /* nobody said so: it looks like that */
    bool ended;   /* "# EOF" was its last line, which every OpenMetrics text must have */
};

struct sg_import_options {
    struct sg_batch_options batch; /* import adds to reserved_bytes what reading takes */
    enum sg_import_format format;
    bool skip_malformed; /* else the first malformed line ends the import */

    /* May be NULL. A malformed line: where it is and what is wrong with it. */
    void (*on_malformed)(void *ctx, const char *file, uint64_t line, const char *what);
    /* May be NULL. Called every few milliseconds of reading. */
    void (*on_progress)(void *ctx, const struct sg_import_progress *progress);
    /* May be NULL. */
    void (*on_read)(void *ctx, const struct sg_import_read *read);
    void *ctx; /* of these; the batch's has its own */
};

#define SG_IMPORT_MEMORY_MIN SG_BATCH_MEMORY_MIN
#define SG_IMPORT_LINE_MAX (UINT64_C(1) << 20) /* a longer line is malformed */

struct sg_import;

/* NULL and @err filled: as sg_batch_new(). */
struct sg_import *sg_import_new(const struct sg_import_options *options, struct qf_err *err);
struct sg_import *sg_import_free(struct sg_import *import); /* Accepts NULL, returns NULL. */

/* Read a file, or standard input for "-"; gzip and zstd are recognised by their first bytes.
 * QF_EPARSE names file and line of a malformed line (unless they are skipped); QF_ECORRUPT for
 * broken compression, QF_ELIMIT, QF_ENOTFOUND, QF_EIO, QF_ENOSPC, QF_ECANCELED. After an error only free is
 * allowed. */
QF_MUST_CHECK qf_rc sg_import_file(struct sg_import *import, const char *path, struct qf_err *err);
/* Put everything into the store: sg_batch_commit(), then exemplars and metadata. If those fail, the samples stay: import
 * again, which puts what is missing. */
QF_MUST_CHECK qf_rc sg_import_commit(struct sg_import *import, struct qf_err *err);

struct sg_import_summary {
    uint64_t lines, malformed;    /* read */
    uint64_t exemplars, metadata; /* read; of so many metrics */
    bool samples_stored;          /* the batch was committed, whatever became of the rest */
    struct sg_batch_summary batch;
};
struct sg_import_summary sg_import_summary(const struct sg_import *import);

#endif
