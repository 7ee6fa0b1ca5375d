/* rank.h - groups that say which of their series was met first.
 *
 * An instant query lists groups in the order in which it meets the first series of each
 * (eval/sequence.h). Whoever aggregates in the leaves has only groups to merge; so each group of such
 * a leaf carries the labels of its first series, in a label of its own that no metric can have. */
#ifndef PROMQL_PARTIAL_RANK_H
#define PROMQL_PARTIAL_RANK_H

#include "base/pure/arena.h"
#include "base/pure/labels.h"

/* @group with the rank of @first, made in @arena. False: budget spent. */
QF_MUST_CHECK bool pq_rank_mark(struct qf_arena *arena, struct qf_labels group,
                                struct qf_labels first, struct qf_labels *ret_labels);
/* Take a marked set of labels apart; both parts are borrowed. Ranks compare as bytes. False: it has
 * no mark. */
QF_MUST_CHECK bool pq_rank_split(struct qf_labels labels, struct qf_labels *ret_group,
                                 struct qf_str *ret_rank);

#endif
