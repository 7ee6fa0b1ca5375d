/* sum_fit.c - bringing two sums of histograms to the same buckets. */
#include <string.h>

#include "promql/histogram/sum.h"

/* Join the cells of a side that get equal indices from @map. */
static void map_cells(struct pq_histogram_sum *sum, enum pq_side which,
                      int64_t (*map)(const void *ctx, int64_t index), const void *ctx)
{
    struct pq_hsum_side *side = &sum->sides[which];
    size_t kept = 0;

    for (size_t i = 0; i < side->count; i++) {
        int64_t index = map(ctx, side->cells[i].index);

        if (kept > 0 && side->cells[kept - 1].index == index)
            pq_hsum_term_merge(&side->cells[kept - 1].term, side->cells[i].term,
                               sum->mode != PQ_HSUM_PLAIN);
        else
            side->cells[kept++] = (struct pq_hsum_cell){ index, side->cells[i].term };
    }
    side->count = kept;
}

static int64_t coarser(const void *ctx, int64_t index)
{
    return pq_coarser_index(index, *(const int32_t *)ctx);
}

static void reduce(struct pq_histogram_sum *sum, int32_t schema)
{
    int32_t steps = sum->schema - schema;

    if (steps <= 0)
        return;
    map_cells(sum, PQ_POSITIVE, coarser, &steps);
    map_cells(sum, PQ_NEGATIVE, coarser, &steps);
    sum->schema = schema;
}

/* Move the buckets inside @threshold into the zero bucket. Returns the threshold, or the end of a
 * populated bucket that it would have cut. */
static double absorb(struct pq_histogram_sum *sum, enum pq_side which, double threshold)
{
    struct pq_hsum_side *side = &sum->sides[which];
    size_t gone = 0;

    for (; gone < side->count; gone++) {
        const struct pq_hsum_cell *cell = &side->cells[gone];
        double high = pq_exponential_bound(sum->schema, cell->index);

        if (pq_exponential_bound(sum->schema, cell->index - 1) >= threshold)
            break;
        if (pq_hsum_term_value(cell->term) == 0)
            continue;
        threshold = high > threshold ? high : threshold;
        pq_hsum_term_merge(&sum->zero, cell->term, sum->mode != PQ_HSUM_PLAIN);
    }
    side->cells += gone;
    side->count -= gone;
    side->capacity -= gone;
    return threshold;
}

/* What one side needs may reach into the other; both only shrink, so this ends. */
static void widen_zero(struct pq_histogram_sum *sum, double threshold)
{
    double before;

    do {
        before = threshold;
        threshold = absorb(sum, PQ_POSITIVE, threshold);
        threshold = absorb(sum, PQ_NEGATIVE, threshold);
    } while (threshold > before);
    sum->zero_threshold = threshold;
}

/* Each round lifts one threshold to the other or beyond, over one more bucket. Thresholds that are
 * no numbers fit nothing and stay. */
static void fit_zero(struct pq_histogram_sum *a, struct pq_histogram_sum *b)
{
    for (;;) {
        if (a->zero_threshold < b->zero_threshold)
            widen_zero(a, b->zero_threshold);
        else if (b->zero_threshold < a->zero_threshold)
            widen_zero(b, a->zero_threshold);
        else
            return;
    }
}

/* From one list of bounds to a part of them. */
struct rebound {
    const double *from, *to;
    size_t from_count, to_count;
};

static int64_t rebounded(const void *ctx, int64_t index)
{
    const struct rebound *r = ctx;

    return (int64_t)pq_bound_index(r->to, r->to_count,
                                   pq_custom_bound(r->from, r->from_count, index));
}

static void rebound(struct pq_histogram_sum *sum, const double *bounds, size_t count)
{
    struct rebound r = { sum->bounds, bounds, sum->bound_count, count };

    map_cells(sum, PQ_POSITIVE, rebounded, &r);
    sum->bounds = bounds;
    sum->bound_count = count;
}

static bool same_bounds(const struct pq_histogram_sum *a, const struct pq_histogram_sum *b)
{
    bool same = a->bound_count == b->bound_count;

    for (size_t i = 0; same && i < a->bound_count; i++)
        same = a->bounds[i] == b->bounds[i];
    return same;
}

static bool fit_bounds(struct pq_histogram_sum *a, struct pq_histogram_sum *b)
{
    double *common;
    size_t count = 0, i = 0, j = 0;

    if (same_bounds(a, b))
        return true;
    common = QF_ARENA_ARRAY(a->arena, double, a->bound_count + 1);
    if (!common)
        return false;
    while (i < a->bound_count && j < b->bound_count) {
        if (a->bounds[i] == b->bounds[j]) {
            common[count++] = a->bounds[i++];
            j++;
        } else if (a->bounds[i] < b->bounds[j]) {
            i++;
        } else {
            j++;
        }
    }
    rebound(a, common, count);
    rebound(b, common, count);
    a->reconciled = b->reconciled = true;
    return true;
}

bool pq_hsum_fit(struct pq_histogram_sum *a, struct pq_histogram_sum *b)
{
    if (a->schema == PQ_SCHEMA_CUSTOM)
        return fit_bounds(a, b);
    fit_zero(a, b);
    reduce(a, b->schema);
    reduce(b, a->schema);
    return true;
}
