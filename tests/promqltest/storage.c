/* storage.c - series in memory. */
#include "tests/promqltest/storage.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/pure/number.h"
#include "base/pure/vec.h"
#include "promql/ast.h"
#include "tests/promqltest/histogram.h"
#include "tests/promqltest/nhcb.h"

struct stored {
    struct qf_labels labels;
    QF_VEC(int64_t) ts;
    QF_VEC(double) values;
    QF_VEC(const struct pq_histogram *) histograms;
    QF_VEC(int64_t) start_ts;
    bool any_histogram, any_start;
};

struct shard {
    QF_VEC(struct stored *) series; /* by labels */
};

struct storage {
    struct qf_arena *arena;
    size_t shard_count;
    struct shard *shards;
};

struct storage *storage_new(size_t shard_count)
{
    struct storage *storage = qf_xcalloc(1, sizeof(*storage));

    storage->arena = qf_arena_new(SIZE_MAX);
    storage->shard_count = shard_count;
    storage->shards = qf_xcalloc(shard_count, sizeof(*storage->shards));
    return storage;
}

void storage_clear(struct storage *storage)
{
    for (size_t i = 0; i < storage->shard_count; i++) {
        struct shard *shard = &storage->shards[i];

        for (size_t s = 0; s < shard->series.count; s++) {
            struct stored *stored = shard->series.items[s];

            QF_VEC_DONE(&stored->ts);
            QF_VEC_DONE(&stored->values);
            QF_VEC_DONE(&stored->histograms);
            QF_VEC_DONE(&stored->start_ts);
            free(stored);
        }
        QF_VEC_DONE(&shard->series);
    }
    qf_arena_reset(storage->arena);
}

struct storage *storage_free(struct storage *storage)
{
    if (!storage)
        return NULL;
    storage_clear(storage);
    (void)qf_arena_free(storage->arena);
    free(storage->shards);
    free(storage);
    return NULL;
}

struct qf_arena *storage_arena(struct storage *storage)
{
    return storage->arena;
}

/* The series with these labels, made if there is none. */
static struct stored *find_series(struct storage *storage, struct qf_labels labels)
{
    struct shard *shard = &storage->shards[qf_labels_shard_hash(labels) % storage->shard_count];
    struct stored *stored;
    size_t low = 0, high = shard->series.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = qf_labels_cmp(labels, shard->series.items[middle]->labels);

        if (order == 0)
            return shard->series.items[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    stored = qf_xcalloc(1, sizeof(*stored));
    if (!qf_labels_copy(storage->arena, labels, &stored->labels))
        abort(); /* no budget */
    QF_VEC_PUSH(&shard->series, NULL);
    for (size_t i = shard->series.count - 1; i > low; i--)
        shard->series.items[i] = shard->series.items[i - 1];
    shard->series.items[low] = stored;
    return stored;
}

/* The histogram as it would be read back: what is known of resets is where it lies in a chunk. */
static const struct pq_histogram *with_hint(struct storage *storage, const struct stored *stored,
                                            const struct pq_histogram *histogram)
{
    size_t count = stored->histograms.count;
    const struct pq_histogram *prev = count ? stored->histograms.items[count - 1] : NULL;
    struct pq_histogram *copy = QF_ARENA_NEW(storage->arena, struct pq_histogram);

    *copy = *histogram;
    copy->reset_hint_given = false;
    if (histogram->reset_hint != PQ_RESET_GAUGE)
        copy->reset_hint =
            prev && histogram_extends(prev, histogram) ? PQ_RESET_NO : PQ_RESET_UNKNOWN;
    return copy;
}

qf_rc storage_append(struct storage *storage, struct qf_labels labels, struct storage_sample sample,
                     struct qf_err *err)
{
    struct stored *stored = find_series(storage, labels);
    size_t count = stored->ts.count;

    if (count && stored->ts.items[count - 1] >= sample.ts) {
        if (stored->ts.items[count - 1] == sample.ts && !sample.histogram &&
            !stored->histograms.items[count - 1] &&
            qf_double_bits(stored->values.items[count - 1]) == qf_double_bits(sample.value))
            return QF_OK;
        return qf_err_set(err, QF_EINVAL, "out of order sample at %lld", (long long)sample.ts);
    }
    if (sample.histogram)
        sample.histogram = with_hint(storage, stored, sample.histogram);
    QF_VEC_PUSH(&stored->ts, sample.ts);
    QF_VEC_PUSH(&stored->values, sample.value);
    QF_VEC_PUSH(&stored->histograms, sample.histogram);
    QF_VEC_PUSH(&stored->start_ts, sample.start_ts);
    stored->any_histogram |= sample.histogram != NULL;
    stored->any_start |= sample.start_ts != 0;
    return QF_OK;
}

static qf_rc load_series(struct storage *storage, const struct script_series *series,
                         int64_t gap_ms, struct qf_err *err)
{
    for (size_t i = 0; i < series->count; i++) {
        const struct pq_sequence_value *value = &series->values[i];
        struct storage_sample sample = { (int64_t)i * gap_ms, value->value, value->histogram, 0 };
        qf_rc rc;

        if (value->omitted)
            continue;
        if (series->start_offsets && series->start_known[i])
            sample.start_ts = sample.ts + series->start_offsets[i];
        rc = storage_append(storage, series->labels, sample, err);
        if (rc != QF_OK)
            return qf_err_prefix(err, rc, "line %zu", series->line);
    }
    return QF_OK;
}

qf_rc storage_load(struct storage *storage, const struct script_load *load, struct qf_err *err)
{
    for (size_t i = 0; i < load->series_count; i++) {
        qf_rc rc = load_series(storage, &load->series[i], load->gap_ms, err);

        if (rc != QF_OK)
            return rc;
    }
    return load->with_nhcb ? nhcb_load(storage, load, err) : QF_OK;
}

struct memory_source {
    struct pq_source base;
    const struct shard *shard;
    struct pq_select select;
    size_t at;
};

static size_t first_not_before(const int64_t *ts, size_t count, int64_t at)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ts[middle] >= at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The part of the series in the selected time; false if there is none. */
static bool cut(struct memory_source *source, const struct stored *stored,
                struct pq_series *ret_series)
{
    size_t count = stored->ts.count;
    size_t first = first_not_before(stored->ts.items, count, source->select.min_ts);
    size_t end = source->select.max_ts == INT64_MAX
                     ? count
                     : first_not_before(stored->ts.items, count, source->select.max_ts + 1);

    if (first >= end)
        return false;
    *ret_series = (struct pq_series){
        .labels = stored->labels,
        .ts = stored->ts.items + first,
        .values = stored->values.items + first,
        .histograms = stored->any_histogram ? stored->histograms.items + first : NULL,
        .start_ts = stored->any_start ? stored->start_ts.items + first : NULL,
        .count = end - first,
    };
    return true;
}

static qf_rc memory_next(struct pq_source *base, struct pq_series *ret_series, bool *ret_more,
                         struct qf_err *err)
{
    struct memory_source *source = (struct memory_source *)base;

    (void)err;
    while (source->at < source->shard->series.count) {
        const struct stored *stored = source->shard->series.items[source->at++];

        if (!pq_matchers_match(source->select.matchers, source->select.matcher_count,
                               stored->labels))
            continue;
        if (cut(source, stored, ret_series)) {
            *ret_more = true;
            return QF_OK;
        }
    }
    *ret_more = false;
    return QF_OK;
}

static void memory_close(struct pq_source *base)
{
    free(base);
}

qf_rc storage_open(void *ctx, size_t shard, const struct pq_select *select,
                   struct pq_source **ret_source, struct qf_err *err)
{
    struct storage *storage = ctx;
    struct memory_source *source = qf_xcalloc(1, sizeof(*source));

    (void)err;
    *source = (struct memory_source){ .base = { memory_next, memory_close },
                                      .shard = &storage->shards[shard],
                                      .select = *select };
    *ret_source = &source->base;
    return QF_OK;
}
