/* run.h - sorted runs of samples on disk, the middle of the external sort.
 *
 * A run is a sequence of records sorted by (window, shard, labels, time); a record is samples of
 * one series in one window, ascending, no timestamp twice. A series with many samples in a window
 * has several records, one after another, so that readers need little memory. */
#ifndef SEGMENTS_WRITE_RUN_H
#define SEGMENTS_WRITE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/labels.h"

#define RUN_RECORD_SAMPLES 1024
/* A record of histograms ends with the one that reaches this. */
#define RUN_RECORD_HISTOGRAM_BYTES (64u << 10)
/* Memory of an open run, reading or writing, without labels. */
#define RUN_BUFFER_BYTES (64u << 10)

struct run_record {
    int64_t window; /* number of the window */
    uint32_t shard;
    struct qf_labels labels;
    const int64_t *ts;
    const double *values;
    const int64_t *start_ts;         /* NULL, or per sample; 0: not known */
    const struct qf_str *histograms; /* NULL, or per sample encoded; empty: a float */
    size_t count;
};

/* By window, shard and labels. */
int run_record_cmp(const struct run_record *a, const struct run_record *b);

struct run_writer;
/* NULL and @err filled: QF_EIO, QF_ENOSPC. */
struct run_writer *run_writer_new(const char *path, struct qf_err *err);
/* Add a record of any length; it is cut into several as needed. */
QF_MUST_CHECK qf_rc run_writer_add(struct run_writer *writer, const struct run_record *record,
                                   struct qf_err *err);
QF_MUST_CHECK qf_rc run_writer_finish(struct run_writer *writer, struct qf_err *err);
struct run_writer *run_writer_free(struct run_writer *writer); /* Accepts NULL, returns NULL. */

struct run_reader;
struct run_reader *run_reader_new(const char *path, struct qf_err *err);
struct run_reader *run_reader_free(struct run_reader *reader); /* Accepts NULL, returns NULL. */
/* The next record, borrowed until the next call; NULL at the end. */
QF_MUST_CHECK qf_rc run_reader_next(struct run_reader *reader, const struct run_record **ret_record,
                                    struct qf_err *err);

#endif
