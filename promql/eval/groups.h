/* groups.h - series that share some of their labels: groups of aggregations, match groups of
 * binary operators. Groups are numbered as they are met; several children may share a numbering. */
#ifndef PROMQL_EVAL_GROUPS_H
#define PROMQL_EVAL_GROUPS_H

#include "promql/eval/exec.h"

struct pq_groups {
    struct pq_grouping grouping;
    struct pq_label_index index;
    struct qf_labels *labels;
    uint8_t *drop; /* any series of the group drops its name */
    size_t count, labels_capacity, drop_capacity;
};

/* The group of each series of one child. */
struct pq_members {
    uint32_t *group_of;
    size_t known, capacity;
};

/* @names sorted. False: budget spent. */
QF_MUST_CHECK bool pq_groups_init(struct pq_groups *groups, struct pq_eval *eval,
                                  const struct qf_str *names, size_t count, bool without);
void pq_groups_done(struct pq_groups *groups);
/* Assign the series of @child that are new. */
QF_MUST_CHECK qf_rc pq_groups_assign(struct pq_groups *groups, struct pq_eval *eval,
                                     const struct pq_exec *child, struct pq_members *members,
                                     struct qf_err *err);

#endif
