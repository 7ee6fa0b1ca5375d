/* quarantine.c - a bounded table of data that has cost workers. */
#include "workcoord/quarantine.h"

#include <stdlib.h>

#include "base/pure/macros.h"
#include "table.h"

#define TIME_MS (qf_time_ms)600000

struct entry {
    uint64_t key, death;
    uint32_t deaths; /* 0: free */
    qf_time_ms until;
};

struct wc_quarantine {
    struct wc_quarantine_limits limits;
    struct entry *entries;
    struct wc_pool pool;
    struct wc_index index;
};

static void carve(struct wc_quarantine *quarantine, struct wc_carver *carver)
{
    uint32_t count = quarantine->limits.entries_max;

    (void)wc_carve(carver, 1, sizeof(*quarantine));
    quarantine->entries = wc_carve(carver, count, sizeof(*quarantine->entries));
    wc_pool_carve(&quarantine->pool, carver, count);
    wc_index_carve(&quarantine->index, carver, count);
}

struct wc_quarantine *wc_quarantine_new(const struct wc_quarantine_limits *limits)
{
    struct wc_quarantine sizing = { .limits = *limits }, *quarantine;
    struct wc_carver carver = { NULL, 0 };

    sizing.limits.entries_max = limits->entries_max ? limits->entries_max : 4096;
    sizing.limits.deaths_max = limits->deaths_max ? limits->deaths_max : 2;
    sizing.limits.time_ms = limits->time_ms ? limits->time_ms : TIME_MS;
    carve(&sizing, &carver);
    quarantine = calloc(1, carver.used);
    if (!quarantine)
        return NULL;
    quarantine->limits = sizing.limits;
    carver = (struct wc_carver){ (char *)quarantine, 0 };
    carve(quarantine, &carver);
    wc_pool_fill(&quarantine->pool, quarantine->limits.entries_max);
    wc_index_clear(&quarantine->index);
    return quarantine;
}

struct wc_quarantine *wc_quarantine_free(struct wc_quarantine *quarantine)
{
    free(quarantine);
    return NULL;
}

static bool is_held(const struct wc_quarantine *quarantine, const struct entry *entry)
{
    return entry->deaths >= quarantine->limits.deaths_max;
}

static struct wc_quarantine_entry view(const struct wc_quarantine *quarantine, uint32_t slot)
{
    const struct entry *entry = &quarantine->entries[slot];

    return (struct wc_quarantine_entry){
        .key = entry->key,
        .suspicion = is_held(quarantine, entry) ? WC_QUARANTINED : WC_SUSPECT,
        .deaths = entry->deaths,
        .death = entry->death,
        .until = entry->until,
        .slot = slot,
    };
}

static void forget(struct wc_quarantine *quarantine, uint32_t slot)
{
    wc_index_remove(&quarantine->index, slot);
    quarantine->entries[slot] = (struct entry){ 0 };
    wc_pool_give(&quarantine->pool, slot);
}

/* The full table's least: suspects come before what is held, then who is forgotten first. */
static uint32_t least(const struct wc_quarantine *quarantine)
{
    uint32_t found = 0;

    for (uint32_t i = 1; i < quarantine->limits.entries_max; i++) {
        const struct entry *a = &quarantine->entries[i], *b = &quarantine->entries[found];
        bool a_held = is_held(quarantine, a), b_held = is_held(quarantine, b);

        if (a_held != b_held ? b_held : a->until < b->until)
            found = i;
    }
    return found;
}

static uint32_t slot_for(struct wc_quarantine *quarantine, uint64_t key)
{
    uint32_t slot = wc_index_first(&quarantine->index, key);

    if (slot != WC_NONE)
        return slot;
    if (!quarantine->pool.count)
        forget(quarantine, least(quarantine));
    slot = wc_pool_take(&quarantine->pool);
    quarantine->entries[slot] = (struct entry){ .key = key };
    wc_index_put(&quarantine->index, key, slot);
    return slot;
}

struct wc_quarantine_entry wc_quarantine_blame(struct wc_quarantine *quarantine, uint64_t key,
                                               uint64_t death, qf_time_ms now)
{
    uint32_t slot = slot_for(quarantine, key);
    struct entry *entry = &quarantine->entries[slot];

    if (entry->until <= now)
        entry->deaths = 0; /* new, or long ago */
    if (entry->deaths == 0 || entry->death != death) {
        entry->deaths++;
        entry->death = death;
        entry->until = wc_time_add(now, quarantine->limits.time_ms);
    }
    return view(quarantine, slot);
}

void wc_quarantine_clear(struct wc_quarantine *quarantine, uint64_t key)
{
    uint32_t slot = wc_index_first(&quarantine->index, key);

    if (slot != WC_NONE && !is_held(quarantine, &quarantine->entries[slot]))
        forget(quarantine, slot);
}

bool wc_quarantine_lift(struct wc_quarantine *quarantine, uint64_t key)
{
    uint32_t slot = wc_index_first(&quarantine->index, key);

    if (slot == WC_NONE)
        return false;
    forget(quarantine, slot);
    return true;
}

struct wc_quarantine_entry wc_quarantine_at(const struct wc_quarantine *quarantine, uint32_t slot,
                                            qf_time_ms now)
{
    const struct entry *entry = &quarantine->entries[slot];

    if (entry->deaths == 0 || entry->until <= now)
        return (struct wc_quarantine_entry){ .suspicion = WC_CLEAN };
    return view(quarantine, slot);
}

struct wc_quarantine_entry wc_quarantine_find(const struct wc_quarantine *quarantine, uint64_t key,
                                              qf_time_ms now)
{
    uint32_t slot = wc_index_first(&quarantine->index, key);

    if (slot == WC_NONE)
        return (struct wc_quarantine_entry){ .suspicion = WC_CLEAN };
    return wc_quarantine_at(quarantine, slot, now);
}

uint32_t wc_quarantine_count(const struct wc_quarantine *quarantine)
{
    return quarantine->limits.entries_max - quarantine->pool.count;
}

uint32_t wc_quarantine_held(const struct wc_quarantine *quarantine, qf_time_ms now)
{
    uint32_t held = 0;

    for (uint32_t i = 0; wc_quarantine_count(quarantine) && i < quarantine->limits.entries_max; i++)
        held += wc_quarantine_at(quarantine, i, now).suspicion == WC_QUARANTINED;
    return held;
}
