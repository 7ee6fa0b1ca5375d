/* samples.c - leaves that pass on raw samples: every sample of every window, once. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/pure/vec.h"
#include "promql/func/sort.h"
#include "promql/leaf/leaf_int.h"

struct sample {
    int64_t ts;
    uint32_t series;
    struct pq_value value; /* in the arena of the result */
};

struct samples {
    struct sample *items;
    size_t count, capacity;
};

static void samples_freep(struct samples *samples)
{
    free(samples->items);
}

static int by_time(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return (x->series > y->series) - (x->series < y->series);
}

/* True if a window (ref - range, ref] of the grid holds @ts: the first ref at or after it decides.
 */
static bool in_a_window(const struct pq_stage *stage, int64_t ts)
{
    const struct pq_grid *grid = &stage->grid;
    int64_t first = grid->start_ms - stage->offset_ms;
    int64_t ref = first, last = first + (int64_t)(grid->count - 1) * grid->step_ms;

    if (ts > first)
        ref = first + (qf_floor_div(ts - first - 1, grid->step_ms) + 1) * grid->step_ms;
    return ref <= last && ts <= ref && ts > ref - stage->range_ms;
}

static qf_rc take_series(struct samples *samples, const struct pq_leaf *leaf,
                         const struct pq_series *series, uint32_t id, uint64_t samples_max,
                         struct qf_arena *arena, struct pq_poll *poll, struct qf_err *err)
{
    PQ_POLL_EACH (poll, i, 0, series->count) {
        struct pq_value value;

        if ((leaf->stages[0].take != PQ_TAKE_ALL && qf_is_stale(series->values[i])) ||
            !in_a_window(&leaf->stages[0], series->ts[i]))
            continue;
        if (samples_max && samples->count >= samples_max)
            return qf_err_set(err, QF_ELIMIT, PQ_TOO_MANY_SAMPLES);
        if (!pq_value_copy(arena, pq_value_at(series->values, series->histograms, i), &value))
            return pq_leaf_no_memory(err);
        QF_VEC_PUSH(samples, (struct sample){ series->ts[i], id, value });
    }
    return QF_OK;
}

static qf_rc to_rows(const struct samples *samples, struct qf_arena *arena, struct pq_poll *poll,
                     struct pq_leaf_result *result, struct qf_err *err)
{
    int64_t *ts = qf_arena_alloc(arena, samples->count * sizeof(*ts));
    uint32_t *series = qf_arena_alloc(arena, samples->count * sizeof(*series));
    double *values = qf_arena_alloc(arena, samples->count * sizeof(*values));
    const struct pq_histogram **histograms = NULL;

    if (!ts || !series || !values)
        return pq_leaf_no_memory(err);
    pq_sort(samples->items, samples->count, sizeof(*samples->items), by_time, poll);
    PQ_POLL_EACH (poll, i, 0, samples->count) {
        ts[i] = samples->items[i].ts;
        series[i] = samples->items[i].series;
        if (!pq_value_put(arena, values, &histograms, samples->count, i, samples->items[i].value))
            return pq_leaf_no_memory(err);
    }
    if (poll->stopped)
        return pq_leaf_canceled(err);
    result->points = samples->count;
    result->rows = (struct pq_rows){
        .count = samples->count, .ts = ts, .series = series, .histograms = histograms
    };
    result->rows.columns[0] = values;
    return QF_OK;
}

qf_rc pq_samples_run(const struct pq_leaf *leaf, struct pq_source *source,
                     const struct pq_leaf_limits *limits, struct pq_poll *poll,
                     struct qf_arena *arena, struct pq_leaf_result *result, struct qf_err *err)
{
    QF_CLEANUP(samples_freep) struct samples samples = { 0 };
    size_t capacity = 0;

    for (;;) {
        struct pq_series series;
        size_t before = samples.count;
        bool more = false;
        qf_rc rc = pq_poll_look(poll) ? pq_leaf_canceled(err) : QF_OK;

        if (rc == QF_OK)
            rc = source->next(source, &series, &more, err);
        if (rc != QF_OK)
            return rc;
        if (!more)
            return to_rows(&samples, arena, poll, result, err);
        result->samples_read += series.count;
        rc = take_series(&samples, leaf, &series, (uint32_t)result->series_count,
                         limits->samples_max, arena, poll, err);
        if (rc == QF_OK && poll->stopped)
            rc = pq_leaf_canceled(err);
        if (rc != QF_OK)
            return rc;
        if (samples.count == before)
            continue;
        if (limits->series_max && result->series_count >= limits->series_max)
            return qf_err_set(err, QF_ELIMIT, "the query selects more than %llu series",
                              (unsigned long long)limits->series_max);
        if (result->series_count == capacity) {
            size_t wanted = capacity ? capacity * 2 : 16;

            result->series =
                qf_arena_grow(arena, result->series, capacity, wanted, sizeof(*result->series));
            capacity = wanted;
        }
        if (!result->series ||
            !qf_labels_copy(arena, series.labels, &result->series[result->series_count]))
            return pq_leaf_no_memory(err);
        result->series_count++;
    }
}
