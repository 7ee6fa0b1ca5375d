/* cells.c - partial aggregates, one per step. */
#include "promql/leaf/cells.h"

#include <math.h>
#include <string.h>

#include "promql/func/aggregate.h"

bool pq_cells_init(struct pq_cells *cells, enum pq_leaf_kind kind, struct qf_arena *arena,
                   size_t steps)
{
    *cells = (struct pq_cells){ .present = qf_arena_calloc(arena, steps, 1) };
    if (!cells->present)
        return false;
    for (size_t c = 0; c < pq_leaf_columns(kind); c++) {
        cells->columns[c] = QF_ARENA_ARRAY(arena, double, steps);
        if (!cells->columns[c])
            return false;
    }
    return true;
}

/* Kahan's sum with Neumaier's improvement for all steps at once. A value that is not there is
 * added as zero, which changes neither sum nor compensation: no branches, so it vectorises. */
static void add_sum(double *restrict sum, double *restrict compensation,
                    const double *restrict values, const uint8_t *restrict present, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        double value = present[k] ? values[k] : 0;
        double total = sum[k] + value;
        double lost_small = (sum[k] - total) + value;
        double lost_large = (value - total) + sum[k];
        double lost = fabs(sum[k]) >= fabs(value) ? lost_small : lost_large;

        compensation[k] = fabs(total) > 1.7976931348623157e308 ? 0 : compensation[k] + lost;
        sum[k] = total;
    }
}

/* An average that overflowed carries the mean; its sum column then is an infinity, which no
 * average of two values or more has otherwise. */
static struct pq_avg load_avg(const double *cell, size_t stride)
{
    struct pq_avg avg = { .sum = { cell[0], cell[stride] },
                          .count = cell[2 * stride],
                          .mean = cell[3 * stride] };

    if (isinf(avg.sum.sum) && avg.count > 1) {
        avg.is_mean = true;
        avg.sum.sum = 0;
    }
    return avg;
}

static void store_avg(const struct pq_avg *avg, double *cell, size_t stride)
{
    cell[0] = avg->is_mean ? (double)INFINITY : avg->sum.sum;
    cell[stride] = avg->sum.compensation;
    cell[2 * stride] = avg->count;
    cell[3 * stride] = avg->mean;
}

static void add_avg(struct pq_cells *cells, const double *values, const uint8_t *present,
                    size_t count)
{
    for (size_t k = 0; k < count; k++) {
        double cell[4] = { cells->columns[0][k], cells->columns[1][k], cells->columns[2][k],
                           cells->columns[3][k] };
        struct pq_avg avg = load_avg(cell, 1);

        if (!present[k])
            continue;
        pq_avg_add(&avg, values[k]);
        store_avg(&avg, cell, 1);
        for (size_t c = 0; c < 4; c++)
            cells->columns[c][k] = cell[c];
    }
}

static void add_variance(struct pq_cells *cells, const double *values, const uint8_t *present,
                         size_t count)
{
    for (size_t k = 0; k < count; k++) {
        struct pq_variance v = { cells->columns[0][k], cells->columns[1][k], cells->columns[2][k] };

        if (!present[k])
            continue;
        pq_variance_add(&v, values[k]);
        cells->columns[0][k] = v.count;
        cells->columns[1][k] = v.mean;
        cells->columns[2][k] = v.m2;
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

void pq_cells_add(struct pq_cells *cells, enum pq_leaf_kind kind, const double *values,
                  const uint8_t *present, size_t count)
{
    switch ((int)kind) {
    case PQ_LEAF_SUM:
        add_sum(cells->columns[0], cells->columns[1], values, present, count);
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

static void merge_variance(double *into, size_t stride, const double *partial)
{
    struct pq_variance v = { into[0], into[stride], into[2 * stride] };
    struct pq_variance other = { partial[0], partial[1], partial[2] };

    pq_variance_merge(&v, &other);
    into[0] = v.count;
    into[stride] = v.mean;
    into[2 * stride] = v.m2;
}

void pq_cell_merge(enum pq_leaf_kind kind, double *into, size_t stride, const double *partial,
                   bool first)
{
    struct pq_kahan sum;
    struct pq_avg avg, other;

    if (first) {
        for (size_t c = 0; c < pq_leaf_columns(kind); c++)
            into[c * stride] = partial[c];
        return;
    }
    switch ((int)kind) {
    case PQ_LEAF_SUM:
        sum = (struct pq_kahan){ into[0], into[stride] };
        pq_kahan_merge(&sum, &(struct pq_kahan){ partial[0], partial[1] });
        into[0] = sum.sum;
        into[stride] = sum.compensation;
        break;
    case PQ_LEAF_AVG:
        avg = load_avg(into, stride);
        other = load_avg(partial, 1);
        pq_avg_merge(&avg, &other);
        store_avg(&avg, into, stride);
        break;
    case PQ_LEAF_VARIANCE:
        merge_variance(into, stride, partial);
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
    struct pq_variance variance;
    struct pq_avg avg;

    switch ((int)kind) {
    case PQ_LEAF_SUM:
        return pq_kahan_value(&(struct pq_kahan){ cell[0], cell[stride] });
    case PQ_LEAF_AVG:
        avg = load_avg(cell, stride);
        return pq_avg_value(&avg);
    case PQ_LEAF_VARIANCE:
        variance = (struct pq_variance){ cell[0], cell[stride], cell[2 * stride] };
        return agg == PQ_AGG_STDDEV ? pq_variance_stddev(&variance) : pq_variance_stdvar(&variance);
    default:
        return cell[0];
    }
}
