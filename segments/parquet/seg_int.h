/* seg_int.h - what the segment files of this folder share. */
#ifndef SEGMENTS_PARQUET_SEG_INT_H
#define SEGMENTS_PARQUET_SEG_INT_H

#include <xxhash.h>

#include "segments/parquet/column_file.h"
#include "segments/parquet/segment.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"

enum seg_column {
    SEG_COL_METRIC,
    SEG_COL_LABEL_NAMES,
    SEG_COL_LABEL_VALUES,
    SEG_COL_SAMPLES,
    SEG_COL_MIN_TS,
    SEG_COL_MAX_TS,
    SEG_COL_TS,
    SEG_COL_VALUE,
    SEG_COL__COUNT,
    SEG_COL__MAX = SEG_COL__COUNT + 2, /* with start timestamps and histograms */
};

/* The columns of a file with or without the optional ones, which come last. */
struct seg_schema {
    struct colfile_column columns[SEG_COL__MAX];
    struct colfile_schema file;
    size_t start_column, histogram_column; /* 0: not there */
};
void seg_schema_init(struct seg_schema *schema, bool start_ts, bool histograms);
/* Which of them @file has. QF_EUNSUPPORTED if it has any other column, or lacks one. */
QF_MUST_CHECK qf_rc seg_schema_of(const struct colfile *file, struct seg_schema *ret_schema,
                                  struct qf_err *err);

#define SEG_KEY_VERSION "promfabric.schema_version"
#define SEG_KEY_TENANT "promfabric.tenant"
#define SEG_KEY_SHARD "promfabric.shard"
#define SEG_KEY_SHARDS "promfabric.shards"
#define SEG_KEY_MIN_TS "promfabric.min_ts"
#define SEG_KEY_MAX_TS "promfabric.max_ts"
#define SEG_KEY_SERIES "promfabric.series"
#define SEG_KEY_SAMPLES "promfabric.samples"
#define SEG_KEY_GENERATION "promfabric.generation"
#define SEG_KEY_ID "promfabric.id"

/* The metadata of an open file. Strings borrow from it. */
QF_MUST_CHECK qf_rc seg_meta_read(const struct colfile *file, struct seg_meta *ret_meta,
                                  struct qf_err *err);

/* The hash of a segment's content: independent of row groups and of how samples were added. */
struct seg_content {
    XXH3_state_t *labels, *ts, *values, *extras;
    uint64_t samples;
    bool any_extra;
};
void seg_content_init(struct seg_content *content);
void seg_content_done(struct seg_content *content);
/* @new_series: the samples begin a series with these labels (canonical encoding). */
void seg_content_add(struct seg_content *content, bool new_series, struct qf_str labels,
                     const struct seg_samples *samples);
uint64_t seg_content_id(const struct seg_content *content);

/* What is known of a row group without reading it. */
struct seg_group {
    size_t rows, samples;
    bool has_range; /* of metric names */
    struct qf_str metric_min, metric_max;
    int64_t min_ts, max_ts;
    bool start_ts, histograms; /* some sample has one, as far as the statistics tell */
};

struct seg_reader {
    struct colfile *file;
    struct seg_schema schema;
    struct qf_arena *arena;
    struct seg_meta meta;
    struct seg_group *groups;
    size_t group_count;
};

/* The series columns of one row group, decoded. */
struct seg_series {
    struct colfile_texts *metric, *names, *values;
    int32_t *samples;
    int64_t *min_ts, *max_ts;
    size_t rows;
};
void seg_series_done(struct seg_series *series);
/* @at is a row group of @reader's file. @skip (may be NULL) is asked after the metric names are
 * there; true leaves the rest unread. */
QF_MUST_CHECK qf_rc seg_series_read(const struct seg_reader *reader, const struct colfile_group *at,
                                    bool (*skip)(void *ctx, const struct colfile_texts *metric),
                                    void *ctx, struct seg_series *ret_series, bool *ret_skipped,
                                    struct qf_err *err);
/* The label set of a row, built in @arena around the strings of @series. QF_ECORRUPT if it is not
 * sorted or has empty parts; QF_ELIMIT. */
QF_MUST_CHECK qf_rc seg_series_labels(const struct seg_reader *reader,
                                      const struct seg_series *series, size_t row,
                                      struct qf_arena *arena, struct qf_labels *ret_labels,
                                      struct qf_err *err);

qf_rc seg_corrupt(const struct seg_reader *reader, const char *what, struct qf_err *err);

/* The optional columns of one row group; NULL where the group has none of them. */
struct seg_extras {
    int64_t *start_ts;
    struct colfile_texts *histograms; /* one text per sample, empty for a float */
};
void seg_extras_done(struct seg_extras *extras);
QF_MUST_CHECK qf_rc seg_extras_read(const struct seg_reader *reader, const struct colfile_group *at,
                                    bool histograms, struct seg_extras *ret_extras,
                                    struct qf_err *err);
/* The bytes of sample @index of the group. */
static inline struct qf_str seg_extras_histogram(const struct seg_extras *extras, size_t index)
{
    return extras->histograms->distinct[extras->histograms->index[index]];
}

/* A walk over the selected rows of one segment, row group by row group. */
struct seg_row {
    struct qf_labels labels;
    const int64_t *ts;
    const double *values;
    const int64_t *start_ts;                      /* NULL, or per sample; 0: not known */
    const struct pq_histogram *const *histograms; /* NULL, or per sample NULL for a float */
    size_t count;
    bool may_continue; /* the next row may hold later samples of the same series */
};

/* Buffers all cursors of a source decode into. */
struct seg_scratch {
    int64_t *ts;
    double *values;
    size_t capacity;
    uint64_t memory; /* of all cursors and the scratch itself */
    uint64_t memory_limit;
    const atomic_bool *cancel;
    bool skip_histograms;
    struct segments_source_stats stats;
};

struct seg_cursor {
    const struct seg_reader *reader;
    const struct pq_select *select;
    struct seg_scratch *scratch;
    struct qf_arena *arena; /* of the current row group */
    struct seg_series series;
    int64_t *ts;
    double *values;
    size_t capacity;
    uint64_t series_memory; /* what series and arena were counted as */
    struct seg_row *rows;
    size_t row_count, row;
    size_t next_group;
};

void seg_cursor_init(struct seg_cursor *cursor, const struct seg_reader *reader,
                     const struct pq_select *select, struct seg_scratch *scratch);
void seg_cursor_done(struct seg_cursor *cursor);
/* Go to the next selected row; *ret_row is NULL at the end. Rows borrow from the cursor until it
 * moves on to another row group. */
QF_MUST_CHECK qf_rc seg_cursor_next(struct seg_cursor *cursor, const struct seg_row **ret_row,
                                    struct qf_err *err);
/* The row after the current one, if it is decoded already; else NULL. */
const struct seg_row *seg_cursor_peek(const struct seg_cursor *cursor);

#endif
