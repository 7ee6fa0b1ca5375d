/* fuzz_maps.c - what an ingest node says of state maps, from any bytes: what was accepted can be planned with. */
#include <stdint.h>
#include <stdlib.h>

#include "queryapi/fresh/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct qa_maps *maps, size_t index)
{
    const struct qa_map *map = &maps->items[index];

    if (!map->name.len || !map->kind.len || !map->metric.len || map->interval_ms <= 0 ||
        (map->version && !map->bytes))
        abort();
    if (index && qf_str_cmp(maps->items[index - 1].name, map->name) >= 0)
        abort();
    if (qa_maps_age(maps, map, INT64_MAX / 2) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qa_maps *maps = qa_maps_parse((struct qf_str){ (const char *)data, size }, 0, NULL);

    if (!maps)
        return 0;
    if (maps->node_count > QA_MAPS_NODES_MAX || (maps->count && !maps->node_count))
        abort();
    for (size_t i = 0; i < maps->count; i++)
        check(maps, i);
    for (size_t i = 0; i < maps->node_count; i++)
        if (!qf_str_starts(maps->nodes[i], QF_STR("http")))
            abort();
    (void)qa_maps_drop(maps);
    return 0;
}
