/* quantile.c - quantile: of all values at once, so there are no partials of it. */
#include "promql/partial/partial.h"

const struct pq_aggregation pq_aggregation_quantile = {
    .id = PQ_AGG_QUANTILE,
    .shape = PQ_AGG_FOLDS,
    .histograms = PQ_HISTOGRAMS_IGNORE,
};
