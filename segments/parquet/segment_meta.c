/* segment_meta.c - which shard a series belongs to. */
#include "segments/parquet/segment.h"

bool seg_shard_count_valid(uint64_t shard_count)
{
    return shard_count >= 1 && shard_count <= SEGMENT_SHARDS_MAX &&
           (shard_count & (shard_count - 1)) == 0;
}

uint32_t seg_shard_of(struct qf_labels labels, uint32_t shard_count)
{
    return (uint32_t)(qf_labels_shard_hash(labels) & (shard_count - 1));
}
