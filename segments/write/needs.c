/* needs.c - which segments of a batch need the optional columns. */
#include "segments/write/needs.h"

void needs_init(struct needs *needs)
{
    *needs = (struct needs){ .arena = qf_arena_new(SIZE_MAX) };
}

void needs_done(struct needs *needs)
{
    qf_map_done(&needs->segments);
    (void)qf_arena_free(needs->arena);
}

struct key {
    int64_t window;
    uint64_t shard;
};

void needs_add(struct needs *needs, int64_t window, uint32_t shard, unsigned what)
{
    struct key key = { window, shard };
    struct qf_str bytes = { (const char *)&key, sizeof(key) };
    uint64_t *found = what ? qf_map_get(&needs->segments, bytes) : NULL;

    if (!what)
        return;
    if (!found)
        found = qf_map_put(&needs->segments, qf_arena_str(needs->arena, bytes), 0, NULL);
    *found |= what;
}

unsigned needs_get(const struct needs *needs, int64_t window, uint32_t shard)
{
    struct key key = { window, shard };
    const uint64_t *found =
        qf_map_get(&needs->segments, (struct qf_str){ (const char *)&key, sizeof(key) });

    return found ? (unsigned)*found : 0;
}
