/* columns.c - streams of samples to columns: cut, in order of time, each time once. */
#include <stdlib.h>

#include "ingest/head/select.h"

void in_columns_done(struct in_columns *columns)
{
    QF_VEC_DONE(&columns->points);
    qf_strbuf_done(&columns->histogram_bytes);
    QF_VEC_DONE(&columns->ts);
    QF_VEC_DONE(&columns->values);
    QF_VEC_DONE(&columns->start_ts);
    QF_VEC_DONE(&columns->histograms);
    QF_VEC_DONE(&columns->labels);
}

static void read_stream(struct in_columns *columns, const struct in_memory_series *series,
                        const struct in_cut *cut)
{
    struct in_stream stream = in_stream_of(series);
    size_t at = columns->histogram_bytes.len, len;

    while (in_stream_next(&stream, &columns->histogram_bytes, &len) &&
           stream.position <= cut->position) {
        if (stream.ts < cut->min_ts || stream.ts > cut->max_ts) {
            columns->histogram_bytes.len = at;
            continue;
        }
        QF_VEC_PUSH(&columns->points,
                    (struct in_point){ .ts = stream.ts,
                                       .start_ts = stream.start_ts,
                                       .value = len ? 0 : in_stream_value(&stream),
                                       .position = stream.position,
                                       .histogram = at,
                                       .histogram_len = len,
                                       .order = columns->points.count });
        at = columns->histogram_bytes.len;
    }
}

/* Later positions, and within a record later samples, come last. */
static int by_time(const void *a, const void *b)
{
    const struct in_point *x = a, *y = b;

    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static bool ascends(const struct in_columns *columns)
{
    for (size_t i = 1; i < columns->points.count; i++)
        if (columns->points.items[i - 1].ts >= columns->points.items[i].ts)
            return false;
    return true;
}

static void settle(struct in_columns *columns)
{
    struct in_point *points = columns->points.items;
    size_t kept = 0;

    if (ascends(columns))
        return;
    qsort(points, columns->points.count, sizeof(*points), by_time);
    for (size_t i = 0; i < columns->points.count; i++) {
        if (kept && points[kept - 1].ts == points[i].ts)
            kept--;
        points[kept++] = points[i];
    }
    columns->points.count = kept;
}

/* Side by side, as segments want them. */
static void spread(struct in_columns *columns)
{
    const char *bytes = columns->histogram_bytes.data;

    columns->ts.count = columns->values.count = 0;
    columns->start_ts.count = columns->histograms.count = 0;
    for (size_t i = 0; i < columns->points.count; i++) {
        const struct in_point *point = &columns->points.items[i];
        struct qf_str histogram = { point->histogram_len ? bytes + point->histogram : "",
                                    point->histogram_len };

        QF_VEC_PUSH(&columns->ts, point->ts);
        QF_VEC_PUSH(&columns->values, point->value);
        QF_VEC_PUSH(&columns->start_ts, point->start_ts);
        QF_VEC_PUSH(&columns->histograms, histogram);
    }
}

void in_columns_read(struct in_columns *columns, const struct in_selection *selection, size_t i,
                     const struct in_cut *cut, size_t *ret_next)
{
    struct in_memory_series *const *series = selection->series.items;
    size_t next = i;

    columns->points.count = 0;
    qf_strbuf_reset(&columns->histogram_bytes);
    do
        read_stream(columns, series[next++], cut);
    while (next < selection->series.count &&
           in_view_cmp(&selection->view, series[i], series[next]) == 0);
    settle(columns);
    spread(columns);
    *ret_next = next;
}

struct qf_labels in_columns_labels(struct in_columns *columns, const struct in_selection *selection,
                                   size_t i)
{
    const struct in_memory_series *series = selection->series.items[i];

    QF_VEC_RESERVE(&columns->labels, in_series_label_count(series) + 1u);
    return in_view_labels(&selection->view, series, columns->labels.items);
}

struct sg_samples in_columns_samples(const struct in_columns *columns, size_t first, size_t count)
{
    return (struct sg_samples){ .ts = columns->ts.items + first,
                                .values = columns->values.items + first,
                                .count = count,
                                .start_ts = columns->start_ts.items + first,
                                .histograms = columns->histograms.items + first };
}
