/* rendezvous.h - which worker a piece of work belongs to, as long as the set of workers stands.
 *
 * Highest random weight: every (affinity key, worker key) pair has a score, and the worker with the
 * highest score among those available wins. Taking a worker away moves its own keys only; adding
 * one of n moves about 1/n of the keys, all to the new one. Scores are XXH3-64 over the 16 bytes
 * (affinity, worker), both little-endian, so every machine and every API replica agrees. */
#ifndef WORKCOORD_RENDEZVOUS_H
#define WORKCOORD_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/pure/slice.h"

/* The stable key of a worker: XXH3-64 of its id string, which must survive reconnects. */
uint64_t wc_worker_key(struct qf_str worker_id);

/* The key of work that reads the same segments: tenant and shard group. */
uint64_t wc_affinity_key(struct qf_str tenant, uint64_t shard_group);

/* The score of one pair. */
uint64_t wc_rendezvous_score(uint64_t affinity, uint64_t worker);

/* Index of the winner among @count worker keys, SIZE_MAX if there are none. Equal scores (equal
 * keys, in practice) go to the lower index. */
size_t wc_rendezvous_pick(uint64_t affinity, const uint64_t *workers, size_t count);
/* The same with the winner's score; 0 if there is none. */
size_t wc_rendezvous_best(uint64_t affinity, const uint64_t *workers, size_t count,
                          uint64_t *ret_score);

#endif
