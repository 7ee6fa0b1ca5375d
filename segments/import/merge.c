/* merge.c - several sorted runs as one sequence of records. */
#include "segments/import/merge.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/heap.h"
#include "base/pure/vec.h"
#include "segments/import/collect.h"

struct entry {
    const struct run_record *record;
    size_t run;
};

struct merge {
    struct run_reader **readers;
    size_t reader_count;
    struct qf_heap heap;
    struct qf_arena *arena;
    QF_VEC(int64_t) ts;
    QF_VEC(double) values;
    QF_VEC(int64_t) start_ts;         /* empty, or as long as the others */
    QF_VEC(struct qf_str) histograms; /* likewise; bytes in the arena */
};

static bool before(const void *a, const void *b, void *ctx)
{
    const struct entry *x = a, *y = b;
    int order = run_record_cmp(x->record, y->record);

    (void)ctx;
    return order ? order < 0 : x->run < y->run;
}

static qf_rc advance(struct merge *m, size_t run, struct qf_err *err)
{
    struct entry entry = { .run = run };
    qf_rc rc = run_reader_next(m->readers[run], &entry.record, err);

    if (rc == QF_OK && entry.record)
        (void)qf_heap_push(&m->heap, &entry); /* has room for every run */
    return rc;
}

static qf_rc start(struct merge *m, char *const *paths, size_t count, struct qf_err *err)
{
    m->readers = qf_xcalloc(count + 1, sizeof(*m->readers));
    m->heap = (struct qf_heap){ .items = qf_xcalloc(count + 1, sizeof(struct entry)),
                                .item_size = sizeof(struct entry),
                                .capacity = count + 1,
                                .before = before };
    m->arena = qf_arena_new(SIZE_MAX);
    for (size_t i = 0; i < count; i++) {
        qf_rc rc;

        m->readers[i] = run_reader_new(paths[i], err);
        if (!m->readers[i])
            return QF_EIO;
        m->reader_count++;
        rc = advance(m, i, err);
        if (rc != QF_OK)
            return rc;
    }
    return QF_OK;
}

static void append_extras(struct merge *m, const struct run_record *record)
{
    size_t at = m->ts.count - record->count;

    if (record->start_ts || m->start_ts.count) {
        while (m->start_ts.count < at)
            QF_VEC_PUSH(&m->start_ts, 0);
        for (size_t i = 0; i < record->count; i++)
            QF_VEC_PUSH(&m->start_ts, record->start_ts ? record->start_ts[i] : 0);
    }
    if (record->histograms || m->histograms.count) {
        struct qf_str none = { NULL, 0 };

        while (m->histograms.count < at)
            QF_VEC_PUSH(&m->histograms, none);
        for (size_t i = 0; i < record->count; i++)
            QF_VEC_PUSH(&m->histograms, record->histograms && record->histograms[i].len
                                            ? qf_arena_str(m->arena, record->histograms[i])
                                            : none);
    }
}

static void append(struct merge *m, const struct run_record *record)
{
    QF_VEC_RESERVE(&m->ts, m->ts.count + record->count);
    QF_VEC_RESERVE(&m->values, m->values.count + record->count);
    memcpy(m->ts.items + m->ts.count, record->ts, record->count * sizeof(*record->ts));
    memcpy(m->values.items + m->values.count, record->values,
           record->count * sizeof(*record->values));
    m->ts.count += record->count;
    m->values.count += record->count;
    append_extras(m, record);
}

/* What was appended, sorted, as the samples of @record. */
static void finish_record(struct merge *m, struct run_record *record)
{
    struct collect_columns columns = {
        .ts = m->ts.items,
        .values = m->values.items,
        .start_ts = m->start_ts.count ? m->start_ts.items : NULL,
        .histograms = m->histograms.count ? m->histograms.items : NULL,
    };

    record->count = collect_sort(columns, m->ts.count);
    record->ts = columns.ts;
    record->values = columns.values;
    record->start_ts = columns.start_ts;
    record->histograms = columns.histograms;
}

/* Take the least record, with those equal to it from later runs, and hand them on as one. */
static qf_rc step(struct merge *m, merge_fn *fn, void *ctx, struct qf_err *err)
{
    struct entry entry = *(const struct entry *)qf_heap_top(&m->heap);
    struct run_record record = *entry.record;
    const struct entry *top;
    qf_rc rc;

    qf_heap_pop(&m->heap);
    top = qf_heap_top(&m->heap);
    if (!top || run_record_cmp(top->record, &record) != 0) {
        rc = fn(ctx, &record, err);
        return rc == QF_OK ? advance(m, entry.run, err) : rc;
    }
    qf_arena_reset(m->arena);
    if (!qf_labels_copy(m->arena, record.labels, &record.labels))
        abort(); /* the arena has no limit */
    m->ts.count = m->values.count = m->start_ts.count = m->histograms.count = 0;
    for (;;) {
        append(m, entry.record);
        rc = advance(m, entry.run, err);
        if (rc != QF_OK)
            return rc;
        top = qf_heap_top(&m->heap);
        if (!top || run_record_cmp(top->record, &record) != 0)
            break;
        entry = *top;
        qf_heap_pop(&m->heap);
    }
    finish_record(m, &record);
    return fn(ctx, &record, err);
}

qf_rc merge_runs(char *const *paths, size_t count, const atomic_bool *cancel, merge_fn *fn,
                 void *ctx, struct qf_err *err)
{
    struct merge m = { 0 };
    qf_rc rc = start(&m, paths, count, err);

    while (rc == QF_OK && qf_heap_top(&m.heap)) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            rc = qf_err_set(err, QF_ECANCELED, "canceled");
        else
            rc = step(&m, fn, ctx, err);
    }
    for (size_t i = 0; i < m.reader_count; i++)
        (void)run_reader_free(m.readers[i]);
    free(m.readers);
    free(m.heap.items);
    (void)qf_arena_free(m.arena);
    QF_VEC_DONE(&m.ts);
    QF_VEC_DONE(&m.values);
    QF_VEC_DONE(&m.start_ts);
    QF_VEC_DONE(&m.histograms);
    return rc;
}
