/* purse.h - a byte budget that several owners draw on, possibly from several threads.
 *
 * Purses nest: what is taken from one is taken from its parent too. A query has a purse for all its
 * arenas and buffers, whose parent is that of its tenant, whose parent is that of all queries of the
 * process. */
#ifndef BASE_PURE_PURSE_H
#define BASE_PURE_PURSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"

struct qf_purse {
    _Atomic size_t limit;    /* may change; what is taken already stays taken */
    struct qf_purse *parent; /* outlives this one; or NULL */
    _Atomic size_t used;
    const struct qf_purse *_Atomic empty; /* the ancestor because of which a taking failed */
};

/* False: there is not that much in it, or in its parent; nothing was taken. */
QF_MUST_CHECK bool qf_purse_take(struct qf_purse *purse, size_t bytes);
void qf_purse_give(struct qf_purse *purse, size_t bytes);

static inline size_t qf_purse_used(const struct qf_purse *purse)
{
    return atomic_load_explicit(&purse->used, memory_order_relaxed);
}

/* The ancestor that had no more when a taking failed last, so that the same may work another time;
 * NULL: there was none. */
static inline const struct qf_purse *qf_purse_empty_ancestor(const struct qf_purse *purse)
{
    return atomic_load_explicit(&purse->empty, memory_order_relaxed);
}

/* What @purse and those above it still have, all of them. @purse may be NULL: there is no end. */
size_t qf_purse_left(const struct qf_purse *purse);
/* Something was not even tried because there is too little left: have qf_purse_empty_ancestor() name
 * the ancestor that has the least, unless @purse itself has. */
void qf_purse_blame(struct qf_purse *purse);

/* An arena whose chunks are paid from @purse, which outlives it. */
struct qf_arena *qf_arena_new_from(struct qf_purse *purse);

#endif
