/* prng.h - small seeded random numbers (SplitMix64) for simulation, jitter and tests; not secret.
 */
#ifndef BASE_PURE_PRNG_H
#define BASE_PURE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 qf_u128;

struct qf_prng {
    uint64_t state; /* the seed, any value */
};

static inline uint64_t qf_prng_next(struct qf_prng *prng)
{
    uint64_t z = prng->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in [0, bound); @bound > 0. The bias of 2^-64 * bound is of no account here. */
static inline uint64_t qf_prng_below(struct qf_prng *prng, uint64_t bound)
{
    return (uint64_t)(((qf_u128)qf_prng_next(prng) * bound) >> 64);
}

/* Uniform in [0, 1). */
static inline double qf_prng_unit(struct qf_prng *prng)
{
    return (double)(qf_prng_next(prng) >> 11) * 0x1p-53;
}

static inline bool qf_prng_chance(struct qf_prng *prng, double probability)
{
    return qf_prng_unit(prng) < probability;
}

#endif
