/* count.c - count, group and count_values: that there are values, and how many. */
#include "promql/partial/partial.h"

static const struct pq_leaf_kind count_kind = { "count", 1, { "count" } };
static const struct pq_leaf_kind group_kind = { "group", 1, { "value" } };
/* The value that is counted is a label of the series. */
static const struct pq_leaf_kind tally_kind = { "count_values", 1, { "count" } };

static void add_count(double *const *columns, const uint8_t *seen, const double *values,
                      const uint8_t *present, size_t count)
{
    (void)seen;
    (void)values;
    for (size_t k = 0; k < count; k++)
        columns[0][k] += present[k];
}

static void add_group(double *const *columns, const uint8_t *seen, const double *values,
                      const uint8_t *present, size_t count)
{
    (void)seen;
    (void)values;
    (void)present;
    for (size_t k = 0; k < count; k++)
        columns[0][k] = 1;
}

static void merge_counts(double *into, const double *from)
{
    into[0] += from[0];
}

static void merge_groups(double *into, const double *from)
{
    into[0] = from[0];
}

static double value(const double *partial)
{
    return partial[0];
}

const struct pq_aggregation pq_aggregation_count = {
    .id = PQ_AGG_COUNT,
    .shape = PQ_AGG_FOLDS,
    .kind = &count_kind,
    .histograms = PQ_HISTOGRAMS_ALIKE,
    .add = add_count,
    .merge = merge_counts,
    .value = value,
};

const struct pq_aggregation pq_aggregation_group = {
    .id = PQ_AGG_GROUP,
    .shape = PQ_AGG_FOLDS,
    .kind = &group_kind,
    .histograms = PQ_HISTOGRAMS_ALIKE,
    .add = add_group,
    .merge = merge_groups,
    .value = value,
};

const struct pq_aggregation pq_aggregation_count_values = {
    .id = PQ_AGG_COUNT_VALUES,
    .shape = PQ_AGG_TALLIES,
    .kind = &tally_kind,
    .histograms = PQ_HISTOGRAMS_ALIKE,
    .merge = merge_counts,
    .value = value,
};
