/* purse.c - taking and giving back, without locks. */
#include "base/pure/purse.h"

#include <assert.h>

#include "base/pure/macros.h"

static bool take_own(struct qf_purse *purse, size_t bytes)
{
    size_t used = atomic_load_explicit(&purse->used, memory_order_relaxed);
    size_t limit = atomic_load_explicit(&purse->limit, memory_order_relaxed);

    do {
        if (bytes > limit || used > limit - bytes)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&purse->used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* NULL, or the one that has not that much: then nothing was taken. */
static const struct qf_purse *take_all(struct qf_purse *purse, size_t bytes)
{
    const struct qf_purse *empty;

    if (!take_own(purse, bytes))
        return purse;
    empty = purse->parent ? take_all(purse->parent, bytes) : NULL;
    if (empty)
        (void)atomic_fetch_sub_explicit(&purse->used, bytes, memory_order_relaxed);
    return empty;
}

bool qf_purse_take(struct qf_purse *purse, size_t bytes)
{
    const struct qf_purse *empty = take_all(purse, bytes);

    if (empty && empty != purse)
        atomic_store_explicit(&purse->empty, empty, memory_order_relaxed);
    return !empty;
}

void qf_purse_give(struct qf_purse *purse, size_t bytes)
{
    for (; purse; purse = purse->parent) {
        size_t before = atomic_fetch_sub_explicit(&purse->used, bytes, memory_order_relaxed);

        assert(before >= bytes);
        (void)before;
    }
}

static size_t own_left(const struct qf_purse *purse)
{
    size_t used = qf_purse_used(purse);
    size_t limit = atomic_load_explicit(&purse->limit, memory_order_relaxed);

    return used < limit ? limit - used : 0;
}

size_t qf_purse_left(const struct qf_purse *purse)
{
    size_t left = SIZE_MAX;

    for (; purse; purse = purse->parent)
        left = QF_MIN(left, own_left(purse));
    return left;
}

void qf_purse_blame(struct qf_purse *purse)
{
    const struct qf_purse *least = purse;

    for (const struct qf_purse *at = purse->parent; at; at = at->parent)
        if (own_left(at) < own_left(least))
            least = at;
    if (least != purse)
        atomic_store_explicit(&purse->empty, least, memory_order_relaxed);
}
