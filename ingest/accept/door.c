/* door.c - tenants that are over their rates wait outside. */
#include "ingest/accept/door.h"

#include "base/pure/macros.h"
#include "base/pure/map.h"

void in_door_shut(struct in_door *door, struct qf_str tenant, int64_t mono_ms, int64_t wait_ms)
{
    uint64_t hash = qf_hash_bytes(tenant) | 1;

    atomic_store(&door->places[hash / 2 % IN_DOOR_PLACES].tenant, hash);
    atomic_store(&door->places[hash / 2 % IN_DOOR_PLACES].until_ms,
                 mono_ms + QF_MIN(wait_ms, IN_DOOR_WAIT_MS_MAX));
}

int64_t in_door_wait(const struct in_door *door, struct qf_str tenant, int64_t mono_ms)
{
    uint64_t hash = qf_hash_bytes(tenant) | 1;
    int64_t until = atomic_load(&door->places[hash / 2 % IN_DOOR_PLACES].until_ms);

    /* The time first: whoever shuts it for another tenant writes the name first. */
    if (until <= mono_ms || atomic_load(&door->places[hash / 2 % IN_DOOR_PLACES].tenant) != hash)
        return 0;
    return QF_MIN(until - mono_ms, IN_DOOR_WAIT_MS_MAX);
}
