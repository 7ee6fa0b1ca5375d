/* grouping.h - by (...) and without (...): from the labels of a series to those of its group. */
#ifndef PROMQL_LEAF_GROUPING_H
#define PROMQL_LEAF_GROUPING_H

#include "base/pure/arena.h"
#include "base/pure/labels.h"

struct pq_grouping {
    const struct qf_str *names; /* sorted; for without, the metric name is among them */
    size_t count;
    bool without;
};

/* @names are sorted and distinct. False: budget spent. */
QF_MUST_CHECK bool pq_grouping_init(struct pq_grouping *grouping, struct qf_arena *arena,
                                    const struct qf_str *names, size_t count, bool without);
QF_MUST_CHECK bool pq_grouping_labels(const struct pq_grouping *grouping, struct qf_arena *arena,
                                      struct qf_labels labels, struct qf_labels *ret_labels);

/* The labels without metric name, type and unit: what is left when an operation makes something
 * else of a metric. */
QF_MUST_CHECK bool pq_labels_unnamed(struct qf_arena *arena, struct qf_labels labels,
                                     struct qf_labels *ret_labels);

#endif
