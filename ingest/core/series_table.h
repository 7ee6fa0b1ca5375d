/* series_table.h - series by the hash of their labels. Pure.
 *
 * 128 bits of a seeded hash stand for the labels: with ten million series the chance that any two are
 * taken for one is 1 in 10^24, and without the seed nobody can make it happen. */
#ifndef INGEST_CORE_SERIES_TABLE_H
#define INGEST_CORE_SERIES_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/slice.h"

struct in_known_series {
    uint64_t low, high; /* the hash; both 0: the place is free */
    int64_t ts;         /* latest; INT64_MIN: no sample yet */
    uint64_t value;     /* there: its bits, or a hash of the histogram */
    uint32_t number;    /* in the range */
    bool histogram;
    uint32_t range;  /* its number, time and value are of; 0: of none */
    uint32_t metric; /* the number that in_usage_add() gave */
    uint32_t seen_s; /* when it last had a sample, by a clock that never goes back */
};

struct in_series_table {
    struct in_known_series *places;
    uint32_t capacity, count;
};

void in_series_table_clear(struct in_series_table *table); /* and free; a zeroed one is empty */
struct in_series_hash {
    uint64_t low, high;
};
/* Of labels, encoded. */
struct in_series_hash in_series_hash(uint64_t seed, struct qf_str labels);
/* The series with that hash; one that is new has ts INT64_MIN and *@ret_new set. Good until the next
 * call. */
struct in_known_series *in_series_table_put(struct in_series_table *table,
                                            struct in_series_hash hash, bool *ret_new);
/* The same, but NULL if it is not there. */
struct in_known_series *in_series_table_get(struct in_series_table *table,
                                            struct in_series_hash hash);
/* Have its place in the cache soon: tables are large, and series come in any order. */
void in_series_table_prefetch(const struct in_series_table *table, struct in_series_hash hash);

/* Look at the next @places, from *@at on, which wraps: series that were not seen since @before_s go, each
 * told to @gone first. */
void in_series_table_sweep(struct in_series_table *table, uint32_t *at, uint32_t places,
                           uint32_t before_s,
                           void (*gone)(void *ctx, const struct in_known_series *series),
                           void *ctx);

uint64_t in_hash_value(uint64_t seed, struct qf_str bytes);

#endif
