/* purse.h - a byte budget that several owners draw on, possibly from several threads.
 *
 * Purses nest: what is taken from one is taken from its parent too. A query has a purse for all its
 * arenas and buffers, whose parent is that of all queries of the process. */
#ifndef BASE_PURE_PURSE_H
#define BASE_PURE_PURSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"

struct qf_purse {
    size_t limit;
    struct qf_purse *parent; /* outlives this one; or NULL */
    _Atomic size_t used;
    atomic_bool parent_empty; /* a taking failed because of the parent */
};

/* False: there is not that much in it, or in its parent; nothing was taken. */
QF_MUST_CHECK bool qf_purse_take(struct qf_purse *purse, size_t bytes);
void qf_purse_give(struct qf_purse *purse, size_t bytes);

static inline size_t qf_purse_used(const struct qf_purse *purse)
{
    return atomic_load_explicit(&purse->used, memory_order_relaxed);
}

/* True if it was its parent that had no more, so that the same may work another time. */
static inline bool qf_purse_parent_empty(const struct qf_purse *purse)
{
    return atomic_load_explicit(&purse->parent_empty, memory_order_relaxed);
}

/* An arena whose chunks are paid from @purse, which outlives it. */
struct qf_arena *qf_arena_new_from(struct qf_purse *purse);

#endif
