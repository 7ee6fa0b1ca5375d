/* segment_reader.c - open segments and decode the series of a row group. */
#include "segments/parquet/segment_reader.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "segments/parquet/column_file_seal.h"
#include "segments/parquet/decimals.h"
#include "segments/parquet/seg_int.h"
#include "segments/parquet/segment_writer.h"

qf_rc sg_corrupt(const struct sg_reader *reader, const char *what, struct qf_err *err)
{
    return qf_err_set(err, QF_ECORRUPT, "%s: corrupt: %s", colfile_name(reader->file), what);
}

static void read_metric_range(struct sg_reader *reader, size_t index)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf min = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf max = QF_STRBUF_INIT;
    struct sg_group *group = &reader->groups[index];

    if (!colfile_range_text(reader->file, index, SG_COL_METRIC, &min, &max))
        return;
    group->metric_min = qf_arena_str(reader->arena, qf_strbuf_view(&min));
    group->metric_max = qf_arena_str(reader->arena, qf_strbuf_view(&max));
    group->has_range = true;
}

/* Statistics of only zeros, or only empty texts, say that the group has none. */
static void read_extra_ranges(struct sg_reader *reader, size_t index)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf min = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf max = QF_STRBUF_INIT;
    size_t start = reader->schema.start_column, histogram = reader->schema.histogram_column;
    struct sg_group *group = &reader->groups[index];
    int64_t low, high;

    group->start_ts = start && (!colfile_range_i64(reader->file, index, start, &low, &high) ||
                                low != 0 || high != 0);
    group->histograms =
        histogram &&
        (!colfile_range_text(reader->file, index, histogram, &min, &max) || max.len > 0);
}

static qf_rc read_groups(struct sg_reader *reader, struct qf_err *err)
{
    uint64_t samples = 0;

    reader->group_count = colfile_row_groups(reader->file);
    reader->groups =
        QF_ARENA_ARRAY(reader->arena, struct sg_group, QF_MAX(reader->group_count, (size_t)1));
    for (size_t i = 0; i < reader->group_count; i++) {
        struct sg_group *group = &reader->groups[i];
        int64_t unused;

        group->rows = colfile_rows(reader->file, i);
        group->samples = colfile_values(reader->file, i, SG_COL_TS);
        if (group->rows > SG_ROW_GROUP_SERIES || group->samples > SG_ROW_GROUP_SAMPLES)
            return sg_corrupt(reader, "a row group is too large", err);
        read_metric_range(reader, i);
        read_extra_ranges(reader, i);
        if (!colfile_range_i64(reader->file, i, SG_COL_MIN_TS, &group->min_ts, &unused) ||
            !colfile_range_i64(reader->file, i, SG_COL_MAX_TS, &unused, &group->max_ts))
            return sg_corrupt(reader, "no statistics of time", err);
        samples += group->samples;
    }
    if (samples != reader->meta.sample_count)
        return sg_corrupt(reader, "row groups do not hold the samples of the metadata", err);
    return QF_OK;
}

static struct sg_reader *reader_new(struct colfile *file, struct qf_err *err)
{
    struct sg_reader *reader;
    qf_rc rc;

    if (!file)
        return NULL;
    reader = qf_xcalloc(1, sizeof(*reader));
    reader->file = file;
    reader->arena = qf_arena_new(SIZE_MAX);
    rc = sg_meta_read(file, &reader->meta, err);
    if (rc == QF_OK)
        rc = sg_schema_of(file, reader->meta.schema_version, &reader->schema, err);
    reader->meta.has_start_ts = reader->schema.start_column != 0;
    reader->meta.has_histograms = reader->schema.histogram_column != 0;
    if (rc == QF_OK)
        rc = read_groups(reader, err);
    return rc == QF_OK ? reader : sg_reader_free(reader);
}

struct sg_reader *sg_reader_open(const char *path, struct qf_err *err)
{
    return reader_new(colfile_open_path(path, COLFILE_FOOTER_MEMORY_MAX, err), err);
}

struct sg_reader *sg_reader_open_fd(int fd, const char *name, struct qf_err *err)
{
    return reader_new(colfile_open_fd(fd, name, COLFILE_FOOTER_MEMORY_MAX, err), err);
}

struct sg_reader *sg_reader_free(struct sg_reader *reader)
{
    if (!reader)
        return NULL;
    sg_hot_leave(reader);
    (void)colfile_free(reader->file);
    (void)qf_arena_free(reader->arena);
    free(reader);
    return NULL;
}

const struct sg_meta *sg_reader_meta(const struct sg_reader *reader)
{
    return &reader->meta;
}

size_t sg_reader_memory(const struct sg_reader *reader)
{
    return sizeof(*reader) + colfile_memory(reader->file) + qf_arena_used(reader->arena);
}

qf_rc sg_tail_need(struct qf_str tail, uint64_t file_size, uint64_t *ret_need, struct qf_err *err)
{
    struct colfile_seal seal;

    return colfile_seal_open(tail, file_size, &seal, ret_need, err);
}

size_t sg_reader_group_count(const struct sg_reader *reader)
{
    return reader->group_count;
}

void sg_reader_group_span(const struct sg_reader *reader, size_t group, uint64_t *ret_start,
                          uint64_t *ret_end)
{
    colfile_group_span(reader->file, group, ret_start, ret_end);
}

bool sg_reader_group_wanted(const struct sg_reader *reader, size_t group,
                            const struct pq_select *select)
{
    return sg_group_may_match(&reader->groups[group], select);
}

void sg_series_done(struct sg_series *series)
{
    (void)colfile_texts_free(series->metric);
    (void)colfile_texts_free(series->names);
    (void)colfile_texts_free(series->values);
    free(series->samples);
    free(series->min_ts);
    free(series->max_ts);
    free(series->scale);
    free(series->last);
    *series = (struct sg_series){ 0 };
}

/* No row is empty and together they are what the chunks hold. */
static qf_rc check_counts(const struct sg_reader *reader, size_t group, struct sg_series *series,
                          struct qf_err *err)
{
    uint64_t total = 0, digits = 0;
    bool bad = series->names->count != series->values->count;

    for (size_t i = 0; i < series->rows; i++) {
        bad |= series->samples[i] <= 0 || series->min_ts[i] > series->max_ts[i];
        bad |= series->names->starts[i] != series->values->starts[i];
        bad |= series->scale && (series->scale[i] < -1 || series->scale[i] > DECIMALS_SCALE_MAX);
        total += (uint32_t)series->samples[i];
        digits += sg_series_decimal(series, i) ? (uint32_t)series->samples[i] : 0;
    }
    series->digits = digits;
    series->doubles = total - digits;
    if (bad || total != reader->groups[group].samples)
        return sg_corrupt(reader, "the counts of a row group do not add up", err);
    return QF_OK;
}

static qf_rc read_decimals(const struct colfile_group *at, struct sg_series *series,
                           struct qf_err *err)
{
    qf_rc rc;

    series->scale = qf_xcalloc(series->rows, sizeof(*series->scale));
    series->last = qf_xcalloc(series->rows, sizeof(*series->last));
    rc = colfile_read_numbers(at, SG_COL_SCALE, series->scale, series->rows, err);
    return rc ? rc : colfile_read_numbers(at, SG_COL_LAST, series->last, series->rows, err);
}

static qf_rc read_rest(const struct sg_reader *reader, const struct colfile_group *at,
                       struct sg_series *series, struct qf_err *err)
{
    size_t rows = series->rows;
    qf_rc rc;

    series->names = colfile_read_texts(at, SG_COL_LABEL_NAMES, err);
    if (!series->names)
        return err->rc;
    series->values = colfile_read_texts(at, SG_COL_LABEL_VALUES, err);
    if (!series->values)
        return err->rc;
    series->samples = qf_xcalloc(rows, sizeof(*series->samples));
    series->min_ts = qf_xcalloc(rows, sizeof(*series->min_ts));
    series->max_ts = qf_xcalloc(rows, sizeof(*series->max_ts));
    rc = colfile_read_numbers(at, SG_COL_SAMPLES, series->samples, rows, err);
    if (rc == QF_OK)
        rc = colfile_read_numbers(at, SG_COL_MIN_TS, series->min_ts, rows, err);
    if (rc == QF_OK)
        rc = colfile_read_numbers(at, SG_COL_MAX_TS, series->max_ts, rows, err);
    if (rc == QF_OK && reader->schema.decimals)
        rc = read_decimals(at, series, err);
    if (rc == QF_OK)
        rc = check_counts(reader, at->index, series, err);
    return rc;
}

qf_rc sg_series_read(const struct sg_reader *reader, const struct colfile_group *at,
                     bool (*skip)(void *ctx, const struct colfile_texts *metric), void *ctx,
                     struct sg_series *ret_series, bool *ret_skipped, struct qf_err *err)
{
    struct sg_series series = { .rows = reader->groups[at->index].rows };
    qf_rc rc = QF_OK;

    series.metric = colfile_read_texts(at, SG_COL_METRIC, err);
    if (!series.metric)
        return err->rc;
    *ret_skipped = skip && skip(ctx, series.metric);
    if (!*ret_skipped)
        rc = read_rest(reader, at, &series, err);
    if (rc != QF_OK || *ret_skipped)
        sg_series_done(&series);
    *ret_series = series;
    return rc;
}

void sg_extras_done(struct sg_extras *extras)
{
    free(extras->start_ts);
    (void)colfile_texts_free(extras->histograms);
    *extras = (struct sg_extras){ 0 };
}

qf_rc sg_extras_read(const struct sg_reader *reader, const struct colfile_group *at,
                     bool histograms, struct sg_extras *ret_extras, struct qf_err *err)
{
    const struct sg_group *info = &reader->groups[at->index];
    const struct colfile_texts *texts;
    qf_rc rc = QF_OK;

    *ret_extras = (struct sg_extras){ 0 };
    if (info->start_ts) {
        ret_extras->start_ts = qf_xcalloc(info->samples, sizeof(*ret_extras->start_ts));
        rc = colfile_read_numbers(at, reader->schema.start_column, ret_extras->start_ts,
                                  info->samples, err);
    }
    if (rc == QF_OK && histograms && info->histograms) {
        texts = ret_extras->histograms =
            colfile_read_texts(at, reader->schema.histogram_column, err);
        if (!texts)
            rc = err->rc;
        else if (texts->count != info->samples)
            rc = sg_corrupt(reader, "a column has the wrong number of values", err);
    }
    if (rc != QF_OK)
        sg_extras_done(ret_extras);
    return rc;
}

qf_rc sg_series_labels(const struct sg_reader *reader, const struct sg_series *series, size_t row,
                       struct qf_arena *arena, struct qf_labels *ret_labels, struct qf_err *err)
{
    static const struct qf_str name = QF_STR_INIT(QF_METRIC_NAME);
    struct qf_str metric = series->metric->distinct[series->metric->index[row]];
    size_t start = series->names->starts[row], end = series->names->starts[row + 1], count = 0;
    struct qf_label *items = qf_arena_alloc(arena, (end - start + 1) * sizeof(*items));
    bool placed = metric.len == 0;

    if (!items)
        return qf_err_set(err, QF_ELIMIT, "%s: too little memory for labels",
                          colfile_name(reader->file));
    for (size_t i = start; i < end; i++) {
        struct qf_label label = { series->names->distinct[series->names->index[i]],
                                  series->values->distinct[series->values->index[i]] };

        if (!placed && qf_str_cmp(name, label.name) < 0) {
            items[count++] = (struct qf_label){ name, metric };
            placed = true;
        }
        if (label.value.len == 0 ||
            (count ? qf_str_cmp(items[count - 1].name, label.name) >= 0 : label.name.len == 0))
            return sg_corrupt(reader, "the labels of a series are not sorted", err);
        items[count++] = label;
    }
    if (!placed)
        items[count++] = (struct qf_label){ name, metric };
    *ret_labels = (struct qf_labels){ items, count };
    return QF_OK;
}
