/* costs.c - how long workers scanned for leaves that were asked before. */
#include "queryapi/query/costs.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/macros.h"

#define SLOTS 8192u
/* A slot: the upper bits of the key, and microseconds plus one below them. 0: empty. */
#define US_BITS 24
#define US_MASK ((UINT64_C(1) << US_BITS) - 1)

struct qa_costs {
    _Atomic uint64_t slots[SLOTS];
};

struct qa_costs *qa_costs_new(void)
{
    return qf_xcalloc(1, sizeof(struct qa_costs));
}

struct qa_costs *qa_costs_free(struct qa_costs *costs)
{
    free(costs);
    return NULL;
}

bool qa_costs_find(const struct qa_costs *costs, uint64_t key, uint64_t *ret_scan_us)
{
    uint64_t slot = atomic_load_explicit(&costs->slots[key % SLOTS], memory_order_relaxed);

    if (!slot || (slot ^ key) & ~US_MASK)
        return false;
    *ret_scan_us = (slot & US_MASK) - 1;
    return true;
}

void qa_costs_learn(struct qa_costs *costs, uint64_t key, uint64_t scan_us)
{
    uint64_t known, us = scan_us;

    if (qa_costs_find(costs, key, &known))
        us = QF_MIN(us, known + known / 4 + 50);
    us = QF_MIN(us, US_MASK - 1);
    atomic_store_explicit(&costs->slots[key % SLOTS], (key & ~US_MASK) | (us + 1),
                          memory_order_relaxed);
}
