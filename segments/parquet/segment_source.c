/* segment_source.c - the selected series of several segments, merged.
 *
 * Each segment has a cursor; a heap keeps them by the labels of their current row. The rows of a series
 * are decoded one behind the other into the same memory, series after series, and as parts that do not
 * overlap come in order, that is the series. Where they do overlap they are merged, and the newest file
 * wins. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/heap.h"
#include "base/pure/vec.h"
#include "promql/func/histogram.h"
#include "segments/parquet/seg_int.h"

/* A run of samples of the series being put together. */
struct part {
    size_t start, count; /* in the gathered samples */
    size_t age;          /* rank of the file it comes from; greater is newer */
};

/* What few samples have. Lists are empty until the first one comes, from then on they are as long
 * as the samples. */
struct extras {
    QF_VEC(int64_t) start_ts;
    QF_VEC(const struct pq_histogram *) histograms;
};

struct entry {
    const struct sg_row *row;
    size_t cursor; /* cursors are sorted by time, so that parts come out in order */
};

struct source {
    struct pq_source base; /* first member */
    struct pq_select select;
    struct pq_matcher *matchers;
    struct sg_scratch scratch;
    struct sg_cursor *cursors;
    size_t *ages;    /* per cursor: rank of its file */
    size_t *readers; /* per cursor: index of its reader */
    size_t cursor_count;
    struct qf_heap heap;
    bool started;
    QF_VEC(size_t) used;    /* cursors to move on before anything else */
    struct qf_arena *arena; /* labels of a series in several parts */
    QF_VEC(int64_t) ts;
    QF_VEC(double) values;
    bool no_stale; /* among these */
    QF_VEC(struct part) parts;
    QF_VEC(int64_t) merged_ts;
    QF_VEC(double) merged_values;
    struct extras extras, merged_extras;
};

static bool before(const void *a, const void *b, void *ctx)
{
    const struct entry *x = a, *y = b;
    int order = qf_labels_cmp(x->row->labels, y->row->labels);

    (void)ctx;
    return order ? order < 0 : x->cursor < y->cursor;
}

/* Move a cursor on; it goes back to the heap unless it is at its end. */
static qf_rc advance(struct source *source, size_t index, struct qf_err *err)
{
    struct entry entry = { .cursor = index };
    qf_rc rc = sg_cursor_next(&source->cursors[index], &entry.row, err);

    if (rc != QF_OK)
        qf_err_about(err, source->readers[index]);
    else if (entry.row)
        (void)qf_heap_push(&source->heap, &entry); /* has room for every cursor */
    return rc;
}

static qf_rc advance_used(struct source *source, struct qf_err *err)
{
    for (size_t i = 0; i < source->used.count; i++) {
        qf_rc rc = advance(source, source->used.items[i], err);

        if (rc != QF_OK)
            return rc;
    }
    source->used.count = 0;
    return QF_OK;
}

static bool same_labels(const struct sg_row *row, struct qf_labels labels)
{
    return row && qf_labels_eq(row->labels, labels);
}

/* Is there more of this series than the row that was just taken from the heap? */
static bool has_more_parts(const struct source *source, const struct entry *entry)
{
    const struct sg_cursor *cursor = &source->cursors[entry->cursor];
    const struct entry *top = qf_heap_top(&source->heap);

    if (top && same_labels(top->row, entry->row->labels))
        return true;
    if (same_labels(sg_cursor_peek(cursor), entry->row->labels))
        return true;
    return entry->row->may_continue && cursor->next_group < cursor->reader->group_count;
}

static void extras_done(struct extras *extras)
{
    QF_VEC_DONE(&extras->start_ts);
    QF_VEC_DONE(&extras->histograms);
}

static void extras_clear(struct extras *extras)
{
    extras->start_ts.count = extras->histograms.count = 0;
}

/* Make the lists that are in use @count long. */
static void extras_fill(struct extras *extras, size_t count, bool start_ts, bool histograms)
{
    while (start_ts && extras->start_ts.count < count)
        QF_VEC_PUSH(&extras->start_ts, 0);
    while (histograms && extras->histograms.count < count)
        QF_VEC_PUSH(&extras->histograms, NULL);
}

/* Histograms are copied: those of a row end with its row group. @count samples from @at on are new. */
static void gather_extras(struct source *source, const struct sg_row *row, size_t at, size_t count)
{
    struct extras *extras = &source->extras;
    bool start_ts = row->start_ts || extras->start_ts.count;
    bool histograms = row->histograms || extras->histograms.count;

    extras_fill(extras, at + count, start_ts, histograms);
    for (size_t i = 0; row->start_ts && i < count; i++)
        extras->start_ts.items[at + i] = row->start_ts[i];
    for (size_t i = 0; row->histograms && i < count; i++)
        if (row->histograms[i])
            extras->histograms.items[at + i] = pq_histogram_copy(source->arena, row->histograms[i]);
}

/* Sample @from of the gathered ones is the next of the merged ones. */
static void merge_extra(struct source *source, size_t from)
{
    struct extras *merged = &source->merged_extras;

    if (source->extras.start_ts.count)
        QF_VEC_PUSH(&merged->start_ts, source->extras.start_ts.items[from]);
    if (source->extras.histograms.count)
        QF_VEC_PUSH(&merged->histograms, source->extras.histograms.items[from]);
}

/* Would @more samples, with @bytes each in all, fit beside what is gathered and what the cursors hold? */
static qf_rc check_memory(struct source *source, size_t more, size_t bytes, struct qf_err *err)
{
    uint64_t limit = source->scratch.memory_limit;
    uint64_t extras = source->extras.start_ts.count + source->extras.histograms.count;
    uint64_t memory = source->scratch.memory + (source->ts.count + more) * bytes + extras * 16 +
                      qf_arena_used(source->arena);

    source->scratch.stats.memory_peak = QF_MAX(source->scratch.stats.memory_peak, memory);
    if (!limit || memory <= limit)
        return QF_OK;
    return qf_err_set(err, QF_ELIMIT, "a series takes more than the %llu bytes a scan may hold",
                      (unsigned long long)limit);
}

/* Forget the samples of the series before. */
static void gather_begin(struct source *source)
{
    qf_arena_reset(source->arena);
    source->parts.count = source->ts.count = source->values.count = 0;
    source->no_stale = true;
    extras_clear(&source->extras);
}

/* The samples of a row, behind those that are gathered already; @bytes are for each sample in the end. */
static qf_rc gather(struct source *source, const struct entry *entry, size_t bytes,
                    struct qf_err *err)
{
    const struct sg_row *row = entry->row;
    struct sg_decoded got = { .count = row->count };
    size_t at = source->ts.count;
    qf_rc rc = check_memory(source, row->count, bytes, err);

    if (rc != QF_OK)
        return rc;
    QF_VEC_RESERVE(&source->ts, at + row->count);
    QF_VEC_RESERVE(&source->values, at + row->count);
    if (row->ts) {
        memcpy(source->ts.items + at, row->ts, row->count * sizeof(*row->ts));
        memcpy(source->values.items + at, row->values, row->count * sizeof(*row->values));
    } else {
        rc = sg_cursor_decode(&source->cursors[entry->cursor], row, source->ts.items + at,
                              source->values.items + at, &got, err);
    }
    if (rc != QF_OK)
        qf_err_about(err, source->readers[entry->cursor]);
    if (rc != QF_OK || !got.count)
        return rc;
    QF_VEC_PUSH(&source->parts, (struct part){ at, got.count, source->ages[entry->cursor] });
    source->ts.count += got.count;
    source->values.count += got.count;
    source->no_stale &= got.no_stale;
    gather_extras(source, row, at, got.count);
    return QF_OK;
}

static int by_first_ts(const void *a, const void *b, void *ctx)
{
    const struct part *x = a, *y = b;
    const int64_t *ts = ctx;

    if (ts[x->start] != ts[y->start])
        return ts[x->start] < ts[y->start] ? -1 : 1;
    return (x->age > y->age) - (x->age < y->age);
}

/* Merge the parts [first, end), which overlap: at each timestamp the newest part that has it. The
 * number of parts is small; each is walked once. */
static void merge_overlap(struct source *source, struct part *parts, size_t count)
{
    const int64_t *ts = source->ts.items;

    for (;;) {
        int64_t least = INT64_MAX;
        const struct part *newest = NULL;

        for (size_t i = 0; i < count; i++) {
            struct part *part = &parts[i];

            if (!part->count)
                continue;
            if (!newest || ts[part->start] < least ||
                (ts[part->start] == least && part->age > newest->age)) {
                newest = part;
                least = ts[part->start];
            }
        }
        if (!newest)
            return;
        QF_VEC_PUSH(&source->merged_ts, least);
        QF_VEC_PUSH(&source->merged_values, source->values.items[newest->start]);
        merge_extra(source, newest->start);
        for (size_t i = 0; i < count; i++)
            if (parts[i].count && ts[parts[i].start] == least) {
                parts[i].start++;
                parts[i].count--;
            }
    }
}

static void append_part(struct source *source, const struct part *part)
{
    size_t at = source->merged_ts.count;

    QF_VEC_RESERVE(&source->merged_ts, at + part->count);
    QF_VEC_RESERVE(&source->merged_values, at + part->count);
    memcpy(source->merged_ts.items + at, source->ts.items + part->start,
           part->count * sizeof(int64_t));
    memcpy(source->merged_values.items + at, source->values.items + part->start,
           part->count * sizeof(double));
    source->merged_ts.count += part->count;
    source->merged_values.count += part->count;
    for (size_t i = 0; i < part->count; i++)
        merge_extra(source, part->start + i);
}

/* Did the parts come one after another in time? Then they are the series as they stand. */
static bool in_order(const struct source *source)
{
    const struct part *parts = source->parts.items;
    const int64_t *ts = source->ts.items;

    for (size_t i = 1; i < source->parts.count; i++)
        if (ts[parts[i].start - 1] >= ts[parts[i].start])
            return false;
    return true;
}

/* Put the gathered parts in order, cluster of overlapping parts by cluster. */
static void merge_parts(struct source *source)
{
    struct part *parts = source->parts.items;
    const int64_t *ts = source->ts.items;
    size_t count = source->parts.count;

    qsort_r(parts, count, sizeof(*parts), by_first_ts, source->ts.items);
    source->merged_ts.count = source->merged_values.count = 0;
    extras_clear(&source->merged_extras);
    for (size_t i = 0; i < count;) {
        int64_t last = ts[parts[i].start + parts[i].count - 1];
        size_t end = i + 1;

        while (end < count && ts[parts[end].start] <= last) {
            int64_t its_last = ts[parts[end].start + parts[end].count - 1];

            last = its_last > last ? its_last : last;
            end++;
        }
        if (end - i == 1)
            append_part(source, &parts[i]);
        else
            merge_overlap(source, &parts[i], end - i);
        i = end;
    }
}

static void set_extras(struct pq_series *series, const struct extras *extras)
{
    series->start_ts = extras->start_ts.count ? extras->start_ts.items : NULL;
    series->histograms = extras->histograms.count ? extras->histograms.items : NULL;
}

#define MERGE_BYTES 32 /* for each sample of a series in parts: gathered, and merged if need be */
#define PLAIN_BYTES 16 /* for each one of a series in one piece */

/* Collect every part of the series of @first, from all cursors and row groups. */
static qf_rc put_together(struct source *source, struct entry first, struct pq_series *ret_series,
                          struct qf_err *err)
{
    const struct entry *top;
    struct qf_labels labels;

    gather_begin(source);
    if (!qf_labels_copy(source->arena, first.row->labels, &labels))
        abort(); /* the arena has no limit */
    for (;;) {
        qf_rc rc = gather(source, &first, MERGE_BYTES, err);

        if (rc == QF_OK)
            rc = check_memory(source, 0, MERGE_BYTES, err); /* with the row's histograms */
        if (rc == QF_OK)
            rc = advance(source, first.cursor, err);
        if (rc != QF_OK)
            return rc;
        top = qf_heap_top(&source->heap);
        if (!top || !same_labels(top->row, labels))
            break;
        first = *top;
        qf_heap_pop(&source->heap);
    }
    *ret_series = (struct pq_series){ .labels = labels,
                                      .ts = source->ts.items,
                                      .values = source->values.items,
                                      .count = source->ts.count,
                                      .no_stale = source->no_stale };
    set_extras(ret_series, &source->extras);
    if (in_order(source))
        return QF_OK;
    merge_parts(source);
    set_extras(ret_series, &source->merged_extras);
    ret_series->ts = source->merged_ts.items;
    ret_series->values = source->merged_values.items;
    ret_series->count = source->merged_ts.count;
    return QF_OK;
}

/* The series that one row holds whole. */
static qf_rc take_row(struct source *source, const struct entry *entry,
                      struct pq_series *ret_series, struct qf_err *err)
{
    const struct sg_row *row = entry->row;
    qf_rc rc = QF_OK;

    QF_VEC_PUSH(&source->used, entry->cursor);
    *ret_series = (struct pq_series){ .labels = row->labels,
                                      .ts = row->ts,
                                      .values = row->values,
                                      .histograms = row->histograms,
                                      .start_ts = row->start_ts,
                                      .count = row->count };
    if (row->ts)
        return QF_OK;
    gather_begin(source);
    rc = gather(source, entry, PLAIN_BYTES, err);
    ret_series->ts = source->ts.items;
    ret_series->values = source->values.items;
    ret_series->count = source->ts.count;
    ret_series->no_stale = source->no_stale;
    return rc;
}

static qf_rc start(struct source *source, struct qf_err *err)
{
    source->started = true;
    for (size_t i = 0; i < source->cursor_count; i++) {
        qf_rc rc = advance(source, i, err);

        if (rc != QF_OK)
            return rc;
    }
    return QF_OK;
}

/* The next series, which may turn out to have no samples in the selected time. */
static qf_rc next_series(struct source *source, struct pq_series *ret_series, bool *ret_more,
                         struct qf_err *err)
{
    const struct entry *top;
    struct entry entry;
    qf_rc rc = source->started ? advance_used(source, err) : start(source, err);

    if (rc != QF_OK)
        return rc;
    if (source->scratch.cancel &&
        atomic_load_explicit(source->scratch.cancel, memory_order_relaxed))
        return qf_err_set(err, QF_ECANCELED, "canceled");
    top = qf_heap_top(&source->heap);
    *ret_more = top != NULL;
    if (!top)
        return QF_OK;
    entry = *top;
    qf_heap_pop(&source->heap);
    return has_more_parts(source, &entry) ? put_together(source, entry, ret_series, err)
                                          : take_row(source, &entry, ret_series, err);
}

static qf_rc source_next(struct pq_source *base, struct pq_series *ret_series, bool *ret_more,
                         struct qf_err *err)
{
    struct source *source = (struct source *)base;
    struct qf_err own = { 0 };
    qf_rc rc;

    do
        rc = next_series(source, ret_series, ret_more, err ? err : &own);
    while (rc == QF_OK && *ret_more && !ret_series->count);
    source->scratch.stats.series += rc == QF_OK && *ret_more;
    return rc;
}

static void source_close(struct pq_source *base)
{
    struct source *source = (struct source *)base;

    for (size_t i = 0; i < source->cursor_count; i++)
        sg_cursor_done(&source->cursors[i]);
    free(source->cursors);
    free(source->ages);
    free(source->readers);
    free(source->matchers);
    free(source->heap.items);
    (void)qf_arena_free(source->arena);
    QF_VEC_DONE(&source->used);
    QF_VEC_DONE(&source->ts);
    QF_VEC_DONE(&source->values);
    QF_VEC_DONE(&source->parts);
    QF_VEC_DONE(&source->merged_ts);
    QF_VEC_DONE(&source->merged_values);
    extras_done(&source->extras);
    extras_done(&source->merged_extras);
    free(source);
}

struct ranked {
    struct sg_reader *reader;
    size_t index; /* among the readers given */
    size_t age;
};

static int by_age(const void *a, const void *b)
{
    const struct sg_segment_name *x = &sg_reader_meta(((const struct ranked *)a)->reader)->name;
    const struct sg_segment_name *y = &sg_reader_meta(((const struct ranked *)b)->reader)->name;

    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_time(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    int64_t x_min = sg_reader_meta(x->reader)->name.min_ts;
    int64_t y_min = sg_reader_meta(y->reader)->name.min_ts;

    if (x_min != y_min)
        return x_min < y_min ? -1 : 1;
    return (x->age > y->age) - (x->age < y->age);
}

/* A cursor for each reader, by time, with the age of its file. */
static void add_cursors(struct source *source, struct sg_reader *const *readers, size_t count)
{
    QF_CLEANUP(qf_freep) struct ranked *ranked = qf_xcalloc(count + 1, sizeof(*ranked));

    for (size_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){ .reader = readers[i], .index = i };
    qsort(ranked, count, sizeof(*ranked), by_age);
    for (size_t i = 0; i < count; i++)
        ranked[i].age = i;
    qsort(ranked, count, sizeof(*ranked), by_time);
    source->cursors = qf_xcalloc(count + 1, sizeof(*source->cursors));
    source->ages = qf_xcalloc(count + 1, sizeof(*source->ages));
    source->readers = qf_xcalloc(count + 1, sizeof(*source->readers));
    source->cursor_count = count;
    for (size_t i = 0; i < count; i++) {
        source->ages[i] = ranked[i].age;
        source->readers[i] = ranked[i].index;
        sg_cursor_init(&source->cursors[i], ranked[i].reader, &source->select, &source->scratch);
    }
}

struct pq_source *sg_source_new(struct sg_reader *const *readers, size_t reader_count,
                                const struct pq_select *select, const atomic_bool *cancel,
                                uint64_t memory_limit)
{
    struct source *source = qf_xcalloc(1, sizeof(*source));

    source->base = (struct pq_source){ source_next, source_close };
    source->select = *select;
    source->matchers = qf_xcalloc(select->matcher_count + 1, sizeof(*source->matchers));
    if (select->matcher_count)
        memcpy(source->matchers, select->matchers,
               select->matcher_count * sizeof(*source->matchers));
    source->select.matchers = source->matchers;
    source->scratch.cancel = cancel;
    source->scratch.memory_limit = memory_limit;
    source->arena = qf_arena_new(SIZE_MAX);
    add_cursors(source, readers, reader_count);
    source->heap = (struct qf_heap){ .items = qf_xcalloc(reader_count + 1, sizeof(struct entry)),
                                     .item_size = sizeof(struct entry),
                                     .capacity = reader_count + 1,
                                     .before = before };
    return &source->base;
}

void sg_source_presence_only(struct pq_source *source)
{
    ((struct source *)source)->scratch.presence = true;
}

struct sg_source_stats sg_source_stats(const struct pq_source *source)
{
    return ((const struct source *)source)->scratch.stats;
}
