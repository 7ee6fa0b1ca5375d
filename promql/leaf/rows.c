/* rows.c - what a leaf gathered, as rows sorted by time and series. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/func/sort.h"
#include "promql/leaf/leaf_int.h"
#include "promql/partial/topk.h"

/* Streams that the memory system keeps apart well: steps times columns of rows. */
#define TILE_STEPS ((size_t)16)

/* A source of rows: one series of the result. */
struct lane {
    struct qf_labels labels;
    const double *columns[PQ_LEAF_COLUMNS_MAX];
    const uint8_t *present;
    const struct pq_histogram *const *histograms; /* or NULL */
};

static int by_labels(const void *a, const void *b)
{
    const struct lane *x = a, *y = b;
    int order = qf_labels_cmp(x->labels, y->labels);

    /* Of one series the floats come first. */
    return order ? order : (x->histograms != NULL) - (y->histograms != NULL);
}

/* Groups in the order of their labels, and where they came from. */
struct ranked {
    struct qf_labels labels;
    uint32_t index;
};

static int by_ranked_labels(const void *a, const void *b)
{
    return qf_labels_cmp(((const struct ranked *)a)->labels, ((const struct ranked *)b)->labels);
}

static bool allocate(struct pq_sink *sink, size_t series_count, size_t row_count,
                     struct pq_leaf_result *result, double **columns)
{
    struct qf_arena *arena = sink->arena;

    result->series = QF_ARENA_ARRAY(arena, struct qf_labels, series_count);
    result->series_count = series_count;
    result->rows.count = row_count;
    result->rows.ts = qf_arena_alloc(arena, row_count * sizeof(int64_t));
    result->rows.series = qf_arena_alloc(arena, row_count * sizeof(uint32_t));
    for (size_t c = 0; c < sink->leaf->kind->column_count; c++) {
        columns[c] = qf_arena_alloc(arena, row_count * sizeof(double));
        result->rows.columns[c] = columns[c];
    }
    return !qf_arena_failed(arena);
}

/* Room for histograms, if there is any. */
static bool allocate_histograms(struct pq_sink *sink, const struct lane *lanes, size_t count,
                                size_t rows, const struct pq_histogram ***ret)
{
    bool any = false;

    for (size_t i = 0; i < count; i++)
        any |= lanes[i].histograms != NULL;
    *ret = any ? QF_ARENA_ARRAY(sink->arena, const struct pq_histogram *, rows) : NULL;
    return !any || *ret;
}

/* Where the rows of each step begin. */
static size_t count_rows(const struct lane *lanes, size_t count, size_t steps, struct pq_poll *poll,
                         size_t *begin)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++)
        PQ_POLL_EACH (poll, k, 0, steps)
            begin[k] += lanes[i].present[k];
    for (size_t k = 0; k < steps; k++) {
        size_t here = begin[k];

        begin[k] = total;
        total += here;
    }
    return total;
}

/* Lanes with the same labels, which stand beside each other, are one series. Returns how many. */
static size_t number_series(const struct lane *lanes, size_t count, uint32_t *ids)
{
    size_t series = 0;

    for (size_t i = 0; i < count; i++) {
        if (i == 0 || qf_labels_cmp(lanes[i - 1].labels, lanes[i].labels) != 0)
            series++;
        ids[i] = (uint32_t)(series - 1);
    }
    return series;
}

static qf_rc transpose(struct pq_sink *sink, const struct lane *lanes, size_t count,
                       struct pq_leaf_result *result, struct qf_err *err)
{
    const struct pq_grid *grid = pq_leaf_grid(sink->leaf);
    QF_CLEANUP(qf_freep) size_t *next = qf_xcalloc(sink->steps, sizeof(size_t));
    QF_CLEANUP(qf_freep) uint32_t *ids = qf_xcalloc(count + 1, sizeof(*ids));
    size_t rows = count_rows(lanes, count, sink->steps, sink->poll, next);
    size_t column_count = sink->leaf->kind->column_count;
    const struct pq_histogram **histograms;
    double *columns[PQ_LEAF_COLUMNS_MAX];
    int64_t *ts;
    uint32_t *series;

    if (sink->poll->stopped)
        return pq_leaf_canceled(err);
    if (!allocate(sink, number_series(lanes, count, ids), rows, result, columns) ||
        !allocate_histograms(sink, lanes, count, rows, &histograms))
        return pq_leaf_no_memory(err);
    result->rows.histograms = histograms;
    ts = (int64_t *)(uintptr_t)result->rows.ts;
    series = (uint32_t *)(uintptr_t)result->rows.series;
    for (size_t i = 0; i < count; i++)
        result->series[ids[i]] = lanes[i].labels;
    /* A few steps at a time: each step is a stream of its own to write to. */
    for (size_t from = 0; from < sink->steps; from += TILE_STEPS) {
        size_t until = QF_MIN(from + TILE_STEPS, sink->steps);

        for (size_t i = 0; i < count && !pq_poll_work(sink->poll, until - from); i++)
            for (size_t k = from; k < until; k++) {
                size_t row;

                if (!lanes[i].present[k])
                    continue;
                row = next[k]++;
                ts[row] = pq_grid_time(grid, k);
                series[row] = ids[i];
                if (lanes[i].histograms)
                    histograms[row] = lanes[i].histograms[k];
                for (size_t c = 0; c < column_count; c++)
                    columns[c][row] = lanes[i].columns[c][k];
            }
    }
    return QF_OK;
}

/* The addends of one group's histograms, per step. */
struct addends {
    struct pq_haddend *items;
    size_t count;
};

/* All addends of a group; *ret_most is how many a step has at most. NULL: budget spent. */
static struct addends *list_addends(struct pq_sink *sink, struct pq_group *group, size_t *ret_most)
{
    struct addends *steps = QF_ARENA_ARRAY(sink->arena, struct addends, sink->steps);

    *ret_most = 0;
    for (size_t k = 0; steps && k < sink->steps; k++) {
        if (!pq_natives_has(&group->natives, k))
            continue;
        if (!pq_htotal_addends(group->natives.totals[k], &steps[k].items, &steps[k].count))
            return NULL;
        *ret_most = QF_MAX(*ret_most, steps[k].count);
    }
    return steps;
}

/* A lane of the addends number @n of a group's steps. */
static bool addend_lane(struct pq_sink *sink, const struct pq_group *group,
                        const struct addends *steps, size_t n, struct lane *ret)
{
    const struct pq_histogram **histograms =
        QF_ARENA_ARRAY(sink->arena, const struct pq_histogram *, sink->steps);
    uint8_t *present = qf_arena_calloc(sink->arena, sink->steps, 1);
    size_t column_count = sink->leaf->kind->column_count;
    double *columns[PQ_LEAF_COLUMNS_MAX], row[PQ_LEAF_COLUMNS_MAX];

    for (size_t c = 0; c < column_count; c++)
        ret->columns[c] = columns[c] = QF_ARENA_ARRAY(sink->arena, double, sink->steps);
    if (qf_arena_failed(sink->arena))
        return false;
    for (size_t k = 0; k < sink->steps; k++) {
        if (n >= steps[k].count)
            continue;
        present[k] = 1;
        histograms[k] = steps[k].items[n].histogram;
        pq_natives_columns(sink->leaf->agg, &steps[k].items[n], row);
        for (size_t c = 0; c < column_count; c++)
            columns[c][k] = row[c];
    }
    ret->labels = group->labels;
    ret->present = present;
    ret->histograms = histograms;
    return true;
}

/* The lanes of a group's histograms: series with the same labels, as many as a step has addends. */
static qf_rc add_native_lanes(struct pq_sink *sink, struct pq_group *group, struct lane **lanes,
                              size_t *count, struct qf_err *err)
{
    struct addends *steps;
    size_t most;

    if (!group->natives.totals)
        return QF_OK;
    steps = list_addends(sink, group, &most);
    if (!steps)
        return pq_leaf_no_memory(err);
    *lanes = qf_xrealloc(*lanes, (*count + most + 1) * sizeof(**lanes));
    for (size_t n = 0; n < most; n++) {
        (*lanes)[*count] = (struct lane){ 0 };
        if (!addend_lane(sink, group, steps, n, &(*lanes)[*count]))
            return pq_leaf_no_memory(err);
        (*count)++;
    }
    return QF_OK;
}

static qf_rc group_rows(struct pq_sink *sink, struct pq_leaf_result *result, struct qf_err *err)
{
    QF_CLEANUP(qf_freep)
    struct lane *lanes = qf_xcalloc(sink->group_count + 1, sizeof(*lanes));
    size_t count = sink->group_count;

    for (size_t i = 0; i < sink->group_count; i++) {
        const struct pq_group *group = &sink->group_list[i];

        lanes[i].labels = group->labels;
        lanes[i].present = group->cells.present;
        for (size_t c = 0; c < PQ_LEAF_COLUMNS_MAX; c++)
            lanes[i].columns[c] = group->cells.columns[c];
    }
    for (size_t i = 0; i < sink->group_count; i++) {
        qf_rc rc = add_native_lanes(sink, &sink->group_list[i], &lanes, &count, err);

        if (rc != QF_OK)
            return rc;
    }
    qsort(lanes, count, sizeof(*lanes), by_labels);
    return transpose(sink, lanes, count, result, err);
}

static qf_rc kept_rows(struct pq_sink *sink, struct pq_leaf_result *result, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) struct lane *lanes = qf_xcalloc(sink->kept_count + 1, sizeof(*lanes));
    size_t count = 0;

    for (size_t i = 0; i < sink->kept_count; i++) {
        const struct pq_kept *kept = &sink->kept[i];

        /* A series that is taken nowhere does not travel. */
        if (pq_poll_work(sink->poll, sink->steps / 8) || !memchr(kept->present, 1, sink->steps))
            continue;
        lanes[count].labels = kept->labels;
        lanes[count].columns[0] = kept->values;
        lanes[count].histograms = kept->histograms;
        lanes[count++].present = kept->present;
    }
    return transpose(sink, lanes, count, result, err);
}

/* The group of each kept series, numbered from 0. */
static qf_rc number_groups(struct pq_sink *sink, uint32_t *group_of, size_t *ret_groups,
                           struct qf_err *err)
{
    size_t groups = 0;

    for (size_t i = 0; i < sink->kept_count; i++) {
        struct qf_labels labels = sink->kept[i].labels;
        struct qf_str key;
        bool fresh;

        if (pq_poll_work(sink->poll, 1))
            return pq_leaf_canceled(err);
        if ((sink->unnames && !pq_labels_unnamed(sink->arena, labels, &labels)) ||
            !pq_grouping_labels(&sink->grouping, sink->arena, labels, &labels))
            return pq_leaf_no_memory(err);
        qf_strbuf_reset(&sink->key);
        qf_labels_encode(&sink->key, labels);
        key = qf_arena_str(sink->arena, qf_strbuf_view(&sink->key));
        if (!key.data)
            return pq_leaf_no_memory(err);
        group_of[i] = (uint32_t)*qf_map_put(&sink->groups, key, groups, &fresh);
        groups += fresh;
    }
    *ret_groups = groups;
    return QF_OK;
}

/* One heap per group, each with room for k or for all series of the group. */
static struct pq_topk_item *make_heaps(const struct pq_sink *sink, const uint32_t *group_of,
                                       struct pq_topk *heaps, size_t groups)
{
    struct pq_topk_item *items = qf_xcalloc(sink->kept_count + 1, sizeof(*items));
    size_t used = 0;

    for (size_t i = 0; i < sink->kept_count; i++)
        heaps[group_of[i]].k++;
    for (size_t g = 0; g < groups; g++) {
        heaps[g].prefers = sink->leaf->agg->prefers;
        heaps[g].k = (size_t)QF_MIN(sink->leaf->param, (double)heaps[g].k);
        heaps[g].items = items + used;
        used += heaps[g].k;
    }
    return items;
}

/* Unmark every value that the heap of its group and step does not take. The histogram of one that was
 * kept for its place (sink.c) stays if it is the first of its group. */
static qf_rc keep_taken(struct pq_sink *sink, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) uint32_t *group_of = qf_xcalloc(sink->kept_count + 1, sizeof(uint32_t));
    QF_CLEANUP(qf_freep) struct pq_topk *heaps = NULL;
    QF_CLEANUP(qf_freep) struct pq_topk_item *items = NULL;
    QF_CLEANUP(qf_freep) uint8_t *met = NULL;
    bool ignores = sink->leaf->agg->histograms == PQ_HISTOGRAMS_IGNORE;
    size_t groups = 0;
    qf_rc rc = number_groups(sink, group_of, &groups, err);

    if (rc != QF_OK)
        return rc;
    heaps = qf_xcalloc(groups + 1, sizeof(*heaps));
    met = qf_xcalloc(groups + 1, 1);
    items = make_heaps(sink, group_of, heaps, groups);
    for (size_t k = 0; k < sink->steps; k++) {
        if (pq_poll_work(sink->poll, sink->kept_count + groups))
            return pq_leaf_canceled(err);
        for (size_t g = 0; g < groups; g++)
            heaps[g].count = met[g] = 0;
        for (size_t i = 0; i < sink->kept_count; i++) {
            struct pq_kept *kept = &sink->kept[i];
            bool place = ignores && pq_histogram_at(kept->histograms, k);
            uint32_t g = group_of[i];

            if (!kept->present[k])
                continue;
            kept->present[k] =
                place ? !met[g] : pq_topk_offer(&heaps[g], kept->values[k], (uint32_t)i);
            met[g] = 1;
        }
    }
    return QF_OK;
}

static int by_step(const void *a, const void *b)
{
    const struct pq_counted *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

/* Sort the values seen and write equal neighbours as one row. */
static qf_rc counted_rows(struct pq_sink *sink, struct pq_leaf_result *result, struct qf_err *err)
{
    const struct pq_grid *grid = pq_leaf_grid(sink->leaf);
    QF_CLEANUP(qf_freep)
    struct ranked *ranked = qf_xcalloc(sink->group_count + 1, sizeof(*ranked));
    QF_CLEANUP(qf_freep) uint32_t *rank = qf_xcalloc(sink->group_count + 1, sizeof(*rank));
    double *columns[PQ_LEAF_COLUMNS_MAX];
    int64_t *ts;
    uint32_t *series;
    size_t rows = 0;

    for (size_t i = 0; i < sink->group_count; i++)
        ranked[i] = (struct ranked){ sink->group_list[i].labels, (uint32_t)i };
    qsort(ranked, sink->group_count, sizeof(*ranked), by_ranked_labels);
    if (!allocate(sink, sink->group_count, sink->counted_count, result, columns))
        return pq_leaf_no_memory(err);
    for (size_t i = 0; i < sink->group_count; i++) {
        rank[ranked[i].index] = (uint32_t)i;
        result->series[i] = ranked[i].labels;
    }
    PQ_POLL_EACH (sink->poll, i, 0, sink->counted_count)
        sink->counted[i].group = rank[sink->counted[i].group];
    pq_sort(sink->counted, sink->counted_count, sizeof(*sink->counted), by_step, sink->poll);
    ts = (int64_t *)(uintptr_t)result->rows.ts;
    series = (uint32_t *)(uintptr_t)result->rows.series;
    PQ_POLL_EACH (sink->poll, i, 0, sink->counted_count) {
        if (i > 0 && by_step(&sink->counted[i - 1], &sink->counted[i]) == 0) {
            columns[0][rows - 1]++;
            continue;
        }
        ts[rows] = pq_grid_time(grid, sink->counted[i].step);
        series[rows] = sink->counted[i].group;
        columns[0][rows++] = 1;
    }
    result->rows.count = rows;
    return QF_OK;
}

qf_rc pq_sink_rows(struct pq_sink *sink, struct pq_leaf_result *result, struct qf_err *err)
{
    const struct pq_aggregation *agg = sink->leaf->agg;
    qf_rc rc = QF_OK;

    if (!agg)
        return kept_rows(sink, result, err);
    switch (agg->shape) {
    case PQ_AGG_FOLDS:
        return group_rows(sink, result, err);
    case PQ_AGG_TALLIES:
        return counted_rows(sink, result, err);
    case PQ_AGG_SELECTS:
        rc = keep_taken(sink, err);
        return rc == QF_OK ? kept_rows(sink, result, err) : rc;
    }
    return rc;
}
