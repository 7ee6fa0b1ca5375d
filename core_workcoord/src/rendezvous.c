/* rendezvous.c - highest random weight hashing. */
#include "workcoord/rendezvous.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static void put_le64(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

uint64_t wc_worker_key(struct qf_str worker_id)
{
    return XXH3_64bits(worker_id.data, worker_id.len);
}

uint64_t wc_affinity_key(struct qf_str tenant, uint64_t shard_group)
{
    unsigned char group[8];

    put_le64(group, shard_group);
    return XXH3_64bits_withSeed(group, sizeof(group), XXH3_64bits(tenant.data, tenant.len));
}

uint64_t wc_rendezvous_score(uint64_t affinity, uint64_t worker)
{
    unsigned char pair[16];

    put_le64(pair, affinity);
    put_le64(pair + 8, worker);
    return XXH3_64bits(pair, sizeof(pair));
}

size_t wc_rendezvous_pick(uint64_t affinity, const uint64_t *workers, size_t count)
{
    size_t best = SIZE_MAX;
    uint64_t best_score = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t score = wc_rendezvous_score(affinity, workers[i]);

        if (best == SIZE_MAX || score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}
