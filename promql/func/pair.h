/* pair.h - two doubles at once: what compilers do not find by themselves without reordering additions.
 *
 * Each half is computed as the scalar would be, to the last bit. */
#ifndef PROMQL_FUNC_PAIR_H
#define PROMQL_FUNC_PAIR_H

#include <float.h>
#include <stdbool.h>
#include <string.h>

typedef double pq_pair __attribute__((vector_size(16)));
typedef long long pq_pair_mask __attribute__((vector_size(16)));

static inline pq_pair pq_pair_load(const double *from)
{
    pq_pair pair;

    memcpy(&pair, from, sizeof(pair));
    return pair;
}

static inline void pq_pair_store(double *to, pq_pair pair)
{
    memcpy(to, &pair, sizeof(pair));
}

/* The exact error of total = a + b (Knuth), whichever of them is larger. */
static inline pq_pair pq_pair_error(pq_pair a, pq_pair b, pq_pair total)
{
    pq_pair part = total - a;

    return (a - (total - part)) + (b - part);
}

/* All bits where the half is a number, neither infinite nor NaN. */
static inline pq_pair_mask pq_pair_finite(pq_pair pair)
{
    return (pair <= DBL_MAX) & (pair >= -DBL_MAX);
}

/* Where the mask has all bits the value, zero elsewhere. */
static inline pq_pair pq_pair_where(pq_pair_mask mask, pq_pair value)
{
    return (pq_pair)((pq_pair_mask)value & mask);
}

/* Where the mask has all bits @yes, elsewhere @no. */
static inline pq_pair pq_pair_either(pq_pair_mask mask, pq_pair yes, pq_pair no)
{
    return (pq_pair)(((pq_pair_mask)yes & mask) | ((pq_pair_mask)no & ~mask));
}

static inline bool pq_pair_all(pq_pair_mask mask)
{
    return (mask[0] & mask[1]) != 0;
}

#endif
