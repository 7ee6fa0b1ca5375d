/* segment_writer.c - write one segment. */
#include "segments/parquet/segment_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "segments/parquet/decimals.h"
#include "segments/parquet/contents.h"
#include "segments/parquet/summary.h"
#include "segments/parquet/seg_int.h"

struct sg_writer {
    struct colfile_writer *file;
    struct sg_schema schema;
    uint32_t version;
    struct sg_segment_name name;
    char *tenant;
    struct sg_summary_builder *summary;
    struct sg_contents_builder *contents;
    struct sg_content content;
    uint64_t series_count, sample_count;
    bool unsynced;

    /* The label set added last, to check the order: canonical encoding and decoded form. */
    struct qf_arena *last_arena;
    struct qf_labels last_labels;
    struct qf_strbuf last_encoded;
    int64_t last_ts;

    /* The row group being filled. */
    struct qf_arena *arena; /* strings */
    size_t rows;
    QF_VEC(struct qf_str) metric;
    QF_VEC(struct qf_str) names;
    QF_VEC(struct qf_str) values;
    QF_VEC(uint32_t) label_counts;
    QF_VEC(int32_t) samples;
    QF_VEC(int64_t) min_ts;
    QF_VEC(int64_t) max_ts;
    QF_VEC(int64_t) ts;
    QF_VEC(double) numbers;         /* in the end those that are no decimals */
    QF_VEC(uint32_t) double_counts; /* per row, as those below; empty before version 2 */
    QF_VEC(uint32_t) digit_counts;
    QF_VEC(int32_t) scale;
    QF_VEC(int64_t) last;
    QF_VEC(int64_t) digits;
    QF_VEC(int64_t) start_ts;         /* empty unless the file has the column */
    QF_VEC(struct qf_str) histograms; /* likewise */
    size_t histogram_bytes;
};

struct sg_writer *sg_writer_new(const struct sg_writer_options *options, struct qf_err *err)
{
    struct sg_writer *writer;
    struct colfile_writer *file;
    struct sg_schema schema;
    uint32_t version = options->schema_version ? options->schema_version : SG_SCHEMA_VERSION;

    if (!qf_tenant_valid(options->tenant)) {
        (void)qf_err_set(err, QF_EINVAL, "not a valid tenant: %.*s", QF_STR_ARG(options->tenant));
        return NULL;
    }
    if (!sg_shard_count_valid(options->shard_count) || options->shard >= options->shard_count) {
        (void)qf_err_set(err, QF_EINVAL, "shard %u of %u cannot be", options->shard,
                         options->shard_count);
        return NULL;
    }
    if (version < SG_SCHEMA_VERSION_MIN || version > SG_SCHEMA_VERSION) {
        (void)qf_err_set(err, QF_EINVAL, "schema version %u cannot be written", version);
        return NULL;
    }
    sg_schema_init(&schema, version, options->start_ts, options->histograms);
    file = colfile_writer_new(&schema.file, options->path, err);
    if (!file)
        return NULL;
    writer = qf_xcalloc(1, sizeof(*writer));
    writer->file = file;
    writer->schema = schema;
    writer->unsynced = options->unsynced;
    writer->version = version;
    writer->tenant = qf_xmemdup0(options->tenant.data, options->tenant.len);
    writer->name = (struct sg_segment_name){
        .tenant = { writer->tenant, options->tenant.len },
        .min_ts = INT64_MAX,
        .max_ts = INT64_MIN,
        .shard = options->shard,
        .shard_count = options->shard_count,
        .generation = options->generation,
    };
    writer->summary = sg_summary_builder_new();
    writer->contents = sg_contents_builder_new();
    writer->last_arena = qf_arena_new(SIZE_MAX);
    writer->arena = qf_arena_new(SIZE_MAX);
    sg_content_init(&writer->content);
    return writer;
}

struct sg_writer *sg_writer_free(struct sg_writer *writer)
{
    if (!writer)
        return NULL;
    (void)colfile_writer_free(writer->file);
    (void)sg_summary_builder_free(writer->summary);
    (void)sg_contents_builder_free(writer->contents);
    sg_content_done(&writer->content);
    (void)qf_arena_free(writer->last_arena);
    (void)qf_arena_free(writer->arena);
    qf_strbuf_done(&writer->last_encoded);
    QF_VEC_DONE(&writer->metric);
    QF_VEC_DONE(&writer->names);
    QF_VEC_DONE(&writer->values);
    QF_VEC_DONE(&writer->label_counts);
    QF_VEC_DONE(&writer->samples);
    QF_VEC_DONE(&writer->min_ts);
    QF_VEC_DONE(&writer->max_ts);
    QF_VEC_DONE(&writer->ts);
    QF_VEC_DONE(&writer->numbers);
    QF_VEC_DONE(&writer->double_counts);
    QF_VEC_DONE(&writer->digit_counts);
    QF_VEC_DONE(&writer->scale);
    QF_VEC_DONE(&writer->last);
    QF_VEC_DONE(&writer->digits);
    QF_VEC_DONE(&writer->start_ts);
    QF_VEC_DONE(&writer->histograms);
    free(writer->tenant);
    free(writer);
    return NULL;
}

/* Digits go on where those of the row before ended, by the step that follows: then the end of a row
 * does not show in the differences. The sum stays far from what 64 bits hold. */
static int64_t first_digits(const struct sg_writer *w, const int64_t *numbers, size_t count)
{
    int64_t before = w->digits.count ? w->digits.items[w->digits.count - 1] : 0;

    if (before > DECIMALS_MAX || before < -DECIMALS_MAX)
        before = 0;
    return before + (count > 1 ? numbers[1] - numbers[0] : 0);
}

/* Take @count values from @values on as a row of digits, if they are decimals. */
static bool add_digits(struct sg_writer *w, const double *values, size_t count)
{
    int64_t *out, shift;
    int scale;

    QF_VEC_RESERVE(&w->digits, w->digits.count + count);
    out = w->digits.items + w->digits.count;
    if (!decimals_encode(values, count, out, &scale))
        return false;
    QF_VEC_PUSH(&w->scale, scale);
    QF_VEC_PUSH(&w->last, out[count - 1]);
    shift = first_digits(w, out, count) - out[0];
    for (size_t i = 0; i < count; i++)
        out[i] += shift;
    w->digits.count += count;
    return true;
}

/* Sort the values of the group's rows into digits and doubles. */
static void split_values(struct sg_writer *w)
{
    size_t from = 0, kept = 0;

    for (size_t row = 0; row < w->rows; row++) {
        size_t count = (size_t)w->samples.items[row];
        bool decimal = add_digits(w, w->numbers.items + from, count);

        if (!decimal) {
            memmove(w->numbers.items + kept, w->numbers.items + from, count * sizeof(double));
            kept += count;
            QF_VEC_PUSH(&w->scale, -1);
            QF_VEC_PUSH(&w->last, 0);
        }
        QF_VEC_PUSH(&w->digit_counts, decimal ? (uint32_t)count : 0);
        QF_VEC_PUSH(&w->double_counts, decimal ? 0 : (uint32_t)count);
        from += count;
    }
    w->numbers.count = kept;
}

static void set_decimals(struct sg_writer *w, struct colfile_data *columns)
{
    split_values(w);
    columns[SG_COL_VALUE] = (struct colfile_data){ w->numbers.items, w->numbers.count, w->rows,
                                                   w->double_counts.items };
    columns[SG_COL_SCALE] = (struct colfile_data){ w->scale.items, w->rows, w->rows, NULL };
    columns[SG_COL_LAST] = (struct colfile_data){ w->last.items, w->rows, w->rows, NULL };
    columns[SG_COL_DIGITS] =
        (struct colfile_data){ w->digits.items, w->digits.count, w->rows, w->digit_counts.items };
}

static void clear_group(struct sg_writer *w)
{
    w->rows = 0;
    w->metric.count = w->names.count = w->values.count = w->label_counts.count = 0;
    w->samples.count = w->min_ts.count = w->max_ts.count = w->ts.count = w->numbers.count = 0;
    w->double_counts.count = w->digit_counts.count = w->scale.count = w->last.count = 0;
    w->digits.count = w->start_ts.count = w->histograms.count = w->histogram_bytes = 0;
    qf_arena_reset(w->arena);
}

static qf_rc flush(struct sg_writer *w, struct qf_err *err)
{
    const uint32_t *lengths = (const uint32_t *)w->samples.items;
    size_t pairs = w->names.count;
    struct colfile_data columns[SG_COL__MAX] = {
        [SG_COL_METRIC] = { w->metric.items, w->rows, w->rows, NULL },
        [SG_COL_LABEL_NAMES] = { w->names.items, pairs, w->rows, w->label_counts.items },
        [SG_COL_LABEL_VALUES] = { w->values.items, pairs, w->rows, w->label_counts.items },
        [SG_COL_SAMPLES] = { w->samples.items, w->rows, w->rows, NULL },
        [SG_COL_MIN_TS] = { w->min_ts.items, w->rows, w->rows, NULL },
        [SG_COL_MAX_TS] = { w->max_ts.items, w->rows, w->rows, NULL },
        [SG_COL_TS] = { w->ts.items, w->ts.count, w->rows, lengths },
        [SG_COL_VALUE] = { w->numbers.items, w->numbers.count, w->rows, lengths },
    };

    if (w->rows == 0)
        return QF_OK;
    if (w->schema.decimals)
        set_decimals(w, columns);
    if (w->schema.start_column)
        columns[w->schema.start_column] =
            (struct colfile_data){ w->start_ts.items, w->start_ts.count, w->rows, lengths };
    if (w->schema.histogram_column)
        columns[w->schema.histogram_column] =
            (struct colfile_data){ w->histograms.items, w->histograms.count, w->rows, lengths };
    for (size_t i = 0; i < w->schema.file.column_count; i++) {
        qf_rc rc = colfile_write(w->file, &columns[i], err);

        if (rc != QF_OK)
            return rc;
    }
    clear_group(w);
    return QF_OK;
}

static void add_labels(struct sg_writer *w, struct qf_labels labels)
{
    struct qf_str metric = { "", 0 };
    uint32_t count = 0;

    for (size_t i = 0; i < labels.count; i++) {
        if (qf_str_is(labels.items[i].name, QF_METRIC_NAME)) {
            metric = qf_arena_str(w->arena, labels.items[i].value);
            continue;
        }
        QF_VEC_PUSH(&w->names, qf_arena_str(w->arena, labels.items[i].name));
        QF_VEC_PUSH(&w->values, qf_arena_str(w->arena, labels.items[i].value));
        count++;
    }
    QF_VEC_PUSH(&w->metric, metric);
    QF_VEC_PUSH(&w->label_counts, count);
}

/* The optional columns of a row: nothing to do in most files. */
static void add_extras(struct sg_writer *w, const struct sg_samples *samples)
{
    for (size_t i = 0; w->schema.start_column && i < samples->count; i++)
        QF_VEC_PUSH(&w->start_ts, samples->start_ts ? samples->start_ts[i] : 0);
    for (size_t i = 0; w->schema.histogram_column && i < samples->count; i++) {
        struct qf_str bytes = { "", 0 };

        if (samples->histograms && samples->histograms[i].len)
            bytes = qf_arena_str(w->arena, samples->histograms[i]);
        QF_VEC_PUSH(&w->histograms, bytes);
        w->histogram_bytes += bytes.len;
    }
}

static void add_samples(struct sg_writer *w, const struct sg_samples *samples)
{
    size_t count = samples->count;

    QF_VEC_RESERVE(&w->ts, w->ts.count + count);
    QF_VEC_RESERVE(&w->numbers, w->numbers.count + count);
    memcpy(w->ts.items + w->ts.count, samples->ts, count * sizeof(*samples->ts));
    memcpy(w->numbers.items + w->numbers.count, samples->values, count * sizeof(*samples->values));
    w->ts.count += count;
    w->numbers.count += count;
    add_extras(w, samples);
}

static void add_row(struct sg_writer *w, struct qf_labels labels, const struct sg_samples *samples)
{
    add_labels(w, labels);
    QF_VEC_PUSH(&w->samples, (int32_t)samples->count);
    QF_VEC_PUSH(&w->min_ts, samples->ts[0]);
    QF_VEC_PUSH(&w->max_ts, samples->ts[samples->count - 1]);
    add_samples(w, samples);
    w->rows++;
}

/* More samples of the series in the last row. */
static void extend_row(struct sg_writer *w, const struct sg_samples *samples)
{
    w->samples.items[w->rows - 1] += (int32_t)samples->count;
    w->max_ts.items[w->rows - 1] = samples->ts[samples->count - 1];
    add_samples(w, samples);
}

static bool ascending(const int64_t *ts, size_t count)
{
    bool good = true;

    for (size_t i = 1; i < count; i++)
        good &= ts[i - 1] < ts[i];
    return good;
}

/* Check labels against the series before; *ret_new: they are not the same. */
static qf_rc check_order(struct sg_writer *w, struct qf_labels labels, const int64_t *ts,
                         size_t count, bool *ret_new, struct qf_err *err)
{
    int order = w->series_count ? qf_labels_cmp(w->last_labels, labels) : -1;

    if (count == 0 || order > 0 || (order == 0 && ts[0] <= w->last_ts) || !ascending(ts, count))
        return qf_err_set(err, QF_EINVAL, "series or samples are not in order");
    if (!sg_times_fit(ts[0], ts[count - 1]))
        return qf_err_set(err, QF_EINVAL, "a sample is further from the epoch than time goes");
    if (order < 0 && sg_shard_of(labels, w->name.shard_count) != w->name.shard)
        return qf_err_set(err, QF_EINVAL, "a series does not belong to shard %u of %u",
                          w->name.shard, w->name.shard_count);
    *ret_new = order < 0;
    return QF_OK;
}

static void begin_series(struct sg_writer *w, struct qf_labels labels)
{
    qf_arena_reset(w->last_arena);
    if (!qf_labels_copy(w->last_arena, labels, &w->last_labels))
        abort(); /* the arena has no limit */
    qf_strbuf_reset(&w->last_encoded);
    qf_labels_encode(&w->last_encoded, labels);
    sg_summary_builder_add(w->summary, labels);
    sg_contents_builder_add(w->contents, labels);
    w->series_count++;
}

/* End the row group if it is full, or if it is large enough and the next series is of another
 * metric: then a selector on one metric reads little else. */
static bool group_ends(const struct sg_writer *w, struct qf_labels labels, size_t count)
{
    if (w->rows == 0)
        return false;
    if (w->ts.count + count > SG_ROW_GROUP_SAMPLES || w->rows == SG_ROW_GROUP_SERIES ||
        w->histogram_bytes >= SG_ROW_GROUP_HISTOGRAM_BYTES)
        return true;
    return w->ts.count >= SG_ROW_GROUP_SAMPLES_MIN &&
           !qf_str_eq(w->metric.items[w->rows - 1], qf_labels_get(labels, QF_STR(QF_METRIC_NAME)));
}

/* How many samples from @at on go into one row: as many as fit into a row group. */
static struct sg_samples row_of(const struct sg_samples *samples, size_t at)
{
    struct sg_samples row = { .ts = samples->ts + at,
                              .values = samples->values + at,
                              .start_ts = samples->start_ts ? samples->start_ts + at : NULL,
                              .histograms = samples->histograms ? samples->histograms + at : NULL };
    size_t left = samples->count - at, bytes = 0;

    row.count = QF_MIN(left, (size_t)SG_ROW_GROUP_SAMPLES);
    for (size_t i = 0; row.histograms && i < row.count; i++) {
        bytes += row.histograms[i].len;
        if (bytes >= SG_ROW_GROUP_HISTOGRAM_BYTES)
            row.count = i + 1;
    }
    return row;
}

static bool has_room(const struct sg_writer *w, const struct sg_samples *samples)
{
    bool start_ts = false, histograms = false;

    for (size_t i = 0; samples->start_ts && i < samples->count; i++)
        start_ts |= samples->start_ts[i] != 0;
    for (size_t i = 0; samples->histograms && i < samples->count; i++)
        histograms |= samples->histograms[i].len != 0;
    return (!start_ts || w->schema.start_column) && (!histograms || w->schema.histogram_column);
}

qf_rc sg_writer_add_samples(struct sg_writer *w, struct qf_labels labels,
                            const struct sg_samples *samples, struct qf_err *err)
{
    const int64_t *ts = samples->ts;
    size_t count = samples->count;
    bool new_series = false;
    qf_rc rc = check_order(w, labels, ts, count, &new_series, err);

    if (rc != QF_OK)
        return rc;
    if (!has_room(w, samples))
        return qf_err_set(err, QF_EINVAL, "the file has no column for what its samples have");
    if (new_series)
        begin_series(w, labels);
    sg_content_add(&w->content, new_series, qf_strbuf_view(&w->last_encoded), samples);
    sg_contents_builder_count(w->contents, count);
    w->sample_count += count;
    w->last_ts = ts[count - 1];
    w->name.min_ts = QF_MIN(w->name.min_ts, ts[0]);
    w->name.max_ts = QF_MAX(w->name.max_ts, ts[count - 1]);
    for (size_t at = 0; at < count;) {
        struct sg_samples row = row_of(samples, at);

        if (group_ends(w, labels, row.count)) {
            rc = flush(w, err);
            if (rc != QF_OK)
                return rc;
        }
        if (!new_series && w->rows > 0)
            extend_row(w, &row);
        else
            add_row(w, labels, &row);
        new_series = false;
        at += row.count;
    }
    return QF_OK;
}

qf_rc sg_writer_add(struct sg_writer *w, struct qf_labels labels, const int64_t *ts,
                    const double *values, size_t count, struct qf_err *err)
{
    struct sg_samples samples = { .ts = ts, .values = values, .count = count };

    return sg_writer_add_samples(w, labels, &samples, err);
}

uint64_t sg_writer_series(const struct sg_writer *writer)
{
    return writer->series_count;
}

uint64_t sg_writer_bytes(const struct sg_writer *writer)
{
    return colfile_writer_bytes(writer->file);
}

void sg_writer_replaces(struct sg_writer *writer, struct qf_str replaces, struct qf_str beside)
{
    colfile_set_meta(writer->file, QF_STR(SG_KEY_REPLACES), replaces);
    if (beside.len)
        colfile_set_meta(writer->file, QF_STR(SG_KEY_BESIDE), beside);
}

static void set_meta(struct sg_writer *w, const char *key, const char *fmt, ...) QF_PRINTF(3, 4);
static void set_meta(struct sg_writer *w, const char *key, const char *fmt, ...)
{
    char text[QF_TENANT_MAX + 1];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    colfile_set_meta(w->file, qf_str_from(key), (struct qf_str){ text, (size_t)len });
}

qf_rc sg_writer_finish(struct sg_writer *w, struct sg_segment_name *ret_name, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf summary = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf contents = QF_STRBUF_INIT;
    struct colfile_written written;
    qf_rc rc;

    if (w->series_count == 0)
        return qf_err_set(err, QF_EINVAL, "a segment without series");
    rc = flush(w, err);
    if (rc != QF_OK)
        return rc;
    w->name.id = sg_content_id(&w->content);
    set_meta(w, SG_KEY_VERSION, "%u", w->version);
    set_meta(w, SG_KEY_TENANT, "%s", w->tenant);
    set_meta(w, SG_KEY_SHARD, "%u", w->name.shard);
    set_meta(w, SG_KEY_SHARDS, "%u", w->name.shard_count);
    set_meta(w, SG_KEY_MIN_TS, "%" PRId64, w->name.min_ts);
    set_meta(w, SG_KEY_MAX_TS, "%" PRId64, w->name.max_ts);
    set_meta(w, SG_KEY_SERIES, "%" PRIu64, w->series_count);
    set_meta(w, SG_KEY_SAMPLES, "%" PRIu64, w->sample_count);
    set_meta(w, SG_KEY_GENERATION, "%" PRIu64, w->name.generation);
    set_meta(w, SG_KEY_ID, "%" PRIu64, w->name.id);
    sg_summary_builder_print(w->summary, &summary);
    colfile_set_meta(w->file, QF_STR(SG_SUMMARY_KEY), qf_strbuf_view(&summary));
    sg_contents_builder_print(w->contents, &contents);
    if (contents.len)
        colfile_set_meta(w->file, QF_STR(SG_CONTENTS_KEY), qf_strbuf_view(&contents));
    rc = colfile_finish(w->file, !w->unsynced, NULL, &written, err);
    if (rc == QF_OK)
        *ret_name = w->name;
    return rc;
}
