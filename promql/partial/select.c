/* select.c - topk, bottomk, limitk and limit_ratio: which series of a group are preferred.
 *
 * A leaf of limitk answers with its first k; the first of all shards are among them. Which of equal
 * values topk and bottomk keep hangs on all values (topk.h): theirs are chosen above the leaves. */
#include "promql/partial/partial.h"

static const struct pq_leaf_kind candidates = { "candidates", 1, { "value" } };

const struct pq_aggregation pq_aggregation_topk = {
    .id = PQ_AGG_TOPK,
    .shape = PQ_AGG_SELECTS,
    .kind = &candidates,
    .histograms = PQ_HISTOGRAMS_IGNORE,
    .prefers = PQ_PREFER_LARGEST,
};

const struct pq_aggregation pq_aggregation_bottomk = {
    .id = PQ_AGG_BOTTOMK,
    .shape = PQ_AGG_SELECTS,
    .kind = &candidates,
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
