/* keys.c - requests that were written not long ago, by key. */
#include "ingest/core/keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"

enum { CAPACITY_MIN = 64 };

static void make_tables(struct in_keys *keys, uint32_t capacity, uint32_t max)
{
    *keys = (struct in_keys){ .ring = qf_xcalloc(capacity, sizeof(*keys->ring)),
                              .chains = qf_xcalloc(capacity, sizeof(*keys->chains)),
                              .capacity = capacity,
                              .max = max };
}

void in_keys_init(struct in_keys *keys, uint32_t max)
{
    assert(max && (max & (max - 1)) == 0);
    make_tables(keys, QF_MIN(max, (uint32_t)CAPACITY_MIN), max);
}

void in_keys_done(struct in_keys *keys)
{
    free(keys->ring);
    free(keys->chains);
    *keys = (struct in_keys){ 0 };
}

/* Keys are hashes already, unless a client chose them to collide: then it searches its own. */
static uint32_t *chain_of(const struct in_keys *keys, const uint8_t key[IN_HASH_BYTES])
{
    uint32_t hash;

    memcpy(&hash, key, sizeof(hash));
    return &keys->chains[hash & (keys->capacity - 1)];
}

const struct in_key_entry *in_keys_find(const struct in_keys *keys,
                                        const uint8_t key[IN_HASH_BYTES])
{
    for (uint32_t at = *chain_of(keys, key); at; at = keys->ring[at - 1].next)
        if (memcmp(keys->ring[at - 1].key, key, IN_HASH_BYTES) == 0)
            return &keys->ring[at - 1];
    return NULL;
}

static void drop_oldest(struct in_keys *keys)
{
    struct in_key_entry *oldest = &keys->ring[keys->first];
    uint32_t *link = chain_of(keys, oldest->key);

    while (*link != keys->first + 1)
        link = &keys->ring[*link - 1].next;
    *link = oldest->next;
    keys->first = (keys->first + 1) & (keys->capacity - 1);
    keys->count--;
}

static void grow(struct in_keys *keys)
{
    struct in_keys larger;

    make_tables(&larger, 2 * keys->capacity, keys->max);
    for (uint32_t i = 0; i < keys->count; i++)
        in_keys_add(&larger, in_keys_at(keys, i));
    in_keys_done(keys);
    *keys = larger;
}

void in_keys_add(struct in_keys *keys, const struct in_key_entry *entry)
{
    uint32_t *chain;
    uint32_t place;

    if (keys->count == keys->max)
        drop_oldest(keys);
    else if (keys->count == keys->capacity)
        grow(keys);
    chain = chain_of(keys, entry->key);
    place = (keys->first + keys->count++) & (keys->capacity - 1);
    keys->ring[place] = *entry;
    keys->ring[place].next = *chain;
    *chain = place + 1;
}

void in_keys_delay(struct in_keys *keys, uint64_t ms)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        struct in_key_entry *entry = &keys->ring[(keys->first + i) & (keys->capacity - 1)];

        entry->time_ms = (int64_t)((uint64_t)entry->time_ms + ms);
    }
}

void in_keys_expire(struct in_keys *keys, int64_t time_ms)
{
    while (keys->count && keys->ring[keys->first].time_ms < time_ms)
        drop_oldest(keys);
}

const struct in_key_entry *in_keys_at(const struct in_keys *keys, uint32_t i)
{
    return &keys->ring[(keys->first + i) & (keys->capacity - 1)];
}
