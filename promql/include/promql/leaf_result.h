/* leaf_result.h - what a leaf answers for one shard, and how it is read back.
 *
 * This is the contract between the halves of a query. A worker runs a leaf over one shard and gets
 * a leaf result: rows sorted by (timestamp, series) over a table of series. It is written as a
 * Parquet artifact (segments/parquet/artifact.h) and read on the other side, in batches of rows,
 * through a leaf reader. Every kind of leaf uses the same shape; only the number and meaning of the
 * value columns differ. Partials of native histograms are rows with a histogram, any number of a
 * timestamp and series (partial/natives.h). */
#ifndef PROMQL_LEAF_RESULT_H
#define PROMQL_LEAF_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/labels.h"
#include "promql/value.h"

/* A kind of leaf: how many value columns its results have, and their names in the artifact's
 * schema. Kinds are constants, compared by address; they travel by name. Those of aggregations are
 * in promql/partial/. */
#define PQ_LEAF_COLUMNS_MAX 5
struct pq_leaf_kind {
    const char *name;
    size_t column_count;
    const char *columns[PQ_LEAF_COLUMNS_MAX];
};

extern const struct pq_leaf_kind pq_leaf_series;  /* one value per series and step */
extern const struct pq_leaf_kind pq_leaf_samples; /* raw samples, with timestamps of their own */

/* NULL: there is no such kind. */
const struct pq_leaf_kind *pq_leaf_kind_find(struct qf_str name);

/* Rows in columns. Row i is (ts[i], series[i], columns[0][i], ...). */
struct pq_rows {
    size_t count;
    const int64_t *ts;      /* ascending */
    const uint32_t *series; /* ascending within one timestamp; index into the series table */
    const double *columns[PQ_LEAF_COLUMNS_MAX];
    const struct pq_histogram *const *histograms; /* NULL, or per row NULL for a float */
};

struct pq_leaf_result {
    const struct pq_leaf_kind *kind;
    struct qf_labels *series; /* sorted by qf_labels_cmp, no duplicates */
    size_t series_count;
    struct pq_rows rows;
    struct pq_notes notes;
    uint64_t samples_read;    /* samples the leaf looked at: for statistics */
    uint64_t points;          /* values that came out of its windows: what samples_max counts */
    uint32_t *points_by_step; /* NULL unless asked for; does not travel */
};

/* Reads one leaf result back. `next` fills @ret_rows with the next batch (borrowed until the next
 * call), count 0 at the end. The series table is complete before the first batch. */
struct pq_leaf_reader {
    const struct pq_leaf_kind *kind;
    const struct qf_labels *series;
    size_t series_count;
    struct pq_notes notes;
    uint64_t samples_read, points;
    qf_rc (*next)(struct pq_leaf_reader *reader, struct pq_rows *ret_rows, struct qf_err *err);
    void (*close)(struct pq_leaf_reader *reader); /* frees the reader */
};

#endif
