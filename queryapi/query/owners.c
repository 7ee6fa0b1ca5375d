/* owners.c - which workers keep what an item reads: the keepers of its shard, by the names that workers and nodes share. */
#include "base/sys/log.h"
#include "queryapi/query/query_int.h"
#include "segments/store/ring.h"
#include "workcoord/rendezvous.h"

/* An older ring does no harm: work goes to a worker that reads from others. */
#define RING_AGE_MS 5000
#define ASK_MS 2000

_Static_assert((int)WC_OWNERS_MAX >= (int)RG_COPIES_MAX, "an item has room for all owners");

void qa_owners_follow(struct qa_query *query)
{
    const struct sg_store_call call = { .cancel = &query->canceled, .timeout_ms = ASK_MS };
    struct qf_err err = { 0 };

    if (sg_store_is_ring(query->env->store) &&
        sg_ring_follow(query->env->store, RING_AGE_MS, &call, &err) != QF_OK)
        QF_LOG_WARN("the ring cannot be read: work goes to any worker",
                    QF_KV_STR("query_id", query->name), QF_KV_STR("error", err.msg));
}

/* The shard in whose place on the ring most bytes of @group lie. It is the only one unless the number of shards changed:
 * then a group has segments of several. */
static uint32_t shard_of(const struct sg_catalog_group *group)
{
    uint64_t bytes[RG_PLACEMENTS] = { 0 };
    uint32_t best = group->shard % RG_PLACEMENTS;

    for (size_t i = 0; i < group->segment_count; i++)
        bytes[group->segments[i].shard % RG_PLACEMENTS] += group->segments[i].size;
    for (uint32_t shard = 0; shard < RG_PLACEMENTS; shard++)
        best = bytes[shard] > bytes[best] ? shard : best;
    return best;
}

void qa_owners_add(const struct qa_query *query, const struct sg_catalog_group *group,
                   struct qa_item *item)
{
    struct sg_ring_owners owners;

    if (!sg_store_is_ring(query->env->store))
        return;
    sg_ring_owners(query->env->store, query->ask.tenant, shard_of(group), &owners);
    for (size_t i = 0; i < owners.count; i++)
        item->owners[item->owner_count++] = wc_worker_key(qf_str_from(owners.names[i]));
}
