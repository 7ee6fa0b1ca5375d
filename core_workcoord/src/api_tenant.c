/* api_tenant.c - how much of a tenant's work is with workers: no more than its share. */
#include "api_int.h"

static uint32_t find_or_add(struct wc_api *wc, struct wc_tenant_id id)
{
    uint32_t slot = wc_index_first(&wc->tenant_index, id.v);

    if (slot != WC_NONE)
        return slot;
    slot = wc_pool_take(&wc->tenant_pool); /* As many as queries: each has one at least. */
    wc->tenants[slot] = (struct wc_work_tenant){ .id = id };
    wc_list_init(&wc->tenants[slot].kept);
    wc_index_put(&wc->tenant_index, id.v, slot);
    return slot;
}

static void loosen(struct wc_api *wc, uint32_t slot)
{
    if (wc->tenants[slot].loose || !wc->tenants[slot].kept.count)
        return;
    wc->tenants[slot].loose = true;
    wc_list_push(&wc->loose, wc->tenant_links, slot);
}

static void tighten(struct wc_api *wc, uint32_t slot)
{
    wc->tenants[slot].loose = false;
    wc_list_remove(&wc->loose, wc->tenant_links, slot);
}

void wc_tenant_join(struct wc_api *wc, uint32_t query)
{
    uint32_t slot = find_or_add(wc, wc->event->begin.tenant);
    struct wc_work_tenant *tenant = &wc->tenants[slot];

    wc->queries[query].tenant = slot;
    tenant->queries++;
    tenant->sent_max = wc->event->begin.sent_max ? wc->event->begin.sent_max : UINT32_MAX;
    loosen(wc, slot); /* It may be more than before. */
}

void wc_tenant_leave(struct wc_api *wc, uint32_t query)
{
    uint32_t slot = wc->queries[query].tenant;

    if (--wc->tenants[slot].queries)
        return;
    if (wc->tenants[slot].loose)
        tighten(wc, slot);
    wc_index_remove(&wc->tenant_index, slot);
    wc_pool_give(&wc->tenant_pool, slot);
}

uint32_t wc_tenant_let_go(struct wc_api *wc)
{
    while (wc->loose.count) {
        struct wc_work_tenant *tenant = &wc->tenants[wc->loose.head];
        uint32_t item = tenant->kept.head;

        if (item == WC_NONE || tenant->sent >= tenant->sent_max) {
            tighten(wc, wc->loose.head);
            continue;
        }
        wc_list_remove(&tenant->kept, wc->item_place_links, item);
        wc->items[item].wait = WC_WAIT_FRESH;
        wc->stats.items_kept--;
        wc_list_push(&wc->fresh, wc->item_place_links, item);
        return item;
    }
    return WC_NONE;
}

void wc_tenant_count(struct wc_api *wc, const struct wc_item *item, int change)
{
    uint32_t slot = wc->queries[item->query].tenant;

    wc->tenants[slot].sent += (uint32_t)change;
    if (change < 0)
        loosen(wc, slot);
}
