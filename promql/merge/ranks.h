/* ranks.h - one table of groups out of those of all shards, in the order of their first series. */
#ifndef PROMQL_MERGE_RANKS_H
#define PROMQL_MERGE_RANKS_H

#include "base/pure/err.h"
#include "promql/leaf_result.h"

/* One shard's table, whose labels are marked (partial/rank.h), and where its ids go. */
struct pq_ranked_table {
    const struct qf_labels *series;
    size_t count;
    uint32_t *ids; /* room for count: index in the merged table */
};

/* Fill @series, which has room for all, and the ids; *@ret_count is how many groups there are. They
 * stand in the order of the least rank of each. QF_ECORRUPT: a group has no mark. */
QF_MUST_CHECK qf_rc pq_ranks_merge(const struct pq_ranked_table *tables, size_t table_count,
                                   struct qf_labels *series, size_t *ret_count, struct qf_err *err);

#endif
