/* fuzz_status.c - what an ingest node says of its heads, from any bytes: what was accepted is whole. */
#include <stdint.h>
#include <stdlib.h>

#include "queryapi/fresh/status.h"
#include "segments/parquet/segment_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct qa_fresh_partition *partition, size_t number)
{
    struct sg_segment_name name;

    if (partition->number != number || !partition->queue.len || !partition->shards ||
        (partition->shards & (partition->shards - 1)) || partition->replica_count > QA_REPLICAS_MAX)
        abort();
    for (size_t i = 0; i < partition->file_count; i++)
        if (!sg_segment_name_parse(partition->files[i].name, &name))
            abort();
    for (size_t i = 0; i < partition->replica_count; i++)
        if (!qf_str_starts(partition->replicas[i], QF_STR("http")))
            abort();
    if (partition->range_count && !partition->replica_count)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qa_status *status = qa_status_parse((struct qf_str){ (const char *)data, size }, NULL);

    if (!status)
        return 0;
    if (status->count == 0 || (status->count & (status->count - 1)))
        abort();
    for (size_t i = 0; i < status->count; i++)
        check(&status->partitions[i], i);
    (void)qa_status_drop(status);
    return 0;
}
