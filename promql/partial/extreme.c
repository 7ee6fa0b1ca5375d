/* extreme.c - min and max. */
#include "promql/func/aggregate.h"
#include "promql/partial/partial.h"

static const struct pq_leaf_kind min_kind = { "min", 1, { "value" } };
static const struct pq_leaf_kind max_kind = { "max", 1, { "value" } };

static void add_min(double *const *columns, const uint8_t *seen, const double *values,
                    const uint8_t *present, size_t count)
{
    double *min = columns[0];

    for (size_t k = 0; k < count; k++)
        if (present[k])
            min[k] = seen[k] ? pq_min_add(min[k], values[k]) : values[k];
}

static void add_max(double *const *columns, const uint8_t *seen, const double *values,
                    const uint8_t *present, size_t count)
{
    double *max = columns[0];

    for (size_t k = 0; k < count; k++)
        if (present[k])
            max[k] = seen[k] ? pq_max_add(max[k], values[k]) : values[k];
}

static void merge_min(double *into, const double *from)
{
    into[0] = pq_min_add(into[0], from[0]);
}

static void merge_max(double *into, const double *from)
{
    into[0] = pq_max_add(into[0], from[0]);
}

static double value(const double *partial)
{
    return partial[0];
}

const struct pq_aggregation pq_aggregation_min = {
    .id = PQ_AGG_MIN,
    .shape = PQ_AGG_FOLDS,
    .kind = &min_kind,
    .histograms = PQ_HISTOGRAMS_IGNORE,
    .add = add_min,
    .merge = merge_min,
    .value = value,
};

const struct pq_aggregation pq_aggregation_max = {
    .id = PQ_AGG_MAX,
    .shape = PQ_AGG_FOLDS,
    .kind = &max_kind,
    .histograms = PQ_HISTOGRAMS_IGNORE,
    .add = add_max,
    .merge = merge_max,
    .value = value,
};
