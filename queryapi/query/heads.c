/* heads.c - what of the heads of ingest nodes a leaf reads, besides segments.
 *
 * A partition has the series of one shard of as many as there are partitions; a shard group has those
 * of one of m. Both numbers are powers of two, so one contains the other or they have nothing in
 * common. The head input of a group has the series that are in both. */
#include <string.h>

#include "promql/parse.h"
#include "queryapi/query/query_int.h"

static bool has_ranges(const struct qa_fresh_partition *partition, const struct pq_select *select)
{
    for (size_t i = 0; i < partition->range_count; i++)
        if (qa_range_overlaps(&partition->ranges[i], select->min_ts, select->max_ts))
            return true;
    return false;
}

/* Have shard @shard of @shard_count and the partition series in common? */
static bool meet(const struct qa_query *query, const struct qa_fresh_partition *partition,
                 uint32_t shard, uint32_t shard_count)
{
    uint32_t common = QF_MIN(shard_count, (uint32_t)query->fresh->count);

    return (shard & (common - 1)) == (partition->number & (common - 1));
}

static bool group_has_heads(const struct qa_query *query, const struct pq_select *select,
                            uint32_t shard, uint32_t shard_count)
{
    for (size_t p = 0; p < query->fresh->count; p++) {
        const struct qa_fresh_partition *partition = &query->fresh->partitions[p];

        if (meet(query, partition, shard, shard_count) && has_ranges(partition, select))
            return true;
    }
    return false;
}

/* Samples of heads in the time range, as if they were spread evenly over their ranges' times. */
static double samples_in(const struct qa_query *query, const struct pq_select *select)
{
    double samples = 0;

    for (size_t p = 0; p < query->fresh->count; p++) {
        const struct qa_fresh_partition *partition = &query->fresh->partitions[p];

        for (size_t i = 0; i < partition->range_count; i++) {
            const struct qa_fresh_range *range = &partition->ranges[i];
            int64_t from = QF_MAX(range->min_ts, select->min_ts);
            int64_t to = QF_MIN(range->max_ts, select->max_ts);

            if (from <= to)
                samples += (double)range->samples * ((double)to - (double)from + 1) /
                           ((double)range->max_ts - (double)range->min_ts + 1);
        }
    }
    return samples;
}

/* As many shards as the segments have, or as those will have that the heads become. */
static uint32_t shards_of(const struct qa_query *query, const struct sg_catalog_answer *found)
{
    uint32_t shards = UINT32_MAX;

    if (found->group_count)
        return found->groups[0].shard_count;
    for (size_t p = 0; p < query->fresh->count; p++)
        shards = QF_MIN(shards, query->fresh->partitions[p].shards);
    return shards;
}

qf_rc qa_heads_groups(const struct qa_query *query, const struct pq_select *select,
                      struct sg_catalog_answer *found, double *ret_samples, struct qf_err *err)
{
    struct sg_catalog_group *groups;
    uint32_t shards;
    size_t at = 0, count = 0;

    *ret_samples = 0;
    if (!query->fresh || !query->fresh->count || select->min_ts > select->max_ts)
        return QF_OK;
    *ret_samples = samples_in(query, select);
    shards = shards_of(query, found);
    groups = QF_ARENA_ARRAY(query->arena, struct sg_catalog_group, shards);
    if (!groups)
        return qf_err_set(err, QF_ELIMIT, "the query is too large");
    for (uint32_t shard = 0; shard < shards; shard++) {
        if (at < found->group_count && found->groups[at].shard == shard)
            groups[count++] = found->groups[at++];
        else if (group_has_heads(query, select, shard, shards))
            groups[count++] = (struct sg_catalog_group){ .shard = shard, .shard_count = shards };
    }
    found->groups = groups;
    found->group_count = count;
    return QF_OK;
}

/* Inputs of an item in the making. */
struct inputs {
    struct pb_head *items;
    size_t count, capacity;
};

static bool add_ranges(struct qa_query *query, const struct qa_fresh_partition *partition,
                       const struct pq_select *select, uint32_t shard, uint32_t shard_count,
                       struct inputs *inputs)
{
    for (size_t i = 0; i < partition->range_count; i++) {
        if (!qa_range_overlaps(&partition->ranges[i], select->min_ts, select->max_ts))
            continue;
        if (inputs->count == inputs->capacity) {
            size_t more = QF_MAX(inputs->capacity * 2, (size_t)8);

            inputs->items = qf_arena_grow(query->arena, inputs->items, inputs->count, more,
                                          sizeof(*inputs->items));
            if (!inputs->items)
                return false;
            inputs->capacity = more;
        }
        inputs->items[inputs->count++] =
            (struct pb_head){ .partition = partition->number,
                              .queue = partition->queue,
                              .generation = partition->ranges[i].generation,
                              .cut = partition->applied,
                              .shard = shard,
                              .shard_count = shard_count,
                              .replicas = partition->replicas,
                              .replica_count = partition->replica_count };
    }
    return true;
}

/* The partition's series in the group. */
static bool add_group(struct qa_query *query, const struct sg_catalog_group *group,
                      const struct pq_select *select, struct inputs *inputs)
{
    uint32_t partitions = (uint32_t)query->fresh->count;

    for (uint32_t p = 0; p < partitions; p++) {
        const struct qa_fresh_partition *partition = &query->fresh->partitions[p];
        bool finer = group->shard_count > partitions;

        if (meet(query, partition, group->shard, group->shard_count) &&
            !add_ranges(query, partition, select, finer ? group->shard : p,
                        finer ? group->shard_count : partitions, inputs))
            return false;
    }
    return true;
}

static bool add_selector(struct qa_query *query, const struct pq_select *select,
                         struct pb_heads *heads)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    pq_print_matchers(&text, select->matchers, select->matcher_count);
    heads->match = qf_arena_str(query->arena, qf_strbuf_view(&text));
    heads->min_ts = select->min_ts;
    heads->max_ts = select->max_ts;
    qf_strbuf_done(&text);
    return heads->match.data != NULL;
}

qf_rc qa_heads_add(struct qa_query *query, const struct pq_select *select,
                   const struct sg_catalog_group *groups, size_t count, bool all,
                   struct qa_item *item, struct qf_err *err)
{
    struct inputs inputs = { 0 };
    bool ok = true;

    if (!query->fresh || !query->fresh->count)
        return QF_OK;
    if (all) { /* a partition is one request, however many groups it is in */
        for (uint32_t p = 0; p < query->fresh->count && ok; p++)
            ok = add_ranges(query, &query->fresh->partitions[p], select, p,
                            (uint32_t)query->fresh->count, &inputs);
    } else {
        for (size_t g = 0; g < count && ok; g++)
            ok = add_group(query, &groups[g], select, &inputs);
    }
    item->heads = (struct pb_heads){ .inputs = inputs.items, .count = inputs.count };
    if (ok && inputs.count)
        ok = add_selector(query, select, &item->heads);
    return ok ? QF_OK : qf_err_set(err, QF_ELIMIT, "the query is too large");
}

void qa_heads_widen(const struct qa_query *query, int64_t *min_ts, int64_t *max_ts)
{
    for (size_t p = 0; query->fresh && p < query->fresh->count; p++) {
        const struct qa_fresh_partition *partition = &query->fresh->partitions[p];

        for (size_t i = 0; i < partition->range_count; i++) {
            if (!partition->ranges[i].samples)
                continue;
            *min_ts = QF_MIN(*min_ts, partition->ranges[i].min_ts);
            *max_ts = QF_MAX(*max_ts, partition->ranges[i].max_ts);
        }
    }
}
