/* table.c - aggregations and kinds of leaf results, by number and by name. */
#include "promql/partial/partial.h"

static const struct pq_aggregation *const objects[PQ_AGG__COUNT] = {
#define PQ_AGGREGATION(id, name, param, experimental, object)                                      \
    [PQ_AGG_##id] = &pq_aggregation_##object,
#include "promql/aggregations.def"
#undef PQ_AGGREGATION
};

const struct pq_aggregation *pq_aggregation_get(enum pq_agg id)
{
    return objects[id];
}

const struct pq_aggregation *pq_aggregation_find(struct qf_str name)
{
    for (size_t i = 0; i < PQ_AGG__COUNT; i++)
        if (qf_str_is(name, pq_agg_text(objects[i]->id)))
            return objects[i];
    return NULL;
}

const struct pq_leaf_kind pq_leaf_series = { "series", 1, { "value" } };
const struct pq_leaf_kind pq_leaf_samples = { "samples", 1, { "value" } };

const struct pq_leaf_kind *pq_leaf_kind_find(struct qf_str name)
{
    if (qf_str_is(name, pq_leaf_series.name))
        return &pq_leaf_series;
    if (qf_str_is(name, pq_leaf_samples.name))
        return &pq_leaf_samples;
    for (size_t i = 0; i < PQ_AGG__COUNT; i++)
        if (objects[i]->kind && qf_str_is(name, objects[i]->kind->name))
            return objects[i]->kind;
    return NULL;
}
