/* ranks.c - tables of groups, merged by the ranks they carry. */
#include "promql/merge/ranks.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/partial/rank.h"

/* A group of one shard; after they were sorted by labels the first of each group has its rank. */
struct entry {
    struct qf_labels labels;
    struct qf_str rank;
    uint32_t *id;
};

struct group {
    const struct entry *first;
    size_t count; /* entries */
};

static int by_labels(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = qf_labels_cmp(x->labels, y->labels);

    return order ? order : qf_str_cmp(x->rank, y->rank);
}

static int by_rank(const void *a, const void *b)
{
    const struct entry *x = ((const struct group *)a)->first, *y = ((const struct group *)b)->first;
    int order = qf_str_cmp(x->rank, y->rank);

    return order ? order : qf_labels_cmp(x->labels, y->labels);
}

static qf_rc list_entries(const struct pq_ranked_table *tables, size_t table_count,
                          struct entry *entries, struct qf_err *err)
{
    for (size_t t = 0; t < table_count; t++)
        for (size_t i = 0; i < tables[t].count; i++, entries++) {
            if (!pq_rank_split(tables[t].series[i], &entries->labels, &entries->rank))
                return qf_err_set(err, QF_ECORRUPT, "a group of a leaf result has no rank");
            entries->id = &tables[t].ids[i];
        }
    return QF_OK;
}

qf_rc pq_ranks_merge(const struct pq_ranked_table *tables, size_t table_count,
                     struct qf_labels *series, size_t *ret_count, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) struct entry *entries = NULL;
    QF_CLEANUP(qf_freep) struct group *groups = NULL;
    size_t total = 0, count = 0;
    qf_rc rc;

    for (size_t t = 0; t < table_count; t++)
        total += tables[t].count;
    entries = qf_xcalloc(total + 1, sizeof(*entries));
    groups = qf_xcalloc(total + 1, sizeof(*groups));
    rc = list_entries(tables, table_count, entries, err);
    if (rc != QF_OK)
        return rc;
    qsort(entries, total, sizeof(*entries), by_labels);
    for (size_t i = 0; i < total; i++) {
        if (i == 0 || !qf_labels_eq(entries[i - 1].labels, entries[i].labels))
            groups[count++].first = &entries[i];
        groups[count - 1].count++;
    }
    qsort(groups, count, sizeof(*groups), by_rank);
    for (size_t g = 0; g < count; g++) {
        series[g] = groups[g].first->labels;
        for (size_t i = 0; i < groups[g].count; i++)
            *groups[g].first[i].id = (uint32_t)g;
    }
    *ret_count = count;
    return QF_OK;
}
