/* collect.c - samples in memory, by series, until there are enough for a run. */
#include "segments/write/collect.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "segments/parquet/segment.h"

void collect_init(struct collect *c, uint32_t shard_count, int64_t window_ms)
{
    *c = (struct collect){ .shard_count = shard_count, .window_ms = window_ms };
    c->arena = qf_arena_new(SIZE_MAX);
}

void collect_done(struct collect *c)
{
    (void)qf_arena_free(c->arena);
    qf_map_done(&c->by_labels);
    QF_VEC_DONE(&c->series);
    QF_VEC_DONE(&c->sample_series);
    QF_VEC_DONE(&c->sample_ts);
    QF_VEC_DONE(&c->sample_values);
    QF_VEC_DONE(&c->sample_starts);
    QF_VEC_DONE(&c->sample_histograms);
}

uint32_t collect_series(struct collect *c, struct qf_labels labels)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf key = QF_STRBUF_INIT;
    struct collect_series series = { .shard = sg_shard_of(labels, c->shard_count) };
    uint64_t *found;

    qf_labels_encode(&key, labels);
    found = qf_map_get(&c->by_labels, qf_strbuf_view(&key));
    if (found)
        return (uint32_t)*found;
    if (!qf_labels_copy(c->arena, labels, &series.labels))
        abort(); /* the arena has no limit */
    c->labels_bytes_max = QF_MAX(c->labels_bytes_max, key.len);
    (void)qf_map_put(&c->by_labels, qf_arena_str(c->arena, qf_strbuf_view(&key)), c->series.count,
                     NULL);
    QF_VEC_PUSH(&c->series, series);
    return (uint32_t)(c->series.count - 1);
}

/* Start timestamps and histograms, which few samples have: their lists are empty until the first
 * one, from then on as long as the others. */
static void add_extras(struct collect *c, const struct collect_sample *sample)
{
    size_t before = c->sample_ts.count - 1;

    if (sample->start_ts || c->sample_starts.count) {
        while (c->sample_starts.count < before)
            QF_VEC_PUSH(&c->sample_starts, 0);
        QF_VEC_PUSH(&c->sample_starts, sample->start_ts);
    }
    if (sample->histogram.len || c->sample_histograms.count) {
        while (c->sample_histograms.count < before)
            QF_VEC_PUSH(&c->sample_histograms, (struct qf_str){ NULL, 0 });
        QF_VEC_PUSH(&c->sample_histograms, sample->histogram.len
                                               ? qf_arena_str(c->arena, sample->histogram)
                                               : (struct qf_str){ NULL, 0 });
    }
}

void collect_add(struct collect *c, uint32_t series, const struct collect_sample *sample)
{
    struct collect_series *s = &c->series.items[series];
    int64_t ts = sample->ts;
    int64_t window = qf_floor_div(ts, c->window_ms);

    c->slices_max += s->samples == 0 || window != s->window;
    s->unsorted |= s->samples && ts <= s->last_ts;
    s->window = window;
    s->last_ts = ts;
    s->samples++;
    if (s->unsorted)
        c->unsorted_max = QF_MAX(c->unsorted_max, (size_t)s->samples);
    QF_VEC_PUSH(&c->sample_series, series);
    QF_VEC_PUSH(&c->sample_ts, ts);
    QF_VEC_PUSH(&c->sample_values, sample->value);
    add_extras(c, sample);
}

/* The samples of one series in one window. */
struct slice {
    int64_t window;
    uint32_t shard, rank; /* rank: place of the series in label order */
    uint32_t start, count;
};

struct pair {
    int64_t ts;
    double value;
    size_t order;
};

/* Three phases follow each other, each with memory of its own: collecting; bringing the samples of
 * each series together, in arrays of 20 bytes a sample and 16 more; cutting them, when the first
 * array is gone. What few samples have is counted as if it were all there in every phase. qsort()
 * takes as much again as it sorts. Vectors count as far as they are filled: what lies beyond was
 * never touched. */
uint64_t collect_memory(const struct collect *c)
{
    uint64_t samples = c->sample_ts.count, series = c->series.count;
    uint64_t extras = c->sample_starts.count * 8 + c->sample_histograms.count * 16;
    uint64_t collecting = samples * 20 + qf_map_bytes(&c->by_labels) + c->held_bytes;
    uint64_t grouping = samples * (20 + 16) + series * (4 + 8 + 8);
    uint64_t cutting = samples * 16 + series * (4 + 8) + c->slices_max * 2 * sizeof(struct slice) +
                       c->unsorted_max * (2 * sizeof(struct pair) + (extras ? 16 : 0));

    if (collecting < grouping)
        collecting = grouping;
    return qf_arena_used(c->arena) + 2 * extras + series * sizeof(struct collect_series) +
           QF_MAX(collecting, cutting);
}

static int by_ts(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Bring a column, if it is there, into the order of the pairs. */
static void permute(void *column, size_t size, const struct pair *pairs, size_t count)
{
    char *copy = column ? qf_xmalloc(count * size) : NULL, *out = column;

    if (!column)
        return;
    memcpy(copy, column, count * size);
    for (size_t i = 0; i < count; i++)
        memcpy(out + i * size, copy + pairs[i].order * size, size);
    free(copy);
}

static void sort_pairs(struct collect_columns c, size_t count)
{
    struct pair *pairs = qf_xcalloc(count, sizeof(*pairs));

    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct pair){ c.ts[i], c.values[i], i };
    qsort(pairs, count, sizeof(*pairs), by_ts);
    for (size_t i = 0; i < count; i++) {
        c.ts[i] = pairs[i].ts;
        c.values[i] = pairs[i].value;
    }
    permute(c.start_ts, sizeof(*c.start_ts), pairs, count);
    permute(c.histograms, sizeof(*c.histograms), pairs, count);
    free(pairs);
}

size_t collect_sort(struct collect_columns c, size_t count)
{
    const int64_t *ts = c.ts;
    size_t kept = 0;
    bool ascending = true, strictly = true;

    for (size_t i = 1; i < count; i++) {
        ascending &= ts[i - 1] <= ts[i];
        strictly &= ts[i - 1] < ts[i];
    }
    if (strictly)
        return count;
    if (!ascending)
        sort_pairs(c, count);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && ts[i] == ts[i + 1])
            continue;
        c.ts[kept] = c.ts[i];
        c.values[kept] = c.values[i];
        if (c.start_ts)
            c.start_ts[kept] = c.start_ts[i];
        if (c.histograms)
            c.histograms[kept] = c.histograms[i];
        kept++;
    }
    return kept;
}

struct sorting {
    struct collect *collect;
    uint32_t *order; /* series by labels */
    size_t *starts;  /* per series: its first sample in the columns below */
    struct collect_columns columns;
    struct slice *slices;
    size_t slice_count;
};

static int by_labels(const void *a, const void *b, void *ctx)
{
    const struct collect *c = ctx;

    return qf_labels_cmp(c->series.items[*(const uint32_t *)a].labels,
                         c->series.items[*(const uint32_t *)b].labels);
}

static int by_place(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;

    if (x->window != y->window)
        return x->window < y->window ? -1 : 1;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Bring the samples of each series together, in the order they came; the collection keeps only its
 * series. */
static void group(struct sorting *s)
{
    struct collect *c = s->collect;
    size_t series = c->series.count, samples = c->sample_ts.count;
    QF_CLEANUP(qf_freep) size_t *next = qf_xcalloc(series + 1, sizeof(*next));

    s->order = qf_xcalloc(series + 1, sizeof(*s->order));
    s->starts = qf_xcalloc(series + 1, sizeof(*s->starts));
    s->columns.ts = qf_xcalloc(samples + 1, sizeof(*s->columns.ts));
    s->columns.values = qf_xcalloc(samples + 1, sizeof(*s->columns.values));
    if (c->sample_starts.count)
        s->columns.start_ts = qf_xcalloc(samples + 1, sizeof(*s->columns.start_ts));
    if (c->sample_histograms.count)
        s->columns.histograms = qf_xcalloc(samples + 1, sizeof(*s->columns.histograms));
    for (size_t i = 0; i < series; i++)
        s->order[i] = (uint32_t)i;
    qsort_r(s->order, series, sizeof(*s->order), by_labels, s->collect);
    for (size_t i = 0; i < samples; i++)
        s->starts[c->sample_series.items[i] + 1]++;
    for (size_t i = 0; i < series; i++)
        s->starts[i + 1] += s->starts[i];
    memcpy(next, s->starts, (series + 1) * sizeof(*next));
    for (size_t i = 0; i < samples; i++) {
        size_t to = next[c->sample_series.items[i]]++;

        s->columns.ts[to] = c->sample_ts.items[i];
        s->columns.values[to] = c->sample_values.items[i];
        if (s->columns.start_ts)
            s->columns.start_ts[to] = c->sample_starts.items[i];
        if (s->columns.histograms)
            s->columns.histograms[to] = c->sample_histograms.items[i];
    }
    QF_VEC_DONE(&c->sample_series);
    QF_VEC_DONE(&c->sample_ts);
    QF_VEC_DONE(&c->sample_values);
    QF_VEC_DONE(&c->sample_starts);
    QF_VEC_DONE(&c->sample_histograms);
}

static struct collect_columns columns_from(struct collect_columns columns, size_t at)
{
    return (struct collect_columns){ columns.ts + at, columns.values + at,
                                     columns.start_ts ? columns.start_ts + at : NULL,
                                     columns.histograms ? columns.histograms + at : NULL };
}

/* Sort each series by time and cut it at the windows. */
static void cut(struct sorting *s)
{
    const struct collect *c = s->collect;

    s->slices = qf_xcalloc(c->slices_max + 1, sizeof(*s->slices));
    for (size_t rank = 0; rank < c->series.count; rank++) {
        uint32_t series = s->order[rank];
        size_t start = s->starts[series];
        size_t end =
            start + collect_sort(columns_from(s->columns, start), s->starts[series + 1] - start);
        const int64_t *ts = s->columns.ts;

        while (start < end) {
            struct slice slice = { .window = qf_floor_div(ts[start], c->window_ms),
                                   .shard = c->series.items[series].shard,
                                   .rank = (uint32_t)rank,
                                   .start = (uint32_t)start };

            while (start < end && qf_floor_div(ts[start], c->window_ms) == slice.window)
                start++;
            slice.count = (uint32_t)start - slice.start;
            assert(s->slice_count < c->slices_max);
            s->slices[s->slice_count++] = slice;
        }
    }
    qsort(s->slices, s->slice_count, sizeof(struct slice), by_place);
}

/* The record of a slice, with the columns that some sample of it needs. */
static struct run_record record_of(const struct sorting *s, const struct slice *slice,
                                   struct needs *needs)
{
    struct collect_columns columns = columns_from(s->columns, slice->start);
    struct run_record record = {
        .window = slice->window,
        .shard = slice->shard,
        .labels = s->collect->series.items[s->order[slice->rank]].labels,
        .ts = columns.ts,
        .values = columns.values,
        .count = slice->count,
    };

    for (size_t i = 0; columns.start_ts && i < slice->count && !record.start_ts; i++)
        if (columns.start_ts[i])
            record.start_ts = columns.start_ts;
    for (size_t i = 0; columns.histograms && i < slice->count && !record.histograms; i++)
        if (columns.histograms[i].len)
            record.histograms = columns.histograms;
    needs_add(needs, slice->window, slice->shard,
              (record.start_ts ? NEEDS_START_TS : 0u) |
                  (record.histograms ? NEEDS_HISTOGRAMS : 0u));
    return record;
}

static qf_rc write_run(const struct sorting *s, const char *path, struct needs *needs,
                       struct qf_err *err)
{
    struct run_writer *writer = run_writer_new(path, err);
    qf_rc rc = QF_OK;

    if (!writer)
        return QF_EIO;
    for (size_t i = 0; i < s->slice_count && rc == QF_OK; i++) {
        struct run_record record = record_of(s, &s->slices[i], needs);

        rc = run_writer_add(writer, &record, err);
    }
    if (rc == QF_OK)
        rc = run_writer_finish(writer, err);
    (void)run_writer_free(writer);
    return rc;
}

static void forget(struct collect *c)
{
    uint32_t shard_count = c->shard_count;
    int64_t window_ms = c->window_ms;
    size_t labels_bytes_max = c->labels_bytes_max;

    collect_done(c);
    collect_init(c, shard_count, window_ms);
    c->labels_bytes_max = labels_bytes_max;
}

qf_rc collect_spill(struct collect *c, const char *path, struct needs *needs, struct qf_err *err)
{
    struct sorting s = { .collect = c };
    qf_rc rc;

    qf_map_done(&c->by_labels);
    group(&s);
    cut(&s);
    rc = write_run(&s, path, needs, err);
    free(s.order);
    free(s.starts);
    free(s.columns.ts);
    free(s.columns.values);
    free(s.columns.start_ts);
    free(s.columns.histograms);
    free(s.slices);
    forget(c);
    return rc;
}
