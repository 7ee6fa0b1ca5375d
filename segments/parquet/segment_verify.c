/* segment_verify.c - read all of a segment and hold it against what it says of itself. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/histogram/codec.h"
#include "segments/parquet/decimals.h"
#include "segments/parquet/seg_int.h"

struct check {
    const struct sg_reader *reader;
    struct sg_content content;
    struct qf_arena *arenas[2]; /* labels of this row and of the one before, by turns */
    size_t turn;
    struct qf_labels last;
    struct qf_strbuf encoded;
    int64_t last_ts, min_ts, max_ts;
    uint64_t series_count;
    int64_t *ts;
    double *values;
    double *doubles;         /* of the rows that have them */
    int64_t *digits;         /* of the others */
    struct sg_extras extras; /* of the row group */
    struct qf_arena *histograms;
    struct qf_str *encoded_histograms;
};

/* Every histogram decodes to what encodes to the same bytes. */
static qf_rc check_histograms(struct check *c, size_t start, size_t count, struct qf_err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct qf_str bytes = sg_extras_histogram(&c->extras, start + i);
        const struct pq_histogram *histogram;

        c->encoded_histograms[start + i] = bytes;
        if (!bytes.len)
            continue;
        qf_arena_reset(c->histograms);
        if (pq_histogram_decode(c->histograms, bytes, &histogram, NULL) != QF_OK ||
            !pq_histogram_encodes_to(histogram, bytes))
            return sg_corrupt(c->reader, "a histogram is malformed", err);
    }
    return QF_OK;
}

static struct sg_samples samples_of(const struct check *c, size_t start, size_t count)
{
    return (struct sg_samples){
        .ts = c->ts + start,
        .values = c->values + start,
        .count = count,
        .start_ts = c->extras.start_ts ? c->extras.start_ts + start : NULL,
        .histograms = c->extras.histograms ? c->encoded_histograms + start : NULL,
    };
}

static qf_rc check_row(struct check *c, const struct sg_series *series, size_t row, size_t start,
                       struct qf_err *err)
{
    const struct sg_reader *reader = c->reader;
    const struct sg_segment_name *name = &reader->meta.name;
    size_t count = (size_t)series->samples[row];
    const int64_t *ts = c->ts + start;
    struct qf_arena *arena = c->arenas[c->turn ^= 1];
    struct qf_labels labels, copy;
    struct sg_samples samples;
    int order;
    qf_rc rc;

    qf_arena_reset(arena);
    rc = sg_series_labels(reader, series, row, arena, &labels, err);
    if (rc != QF_OK)
        return rc;
    if (!qf_labels_copy(arena, labels, &copy))
        abort(); /* the arena has no limit */
    order = c->series_count ? qf_labels_cmp(c->last, copy) : -1;
    if (order > 0 || (order == 0 && ts[0] <= c->last_ts))
        return sg_corrupt(reader, "series are out of order", err);
    for (size_t i = 1; i < count; i++)
        if (ts[i - 1] >= ts[i])
            return sg_corrupt(reader, "samples are out of order", err);
    if (ts[0] != series->min_ts[row] || ts[count - 1] != series->max_ts[row])
        return sg_corrupt(reader, "a row's time range is wrong", err);
    if (sg_shard_of(copy, name->shard_count) != name->shard)
        return sg_corrupt(reader, "a series belongs to another shard", err);
    qf_strbuf_reset(&c->encoded);
    qf_labels_encode(&c->encoded, copy);
    rc = c->extras.histograms ? check_histograms(c, start, count, err) : QF_OK;
    if (rc != QF_OK)
        return rc;
    samples = samples_of(c, start, count);
    sg_content_add(&c->content, order < 0, qf_strbuf_view(&c->encoded), &samples);
    c->series_count += order < 0;
    c->last = copy;
    c->last_ts = ts[count - 1];
    c->min_ts = QF_MIN(c->min_ts, ts[0]);
    c->max_ts = QF_MAX(c->max_ts, ts[count - 1]);
    return QF_OK;
}

/* The values of a row from its digits. */
static void values_of_digits(const int64_t *digits, size_t count, int64_t last, int scale,
                             double *out)
{
    for (size_t i = 0; i < count; i++) {
        int64_t number =
            (int64_t)((uint64_t)digits[i] - (uint64_t)digits[count - 1] + (uint64_t)last);

        decimals_decode(&number, 1, scale, &out[i]);
    }
}

/* Timestamps and values of a row group, by Arrow's decoders: what scans decode themselves is held
 * against them. */
static qf_rc read_group(struct check *c, const struct colfile_group *at,
                        const struct sg_series *series, struct qf_err *err)
{
    size_t samples = c->reader->groups[at->index].samples, to = 0, from = 0, digit = 0;
    qf_rc rc;

    c->ts = qf_xrealloc(c->ts, samples * sizeof(*c->ts));
    c->values = qf_xrealloc(c->values, samples * sizeof(*c->values));
    c->doubles = qf_xrealloc(c->doubles, (series->doubles + 1) * sizeof(*c->doubles));
    c->digits = qf_xrealloc(c->digits, (series->digits + 1) * sizeof(*c->digits));
    rc = colfile_decode_numbers(at, SG_COL_TS, c->ts, samples, err);
    if (rc == QF_OK)
        rc = colfile_decode_numbers(at, SG_COL_VALUE, c->doubles, series->doubles, err);
    if (rc == QF_OK && series->scale)
        rc = colfile_decode_numbers(at, SG_COL_DIGITS, c->digits, series->digits, err);
    for (size_t row = 0; row < series->rows && rc == QF_OK; row++) {
        size_t count = (size_t)series->samples[row];

        if (sg_series_decimal(series, row)) {
            values_of_digits(c->digits + digit, count, series->last[row], series->scale[row],
                             c->values + to);
            digit += count;
        } else {
            memcpy(c->values + to, c->doubles + from, count * sizeof(*c->values));
            from += count;
        }
        to += count;
    }
    return rc;
}

static qf_rc check_group(struct check *c, size_t group, struct qf_err *err)
{
    const struct sg_reader *reader = c->reader;
    const struct sg_group *info = &reader->groups[group];
    QF_CLEANUP(sg_series_done) struct sg_series series = { 0 };
    size_t start = 0;
    struct colfile_group at = { reader->file, group, COLFILE_CHUNK_MEMORY_MAX };
    bool skipped;
    qf_rc rc = sg_series_read(reader, &at, NULL, NULL, &series, &skipped, err);

    if (rc != QF_OK)
        return rc;
    rc = read_group(c, &at, &series, err);
    sg_extras_done(&c->extras);
    if (rc == QF_OK)
        rc = sg_extras_read(reader, &at, true, &c->extras, err);
    if (c->extras.histograms)
        c->encoded_histograms =
            qf_xrealloc(c->encoded_histograms, info->samples * sizeof(*c->encoded_histograms));
    for (size_t row = 0; row < series.rows && rc == QF_OK; row++) {
        struct qf_str metric = series.metric->distinct[series.metric->index[row]];

        rc = check_row(c, &series, row, start, err);
        start += (size_t)series.samples[row];
        if (rc == QF_OK &&
            (series.min_ts[row] < info->min_ts || series.max_ts[row] > info->max_ts ||
             (info->has_range && (qf_str_cmp(metric, info->metric_min) < 0 ||
                                  qf_str_cmp(metric, info->metric_max) > 0))))
            rc = sg_corrupt(reader, "the statistics of a row group are wrong", err);
    }
    return rc;
}

qf_rc sg_reader_verify(struct sg_reader *reader, struct qf_err *err)
{
    const struct sg_meta *meta = &reader->meta;
    struct check c = { .reader = reader, .min_ts = INT64_MAX, .max_ts = INT64_MIN };
    struct qf_err own = { 0 };
    qf_rc rc = QF_OK;

    if (!err)
        err = &own;
    sg_content_init(&c.content);
    c.arenas[0] = qf_arena_new(SIZE_MAX);
    c.arenas[1] = qf_arena_new(SIZE_MAX);
    c.histograms = qf_arena_new(SIZE_MAX);
    for (size_t i = 0; i < reader->group_count && rc == QF_OK; i++)
        rc = check_group(&c, i, err);
    if (rc == QF_OK && (c.series_count != meta->series_count || c.min_ts != meta->name.min_ts ||
                        c.max_ts != meta->name.max_ts))
        rc = sg_corrupt(reader, "the metadata do not fit the content", err);
    if (rc == QF_OK && sg_content_id(&c.content) != meta->name.id)
        rc = sg_corrupt(reader, "the content is not the one that was written", err);
    sg_content_done(&c.content);
    (void)qf_arena_free(c.arenas[0]);
    (void)qf_arena_free(c.arenas[1]);
    qf_strbuf_done(&c.encoded);
    free(c.ts);
    free(c.values);
    free(c.doubles);
    free(c.digits);
    sg_extras_done(&c.extras);
    (void)qf_arena_free(c.histograms);
    free(c.encoded_histograms);
    return rc;
}
