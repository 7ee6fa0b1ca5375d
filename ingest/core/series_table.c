/* series_table.c - series by the hash of their labels. */
#include "ingest/core/series_table.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/pure/alloc.h"

enum { CAPACITY_MIN = 256 };

void in_series_table_clear(struct in_series_table *table)
{
    free(table->places);
    *table = (struct in_series_table){ 0 };
}

static bool is_free(const struct in_known_series *place)
{
    return !place->low && !place->high;
}

/* Where the hash is, or where it would be. */
static struct in_known_series *find(const struct in_series_table *table, uint64_t low,
                                    uint64_t high)
{
    uint32_t mask = table->capacity - 1, at = (uint32_t)low & mask;

    while (!is_free(&table->places[at]) &&
           (table->places[at].low != low || table->places[at].high != high))
        at = (at + 1) & mask;
    return &table->places[at];
}

static void grow(struct in_series_table *table)
{
    struct in_series_table larger = { .capacity =
                                          table->capacity ? 2 * table->capacity : CAPACITY_MIN,
                                      .count = table->count };

    larger.places = qf_xcalloc(larger.capacity, sizeof(*larger.places));
    for (uint32_t i = 0; i < table->capacity; i++)
        if (!is_free(&table->places[i]))
            *find(&larger, table->places[i].low, table->places[i].high) = table->places[i];
    free(table->places);
    *table = larger;
}

struct in_series_hash in_series_hash(uint64_t seed, struct qf_str labels)
{
    XXH128_hash_t value = XXH3_128bits_withSeed(labels.data, labels.len, seed);

    return (struct in_series_hash){ value.low64, value.high64 | (!value.low64 && !value.high64) };
}

struct in_known_series *in_series_table_put(struct in_series_table *table,
                                            struct in_series_hash hash, bool *ret_new)
{
    struct in_known_series *place;

    if (table->count >= table->capacity - table->capacity / 4)
        grow(table);
    place = find(table, hash.low, hash.high);
    *ret_new = is_free(place);
    if (*ret_new) {
        *place = (struct in_known_series){ .low = hash.low, .high = hash.high, .ts = INT64_MIN };
        table->count++;
    }
    return place;
}

struct in_known_series *in_series_table_get(struct in_series_table *table,
                                            struct in_series_hash hash)
{
    struct in_known_series *place = table->capacity ? find(table, hash.low, hash.high) : NULL;

    return !place || is_free(place) ? NULL : place;
}

void in_series_table_prefetch(const struct in_series_table *table, struct in_series_hash hash)
{
    if (table->capacity)
        __builtin_prefetch(&table->places[(uint32_t)hash.low & (table->capacity - 1)]);
}

/* Free the place @at; those behind it that would be looked for here move up. */
static void remove_at(struct in_series_table *table, uint32_t at)
{
    uint32_t mask = table->capacity - 1, next = (at + 1) & mask;

    for (; !is_free(&table->places[next]); next = (next + 1) & mask) {
        uint32_t wanted = (uint32_t)table->places[next].low & mask;

        /* It may move if its search begins at or before the hole. */
        if (((next - wanted) & mask) < ((next - at) & mask))
            continue;
        table->places[at] = table->places[next];
        at = next;
    }
    table->places[at] = (struct in_known_series){ 0 };
    table->count--;
}

void in_series_table_sweep(struct in_series_table *table, uint32_t *at, uint32_t places,
                           uint32_t before_s,
                           void (*gone)(void *ctx, const struct in_known_series *series), void *ctx)
{
    for (; table->capacity && places > 0; places--) {
        struct in_known_series *place = &table->places[*at & (table->capacity - 1)];

        if (is_free(place) || place->seen_s >= before_s) {
            *at = (*at + 1) & (table->capacity - 1);
            continue;
        }
        gone(ctx, place);
        remove_at(table, (uint32_t)(place - table->places)); /* and look at the place again */
    }
}

uint64_t in_hash_value(uint64_t seed, struct qf_str bytes)
{
    return XXH3_64bits_withSeed(bytes.data, bytes.len, seed);
}
