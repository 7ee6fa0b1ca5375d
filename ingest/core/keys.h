/* keys.h - requests that were written not long ago, by key: who asks again is told the same. Pure.
 *
 * Part of the state that the log of a partition amounts to: the same records in the same order leave
 * the same keys, on every node. Time is the records' own. */
#ifndef INGEST_CORE_KEYS_H
#define INGEST_CORE_KEYS_H

#include "ingest/core/record.h"

struct in_key_entry {
    uint8_t key[IN_HASH_BYTES], body[IN_HASH_BYTES];
    struct in_amounts accepted, refused; /* what the sender was told */
    int64_t time_ms;                     /* of its record */
    uint64_t index;                      /* of its record */
    uint32_t next;                       /* in its chain: 1 + place, 0 for none */
};

struct in_keys {
    struct in_key_entry *ring; /* oldest first, from `first` on */
    uint32_t *chains;          /* as many as places in the ring */
    uint32_t capacity, first, count;
    uint32_t max; /* where capacity ends */
};

/* A table for at most @max keys, a power of two. Its memory grows with the keys. */
void in_keys_init(struct in_keys *keys, uint32_t max);
void in_keys_done(struct in_keys *keys);

/* The entry of @key, NULL if there is none. Good until the next change. */
const struct in_key_entry *in_keys_find(const struct in_keys *keys,
                                        const uint8_t key[IN_HASH_BYTES]);
/* Add a key that is not there. The oldest one makes room. */
void in_keys_add(struct in_keys *keys, const struct in_key_entry *entry);
/* All are of records @ms later than they were. */
void in_keys_delay(struct in_keys *keys, uint64_t ms);
/* Forget those of records before @time_ms. */
void in_keys_expire(struct in_keys *keys, int64_t time_ms);
/* The @i-th, oldest first. */
const struct in_key_entry *in_keys_at(const struct in_keys *keys, uint32_t i);

#endif
