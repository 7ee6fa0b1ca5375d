/* maps.c - which state maps a leaf reads as info series, besides segments and heads.
 *
 * Which copy of a map is read is said here, once for all works of the query. Workers take their shard of it. */
#include <inttypes.h>

#include "base/sys/clock.h"
#include "queryapi/query/query_int.h"

/* Times without data are cut off a list of series; info series have none but these. Spans between them fit. */
#define FAR_MS (INT64_C(1) << 52)

static bool may_select(const struct pq_select *select, struct qf_str metric)
{
    for (size_t i = 0; i < select->matcher_count; i++)
        if (qf_str_is(select->matchers[i].name, QF_METRIC_NAME) &&
            !pq_matcher_matches(&select->matchers[i], metric))
            return false;
    return true;
}

/* A copy that workers can read, and that is not too old: an answer from less would lack something without saying so. */
static qf_rc check(const struct qa_query *query, const struct qa_map *map, struct qf_err *err)
{
    int64_t age = qa_maps_age(query->maps, map, qf_clock_mono_ms());

    if (!map->version)
        return qf_err_set(err, QF_EUNAVAILABLE,
                          "state map %.*s (%.*s): ingest nodes have no copy of it yet; try again",
                          QF_STR_ARG(map->name), QF_STR_ARG(map->metric));
    if (age > query->env->state_age_ms_max)
        return qf_err_set(err, QF_EUNAVAILABLE,
                          "state map %.*s (%.*s): what is known of it is %" PRId64
                          " s old, and may be %" PRId64 " s (--state-age-max)",
                          QF_STR_ARG(map->name), QF_STR_ARG(map->metric), age / 1000,
                          query->env->state_age_ms_max / 1000);
    return QF_OK;
}

/* Only an answer says that there are no maps. */
static qf_rc check_known(const struct qa_query *query, struct qf_err *err)
{
    if (query->maps || !query->env->asker || !query->fresh)
        return QF_OK;
    return qf_err_set(err, QF_EUNAVAILABLE,
                      "no ingest node says which state maps there are, so that info series may be "
                      "missing; try again");
}

static size_t count_selected(const struct qa_query *query, const struct pq_select *select)
{
    size_t count = 0;

    for (size_t i = 0; query->maps && i < query->maps->count; i++)
        count += may_select(select, query->maps->items[i].metric);
    return count;
}

static struct pb_map input_of(const struct qa_map *map)
{
    return (struct pb_map){ .name = map->name,
                            .kind = map->kind,
                            .metric = map->metric,
                            .short_keys = map->short_keys,
                            .interval_ms = map->interval_ms,
                            .created = map->created,
                            .version = map->version,
                            .bytes = map->bytes };
}

qf_rc qa_maps_find(struct qa_query *query, const struct pq_select *select, struct pb_maps *ret_maps,
                   struct qf_err *err)
{
    size_t count = count_selected(query, select), at = 0;
    struct pb_map *inputs;
    qf_rc rc = check_known(query, err);

    *ret_maps = (struct pb_maps){ 0 };
    if (rc != QF_OK || !count || select->min_ts > select->max_ts)
        return rc;
    if (count > PB_MAPS_MAX)
        return qf_err_set(err, QF_ELIMIT,
                          "a selector would read %zu state maps, more than %d: name a metric",
                          count, PB_MAPS_MAX);
    inputs = QF_ARENA_ARRAY(query->arena, struct pb_map, count);
    if (!inputs)
        return qf_err_set(err, QF_ELIMIT, "the query is too large");
    for (size_t i = 0; rc == QF_OK && i < query->maps->count; i++) {
        const struct qa_map *map = &query->maps->items[i];

        if (!may_select(select, map->metric))
            continue;
        rc = check(query, map, err);
        inputs[at++] = input_of(map);
    }
    *ret_maps = (struct pb_maps){ .inputs = inputs,
                                  .count = count,
                                  .nodes = query->maps->nodes,
                                  .node_count = query->maps->node_count };
    return rc;
}

qf_rc qa_maps_groups(const struct qa_query *query, const struct pb_maps *maps,
                     struct sg_catalog_answer *found, struct qf_err *err)
{
    uint32_t shards = found->group_count ? found->groups[0].shard_count : 1;
    struct sg_catalog_group *groups;
    size_t at = 0;

    if (!maps->count || found->group_count == shards)
        return QF_OK;
    groups = QF_ARENA_ARRAY(query->arena, struct sg_catalog_group, shards);
    if (!groups)
        return qf_err_set(err, QF_ELIMIT, "the query is too large");
    for (uint32_t shard = 0; shard < shards; shard++) {
        if (at < found->group_count && found->groups[at].shard == shard)
            groups[shard] = found->groups[at++];
        else
            groups[shard] = (struct sg_catalog_group){ .shard = shard, .shard_count = shards };
    }
    found->groups = groups;
    found->group_count = shards;
    return QF_OK;
}

struct pb_maps qa_maps_part(const struct pb_maps *maps, const struct sg_catalog_group *group,
                            bool all)
{
    struct pb_maps part = *maps;

    part.shard = all ? 0 : group->shard;
    part.shard_count = all ? 1 : group->shard_count;
    return part;
}

void qa_maps_widen(const struct qa_query *query, int64_t *min_ts, int64_t *max_ts)
{
    if (!query->maps || !query->maps->count)
        return;
    *min_ts = QF_MIN(*min_ts, -FAR_MS);
    *max_ts = QF_MAX(*max_ts, FAR_MS);
}
