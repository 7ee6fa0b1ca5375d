/* ring_mirror.c - what the partitions said of which blobs there are, kept; and what was removed, for a while. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "ring/wire/listing.h"
#include "segments/store/ring_int.h"

void ring_mirror_init(struct ring_mirror *mirror)
{
    mirror->turn = qf_lock_new();
    mirror->lock = qf_lock_new();
}

static void forget_items(struct ring_mirror *mirror)
{
    for (size_t i = 0; i < mirror->items.count; i++)
        free(mirror->items.items[i].name);
    QF_VEC_DONE(&mirror->items);
    qf_map_done(&mirror->places);
}

void ring_mirror_done(struct ring_mirror *mirror)
{
    forget_items(mirror);
    free(mirror->sorted);
    (void)qf_lock_free(mirror->turn);
    (void)qf_lock_free(mirror->lock);
}

/* --- what pages say --- */

/* With the lock. Those of a name follow each other: an annex of equal content may be in several partitions. */
static struct ring_item *item_of(struct ring_mirror *mirror, uint64_t place, uint32_t partition)
{
    struct ring_item *item = &mirror->items.items[place];

    while (item->partition != partition) {
        if (!item->next)
            return NULL;
        item = &mirror->items.items[item->next - 1];
    }
    return item;
}

static struct ring_item *add_item(struct ring_mirror *mirror, uint32_t partition,
                                  struct qf_str name)
{
    struct ring_item fresh = { .name = qf_xmemdup0(name.data, name.len), .partition = partition };
    const uint64_t *place = qf_map_get(&mirror->places, name);
    size_t added = mirror->items.count;

    if (place) {
        struct ring_item *last = &mirror->items.items[*place];

        while (last->next)
            last = &mirror->items.items[last->next - 1];
        last->next = (uint32_t)added + 1;
    } else {
        *qf_map_put(&mirror->places, (struct qf_str){ fresh.name, name.len }, 0, NULL) = added;
    }
    QF_VEC_PUSH(&mirror->items, fresh);
    return &mirror->items.items[added];
}

static void set_named(struct ring_mirror *mirror, struct ring_item *item, bool named)
{
    if (item->named && !named) {
        item->removed_ms = qf_clock_mono_ms();
        mirror->removed++;
    }
    if (!item->named && named && item->removed_ms)
        mirror->removed--;
    item->named = named;
    mirror->dirty = true;
    mirror->changes++;
}

static void take_item(struct ring_mirror *mirror, uint32_t partition, const struct rg_blob *blob)
{
    const uint64_t *place = qf_map_get(&mirror->places, blob->name);
    struct ring_item *item = place ? item_of(mirror, *place, partition) : NULL;

    if (!item && blob->removed)
        return;
    if (!item)
        item = add_item(mirror, partition, blob->name);
    item->bytes = blob->bytes;
    item->slot = blob->slot;
    set_named(mirror, item, !blob->removed);
}

static void forget(struct ring_mirror *mirror, uint32_t partition)
{
    for (size_t i = 0; i < mirror->items.count; i++)
        if (mirror->items.items[i].partition == partition && mirror->items.items[i].named)
            set_named(mirror, &mirror->items.items[i], false);
}

void ring_mirror_prune(struct ring_mirror *mirror)
{
    int64_t now_ms = qf_clock_mono_ms();
    struct ring_mirror kept = { 0 };

    if (mirror->removed < RING_REMOVED_MIN || now_ms - mirror->pruned_ms < RING_REMEMBER_MS / 4)
        return;
    mirror->pruned_ms = now_ms;
    for (size_t i = 0; i < mirror->items.count; i++) {
        const struct ring_item *item = &mirror->items.items[i];
        struct ring_item *copy;

        if (!item->named && now_ms - item->removed_ms >= RING_REMEMBER_MS) {
            mirror->removed--;
            continue;
        }
        copy = add_item(&kept, item->partition, qf_str_from(item->name));
        copy->bytes = item->bytes;
        copy->slot = item->slot;
        copy->named = item->named;
        copy->removed_ms = item->removed_ms;
    }
    forget_items(mirror);
    mirror->items = kept.items;
    mirror->places = kept.places;
    mirror->dirty = true;
}

void ring_mirror_take(struct ring_mirror *mirror, uint32_t partition, const struct rg_page *page,
                      bool first)
{
    mirror->cluster = page->cluster;
    mirror->partition_count = (uint32_t)QF_MIN(page->partitions, (uint32_t)RING_PARTITIONS_MAX);
    if (page->whole && first)
        forget(mirror, partition);
    for (size_t i = 0; i < page->count; i++)
        take_item(mirror, partition, &page->items[i]);
}

/* --- finding --- */

/* With the lock; NULL: it was never heard of, or is forgotten. Of a name in several partitions one that names it. */
static const struct ring_item *find_item(const struct ring_mirror *mirror, struct qf_str name)
{
    const uint64_t *place = qf_map_get(&mirror->places, name);
    const struct ring_item *item = place ? &mirror->items.items[*place] : NULL;

    while (item && !item->named && item->next)
        item = &mirror->items.items[item->next - 1];
    return item;
}

bool ring_find(struct ring_store *store, struct qf_str name, uint64_t *ret_bytes,
               uint32_t *ret_partition)
{
    struct ring_mirror *mirror = &store->mirror;
    const struct ring_item *item;
    bool named;

    qf_lock_take(mirror->lock);
    item = find_item(mirror, name);
    named = item && item->named;
    if (named) {
        *ret_bytes = item->bytes;
        *ret_partition = item->partition;
    }
    qf_lock_drop(mirror->lock);
    return named;
}

bool ring_remembers(struct ring_store *store, struct qf_str name, uint64_t *ret_bytes)
{
    struct ring_mirror *mirror = &store->mirror;
    const struct ring_item *item;

    qf_lock_take(mirror->lock);
    item = find_item(mirror, name);
    if (item)
        *ret_bytes = item->bytes;
    qf_lock_drop(mirror->lock);
    return item != NULL;
}

bool sg_ring_partition(struct sg_store *base, struct qf_str name, uint32_t *ret_partition)
{
    uint64_t bytes;

    return sg_store_is_ring(base) && ring_find(ring_of(base), name, &bytes, ret_partition);
}

int64_t sg_ring_removed_ms(struct sg_store *base, struct qf_str name)
{
    struct ring_mirror *mirror = &ring_of(base)->mirror;
    const struct ring_item *item;
    int64_t ms;

    qf_lock_take(mirror->lock);
    item = find_item(mirror, name);
    ms = item && !item->named ? item->removed_ms : 0;
    qf_lock_drop(mirror->lock);
    return ms;
}
