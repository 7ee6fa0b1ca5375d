/* groups.c - series that share some of their labels. */
#include "promql/eval/groups.h"

bool pq_groups_init(struct pq_groups *groups, struct pq_eval *eval, const struct qf_str *names,
                    size_t count, bool without)
{
    return pq_grouping_init(&groups->grouping, eval->arena, names, count, without);
}

void pq_groups_done(struct pq_groups *groups)
{
    pq_label_index_done(&groups->index);
}

static qf_rc assign(struct pq_groups *groups, struct pq_eval *eval, struct qf_labels series,
                    bool drop, uint32_t *ret_group, struct qf_err *err)
{
    struct qf_labels labels;
    bool fresh;
    qf_rc rc;

    if (!pq_grouping_labels(&groups->grouping, eval->arena, series, &labels))
        return pq_eval_no_memory(err);
    rc = pq_label_index_put(&groups->index, eval, labels, (uint32_t)groups->count, ret_group,
                            &fresh, err);
    if (rc != QF_OK)
        return rc;
    if (fresh) {
        if (!pq_grow(eval->arena, &groups->labels, &groups->labels_capacity, groups->count + 1,
                     sizeof(*groups->labels)) ||
            !pq_grow(eval->arena, &groups->drop, &groups->drop_capacity, groups->count + 1, 1))
            return pq_eval_no_memory(err);
        groups->labels[groups->count] = labels;
        groups->drop[groups->count++] = 0;
    }
    groups->drop[*ret_group] |= drop;
    return QF_OK;
}

qf_rc pq_groups_assign(struct pq_groups *groups, struct pq_eval *eval, const struct pq_exec *child,
                       struct pq_members *members, struct qf_err *err)
{
    const struct pq_series_set *in = &child->set;

    if (!pq_grow(eval->arena, &members->group_of, &members->capacity, in->count, sizeof(uint32_t)))
        return pq_eval_no_memory(err);
    for (; members->known < in->count; members->known++) {
        qf_rc rc = assign(groups, eval, in->labels[members->known], in->drop[members->known],
                          &members->group_of[members->known], err);

        if (rc != QF_OK)
            return rc;
    }
    return QF_OK;
}
