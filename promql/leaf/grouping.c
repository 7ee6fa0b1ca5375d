/* grouping.c - by (...) and without (...). */
#include "promql/leaf/grouping.h"

bool pq_grouping_init(struct pq_grouping *grouping, struct qf_arena *arena,
                      const struct qf_str *names, size_t count, bool without)
{
    struct qf_str metric = QF_STR(QF_METRIC_NAME);
    struct qf_str *more;
    size_t at = 0;

    *grouping = (struct pq_grouping){ names, count, without };
    if (!without)
        return true;
    while (at < count && qf_str_cmp(names[at], metric) < 0)
        at++;
    if (at < count && qf_str_eq(names[at], metric))
        return true;
    more = QF_ARENA_ARRAY(arena, struct qf_str, count + 1);
    if (!more)
        return false;
    for (size_t i = 0; i < at; i++)
        more[i] = names[i];
    more[at] = metric;
    for (size_t i = at; i < count; i++)
        more[i + 1] = names[i];
    grouping->names = more;
    grouping->count = count + 1;
    return true;
}

bool pq_grouping_labels(const struct pq_grouping *grouping, struct qf_arena *arena,
                        struct qf_labels labels, struct qf_labels *ret_labels)
{
    return grouping->without
               ? qf_labels_drop(arena, labels, grouping->names, grouping->count, ret_labels)
               : qf_labels_keep(arena, labels, grouping->names, grouping->count, ret_labels);
}

bool pq_labels_unnamed(struct qf_arena *arena, struct qf_labels labels,
                       struct qf_labels *ret_labels)
{
    static const struct qf_str names[] = { QF_STR_INIT(QF_METRIC_NAME), QF_STR_INIT("__type__"),
                                           QF_STR_INIT("__unit__") };

    return qf_labels_drop(arena, labels, names, QF_COUNT_OF(names), ret_labels);
}
