/* seg_int.h - what the segment files of this folder share. */
#ifndef SEGMENTS_PARQUET_SEG_INT_H
#define SEGMENTS_PARQUET_SEG_INT_H

#include <stdatomic.h>
#include <xxhash.h>

#include "segments/parquet/column_file.h"
#include "segments/parquet/hot.h"
#include "segments/parquet/segment.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"

enum sg_column {
    SG_COL_METRIC,
    SG_COL_LABEL_NAMES,
    SG_COL_LABEL_VALUES,
    SG_COL_SAMPLES,
    SG_COL_MIN_TS,
    SG_COL_MAX_TS,
    SG_COL_TS,
    SG_COL_VALUE,
    SG_COL__COUNT_V1,
    SG_COL_SCALE = SG_COL__COUNT_V1, /* since version 2, like those behind it */
    SG_COL_LAST,
    SG_COL_DIGITS,
    SG_COL__COUNT,
    SG_COL__MAX = SG_COL__COUNT + 2, /* with start timestamps and histograms */
};

/* The columns of a file with or without the optional ones, which come last. */
struct sg_schema {
    struct colfile_column columns[SG_COL__MAX];
    struct colfile_schema file;
    bool decimals;                         /* the columns of version 2 are there */
    size_t start_column, histogram_column; /* 0: not there */
};
void sg_schema_init(struct sg_schema *schema, uint32_t version, bool start_ts, bool histograms);
/* Which of them @file has, which says it is of @version. QF_EUNSUPPORTED if it has any other column,
 * or lacks one. */
QF_MUST_CHECK qf_rc sg_schema_of(const struct colfile *file, uint32_t version,
                                 struct sg_schema *ret_schema, struct qf_err *err);

#define SG_KEY_VERSION "promfabric.schema_version"
#define SG_KEY_TENANT "promfabric.tenant"
#define SG_KEY_SHARD "promfabric.shard"
#define SG_KEY_SHARDS "promfabric.shards"
#define SG_KEY_MIN_TS "promfabric.min_ts"
#define SG_KEY_MAX_TS "promfabric.max_ts"
#define SG_KEY_SERIES "promfabric.series"
#define SG_KEY_SAMPLES "promfabric.samples"
#define SG_KEY_GENERATION "promfabric.generation"
#define SG_KEY_ID "promfabric.id"
#define SG_KEY_REPLACES "promfabric.replaces"
#define SG_KEY_BESIDE "promfabric.beside"

/* The metadata of an open file. Strings borrow from it. */
QF_MUST_CHECK qf_rc sg_meta_read(const struct colfile *file, struct sg_meta *ret_meta,
                                 struct qf_err *err);

/* The hash of a segment's content: independent of row groups and of how samples were added. */
struct sg_content {
    XXH3_state_t *labels, *ts, *values, *extras;
    uint64_t samples;
    bool any_extra;
};
void sg_content_init(struct sg_content *content);
void sg_content_done(struct sg_content *content);
/* @new_series: the samples begin a series with these labels (canonical encoding). */
void sg_content_add(struct sg_content *content, bool new_series, struct qf_str labels,
                    const struct sg_samples *samples);
uint64_t sg_content_id(const struct sg_content *content);

/* What is known of a row group without reading it. */
struct sg_group {
    size_t rows, samples;
    bool has_range; /* of metric names */
    struct qf_str metric_min, metric_max;
    int64_t min_ts, max_ts;
    bool start_ts, histograms; /* some sample has one, as far as the statistics tell */
};

struct sg_reader {
    struct colfile *file;
    struct sg_schema schema;
    struct qf_arena *arena;
    struct sg_meta meta;
    struct sg_group *groups;
    size_t group_count;
    struct sg_hot *hot;     /* NULL: nothing is kept */
    struct sg_part **parts; /* per row group and kind what is kept, under the lock of @hot */
};

/* The series columns of one row group, decoded. */
struct sg_series {
    struct colfile_texts *metric, *names, *values;
    int32_t *samples;
    int64_t *min_ts, *max_ts;
    int32_t *scale; /* NULL, as last: no row has decimals */
    int64_t *last;
    size_t rows;
    size_t doubles, digits; /* how many samples are of which kind */
};
void sg_series_done(struct sg_series *series);
/* Are the values of a row in the column of digits? */
static inline bool sg_series_decimal(const struct sg_series *series, size_t row)
{
    return series->scale && series->scale[row] >= 0;
}
/* @at is a row group of @reader's file. @skip (may be NULL) is asked after the metric names are
 * there; true leaves the rest unread. */
QF_MUST_CHECK qf_rc sg_series_read(const struct sg_reader *reader, const struct colfile_group *at,
                                   bool (*skip)(void *ctx, const struct colfile_texts *metric),
                                   void *ctx, struct sg_series *ret_series, bool *ret_skipped,
                                   struct qf_err *err);
/* The label set of a row, built in @arena around the strings of @series. QF_ECORRUPT if it is not
 * sorted or has empty parts; QF_ELIMIT. */
QF_MUST_CHECK qf_rc sg_series_labels(const struct sg_reader *reader, const struct sg_series *series,
                                     size_t row, struct qf_arena *arena,
                                     struct qf_labels *ret_labels, struct qf_err *err);

qf_rc sg_corrupt(const struct sg_reader *reader, const char *what, struct qf_err *err);

/* -- Parts of row groups, which scans may share (hot.h) ---------------------------------------- */

enum sg_part_kind { SG_PART_SERIES, SG_PART_TS, SG_PART_VALUE, SG_PART_DIGITS, SG_PART__COUNT };

/* Immutable, and freed with the last reference. */
struct sg_part {
    atomic_uint refs;
    uint64_t memory;
    struct sg_series series;         /* of SG_PART_SERIES; */
    struct colfile_numbers *numbers; /* of the others */
    /* The hot memory's own: */
    struct sg_part **slot, *newer, *older;
    bool again;
};
void sg_part_release(struct sg_part *part); /* Accepts NULL. */
/* A reference to what is kept; NULL: it is not there. */
struct sg_part *sg_hot_find(const struct sg_reader *reader, size_t group, enum sg_part_kind kind);
/* Offer a part that was just read; the caller's reference stays the caller's. */
void sg_hot_keep(const struct sg_reader *reader, size_t group, enum sg_part_kind kind,
                 struct sg_part *part);
/* The reader is about to be freed. */
void sg_hot_leave(const struct sg_reader *reader);

/* The optional columns of one row group; NULL where the group has none of them. */
struct sg_extras {
    int64_t *start_ts;
    struct colfile_texts *histograms; /* one text per sample, empty for a float */
};
void sg_extras_done(struct sg_extras *extras);
QF_MUST_CHECK qf_rc sg_extras_read(const struct sg_reader *reader, const struct colfile_group *at,
                                   bool histograms, struct sg_extras *ret_extras,
                                   struct qf_err *err);
/* The bytes of sample @index of the group. */
static inline struct qf_str sg_extras_histogram(const struct sg_extras *extras, size_t index)
{
    return extras->histograms->distinct[extras->histograms->index[index]];
}

/* A walk over the selected rows of one segment, row group by row group. */
struct sg_pick;
struct sg_row {
    struct qf_labels labels;
    /* The selected samples; or NULL, and sg_cursor_decode() makes them, at most @count, at least none. */
    const int64_t *ts;
    const double *values;
    const struct sg_pick *pick;                   /* where they are, if they are not decoded */
    const int64_t *start_ts;                      /* NULL, or per sample; 0: not known */
    const struct pq_histogram *const *histograms; /* NULL, or per sample NULL for a float */
    size_t count;
    bool may_continue; /* the next row may hold later samples of the same series */
};

/* What all cursors of a source share. */
struct sg_scratch {
    uint64_t memory; /* of all cursors */
    uint64_t memory_limit;
    const atomic_bool *cancel;
    bool presence; /* one sample of each row is enough, of any value */
    struct sg_source_stats stats;
};

struct sg_cursor {
    const struct sg_reader *reader;
    const struct pq_select *select;
    struct sg_scratch *scratch;
    struct qf_arena *arena; /* of the current row group */
    struct sg_part *parts[SG_PART__COUNT];
    int64_t *ts; /* decoded: the selected samples */
    double *values;
    size_t capacity;
    uint64_t memory; /* what all this was counted as */
    struct sg_row *rows;
    size_t row_count, row;
    size_t next_group;
};

void sg_cursor_init(struct sg_cursor *cursor, const struct sg_reader *reader,
                    const struct pq_select *select, struct sg_scratch *scratch);
void sg_cursor_done(struct sg_cursor *cursor);
/* Go to the next selected row; *ret_row is NULL at the end. Rows borrow from the cursor until it
 * moves on to another row group. */
QF_MUST_CHECK qf_rc sg_cursor_next(struct sg_cursor *cursor, const struct sg_row **ret_row,
                                   struct qf_err *err);
/* Decode the samples of @row, which is the cursor's current one and has none yet, into memory of the
 * caller's, room for @row->count each: where they are wanted, and nobody copies them. *ret_no_stale: none is
 * a stale marker. QF_ECORRUPT. */
struct sg_decoded {
    size_t count;
    bool no_stale;
};
QF_MUST_CHECK qf_rc sg_cursor_decode(const struct sg_cursor *cursor, const struct sg_row *row,
                                     int64_t *ts, double *values, struct sg_decoded *ret_decoded,
                                     struct qf_err *err);
/* Can the row group hold a selected series, by its statistics? */
bool sg_group_may_match(const struct sg_group *group, const struct pq_select *select);
/* The rows of a row group that are selected: each matcher looks at each different value once. */
struct sg_matching;
/* In @arena. */
struct sg_matching *sg_matching_new(const struct pq_select *select, struct qf_arena *arena);
/* No series of these names is selected. (A function for sg_series_read().) */
bool sg_matching_no_name(void *matching, const struct colfile_texts *metric);
/* To be called before rows are asked for, and after the names were looked at. */
void sg_matching_begin(struct sg_matching *matching, const struct sg_series *series);
bool sg_matching_row(struct sg_matching *matching, const struct sg_series *series, size_t row);

/* The row after the current one, if it is decoded already; else NULL. */
const struct sg_row *sg_cursor_peek(const struct sg_cursor *cursor);

#endif
