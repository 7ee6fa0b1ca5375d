/* rendezvous.c - highest random weight hashing. */
#include "workcoord/rendezvous.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The value whose bytes in memory are those of @value, little-endian, on every machine. */
static uint64_t le64(uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(value);
#else
    return value;
#endif
}

uint64_t wc_worker_key(struct qf_str worker_id)
{
    return XXH3_64bits(worker_id.data, worker_id.len);
}

uint64_t wc_affinity_key(struct qf_str tenant, uint64_t shard_group)
{
    uint64_t group = le64(shard_group);

    return XXH3_64bits_withSeed(&group, sizeof(group), XXH3_64bits(tenant.data, tenant.len));
}

static inline uint64_t score_of(uint64_t affinity, uint64_t worker)
{
    uint64_t pair[2] = { le64(affinity), le64(worker) };

    return XXH3_64bits(pair, sizeof(pair));
}

uint64_t wc_rendezvous_score(uint64_t affinity, uint64_t worker)
{
    return score_of(affinity, worker);
}

size_t wc_rendezvous_best(uint64_t affinity, const uint64_t *workers, size_t count,
                          uint64_t *ret_score)
{
    size_t best = SIZE_MAX;
    uint64_t best_score = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t score = score_of(affinity, workers[i]);

        if (best == SIZE_MAX || score > best_score) {
            best = i;
            best_score = score;
        }
    }
    *ret_score = best_score;
    return best;
}

size_t wc_rendezvous_pick(uint64_t affinity, const uint64_t *workers, size_t count)
{
    uint64_t score;

    return wc_rendezvous_best(affinity, workers, count, &score);
}
