/* table.c - lists, slot pools and the hash index. */
#include "table.h"

#include <assert.h>
#include <string.h>

void *wc_carve(struct wc_carver *carver, size_t count, size_t size)
{
    size_t at = carver->used;

    carver->used = (at + count * size + 15) & ~(size_t)15;
    return carver->base ? carver->base + at : NULL;
}

void wc_list_init(struct wc_list *list)
{
    *list = (struct wc_list){ WC_NONE, WC_NONE, 0 };
}

void wc_list_push(struct wc_list *list, struct wc_link *links, uint32_t slot)
{
    links[slot] = (struct wc_link){ list->tail, WC_NONE };
    if (list->tail == WC_NONE)
        list->head = slot;
    else
        links[list->tail].next = slot;
    list->tail = slot;
    list->count++;
}

void wc_list_remove(struct wc_list *list, struct wc_link *links, uint32_t slot)
{
    struct wc_link link = links[slot];

    assert(list->count > 0);
    if (link.prev == WC_NONE)
        list->head = link.next;
    else
        links[link.prev].next = link.next;
    if (link.next == WC_NONE)
        list->tail = link.prev;
    else
        links[link.next].prev = link.prev;
    list->count--;
}

void wc_pool_carve(struct wc_pool *pool, struct wc_carver *carver, uint32_t capacity)
{
    pool->free = wc_carve(carver, capacity, sizeof(*pool->free));
}

void wc_pool_fill(struct wc_pool *pool, uint32_t capacity)
{
    for (uint32_t i = 0; i < capacity; i++)
        pool->free[i] = capacity - 1 - i;
    pool->count = capacity;
}

uint32_t wc_pool_take(struct wc_pool *pool)
{
    assert(pool->count > 0);
    return pool->free[--pool->count];
}

void wc_pool_give(struct wc_pool *pool, uint32_t slot)
{
    pool->free[pool->count++] = slot;
}

void wc_index_carve(struct wc_index *index, struct wc_carver *carver, uint32_t capacity)
{
    uint32_t buckets = 1;

    while (buckets < capacity && buckets < UINT32_C(1) << 31)
        buckets *= 2;
    index->mask = buckets - 1;
    index->buckets = wc_carve(carver, buckets, sizeof(*index->buckets));
    index->next = wc_carve(carver, capacity, sizeof(*index->next));
    index->keys = wc_carve(carver, capacity, sizeof(*index->keys));
}

void wc_index_clear(struct wc_index *index)
{
    memset(index->buckets, 0xff, ((size_t)index->mask + 1) * sizeof(*index->buckets));
}

/* Ids are often small numbers in a row: spread them (Fibonacci hashing, high bits). */
static uint32_t *bucket_of(const struct wc_index *index, uint64_t key)
{
    return &index->buckets[(uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & index->mask];
}

static uint32_t from(const struct wc_index *index, uint32_t slot, uint64_t key)
{
    while (slot != WC_NONE && index->keys[slot] != key)
        slot = index->next[slot];
    return slot;
}

uint32_t wc_index_first(const struct wc_index *index, uint64_t key)
{
    return from(index, *bucket_of(index, key), key);
}

uint32_t wc_index_next(const struct wc_index *index, uint32_t slot)
{
    return from(index, index->next[slot], index->keys[slot]);
}

void wc_index_put(struct wc_index *index, uint64_t key, uint32_t slot)
{
    uint32_t *bucket = bucket_of(index, key);

    index->keys[slot] = key;
    index->next[slot] = *bucket;
    *bucket = slot;
}

void wc_index_remove(struct wc_index *index, uint32_t slot)
{
    uint32_t *at = bucket_of(index, index->keys[slot]);

    while (*at != slot) {
        assert(*at != WC_NONE);
        at = &index->next[*at];
    }
    *at = index->next[slot];
}
