/* merge_sorted.c - the answers of all shards to one leaf, as one. */
#include "promql/merge/merge_sorted.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/heap.h"
#include "promql/merge/ranks.h"
#include "promql/partial/natives.h"
#include "promql/partial/partial.h"

#define BLOCK_STEPS 64

struct shard {
    struct pq_leaf_reader *reader; /* NULL: no data */
    uint32_t *ids;                 /* series of the shard -> merged series */
    struct pq_rows rows;
    size_t next_row;
    bool ended;
    int64_t last_ts; /* samples: of the row before */
};

/* No sample is older, in any leaf that may be run: differences of times fit int64. */
#define SAMPLE_TIME_MIN (-((int64_t)1 << 58))

/* A block that several consumers read. Its scope holds its histograms, so it is kept until all of
 * them are done with it. */
struct kept_block {
    struct kept_block *next;
    uint64_t first;
    size_t steps;
    size_t users; /* consumers that have not asked for a later one yet */
    struct qf_arena *scope;
    double *values;
    uint64_t *present;
    const struct pq_histogram **histograms; /* or NULL */
};

struct pq_merge {
    struct qf_arena *arena;
    const struct pq_leaf *leaf;
    const struct pq_grid *grid;
    struct shard *shards;
    size_t shard_count;
    struct qf_labels *series;
    size_t series_count;
    size_t stride;
    uint64_t position; /* first step not read from the shards */
    size_t consumer_count;
    struct kept_block *kept, *kept_last, *spare;
    double *cells;             /* partials of the block in work: per value, its columns */
    struct pq_natives natives; /* and its histograms, in the scope */
    unsigned flags;            /* what is to be said of them: enum pq_window_flag */
    struct qf_arena *scope;    /* histograms of the block in work; reset when it is begun */
    uint64_t rows;
};

static qf_rc no_memory(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "the query needs more memory than its limit");
}

/* Position in the series tables during the merge. */
struct cursor {
    const struct pq_leaf_reader *reader;
    uint32_t *ids;
    size_t next;
};

static bool earlier(const void *a, const void *b, void *ctx)
{
    const struct cursor *x = *(struct cursor *const *)a, *y = *(struct cursor *const *)b;
    int order = qf_labels_cmp(x->reader->series[x->next], y->reader->series[y->next]);

    (void)ctx;
    return order ? order < 0 : x < y;
}

/* Merge the sorted tables; equal label sets become one series. */
static qf_rc merge_tables(struct pq_merge *merge, struct cursor *cursors, struct cursor **slots,
                          struct qf_err *err)
{
    struct qf_heap heap = { .items = slots,
                            .item_size = sizeof(struct cursor *),
                            .capacity = merge->shard_count,
                            .before = earlier };

    for (size_t i = 0; i < merge->shard_count; i++) {
        struct cursor *cursor = &cursors[i];

        if (cursor->reader && cursor->reader->series_count > 0)
            (void)qf_heap_push(&heap, &cursor);
    }
    while (heap.count > 0) {
        struct cursor *top = *(struct cursor *const *)qf_heap_top(&heap);
        struct qf_labels labels = top->reader->series[top->next];
        size_t last = merge->series_count;

        if (last > 0) {
            int order = qf_labels_cmp(merge->series[last - 1], labels);

            if (order > 0)
                return qf_err_set(err, QF_ECORRUPT, "the series of a leaf result are not sorted");
            if (order == 0)
                last--;
        }
        merge->series[last] = labels;
        merge->series_count = last + 1;
        top->ids[top->next++] = (uint32_t)last;
        if (top->next == top->reader->series_count)
            qf_heap_pop(&heap);
        else
            qf_heap_top_changed(&heap);
    }
    return QF_OK;
}

static qf_rc merge_ranked(struct pq_merge *merge, struct qf_err *err)
{
    QF_CLEANUP(qf_freep)
    struct pq_ranked_table *tables = qf_xcalloc(merge->shard_count + 1, sizeof(*tables));

    for (size_t i = 0; i < merge->shard_count; i++) {
        const struct shard *shard = &merge->shards[i];

        if (shard->reader)
            tables[i] = (struct pq_ranked_table){ shard->reader->series,
                                                  shard->reader->series_count, shard->ids };
    }
    return pq_ranks_merge(tables, merge->shard_count, merge->series, &merge->series_count, err);
}

static qf_rc make_series(struct pq_merge *merge, struct qf_err *err)
{
    QF_CLEANUP(qf_freep)
    struct cursor *cursors = qf_xcalloc(merge->shard_count + 1, sizeof(*cursors));
    QF_CLEANUP(qf_freep)
    struct cursor **slots = qf_xcalloc(merge->shard_count + 1, sizeof(*slots));
    size_t total = 0;

    for (size_t i = 0; i < merge->shard_count; i++) {
        struct shard *shard = &merge->shards[i];

        if (!shard->reader)
            continue;
        if (shard->reader->kind != merge->leaf->kind)
            return qf_err_set(err, QF_ECORRUPT, "a leaf result is of another kind than its leaf");
        shard->ids = QF_ARENA_ARRAY(merge->arena, uint32_t, shard->reader->series_count);
        if (!shard->ids)
            return no_memory(err);
        cursors[i] = (struct cursor){ shard->reader, shard->ids, 0 };
        total += shard->reader->series_count;
    }
    merge->series = QF_ARENA_ARRAY(merge->arena, struct qf_labels, total);
    if (!merge->series)
        return no_memory(err);
    return merge->leaf->ranks ? merge_ranked(merge, err) : merge_tables(merge, cursors, slots, err);
}

qf_rc pq_merge_new(struct qf_arena *arena, const struct pq_leaf *leaf,
                   struct pq_leaf_reader **readers, size_t shard_count, struct pq_merge **ret_merge,
                   struct qf_err *err)
{
    struct pq_merge *merge = QF_ARENA_NEW(arena, struct pq_merge);
    qf_rc rc;

    if (!merge)
        return no_memory(err);
    *merge = (struct pq_merge){
        .arena = arena, .leaf = leaf, .grid = pq_leaf_grid(leaf), .shard_count = shard_count
    };
    merge->stride = (size_t)QF_MIN(merge->grid->count, (uint64_t)BLOCK_STEPS);
    merge->shards = QF_ARENA_ARRAY(arena, struct shard, shard_count);
    merge->scope = qf_arena_new_within(arena);
    if (!merge->shards || !merge->scope)
        return no_memory(err);
    for (size_t i = 0; i < shard_count; i++)
        merge->shards[i] = (struct shard){ .reader = readers[i],
                                           .ended = !readers[i],
                                           .last_ts = SAMPLE_TIME_MIN };
    rc = make_series(merge, err);
    if (rc == QF_OK)
        *ret_merge = merge;
    return rc;
}

void pq_merge_share(struct pq_merge *merge)
{
    merge->consumer_count++;
}

const struct qf_labels *pq_merge_series(const struct pq_merge *merge, size_t *ret_count)
{
    *ret_count = merge->series_count;
    return merge->series;
}

unsigned pq_merge_flags(const struct pq_merge *merge)
{
    return merge->flags;
}

uint64_t pq_merge_rows(const struct pq_merge *merge)
{
    return merge->rows;
}

/* Make sure there is a row to look at, or that the shard has ended. */
static qf_rc load_rows(struct pq_merge *merge, struct shard *shard, struct qf_err *err)
{
    while (!shard->ended && shard->next_row == shard->rows.count) {
        qf_rc rc = shard->reader->next(shard->reader, &shard->rows, err);

        if (rc != QF_OK)
            return rc;
        shard->next_row = 0;
        shard->ended = shard->rows.count == 0;
        merge->rows += shard->rows.count;
    }
    return QF_OK;
}

static qf_rc corrupt_row(struct qf_err *err)
{
    return qf_err_set(err, QF_ECORRUPT, "a leaf result has a row that its leaf cannot have");
}

/* One row into the block. */
static qf_rc put_row(struct pq_merge *merge, const struct shard *shard, size_t row, size_t step,
                     struct pq_merge_block *block, struct qf_err *err)
{
    uint32_t local = shard->rows.series[row];
    double partial[PQ_LEAF_COLUMNS_MAX], *into;
    uint64_t bit = (uint64_t)1 << step;
    size_t columns = merge->leaf->kind->column_count;
    uint32_t id;

    if (local >= shard->reader->series_count)
        return corrupt_row(err);
    id = shard->ids[local];
    into = merge->cells + (id * block->stride + step) * columns;
    for (size_t c = 0; c < columns; c++)
        partial[c] = shard->rows.columns[c][row];
    if (shard->rows.histograms && shard->rows.histograms[row]) {
        if (merge->leaf->agg->histograms != PQ_HISTOGRAMS_EITHER)
            return corrupt_row(err);
        return pq_natives_add_row(&merge->natives, id * block->stride + step,
                                  shard->rows.histograms[row], partial)
                   ? QF_OK
                   : no_memory(err);
    }
    if (block->present[id] & bit)
        merge->leaf->agg->merge(into, partial);
    else
        memcpy(into, partial, columns * sizeof(*into));
    block->present[id] |= bit;
    return QF_OK;
}

/* Rows are there until the next ones are read, a block is there for longer. */
static qf_rc put_histogram(struct pq_merge *merge, const struct shard *shard, size_t row, size_t at,
                           struct pq_merge_block *block, struct qf_err *err)
{
    struct pq_value value = pq_value_at(shard->rows.columns[0], shard->rows.histograms, row);

    if (!pq_value_copy(merge->scope, value, &value) ||
        !pq_value_put(block->scope, block->values, &block->histograms,
                      merge->series_count * merge->stride, at, value))
        return no_memory(err);
    return QF_OK;
}

/* Rows of plain values need no merging: straight into the block. */
static qf_rc put_value(struct pq_merge *merge, const struct shard *shard, size_t row, size_t step,
                       struct pq_merge_block *block, struct qf_err *err)
{
    uint32_t local = shard->rows.series[row];
    uint32_t id;

    if (local >= shard->reader->series_count)
        return corrupt_row(err);
    id = shard->ids[local];
    block->values[id * block->stride + step] = shard->rows.columns[0][row];
    block->present[id] |= (uint64_t)1 << step;
    if (shard->rows.histograms && shard->rows.histograms[row])
        return put_histogram(merge, shard, row, id * block->stride + step, block, err);
    return QF_OK;
}

static qf_rc read_shard(struct pq_merge *merge, struct shard *shard, bool plain,
                        struct pq_merge_block *block, struct qf_err *err)
{
    int64_t start = pq_grid_time(merge->grid, merge->position);
    int64_t step_ms = merge->grid->step_ms;
    int64_t end = start + (int64_t)block->steps * step_ms; /* first time of the next block */
    int64_t last_ts = INT64_MIN;
    size_t step = 0;

    for (;;) {
        qf_rc rc = load_rows(merge, shard, err);
        int64_t ts;

        if (rc != QF_OK || shard->ended)
            return rc;
        ts = shard->rows.ts[shard->next_row];
        if (ts >= end)
            return QF_OK;
        if (ts != last_ts) {
            if (ts < start || ts < last_ts || (ts - start) % step_ms != 0)
                return corrupt_row(err);
            step = (size_t)((ts - start) / step_ms);
            last_ts = ts;
        }
        rc = plain ? put_value(merge, shard, shard->next_row, step, block, err)
                   : put_row(merge, shard, shard->next_row, step, block, err);
        if (rc != QF_OK)
            return rc;
        shard->next_row++;
    }
}

static qf_rc after_the_end(struct pq_merge *merge, struct qf_err *err)
{
    for (size_t i = 0; i < merge->shard_count; i++) {
        qf_rc rc = load_rows(merge, &merge->shards[i], err);

        if (rc != QF_OK)
            return rc;
        if (!merge->shards[i].ended)
            return corrupt_row(err);
    }
    return QF_OK;
}

static void finish_cells(const struct pq_merge *merge, struct pq_merge_block *block)
{
    size_t columns = merge->leaf->kind->column_count;

    for (size_t s = 0; s < merge->series_count; s++)
        for (uint64_t bits = block->present[s]; bits; bits &= bits - 1) {
            size_t at = s * block->stride + (size_t)__builtin_ctzll(bits);

            block->values[at] = merge->leaf->agg->value(merge->cells + at * columns);
        }
}

/* The histograms of the block; cells with floats as well have no value. */
static qf_rc finish_natives(struct pq_merge *merge, struct pq_merge_block *block,
                            struct qf_err *err)
{
    for (size_t s = 0; merge->natives.totals && s < merge->series_count; s++)
        for (size_t k = 0; k < block->steps; k++) {
            size_t at = s * block->stride + k;
            uint64_t bit = (uint64_t)1 << k;
            struct pq_value value = { 0 };

            if (!pq_natives_has(&merge->natives, at))
                continue;
            if (!pq_natives_value(&merge->natives, at, block->present[s] & bit, merge->scope,
                                  &merge->flags, &value.histogram))
                return no_memory(err);
            block->present[s] &= ~bit;
            if (!value.histogram)
                continue;
            block->present[s] |= bit;
            if (!pq_value_put(block->scope, block->values, &block->histograms,
                              merge->series_count * merge->stride, at, value))
                return no_memory(err);
        }
    return QF_OK;
}

/* Read the block at merge->position from all shards. */
static qf_rc read_block(struct pq_merge *merge, struct pq_merge_block *block, struct qf_err *err)
{
    const struct pq_leaf *leaf = merge->leaf;
    bool plain = !leaf->agg || leaf->agg->shape == PQ_AGG_SELECTS;
    size_t cell_count = merge->series_count * merge->stride * leaf->kind->column_count;

    qf_arena_reset(merge->scope);
    block->stride = merge->stride;
    block->histograms = NULL;
    block->steps = (size_t)QF_MIN(merge->grid->count - merge->position, (uint64_t)BLOCK_STEPS);
    for (size_t i = 0; i < merge->series_count; i++)
        block->present[i] = 0;
    merge->natives = pq_natives_of(merge->scope, leaf->agg, merge->series_count * merge->stride);
    if (!plain && !merge->cells) {
        merge->cells = QF_ARENA_ARRAY(merge->arena, double, cell_count);
        if (!merge->cells)
            return no_memory(err);
    }
    for (size_t i = 0; i < merge->shard_count; i++) {
        qf_rc rc = read_shard(merge, &merge->shards[i], plain, block, err);

        if (rc != QF_OK)
            return rc;
    }
    if (!plain) {
        qf_rc rc;

        finish_cells(merge, block);
        rc = finish_natives(merge, block, err);
        if (rc != QF_OK)
            return rc;
    }
    merge->position += block->steps;
    return merge->position == merge->grid->count ? after_the_end(merge, err) : QF_OK;
}

static struct kept_block *new_kept(struct pq_merge *merge)
{
    struct kept_block *kept = merge->spare;

    if (kept) {
        merge->spare = kept->next;
        return kept;
    }
    kept = QF_ARENA_NEW(merge->arena, struct kept_block);
    if (!kept)
        return NULL;
    kept->values = QF_ARENA_ARRAY(merge->arena, double, merge->series_count * merge->stride);
    kept->present = QF_ARENA_ARRAY(merge->arena, uint64_t, merge->series_count);
    kept->scope = qf_arena_new_within(merge->arena);
    return kept->values && kept->present && kept->scope ? kept : NULL;
}

/* One consumer is done with the block; the last one frees it. */
static void release(struct pq_merge *merge, struct kept_block *kept)
{
    if (--kept->users > 0)
        return;
    /* Consumers read in order, so the block that all are done with is the oldest. */
    assert(merge->kept == kept);
    merge->kept = kept->next;
    if (!merge->kept)
        merge->kept_last = NULL;
    kept->next = merge->spare;
    merge->spare = kept;
}

static struct kept_block *find_kept(const struct pq_merge *merge, uint64_t first)
{
    struct kept_block *kept = merge->kept;

    while (kept && kept->first != first)
        kept = kept->next;
    return kept;
}

/* Copy the block for one consumer. Only its histograms are looked at where they are. */
static qf_rc hand_out(struct pq_merge *merge, struct kept_block *kept, struct pq_merge_block *block,
                      struct qf_err *err)
{
    size_t cells = merge->series_count * merge->stride;

    block->steps = kept->steps;
    block->stride = merge->stride;
    block->histograms = NULL;
    if (merge->series_count) {
        memcpy(block->values, kept->values, cells * sizeof(double));
        memcpy(block->present, kept->present, merge->series_count * sizeof(uint64_t));
    }
    if (!kept->histograms) {
        release(merge, kept);
        return QF_OK;
    }
    block->histograms = qf_arena_alloc(block->scope, cells * sizeof(*block->histograms));
    if (!block->histograms)
        return no_memory(err);
    memcpy(block->histograms, kept->histograms, cells * sizeof(*block->histograms));
    return QF_OK;
}

/* Read the block at @first and keep it for all consumers. */
static qf_rc keep_block(struct pq_merge *merge, uint64_t first, struct kept_block **ret_kept,
                        struct qf_err *err)
{
    struct kept_block *kept = new_kept(merge);
    struct pq_merge_block into;
    qf_rc rc;

    if (!kept)
        return no_memory(err);
    into = (struct pq_merge_block){ .values = kept->values,
                                    .present = kept->present,
                                    .scope = kept->scope };
    merge->scope = kept->scope;
    rc = read_block(merge, &into, err);
    if (rc != QF_OK)
        return rc;
    kept->first = first;
    kept->steps = into.steps;
    kept->histograms = into.histograms;
    kept->users = merge->consumer_count;
    kept->next = NULL;
    if (merge->kept_last)
        merge->kept_last->next = kept;
    else
        merge->kept = kept;
    merge->kept_last = kept;
    *ret_kept = kept;
    return QF_OK;
}

static qf_rc read_shared(struct pq_merge *merge, uint64_t first, struct pq_merge_block *block,
                         struct qf_err *err)
{
    struct kept_block *before = first ? find_kept(merge, first - BLOCK_STEPS) : NULL;
    struct kept_block *kept = find_kept(merge, first);
    qf_rc rc = QF_OK;

    if (before && before->histograms)
        release(merge, before);
    if (!kept)
        rc = keep_block(merge, first, &kept, err);
    return rc == QF_OK ? hand_out(merge, kept, block, err) : rc;
}

qf_rc pq_merge_next(struct pq_merge *merge, uint64_t first, struct pq_merge_block *block,
                    struct qf_err *err)
{
    if (merge->consumer_count > 1)
        return read_shared(merge, first, block, err);
    assert(first == merge->position);
    return read_block(merge, block, err);
}

qf_rc pq_merge_samples(struct pq_merge *merge, int64_t until,
                       void (*take)(void *ctx, uint32_t series, int64_t ts, struct pq_value value),
                       void *ctx, struct qf_err *err)
{
    for (size_t i = 0; i < merge->shard_count; i++) {
        struct shard *shard = &merge->shards[i];

        for (;;) {
            qf_rc rc = load_rows(merge, shard, err);
            size_t row = shard->next_row;

            if (rc != QF_OK)
                return rc;
            if (shard->ended || shard->rows.ts[row] > until)
                break;
            if (shard->rows.series[row] >= shard->reader->series_count ||
                shard->rows.ts[row] < shard->last_ts)
                return corrupt_row(err);
            shard->last_ts = shard->rows.ts[row];
            take(ctx, shard->ids[shard->rows.series[row]], shard->rows.ts[row],
                 pq_value_at(shard->rows.columns[0], shard->rows.histograms, row));
            shard->next_row++;
        }
    }
    return QF_OK;
}
