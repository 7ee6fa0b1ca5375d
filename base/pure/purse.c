/* purse.c - taking and giving back, without locks. */
#include "base/pure/purse.h"

#include <assert.h>

static bool take_own(struct qf_purse *purse, size_t bytes)
{
    size_t used = atomic_load_explicit(&purse->used, memory_order_relaxed);

    do {
        if (bytes > purse->limit || used > purse->limit - bytes)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&purse->used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool qf_purse_take(struct qf_purse *purse, size_t bytes)
{
    if (!take_own(purse, bytes))
        return false;
    if (!purse->parent || qf_purse_take(purse->parent, bytes))
        return true;
    (void)atomic_fetch_sub_explicit(&purse->used, bytes, memory_order_relaxed);
    atomic_store_explicit(&purse->parent_empty, true, memory_order_relaxed);
    return false;
}

void qf_purse_give(struct qf_purse *purse, size_t bytes)
{
    for (; purse; purse = purse->parent) {
        size_t before = atomic_fetch_sub_explicit(&purse->used, bytes, memory_order_relaxed);

        assert(before >= bytes);
        (void)before;
    }
}
