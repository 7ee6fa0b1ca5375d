/* sum.c - adding up native histograms. */
#include "promql/histogram/sum.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "promql/histogram/build.h"

void pq_hsum_init(struct pq_histogram_sum *sum, struct qf_arena *arena, enum pq_hsum_mode mode)
{
    *sum = (struct pq_histogram_sum){ .arena = arena, .mode = mode };
}

/* The exact error of total = a + b (Knuth). */
static double error_of(double a, double b, double total)
{
    double part = total - a;

    return (a - (total - part)) + (b - part);
}

static inline void term_add(struct pq_hsum_term *term, double value, bool exact)
{
    double total = term->sum + value, error, lost;

    if (!exact || !(fabs(total) <= DBL_MAX)) {
        *term = (struct pq_hsum_term){ total, 0, 0 };
        return;
    }
    error = error_of(term->sum, value, total);
    lost = term->lost + error;
    *term = (struct pq_hsum_term){ total, lost, term->low + error_of(term->lost, error, lost) };
}

void pq_hsum_term_merge(struct pq_hsum_term *into, struct pq_hsum_term from, bool exact)
{
    term_add(into, from.sum, exact);
    if (exact && isfinite(into->sum)) {
        double lost = into->lost + from.lost;

        into->low += error_of(into->lost, from.lost, lost) + from.low;
        into->lost = lost;
    }
}

/* In normal form: how a number is split up depends on the order of the additions. */
static struct pq_hsum_term normal(struct pq_hsum_term term)
{
    double high = term.sum + term.lost, low, total;

    if (!isfinite(high))
        return (struct pq_hsum_term){ high, 0, 0 };
    low = error_of(term.sum, term.lost, high) + term.low;
    total = high + low;
    return (struct pq_hsum_term){ total, error_of(high, low, total), 0 };
}

double pq_hsum_term_value(struct pq_hsum_term term)
{
    return normal(term).sum;
}

static double term_divided(struct pq_hsum_term term, double divisor, int shift)
{
    struct pq_hsum_term n = normal(term);
    double value = n.sum / divisor;

    if (divisor != 1 && isfinite(value))
        value += n.lost / divisor;
    return shift ? ldexp(value, shift) : value;
}

static bool reserve(struct qf_arena *arena, struct pq_hsum_side *side, size_t wanted)
{
    struct pq_hsum_cell *cells;
    size_t capacity;

    if (wanted <= side->capacity)
        return true;
    capacity = QF_MAX(side->count ? wanted * 2 : wanted, (size_t)4);
    cells = QF_ARENA_ARRAY(arena, struct pq_hsum_cell, capacity);
    if (!cells)
        return false;
    if (side->count)
        memcpy(cells, side->cells, side->count * sizeof(*cells));
    side->cells = cells;
    side->capacity = capacity;
    return true;
}

/* The largest number in @h. */
static double peak_of(const struct pq_histogram *h)
{
    double peak = fmax(fmax(fabs(h->count), fabs(h->sum)), fabs(h->zero_count));

    for (size_t i = 0; i < h->positive_bucket_count; i++)
        peak = fmax(peak, fabs(h->positive_buckets[i]));
    for (size_t i = 0; i < h->negative_bucket_count; i++)
        peak = fmax(peak, fabs(h->negative_buckets[i]));
    return peak;
}

static void shift_term(struct pq_hsum_term *term)
{
    term->sum = ldexp(term->sum, -PQ_HSUM_MEAN_SHIFT);
    term->lost = ldexp(term->lost, -PQ_HSUM_MEAN_SHIFT);
    term->low = ldexp(term->low, -PQ_HSUM_MEAN_SHIFT);
}

static void shift(struct pq_histogram_sum *sum)
{
    if (sum->shift)
        return;
    shift_term(&sum->zero);
    shift_term(&sum->count);
    shift_term(&sum->sum);
    for (size_t s = 0; s < PQ_SIDE__COUNT; s++)
        for (size_t i = 0; i < sum->sides[s].count; i++)
            shift_term(&sum->sides[s].cells[i].term);
    sum->shift = PQ_HSUM_MEAN_SHIFT;
}

/* A mean's sum that could overflow is held smaller from here on. */
static void make_room(struct pq_histogram_sum *sum, double peak)
{
    sum->peak += peak;
    if (sum->mode == PQ_HSUM_MEAN && !isfinite(sum->peak))
        shift(sum);
}

static bool load_side(struct pq_histogram_sum *sum, const struct pq_histogram *h,
                      enum pq_side which, double factor)
{
    struct pq_side_walk walk = pq_side_begin(h, which);
    struct pq_hsum_side *side = &sum->sides[which];
    int64_t index;
    double count;

    if (!reserve(sum->arena, side, walk.bucket_count))
        return false;
    side->count = 0;
    while (pq_side_ahead(&walk, &index, &count))
        side->cells[side->count++] = (struct pq_hsum_cell){ index, { factor * count, 0, 0 } };
    return true;
}

/* The bounds of a histogram do not live as long as the sum. */
static bool copy_bounds(struct pq_histogram_sum *sum, const struct pq_histogram *h)
{
    double *bounds = qf_arena_alloc(sum->arena, h->custom_value_count * sizeof(*bounds));

    if (!bounds)
        return false;
    if (h->custom_value_count)
        memcpy(bounds, h->custom_values, h->custom_value_count * sizeof(*bounds));
    sum->bounds = bounds;
    sum->bound_count = h->custom_value_count;
    return true;
}

bool pq_hsum_load(struct pq_histogram_sum *sum, const struct pq_histogram *h, double factor)
{
    make_room(sum, sum->mode == PQ_HSUM_MEAN ? peak_of(h) : 0);
    factor = sum->shift ? ldexp(factor, -sum->shift) : factor;
    sum->any = true;
    sum->hints |= 1u << h->reset_hint;
    sum->schema = h->schema;
    sum->zero_threshold = h->zero_threshold;
    sum->zero = (struct pq_hsum_term){ factor * h->zero_count, 0, 0 };
    sum->count = (struct pq_hsum_term){ factor * h->count, 0, 0 };
    sum->sum = (struct pq_hsum_term){ factor * h->sum, 0, 0 };
    return (!pq_histogram_is_custom(h) || copy_bounds(sum, h)) &&
           load_side(sum, h, PQ_POSITIVE, factor) && load_side(sum, h, PQ_NEGATIVE, factor);
}

/* The buckets of @h fall into those of the sum as they are. */
static bool fits(const struct pq_histogram_sum *sum, const struct pq_histogram *h)
{
    bool same = sum->bound_count == h->custom_value_count;

    if (!pq_histogram_is_custom(h))
        return h->zero_threshold == sum->zero_threshold && h->schema >= sum->schema;
    for (size_t i = 0; same && i < sum->bound_count; i++)
        same = sum->bounds[i] == h->custom_values[i];
    return same;
}

/* How many cells @h needs on a side that the sum does not have. */
static size_t missing_cells(const struct pq_histogram_sum *sum, const struct pq_histogram *h,
                            enum pq_side which, int32_t steps)
{
    struct pq_side_walk walk = pq_side_begin(h, which);
    const struct pq_hsum_side *side = &sum->sides[which];
    size_t at = 0, missing = 0;
    int64_t index, last = INT64_MIN;
    double count;

    while (pq_side_ahead(&walk, &index, &count)) {
        index = pq_coarser_index(index, steps);
        while (at < side->count && side->cells[at].index < index)
            at++;
        if (index != last && (at == side->count || side->cells[at].index != index))
            missing++;
        last = index;
    }
    return missing;
}

/* Make the missing cells: from the far end, as the room is behind the cells. */
static bool make_cells(struct pq_histogram_sum *sum, const struct pq_histogram *h,
                       enum pq_side which, int32_t steps, size_t missing)
{
    struct pq_side_walk walk = pq_side_begin_back(h, which);
    struct pq_hsum_side *side = &sum->sides[which];
    size_t from = side->count, to = side->count + missing;
    int64_t index, last = INT64_MIN;
    double count;

    if (!reserve(sum->arena, side, to))
        return false;
    side->count = to;
    while (to > from && pq_side_next(&walk, &index, &count)) {
        index = pq_coarser_index(index, steps);
        if (index == last)
            continue;
        last = index;
        while (from > 0 && side->cells[from - 1].index > index)
            side->cells[--to] = side->cells[--from];
        if (from == 0 || side->cells[from - 1].index != index)
            side->cells[--to] = (struct pq_hsum_cell){ .index = index };
    }
    return true;
}

/* Where the cells for buckets begin that the sum has no cell for yet. */
struct unplaced {
    bool any;
    int64_t index;
};

/* Add the buckets of a side from index @from on, as far as there are cells. */
static inline struct unplaced add_cells(struct pq_hsum_side *side, struct pq_side_walk walk,
                                        int64_t from, int32_t steps, double factor, bool exact)
{
    size_t at = 0;
    int64_t index;
    double count;

    while (pq_side_ahead(&walk, &index, &count)) {
        int64_t cell = pq_coarser_index(index, steps);

        if (index < from)
            continue;
        while (at < side->count && side->cells[at].index < cell)
            at++;
        if (at == side->count || side->cells[at].index != cell)
            return (struct unplaced){ true, index };
        term_add(&side->cells[at].term, factor * count, exact);
    }
    return (struct unplaced){ 0 };
}

/* Mostly all cells are there: buckets are read once. */
static bool add_side(struct pq_histogram_sum *sum, const struct pq_histogram *h, enum pq_side which,
                     int32_t steps, double factor)
{
    struct pq_hsum_side *side = &sum->sides[which];
    struct pq_side_walk walk = pq_side_begin(h, which);
    bool exact = sum->mode != PQ_HSUM_PLAIN;
    struct unplaced left = exact ? add_cells(side, walk, INT64_MIN, steps, factor, true)
                                 : add_cells(side, walk, INT64_MIN, steps, factor, false);

    if (!left.any)
        return true;
    if (!make_cells(sum, h, which, steps, missing_cells(sum, h, which, steps)))
        return false;
    (void)add_cells(side, walk, left.index, steps, factor, exact);
    return true;
}

static bool add_fitting(struct pq_histogram_sum *sum, const struct pq_histogram *h, double factor)
{
    bool exact = sum->mode != PQ_HSUM_PLAIN;
    int32_t steps = pq_histogram_is_custom(h) ? 0 : h->schema - sum->schema;

    make_room(sum, sum->mode == PQ_HSUM_MEAN ? peak_of(h) : 0);
    factor = sum->shift ? ldexp(factor, -sum->shift) : factor;
    sum->hints |= 1u << h->reset_hint;
    term_add(&sum->zero, factor * h->zero_count, exact);
    term_add(&sum->count, factor * h->count, exact);
    term_add(&sum->sum, factor * h->sum, exact);
    return add_side(sum, h, PQ_POSITIVE, steps, factor) &&
           add_side(sum, h, PQ_NEGATIVE, steps, factor);
}

enum pq_hsum_result pq_hsum_add(struct pq_histogram_sum *sum, const struct pq_histogram *h,
                                double factor)
{
    struct pq_histogram_sum other;

    if (!sum->any)
        return pq_hsum_load(sum, h, factor) ? PQ_HSUM_OK : PQ_HSUM_NO_MEMORY;
    if ((sum->schema == PQ_SCHEMA_CUSTOM) != pq_histogram_is_custom(h))
        return PQ_HSUM_MIXED;
    if (fits(sum, h))
        return add_fitting(sum, h, factor) ? PQ_HSUM_OK : PQ_HSUM_NO_MEMORY;
    pq_hsum_init(&other, sum->arena, sum->mode);
    if (!pq_hsum_load(&other, h, factor))
        return PQ_HSUM_NO_MEMORY;
    return pq_hsum_merge(sum, &other);
}

/* Merge two lists of cells into new room. */
static bool merge_side(struct pq_histogram_sum *sum, const struct pq_histogram_sum *from,
                       enum pq_side which)
{
    bool exact = sum->mode != PQ_HSUM_PLAIN;
    const struct pq_hsum_side *a = &sum->sides[which], *b = &from->sides[which];
    struct pq_hsum_side merged = { 0 };
    size_t i = 0, j = 0;

    if (b->count == 0)
        return true;
    if (!reserve(sum->arena, &merged, a->count + b->count))
        return false;
    while (i < a->count || j < b->count) {
        if (j == b->count || (i < a->count && a->cells[i].index < b->cells[j].index)) {
            merged.cells[merged.count++] = a->cells[i++];
        } else if (i == a->count || b->cells[j].index < a->cells[i].index) {
            merged.cells[merged.count++] = b->cells[j++];
        } else {
            merged.cells[merged.count] = a->cells[i++];
            pq_hsum_term_merge(&merged.cells[merged.count++].term, b->cells[j++].term, exact);
        }
    }
    sum->sides[which] = merged;
    return true;
}

enum pq_hsum_result pq_hsum_merge(struct pq_histogram_sum *sum, struct pq_histogram_sum *from)
{
    bool exact = sum->mode != PQ_HSUM_PLAIN;

    if (!from->any)
        return PQ_HSUM_OK;
    if (!sum->any) {
        *sum = *from;
        return PQ_HSUM_OK;
    }
    if ((sum->schema == PQ_SCHEMA_CUSTOM) != (from->schema == PQ_SCHEMA_CUSTOM))
        return PQ_HSUM_MIXED;
    make_room(sum, from->peak);
    if (sum->shift)
        shift(from);
    if (from->shift)
        shift(sum);
    if (!pq_hsum_fit(sum, from))
        return PQ_HSUM_NO_MEMORY;
    sum->hints |= from->hints;
    sum->reconciled |= from->reconciled;
    pq_hsum_term_merge(&sum->zero, from->zero, exact);
    pq_hsum_term_merge(&sum->count, from->count, exact);
    pq_hsum_term_merge(&sum->sum, from->sum, exact);
    return merge_side(sum, from, PQ_POSITIVE) && merge_side(sum, from, PQ_NEGATIVE)
               ? PQ_HSUM_OK
               : PQ_HSUM_NO_MEMORY;
}

/* How the numbers of a sum are read. */
struct reading {
    struct qf_arena *arena; /* where the histogram is made */
    double divisor;
    int shift;
    enum pq_hsum_part part; /* PQ_HSUM_PART__COUNT: the whole */
};

static double read_term(struct pq_hsum_term term, const struct reading *reading)
{
    switch (reading->part) {
    case PQ_HSUM_HIGH:
        return term.sum;
    case PQ_HSUM_LOST:
        return term.lost;
    case PQ_HSUM_LOW:
        return term.low;
    case PQ_HSUM_PART__COUNT:
        break;
    }
    return term_divided(term, reading->divisor, reading->shift);
}

static bool write_side(const struct pq_histogram_sum *sum, enum pq_side which,
                       const struct reading *reading, struct pq_histogram *h)
{
    const struct pq_hsum_side *side = &sum->sides[which];
    struct pq_side_writer writer;

    if (!pq_side_write(&writer, reading->arena, side->count))
        return false;
    for (size_t i = 0; i < side->count; i++)
        pq_side_put(&writer, side->cells[i].index, read_term(side->cells[i].term, reading));
    pq_side_set(h, which, &writer);
    return true;
}

static struct pq_histogram *read_sum(const struct pq_histogram_sum *sum,
                                     const struct reading *reading)
{
    struct pq_histogram frame = {
        .reset_hint = pq_hints_combined(sum->hints),
        .schema = sum->schema,
        .zero_threshold = sum->zero_threshold,
        .zero_count = read_term(sum->zero, reading),
        .count = read_term(sum->count, reading),
        .sum = read_term(sum->sum, reading),
        .custom_values = sum->bounds,
        .custom_value_count = sum->bound_count,
    };
    struct pq_histogram *h = pq_histogram_like(reading->arena, &frame);

    return h && write_side(sum, PQ_POSITIVE, reading, h) && write_side(sum, PQ_NEGATIVE, reading, h)
               ? h
               : NULL;
}

struct pq_histogram *pq_hsum_value(const struct pq_histogram_sum *sum, double divisor,
                                   struct qf_arena *arena)
{
    return read_sum(sum, &(struct reading){ arena, divisor, sum->shift, PQ_HSUM_PART__COUNT });
}

const struct pq_histogram *pq_hsum_part(const struct pq_histogram_sum *sum, enum pq_hsum_part part)
{
    return read_sum(sum, &(struct reading){ .arena = sum->arena, .part = part });
}

enum pq_reset_hint pq_hints_combined(unsigned hints)
{
    if (hints & 1u << PQ_RESET_GAUGE)
        return PQ_RESET_GAUGE;
    if (hints == 1u << PQ_RESET_YES)
        return PQ_RESET_YES;
    return hints == 1u << PQ_RESET_NO ? PQ_RESET_NO : PQ_RESET_UNKNOWN;
}

bool pq_hints_conflict(unsigned hints)
{
    return (hints & 1u << PQ_RESET_YES) && (hints & 1u << PQ_RESET_NO);
}
