/* cells.c - partial aggregates, one per step. */
#include "promql/leaf/cells.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "promql/func/aggregate.h"
#include "promql/leaf/twofold.h"

bool pq_cells_init(struct pq_cells *cells, enum pq_leaf_kind kind, struct qf_arena *arena,
                   size_t steps, struct pq_poll *poll)
{
    *cells = (struct pq_cells){ .present = qf_arena_calloc(arena, steps, 1) };
    if (!cells->present)
        return false;
    for (size_t c = 0; c < pq_leaf_columns(kind); c++) {
        double *column = qf_arena_alloc(arena, steps * sizeof(double));

        if (!column)
            return false;
        for (size_t k = 0, end; (end = pq_poll_piece(poll, k, steps)) > k; k = end)
            memset(column + k, 0, (end - k) * sizeof(double));
        cells->columns[c] = column;
    }
    return true;
}

/* A running sum, what was lost in adding to it, and what was lost in adding that up: so much that
 * even where large numbers cancel out the order of the additions does not show. The first two are
 * the compensated sum of Prometheus. */
struct sum {
    double sum, lost, lost_low;
};

/* The exact error of total = a + b (Knuth). */
static inline double sum_error(double a, double b, double total)
{
    double part = total - a;

    return (a - (total - part)) + (b - part);
}

static inline struct sum sum_add(struct sum s, double value)
{
    double total = s.sum + value;
    double error = sum_error(s.sum, value, total);
    double lost = s.lost + error;
    double low = s.lost_low + sum_error(s.lost, error, lost);
    bool finite = fabs(total) <= DBL_MAX;

    return (struct sum){ total, finite ? lost : 0, finite ? low : 0 };
}

static struct sum sum_merge(struct sum s, struct sum other)
{
    double lost;

    s = sum_add(s, other.sum);
    if (!isfinite(s.sum))
        return s;
    lost = s.lost + other.lost;
    s.lost_low += sum_error(s.lost, other.lost, lost) + other.lost_low;
    s.lost = lost;
    return s;
}

/* In normal form: how a sum is split up depends on the order of the additions. */
static struct pq_twofold sum_value(struct sum s)
{
    struct pq_twofold value = pq_two_sum(s.sum, s.lost);

    return isfinite(value.high) ? pq_two_sum(value.high, value.low + s.lost_low) : value;
}

/* Two steps at once: compilers do not find this by themselves without reordering additions. */
typedef double pair __attribute__((vector_size(16)));
typedef long long pair_mask __attribute__((vector_size(16)));

static inline pair load_pair(const double *from)
{
    pair p;

    memcpy(&p, from, sizeof(p));
    return p;
}

static inline void store_pair(double *to, pair p)
{
    memcpy(to, &p, sizeof(p));
}

static inline pair pair_error(pair a, pair b, pair total)
{
    pair part = total - a;

    return (a - (total - part)) + (b - part);
}

/* sum_add() for steps that all have a value; returns how many were done. */
static size_t add_sum_pairs(double *sum, double *lost, double *lost_low, const double *values,
                            size_t count)
{
    size_t k = 0;

    for (; k + 2 <= count; k += 2) {
        pair s = load_pair(sum + k), v = load_pair(values + k), l = load_pair(lost + k);
        pair total = s + v;
        pair error = pair_error(s, v, total), sum_of_lost = l + error;
        pair low = load_pair(lost_low + k) + pair_error(l, error, sum_of_lost);
        pair_mask finite = (total <= DBL_MAX) & (total >= -DBL_MAX);

        store_pair(sum + k, total);
        store_pair(lost + k, (pair)((pair_mask)sum_of_lost & finite));
        store_pair(lost_low + k, (pair)((pair_mask)low & finite));
    }
    return k;
}

/* A value that is not there is added as zero, which changes nothing. */
static void add_sum(double *sum, double *lost, double *lost_low, const double *values,
                    const uint8_t *present, size_t count)
{
    size_t k = memchr(present, 0, count) ? 0 : add_sum_pairs(sum, lost, lost_low, values, count);

    for (; k < count; k++) {
        struct sum s =
            sum_add((struct sum){ sum[k], lost[k], lost_low[k] }, present[k] ? values[k] : 0);

        sum[k] = s.sum;
        lost[k] = s.lost;
        lost_low[k] = s.lost_low;
    }
}

/* Once a sum overflows, the average goes on with the running mean (func/aggregate.h); its sum
 * column then is an infinity, which no average of two values or more has otherwise. */
struct average {
    struct sum sum;
    double count, mean;
};

static struct average load_avg(const double *cell, size_t stride)
{
    return (struct average){ { cell[0], cell[stride], cell[2 * stride] },
                             cell[3 * stride],
                             cell[4 * stride] };
}

static void store_avg(const struct average *avg, double *cell, size_t stride)
{
    cell[0] = avg->sum.sum;
    cell[stride] = avg->sum.lost;
    cell[2 * stride] = avg->sum.lost_low;
    cell[3 * stride] = avg->count;
    cell[4 * stride] = avg->mean;
}

static bool has_overflowed(const struct average *avg)
{
    return isinf(avg->sum.sum) && avg->count > 1;
}

static struct pq_avg to_running_mean(const struct average *avg)
{
    bool is_mean = has_overflowed(avg);

    return (struct pq_avg){ .sum = { is_mean ? 0 : avg->sum.sum, avg->sum.lost },
                            .count = avg->count,
                            .mean = avg->mean,
                            .is_mean = is_mean };
}

static struct average from_running_mean(const struct pq_avg *avg)
{
    return (struct average){ { avg->is_mean ? (double)INFINITY : avg->sum.sum,
                               avg->sum.compensation, 0 },
                             avg->count,
                             avg->mean };
}

static struct average average_add(struct average avg, double value)
{
    struct sum sum = sum_add(avg.sum, value);
    struct pq_avg running;

    if (avg.count == 0 || (!has_overflowed(&avg) && !isinf(sum.sum)))
        return (struct average){ avg.count == 0 ? (struct sum){ value, 0, 0 } : sum, avg.count + 1,
                                 0 };
    running = to_running_mean(&avg);
    pq_avg_add(&running, value);
    return from_running_mean(&running);
}

static struct average average_merge(struct average avg, struct average other)
{
    struct sum sum = sum_merge(avg.sum, other.sum);
    struct pq_avg running = to_running_mean(&avg), add = to_running_mean(&other);

    if (!has_overflowed(&avg) && !has_overflowed(&other) && !isinf(sum.sum))
        return (struct average){ sum, avg.count + other.count, 0 };
    pq_avg_merge(&running, &add);
    return from_running_mean(&running);
}

static double average_value(const struct average *avg)
{
    struct pq_twofold sum = sum_value(avg->sum);
    struct pq_avg running;

    if (!has_overflowed(avg))
        return sum.high / avg->count + sum.low / avg->count;
    running = to_running_mean(avg);
    return pq_avg_value(&running);
}

static void add_avg(struct pq_cells *cells, const double *values, const uint8_t *present,
                    size_t count)
{
    for (size_t k = 0; k < count; k++) {
        double cell[PQ_LEAF_COLUMNS_MAX];
        struct average avg;

        if (!present[k])
            continue;
        for (size_t c = 0; c < PQ_LEAF_COLUMNS_MAX; c++)
            cell[c] = cells->columns[c][k];
        avg = average_add(load_avg(cell, 1), values[k]);
        store_avg(&avg, cell, 1);
        for (size_t c = 0; c < PQ_LEAF_COLUMNS_MAX; c++)
            cells->columns[c][k] = cell[c];
    }
}

/* Count, mean and sum of squared distances to it (M2), the last two in twice the precision. */
struct variance {
    double count;
    struct pq_twofold mean, m2;
};

static struct variance load_variance(const double *cell, size_t stride)
{
    return (struct variance){ cell[0],
                              { cell[stride], cell[2 * stride] },
                              { cell[3 * stride], cell[4 * stride] } };
}

static void store_variance(const struct variance *v, double *cell, size_t stride)
{
    cell[0] = v->count;
    cell[stride] = v->mean.high;
    cell[2 * stride] = v->mean.low;
    cell[3 * stride] = v->m2.high;
    cell[4 * stride] = v->m2.low;
}

/* Welford's recurrence. A NaN or an infinity makes the result NaN. */
static void variance_add(struct variance *v, double value)
{
    struct pq_twofold x = { value, 0 }, delta;

    v->count++;
    if (v->count == 1) {
        v->mean = x;
        v->m2 = (struct pq_twofold){ isfinite(value) ? 0 : NAN, 0 };
        return;
    }
    delta = pq_twofold_add(x, pq_twofold_neg(v->mean));
    v->mean = pq_twofold_add(v->mean, pq_twofold_div(delta, v->count));
    x = pq_twofold_add(x, pq_twofold_neg(v->mean));
    v->m2 = pq_twofold_add(v->m2, pq_twofold_mul(delta, x));
}

/* Chan's formula for joining two sets. */
static void variance_merge(struct variance *into, const struct variance *from)
{
    double total = into->count + from->count;
    struct pq_twofold delta = pq_twofold_add(from->mean, pq_twofold_neg(into->mean));
    struct pq_twofold share =
        pq_twofold_div(pq_twofold_mul(delta, (struct pq_twofold){ from->count, 0 }), total);
    struct pq_twofold between = pq_twofold_mul(delta, (struct pq_twofold){ into->count, 0 });

    into->mean = pq_twofold_add(into->mean, share);
    into->m2 = pq_twofold_add(pq_twofold_add(into->m2, from->m2), pq_twofold_mul(between, share));
    into->count = total;
}

static void add_variance(struct pq_cells *cells, const double *values, const uint8_t *present,
                         size_t count)
{
    for (size_t k = 0; k < count; k++) {
        double cell[PQ_LEAF_COLUMNS_MAX];
        struct variance v;

        if (!present[k])
            continue;
        for (size_t c = 0; c < PQ_LEAF_COLUMNS_MAX; c++)
            cell[c] = cells->columns[c][k];
        v = load_variance(cell, 1);
        variance_add(&v, values[k]);
        store_variance(&v, cell, 1);
        for (size_t c = 0; c < PQ_LEAF_COLUMNS_MAX; c++)
            cells->columns[c][k] = cell[c];
    }
}

static void add_extreme(struct pq_cells *cells, bool max, const double *values,
                        const uint8_t *present, size_t count)
{
    double *cell = cells->columns[0];

    for (size_t k = 0; k < count; k++) {
        if (!present[k])
            continue;
        if (!cells->present[k])
            cell[k] = values[k];
        else
            cell[k] = max ? pq_max_add(cell[k], values[k]) : pq_min_add(cell[k], values[k]);
    }
}

static void add_piece(struct pq_cells *cells, enum pq_leaf_kind kind, const double *values,
                      const uint8_t *present, size_t count)
{
    switch ((int)kind) {
    case PQ_LEAF_SUM:
        add_sum(cells->columns[0], cells->columns[1], cells->columns[2], values, present, count);
        break;
    case PQ_LEAF_AVG:
        add_avg(cells, values, present, count);
        break;
    case PQ_LEAF_VARIANCE:
        add_variance(cells, values, present, count);
        break;
    case PQ_LEAF_MIN:
    case PQ_LEAF_MAX:
        add_extreme(cells, kind == PQ_LEAF_MAX, values, present, count);
        break;
    case PQ_LEAF_GROUP:
        for (size_t k = 0; k < count; k++)
            cells->columns[0][k] = 1;
        break;
    default: /* COUNT */
        for (size_t k = 0; k < count; k++)
            cells->columns[0][k] += present[k];
        break;
    }
    for (size_t k = 0; k < count; k++)
        cells->present[k] |= present[k];
}

void pq_cells_add(struct pq_cells *cells, enum pq_leaf_kind kind, const double *values,
                  const uint8_t *present, size_t count, struct pq_poll *poll)
{
    for (size_t k = 0, end; (end = pq_poll_piece(poll, k, count)) > k; k = end) {
        struct pq_cells piece = { .present = cells->present + k };

        for (size_t c = 0; c < pq_leaf_columns(kind); c++)
            piece.columns[c] = cells->columns[c] + k;
        add_piece(&piece, kind, values + k, present + k, end - k);
    }
}

void pq_cell_merge(enum pq_leaf_kind kind, double *into, size_t stride, const double *partial,
                   bool first)
{
    struct variance variance, other_variance;
    struct average avg;
    struct sum sum;

    if (first) {
        for (size_t c = 0; c < pq_leaf_columns(kind); c++)
            into[c * stride] = partial[c];
        return;
    }
    switch ((int)kind) {
    case PQ_LEAF_SUM:
        sum = sum_merge((struct sum){ into[0], into[stride], into[2 * stride] },
                        (struct sum){ partial[0], partial[1], partial[2] });
        into[0] = sum.sum;
        into[stride] = sum.lost;
        into[2 * stride] = sum.lost_low;
        break;
    case PQ_LEAF_AVG:
        avg = average_merge(load_avg(into, stride), load_avg(partial, 1));
        store_avg(&avg, into, stride);
        break;
    case PQ_LEAF_VARIANCE:
        variance = load_variance(into, stride);
        other_variance = load_variance(partial, 1);
        variance_merge(&variance, &other_variance);
        store_variance(&variance, into, stride);
        break;
    case PQ_LEAF_MIN:
        into[0] = pq_min_add(into[0], partial[0]);
        break;
    case PQ_LEAF_MAX:
        into[0] = pq_max_add(into[0], partial[0]);
        break;
    case PQ_LEAF_COUNT:
    case PQ_LEAF_COUNT_VALUES:
        into[0] += partial[0];
        break;
    default: /* GROUP stays 1; SERIES, SAMPLES and CANDIDATES come once */
        break;
    }
}

double pq_cell_value(enum pq_leaf_kind kind, enum pq_agg agg, const double *cell, size_t stride)
{
    struct variance variance;
    struct average avg;
    double stdvar;

    switch ((int)kind) {
    case PQ_LEAF_SUM:
        return sum_value((struct sum){ cell[0], cell[stride], cell[2 * stride] }).high;
    case PQ_LEAF_AVG:
        avg = load_avg(cell, stride);
        return average_value(&avg);
    case PQ_LEAF_VARIANCE:
        variance = load_variance(cell, stride);
        stdvar = pq_twofold_div(variance.m2, variance.count).high;
        return agg == PQ_AGG_STDDEV ? sqrt(stdvar) : stdvar;
    default:
        return cell[0];
    }
}
