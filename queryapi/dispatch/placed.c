/* placed.c - was work done where its segments are? Counted where storage nodes keep them. */
#include "queryapi/dispatch/coordinator_int.h"

/* Values of the labels, in the order of metrics.c. */
enum where { WHERE_OWNER, WHERE_OTHER, WHERE_ALL_SHARDS };
enum shards { SHARDS_ONE, SHARDS_ALL };

void co_count_placed(struct qa_coord *coord, const struct qa_item *item,
                     const struct wc_api_effect *effect)
{
    enum where where = effect->owner ? WHERE_OWNER : WHERE_OTHER;

    if (!item->owner_count)
        return;
    if (item->all_shards) /* most of its bytes are with others, wherever it goes */
        where = WHERE_ALL_SHARDS;
    qf_metric_add(coord->options.metrics->work_placed, where, 1);
}

void co_count_read(struct qa_coord *coord, const struct qa_item *item, const struct pb_ready *ready)
{
    uint64_t heads = QF_MIN(ready->head_bytes, ready->download_bytes); /* of ingest nodes */

    if (item->owner_count)
        qf_metric_add(coord->options.metrics->work_remote_bytes,
                      item->all_shards ? SHARDS_ALL : SHARDS_ONE,
                      (double)(ready->download_bytes - heads));
}
