/* life_queue.c - who is admitted next: tenants with queued queries take turns. */
#include "life_int.h"

bool wc_life_queue_full(const struct wc_life *life, struct wc_tenant_id tenant)
{
    uint32_t slot = wc_index_first(&life->tenant_index, tenant.v);

    return slot != WC_NONE && life->tenants[slot].queued.count >= life->limits.tenant_queue_max;
}

void wc_life_queue_join(struct wc_life *life, uint32_t query, struct wc_tenant_id tenant)
{
    uint32_t slot = wc_index_first(&life->tenant_index, tenant.v);

    if (slot == WC_NONE) {
        slot = wc_pool_take(&life->tenant_pool); /* As many as queries: each has one at least. */
        life->tenants[slot] = (struct wc_life_tenant){ .id = tenant };
        wc_list_init(&life->tenants[slot].queued);
        wc_index_put(&life->tenant_index, tenant.v, slot);
        wc_list_push(&life->line, life->line_links, slot);
        life->stats.tenants++;
    }
    wc_list_push(&life->tenants[slot].queued, life->queued_links, query);
    life->queries[query].tenant = slot;
}

void wc_life_queue_leave(struct wc_life *life, uint32_t query)
{
    uint32_t slot = life->queries[query].tenant;
    struct wc_life_tenant *tenant = &life->tenants[slot];

    wc_list_remove(&tenant->queued, life->queued_links, query);
    life->queries[query].tenant = WC_NONE;
    if (tenant->queued.count)
        return;
    wc_list_remove(&life->line, life->line_links, slot);
    wc_index_remove(&life->tenant_index, slot);
    wc_pool_give(&life->tenant_pool, slot);
    life->stats.tenants--;
}

void wc_life_queue_admit(struct wc_life *life)
{
    while (life->stats.active < life->limits.active_max && life->line.count) {
        uint32_t tenant = life->line.head, query = life->tenants[tenant].queued.head;

        /* To the end of the line first: with its last query the tenant leaves it. */
        wc_list_remove(&life->line, life->line_links, tenant);
        wc_list_push(&life->line, life->line_links, tenant);
        wc_life_hear(life, query, WC_QUERY_HEARD_ADMIT);
    }
}
