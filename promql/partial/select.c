/* select.c - topk, bottomk, limitk and limit_ratio: which series of a group are preferred.
 *
 * A leaf answers with its best k; the best of all shards are among them. Of equal values the series
 * that comes first is preferred, and NaN is worse than any number. */
#include <math.h>

#include "promql/partial/partial.h"
#include "promql/partial/topk.h"

static const struct pq_leaf_kind candidates = { "candidates", 1, { "value" } };

static bool first(struct pq_topk_item a, struct pq_topk_item b)
{
    return a.id < b.id;
}

static bool larger(struct pq_topk_item a, struct pq_topk_item b)
{
    if (isnan(a.value) != isnan(b.value))
        return isnan(b.value);
    return a.value != b.value && !isnan(a.value) ? a.value > b.value : first(a, b);
}

static bool smaller(struct pq_topk_item a, struct pq_topk_item b)
{
    if (isnan(a.value) != isnan(b.value))
        return isnan(b.value);
    return a.value != b.value && !isnan(a.value) ? a.value < b.value : first(a, b);
}

const struct pq_aggregation pq_aggregation_topk = {
    .id = PQ_AGG_TOPK,
    .shape = PQ_AGG_SELECTS,
    .kind = &candidates,
    .histograms = PQ_HISTOGRAMS_IGNORE,
    .better = larger,
    .ordered = true,
};

const struct pq_aggregation pq_aggregation_bottomk = {
    .id = PQ_AGG_BOTTOMK,
    .shape = PQ_AGG_SELECTS,
    .kind = &candidates,
    .histograms = PQ_HISTOGRAMS_IGNORE,
    .better = smaller,
    .ordered = true,
};

const struct pq_aggregation pq_aggregation_limitk = {
    .id = PQ_AGG_LIMITK,
    .shape = PQ_AGG_SELECTS,
    .kind = &candidates,
    .histograms = PQ_HISTOGRAMS_ALIKE,
    .better = first,
};

/* By the hash of a series alone: nothing is gained by asking a leaf. */
const struct pq_aggregation pq_aggregation_limit_ratio = {
    .id = PQ_AGG_LIMIT_RATIO,
    .shape = PQ_AGG_SELECTS,
    .histograms = PQ_HISTOGRAMS_ALIKE,
};
