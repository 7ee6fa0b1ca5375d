/* reuse.c - steps of a leaf that were answered before. */
#include "promql/leaf_reuse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "promql/leaf/leaf_int.h"

struct pq_past {
    struct qf_arena *arena;
    struct pq_grid grid;
    struct pq_leaf_result result;
};

static bool looks_at_time(const struct pq_stage *stage)
{
    return stage->kind == PQ_STAGE_INSTANT || stage->kind == PQ_STAGE_WINDOW ||
           stage->kind == PQ_STAGE_SAMPLES;
}

/* It may not read all that its windows cover, as behind a tenant's retention: what its first steps see
 * changes with time. */
static bool is_cut(const struct pq_leaf *leaf)
{
    int64_t min, max;

    pq_leaf_reads(leaf, 0, &min, &max);
    return leaf->select.min_ts > min;
}

bool pq_leaf_reusable(const struct pq_leaf *leaf)
{
    const struct pq_stage *first = &leaf->stages[0];

    for (size_t i = 1; i < leaf->stage_count; i++)
        if (looks_at_time(&leaf->stages[i]))
            return false;
    if (first->kind == PQ_STAGE_WINDOW && first->take != PQ_TAKE_VALUE)
        return false; /* asks which series there are, of an index as it may be */
    return leaf->kind != &pq_leaf_samples && !first->anchored && !first->smoothed &&
           !leaf->finds_resets && !leaf->start_timestamps && !leaf->ranks && !is_cut(leaf);
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    return (a % b + b) % b;
}

void pq_leaf_reuse_key(const struct pq_leaf *leaf, struct qf_strbuf *buf)
{
    struct pq_leaf key = *leaf;

    key.stages = qf_xcalloc(leaf->stage_count, sizeof(*leaf->stages));
    memcpy(key.stages, leaf->stages, leaf->stage_count * sizeof(*leaf->stages));
    key.id = 0;
    key.agg_pos = (struct pq_pos){ 0 };
    key.select.min_ts = key.select.max_ts = 0;
    for (size_t i = 0; i < key.stage_count; i++)
        key.stages[i].pos = (struct pq_pos){ 0 };
    key.stages[0].grid.start_ms =
        floor_mod(key.stages[0].grid.start_ms, key.stages[0].grid.step_ms);
    key.stages[0].grid.count = 1;
    pq_leaf_encode(&key, buf);
    free(key.stages);
}

void pq_leaf_reads(const struct pq_leaf *leaf, uint64_t step, int64_t *ret_min, int64_t *ret_max)
{
    const struct pq_stage *stage = &leaf->stages[0];

    *ret_max = pq_grid_time(&stage->grid, step) - stage->offset_ms;
    *ret_min = *ret_max - stage->range_ms + 1;
}

qf_rc pq_leaf_rest(struct qf_arena *arena, const struct pq_leaf *leaf, uint64_t skip,
                   struct pq_leaf **ret_leaf, struct qf_err *err)
{
    struct pq_leaf *rest = QF_ARENA_NEW(arena, struct pq_leaf);
    struct pq_stage *stages = QF_ARENA_ARRAY(arena, struct pq_stage, leaf->stage_count);
    int64_t max;

    assert(skip < leaf->stages[0].grid.count);
    if (!rest || !stages)
        return pq_leaf_no_memory(err);
    memcpy(stages, leaf->stages, leaf->stage_count * sizeof(*stages));
    stages[0].grid.start_ms = pq_grid_time(&stages[0].grid, skip);
    stages[0].grid.count -= skip;
    *rest = *leaf;
    rest->stages = stages;
    pq_leaf_reads(rest, 0, &rest->select.min_ts, &max);
    *ret_leaf = rest;
    return QF_OK;
}

/* -- Keeping ---------------------------------------------------------------------------------- */

static void *copy_of(struct qf_arena *arena, const void *from, size_t size)
{
    void *to = qf_arena_alloc(arena, size);

    if (to && size)
        memcpy(to, from, size);
    return to;
}

static void copy_result(struct pq_past *past, const struct pq_leaf_result *from)
{
    struct pq_leaf_result *to = &past->result;
    size_t count = from->rows.count;

    *to = (struct pq_leaf_result){ .kind = from->kind,
                                   .series_count = from->series_count,
                                   .rows.count = count };
    to->series = QF_ARENA_ARRAY(past->arena, struct qf_labels, from->series_count);
    for (size_t i = 0; to->series && i < from->series_count; i++)
        if (!qf_labels_copy(past->arena, from->series[i], &to->series[i]))
            return;
    to->rows.ts = copy_of(past->arena, from->rows.ts, count * sizeof(*to->rows.ts));
    to->rows.series = copy_of(past->arena, from->rows.series, count * sizeof(*to->rows.series));
    for (size_t c = 0; c < from->kind->column_count; c++)
        to->rows.columns[c] = copy_of(past->arena, from->rows.columns[c], count * sizeof(double));
    to->points_by_step =
        copy_of(past->arena, from->points_by_step, past->grid.count * sizeof(uint32_t));
}

struct pq_past *pq_past_new(const struct pq_leaf *leaf, const struct pq_leaf_result *result,
                            uint64_t bytes_max)
{
    struct pq_past *past;

    if (result->notes.count || result->rows.histograms || !result->points_by_step)
        return NULL;
    past = qf_xcalloc(1, sizeof(*past));
    past->arena = qf_arena_new((size_t)bytes_max);
    past->grid = *pq_leaf_grid(leaf);
    copy_result(past, result);
    return qf_arena_failed(past->arena) ? pq_past_free(past) : past;
}

struct pq_past *pq_past_free(struct pq_past *past)
{
    if (!past)
        return NULL;
    (void)qf_arena_free(past->arena);
    free(past);
    return NULL;
}

uint64_t pq_past_bytes(const struct pq_past *past)
{
    return sizeof(*past) + qf_arena_used(past->arena);
}

/* -- Joining ---------------------------------------------------------------------------------- */

/* The step of @past that is the first one of @grid. */
static int64_t first_step(const struct pq_past *past, const struct pq_grid *grid)
{
    return (grid->start_ms - past->grid.start_ms) / grid->step_ms;
}

uint64_t pq_past_steps(const struct pq_past *past, const struct pq_leaf *leaf)
{
    const struct pq_grid *grid = pq_leaf_grid(leaf);
    int64_t left = (int64_t)past->grid.count - first_step(past, grid);

    if (grid->start_ms < past->grid.start_ms || left <= 0)
        return 0;
    return QF_MIN((uint64_t)left, grid->count);
}

/* The first row at @ts or later. */
static size_t row_at(const struct pq_rows *rows, int64_t ts)
{
    size_t low = 0, high = rows->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (rows->ts[middle] < ts)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Two results on their way to one: rows of the past from @first on, and where series go to. */
struct joint {
    const struct pq_leaf_result *past, *fresh;
    size_t first, count;
    uint32_t *past_ids, *fresh_ids;
};

/* One table of both, sorted; of the past only what has a row. */
static size_t join_series(const struct joint *j, struct qf_labels *into)
{
    size_t a = 0, b = 0, count = 0;

    while (a < j->past->series_count || b < j->fresh->series_count) {
        int order;

        if (a < j->past->series_count && !j->past_ids[a]) {
            a++;
            continue;
        }
        order = a == j->past->series_count ? 1
                : b == j->fresh->series_count
                    ? -1
                    : qf_labels_cmp(j->past->series[a], j->fresh->series[b]);
        into[count] = order <= 0 ? j->past->series[a] : j->fresh->series[b];
        if (order <= 0)
            j->past_ids[a++] = (uint32_t)count;
        if (order >= 0)
            j->fresh_ids[b++] = (uint32_t)count;
        count++;
    }
    return count;
}

static void join_rows(const struct joint *j, int64_t *ts, uint32_t *series, double *const *columns)
{
    const struct pq_rows *past = &j->past->rows, *fresh = &j->fresh->rows;

    memcpy(ts, past->ts + j->first, j->count * sizeof(*ts));
    for (size_t i = 0; i < j->count; i++)
        series[i] = j->past_ids[past->series[j->first + i]];
    for (size_t i = 0; i < fresh->count; i++) {
        ts[j->count + i] = fresh->ts[i];
        series[j->count + i] = j->fresh_ids[fresh->series[i]];
    }
    for (size_t c = 0; c < j->past->kind->column_count; c++) {
        memcpy(columns[c], past->columns[c] + j->first, j->count * sizeof(double));
        if (fresh->count)
            memcpy(columns[c] + j->count, fresh->columns[c], fresh->count * sizeof(double));
    }
}

static bool join_tables(struct qf_arena *arena, struct joint *j, struct pq_leaf_result *result)
{
    size_t rows = j->count + j->fresh->rows.count;
    int64_t *ts = qf_arena_alloc(arena, rows * sizeof(*ts));
    uint32_t *series = qf_arena_alloc(arena, rows * sizeof(*series));
    double *columns[PQ_LEAF_COLUMNS_MAX];

    j->past_ids = QF_ARENA_ARRAY(arena, uint32_t, j->past->series_count);
    j->fresh_ids = QF_ARENA_ARRAY(arena, uint32_t, j->fresh->series_count);
    result->series =
        QF_ARENA_ARRAY(arena, struct qf_labels, j->past->series_count + j->fresh->series_count);
    for (size_t c = 0; c < result->kind->column_count; c++)
        result->rows.columns[c] = columns[c] = qf_arena_alloc(arena, rows * sizeof(double));
    if (qf_arena_failed(arena))
        return false;
    for (size_t i = 0; i < j->count; i++)
        j->past_ids[j->past->rows.series[j->first + i]] = 1;
    result->series_count = join_series(j, result->series);
    join_rows(j, ts, series, columns);
    result->rows.count = rows;
    result->rows.ts = ts;
    result->rows.series = series;
    return true;
}

/* The points of @skip steps of the past and of all others. */
static bool join_points(struct qf_arena *arena, const uint32_t *past, uint64_t skip,
                        const struct pq_leaf_result *fresh, uint64_t steps,
                        struct pq_leaf_result *result)
{
    uint32_t *points = qf_arena_alloc(arena, steps * sizeof(*points));

    if (!points)
        return false;
    memcpy(points, past, skip * sizeof(*points));
    if (skip < steps)
        memcpy(points + skip, fresh->points_by_step, (steps - skip) * sizeof(*points));
    result->points_by_step = points;
    result->points = 0;
    for (uint64_t k = 0; k < steps; k++)
        result->points += points[k];
    return true;
}

qf_rc pq_past_join(struct qf_arena *arena, const struct pq_leaf *leaf, const struct pq_past *past,
                   uint64_t skip, const struct pq_leaf_result *fresh, uint64_t samples_max,
                   struct pq_leaf_result *ret_result, struct qf_err *err)
{
    const struct pq_grid *grid = pq_leaf_grid(leaf);
    const struct pq_leaf_result *kept = &past->result;
    struct pq_leaf_result result = { .kind = leaf->kind,
                                     .notes = fresh->notes,
                                     .samples_read = fresh->samples_read };
    struct joint j = { .past = kept, .fresh = fresh };

    assert(skip <= pq_past_steps(past, leaf));
    assert(kept->kind == leaf->kind);
    assert(!fresh->rows.histograms);
    j.first = row_at(&kept->rows, grid->start_ms);
    j.count = row_at(&kept->rows, pq_grid_time(grid, skip)) - j.first;
    if (!join_points(arena, kept->points_by_step + first_step(past, grid), skip, fresh, grid->count,
                     &result) ||
        !join_tables(arena, &j, &result))
        return pq_leaf_no_memory(err);
    if (samples_max && result.points > samples_max)
        return qf_err_set(err, QF_ELIMIT, PQ_TOO_MANY_SAMPLES);
    *ret_result = result;
    return QF_OK;
}
