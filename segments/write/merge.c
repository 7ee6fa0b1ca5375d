/* merge.c - several sorted runs as one sequence of records. */
#include "segments/write/merge.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/heap.h"
#include "base/pure/vec.h"
#include "segments/write/collect.h"

struct entry {
    const struct run_record *record;
    size_t run;
};

/* A run that has samples of the series being merged. */
struct member {
    struct entry entry;
    size_t used; /* samples of its record that are merged already */
};

struct merge {
    struct run_reader **readers;
    size_t reader_count;
    struct qf_heap heap;
    struct qf_arena *arena;
    struct run_record key;  /* of the series being merged; labels in the arena */
    struct member *members; /* by run */
    size_t member_count;
    QF_VEC(int64_t) ts;
    QF_VEC(double) values;
    QF_VEC(int64_t) start_ts;         /* empty, or as long as the others */
    QF_VEC(struct qf_str) histograms; /* likewise; borrowed from the members' records */
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
    m->members = qf_xcalloc(count + 1, sizeof(*m->members));
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

static void take_extras(struct merge *m, const struct run_record *record, size_t at)
{
    size_t before = m->ts.count - 1;
    struct qf_str none = { NULL, 0 };

    if (record->start_ts || m->start_ts.count) {
        while (m->start_ts.count < before)
            QF_VEC_PUSH(&m->start_ts, 0);
        QF_VEC_PUSH(&m->start_ts, record->start_ts ? record->start_ts[at] : 0);
    }
    if (record->histograms || m->histograms.count) {
        while (m->histograms.count < before)
            QF_VEC_PUSH(&m->histograms, none);
        QF_VEC_PUSH(&m->histograms, record->histograms ? record->histograms[at] : none);
    }
}

/* Add the samples of a member up to @bound. */
static void take_until(struct merge *m, struct member *member, int64_t bound)
{
    const struct run_record *record = member->entry.record;

    for (; member->used < record->count && record->ts[member->used] <= bound; member->used++) {
        QF_VEC_PUSH(&m->ts, record->ts[member->used]);
        QF_VEC_PUSH(&m->values, record->values[member->used]);
        take_extras(m, record, member->used);
    }
}

/* The samples taken from the members, sorted, as a record of the series. */
static struct run_record taken(struct merge *m)
{
    struct run_record record = m->key;
    struct collect_columns columns = {
        .ts = m->ts.items,
        .values = m->values.items,
        .start_ts = m->start_ts.count ? m->start_ts.items : NULL,
        .histograms = m->histograms.count ? m->histograms.items : NULL,
    };

    record.count = collect_sort(columns, m->ts.count);
    record.ts = columns.ts;
    record.values = columns.values;
    record.start_ts = columns.start_ts;
    record.histograms = columns.histograms;
    return record;
}

/* Runs whose record is used up read the next one; a run that has no more records of this series
 * leaves the members. */
static qf_rc refill(struct merge *m, struct qf_err *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->member_count; i++) {
        struct member member = m->members[i];

        if (member.used == member.entry.record->count) {
            size_t run = member.entry.run;
            qf_rc rc = run_reader_next(m->readers[run], &member.entry.record, err);

            if (rc != QF_OK)
                return rc;
            member.used = 0;
            if (!member.entry.record)
                continue;
            if (run_record_cmp(member.entry.record, &m->key) != 0) {
                (void)qf_heap_push(&m->heap, &member.entry); /* has room for every run */
                continue;
            }
        }
        m->members[kept++] = member;
    }
    m->member_count = kept;
    return QF_OK;
}

/* Merge the samples of one series from all its runs. Each turn goes up to the earliest end among
 * their current records, so that one record of each run is all that is held. */
static qf_rc merge_members(struct merge *m, merge_fn *fn, void *ctx, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    while (rc == QF_OK && m->member_count) {
        struct run_record record;
        int64_t bound = INT64_MAX;

        m->ts.count = m->values.count = m->start_ts.count = m->histograms.count = 0;
        for (size_t i = 0; i < m->member_count; i++) {
            const struct run_record *r = m->members[i].entry.record;

            bound = QF_MIN(bound, r->ts[r->count - 1]);
        }
        for (size_t i = 0; i < m->member_count; i++)
            take_until(m, &m->members[i], bound);
        record = taken(m);
        rc = fn(ctx, &record, err);
        if (rc == QF_OK)
            rc = refill(m, err);
    }
    return rc;
}

/* Take the least record; where several runs have its series, merge them. */
static qf_rc step(struct merge *m, merge_fn *fn, void *ctx, struct qf_err *err)
{
    struct entry entry = *(const struct entry *)qf_heap_top(&m->heap);
    const struct entry *top;

    qf_heap_pop(&m->heap);
    top = qf_heap_top(&m->heap);
    if (!top || run_record_cmp(top->record, entry.record) != 0) {
        qf_rc rc = fn(ctx, entry.record, err);

        return rc == QF_OK ? advance(m, entry.run, err) : rc;
    }
    m->key = *entry.record;
    qf_arena_reset(m->arena);
    if (!qf_labels_copy(m->arena, entry.record->labels, &m->key.labels))
        abort(); /* the arena has no limit */
    m->members[0] = (struct member){ .entry = entry };
    m->member_count = 1;
    while (top && run_record_cmp(top->record, &m->key) == 0) {
        m->members[m->member_count++] = (struct member){ .entry = *top };
        qf_heap_pop(&m->heap);
        top = qf_heap_top(&m->heap);
    }
    return merge_members(m, fn, ctx, err);
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
    free(m.members);
    (void)qf_arena_free(m.arena);
    QF_VEC_DONE(&m.ts);
    QF_VEC_DONE(&m.values);
    QF_VEC_DONE(&m.start_ts);
    QF_VEC_DONE(&m.histograms);
    return rc;
}
