/* map.c - hash map with insertion-ordered entries. */
#include "base/pure/map.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/pure/alloc.h"

uint64_t qf_hash_bytes(struct qf_str bytes)
{
    return XXH3_64bits(bytes.data, bytes.len);
}

void qf_map_done(struct qf_map *map)
{
    free(map->entries);
    free(map->slots);
    *map = (struct qf_map){ 0 };
}

void qf_map_clear(struct qf_map *map)
{
    map->count = 0;
    if (map->slots)
        memset(map->slots, 0, map->slot_count * sizeof(*map->slots));
}

/* The slot that holds @key, or the free one where it would go. */
static size_t probe(const struct qf_map *map, struct qf_str key, uint64_t hash)
{
    size_t mask = map->slot_count - 1, slot = (size_t)hash & mask;

    while (map->slots[slot]) {
        const struct qf_map_entry *entry = &map->entries[map->slots[slot] - 1];

        if (entry->hash == hash && qf_str_eq(entry->key, key))
            break;
        slot = (slot + 1) & mask;
    }
    return slot;
}

static void rehash(struct qf_map *map, size_t slot_count)
{
    free(map->slots);
    map->slots = qf_xcalloc(slot_count, sizeof(*map->slots));
    map->slot_count = slot_count;
    for (size_t i = 0; i < map->count; i++) {
        size_t slot = probe(map, map->entries[i].key, map->entries[i].hash);

        map->slots[slot] = (uint32_t)(i + 1);
    }
}

uint64_t qf_map_bytes(const struct qf_map *map)
{
    return map->count * sizeof(struct qf_map_entry) + map->slot_count * sizeof(uint32_t);
}

uint64_t *qf_map_get(const struct qf_map *map, struct qf_str key)
{
    size_t slot;

    if (map->count == 0)
        return NULL;
    slot = probe(map, key, qf_hash_bytes(key));
    return map->slots[slot] ? &map->entries[map->slots[slot] - 1].value : NULL;
}

uint64_t *qf_map_put(struct qf_map *map, struct qf_str key, uint64_t initial, bool *ret_new)
{
    uint64_t hash = qf_hash_bytes(key);
    size_t slot;

    if ((map->count + 1) * 4 > map->slot_count * 3)
        rehash(map, map->slot_count ? map->slot_count * 2 : 16);
    slot = probe(map, key, hash);
    if (ret_new)
        *ret_new = map->slots[slot] == 0;
    if (map->slots[slot])
        return &map->entries[map->slots[slot] - 1].value;
    if (map->count == map->capacity) {
        map->capacity = map->capacity ? map->capacity * 2 : 16;
        map->entries = qf_xrealloc(map->entries, map->capacity * sizeof(*map->entries));
    }
    map->entries[map->count] = (struct qf_map_entry){ key, hash, initial };
    map->slots[slot] = (uint32_t)(map->count + 1);
    return &map->entries[map->count++].value;
}
