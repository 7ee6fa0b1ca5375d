/* map.h - hash map from byte strings to 64-bit values (an index, or a pointer in a uintptr_t).
 *
 * Open addressing; keys are borrowed and must outlive the map (as a rule both live in a query's
 * arena). Iteration order is insertion order, so results never depend on hash values. */
#ifndef BASE_PURE_MAP_H
#define BASE_PURE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/slice.h"

struct qf_map_entry {
    struct qf_str key;
    uint64_t hash;
    uint64_t value;
};

struct qf_map {
    struct qf_map_entry *entries; /* insertion order; count of them */
    size_t count;
    size_t capacity;
    uint32_t *slots; /* 1 + index into entries, 0 = free */
    size_t slot_count;
};

void qf_map_done(struct qf_map *map); /* A zeroed map is a valid empty one. */
void qf_map_clear(struct qf_map *map);
/* Memory of the map as far as it is filled, without the keys. */
uint64_t qf_map_bytes(const struct qf_map *map);

/* Pointer to the value of @key, or NULL. Valid until the next insertion. */
uint64_t *qf_map_get(const struct qf_map *map, struct qf_str key);
/* The value of @key; a new entry starts at @initial and *ret_new (if not NULL) is set. */
uint64_t *qf_map_put(struct qf_map *map, struct qf_str key, uint64_t initial, bool *ret_new);

uint64_t qf_hash_bytes(struct qf_str bytes); /* XXH3, 64 bits */

#endif
