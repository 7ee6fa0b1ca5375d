/* coretest.c - find affinity keys that lead where a test wants them. */
#include "tests/lib/core/coretest.h"

#include <stdbool.h>
#include <stdio.h>

#include "workcoord/rendezvous.h"

uint64_t core_worker_key(uint64_t worker)
{
    char name[32];
    int len = snprintf(name, sizeof(name), "w%llu", (unsigned long long)worker);

    return wc_worker_key((struct qf_str){ name, (size_t)len });
}

void core_own(struct wc_api_item_spec *item, unsigned owners)
{
    for (uint64_t w = 1; w < 32 && item->owner_count < WC_OWNERS_MAX; w++) {
        if (owners >> w & 1)
            item->owners[item->owner_count++] = core_worker_key(w);
    }
}

static bool leads(uint64_t affinity, const uint64_t *order, size_t order_count, size_t workers)
{
    uint64_t last = UINT64_MAX;

    for (size_t place = 0; place < order_count; place++) {
        uint64_t score = wc_rendezvous_score(affinity, core_worker_key(order[place]));

        if (score > last)
            return false;
        last = score;
    }
    for (uint64_t worker = 1; worker <= workers; worker++) {
        bool listed = false;

        for (size_t place = 0; place < order_count; place++)
            listed = listed || order[place] == worker;
        if (!listed && wc_rendezvous_score(affinity, core_worker_key(worker)) > last)
            return false;
    }
    return true;
}

uint64_t core_affinity(const uint64_t *order, size_t order_count, size_t workers)
{
    uint64_t affinity = 1;

    while (!leads(affinity, order, order_count, workers))
        affinity++;
    return affinity;
}

uint64_t core_affinity_to(uint64_t worker, size_t workers)
{
    return core_affinity(&worker, 1, workers);
}
