/* select.c - topk, bottomk, limitk and limit_ratio: which series of a group are preferred.
 *
 * A leaf answers with the values that its heaps took: of limitk the first k, of topk and bottomk also
 * those that gave way to better ones, for they decide which of equal values stay (topk.h). */
#include "promql/partial/partial.h"

static const struct pq_leaf_kind candidates = { "candidates", 1, { "value" } };
/* Not "candidates": once those were the best k of a shard alone. */
static const struct pq_leaf_kind taken = { "taken", 1, { "value" } };

const struct pq_aggregation pq_aggregation_topk = {
    .id = PQ_AGG_TOPK,
    .shape = PQ_AGG_SELECTS,
    .kind = &taken,
    .histograms = PQ_HISTOGRAMS_IGNORE,
    .prefers = PQ_PREFER_LARGEST,
};

const struct pq_aggregation pq_aggregation_bottomk = {
    .id = PQ_AGG_BOTTOMK,
    .shape = PQ_AGG_SELECTS,
    .kind = &taken,
    .histograms = PQ_HISTOGRAMS_IGNORE,
    .prefers = PQ_PREFER_SMALLEST,
};

const struct pq_aggregation pq_aggregation_limitk = {
    .id = PQ_AGG_LIMITK,
    .shape = PQ_AGG_SELECTS,
    .kind = &candidates,
    .histograms = PQ_HISTOGRAMS_ALIKE,
    .prefers = PQ_PREFER_FIRST,
};

/* By the hash of a series alone: nothing is gained by asking a leaf. */
const struct pq_aggregation pq_aggregation_limit_ratio = {
    .id = PQ_AGG_LIMIT_RATIO,
    .shape = PQ_AGG_SELECTS,
    .histograms = PQ_HISTOGRAMS_ALIKE,
};
