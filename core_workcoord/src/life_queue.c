/* life_queue.c - who is admitted next: tenants with queued queries take turns, each within its share.
 */
#include "life_int.h"

/* @share with what its zeroes mean. */
static struct wc_tenant_share bounded(const struct wc_life *life, struct wc_tenant_share share)
{
    share.active_max = share.active_max ? share.active_max : UINT32_MAX;
    share.queued_max = share.queued_max ? share.queued_max : life->limits.tenant_queue_max;
    share.streams_max = share.streams_max ? share.streams_max : UINT32_MAX;
    return share;
}

bool wc_life_queue_full(const struct wc_life *life)
{
    struct wc_tenant_share share = bounded(life, life->event->submit.share);
    struct wc_life_tenant_view has = wc_life_tenant(life, life->event->submit.tenant);

    return has.queued >= share.queued_max || has.streams >= share.streams_max;
}

static uint32_t find_or_add(struct wc_life *life, struct wc_tenant_id id)
{
    uint32_t slot = wc_index_first(&life->tenant_index, id.v);

    if (slot != WC_NONE)
        return slot;
    slot = wc_pool_take(&life->tenant_pool); /* As many as queries: each has one at least. */
    life->tenants[slot] = (struct wc_life_tenant){ .id = id };
    wc_list_init(&life->tenants[slot].queued);
    wc_index_put(&life->tenant_index, id.v, slot);
    return slot;
}

/* Whether one more of its queries may be admitted. */
static bool has_room(const struct wc_life_tenant *tenant)
{
    return tenant->active < tenant->share.active_max;
}

void wc_life_queue_join(struct wc_life *life, uint32_t query)
{
    uint32_t slot = find_or_add(life, life->event->submit.tenant);
    struct wc_life_tenant *tenant = &life->tenants[slot];

    tenant->share = bounded(life, life->event->submit.share);
    tenant->alive++;
    wc_list_push(&tenant->queued, life->queued_links, query);
    life->queries[query].tenant = slot;
    life->stats.held += !has_room(tenant);
}

void wc_life_queue_leave(struct wc_life *life, uint32_t query)
{
    wc_list_remove(&life->tenants[life->queries[query].tenant].queued, life->queued_links, query);
}

void wc_life_queue_settle(struct wc_life *life, uint32_t slot)
{
    struct wc_life_tenant *tenant = &life->tenants[slot];
    bool in_line = tenant->queued.count && has_room(tenant);

    if (in_line == tenant->in_line)
        return;
    tenant->in_line = in_line;
    if (in_line)
        wc_list_push(&life->line, life->line_links, slot);
    else
        wc_list_remove(&life->line, life->line_links, slot);
    life->stats.tenants = life->line.count;
}

void wc_life_queue_refuse(struct wc_life *life, uint32_t slot)
{
    const struct wc_life_tenant *tenant = &life->tenants[slot];

    while (tenant->queued.count && tenant->streams >= tenant->share.streams_max)
        wc_life_hear(life, tenant->queued.head, WC_QUERY_HEARD_CROWDED);
}

void wc_life_queue_forget(struct wc_life *life, uint32_t query)
{
    uint32_t slot = life->queries[query].tenant;

    if (--life->tenants[slot].alive)
        return;
    wc_index_remove(&life->tenant_index, slot);
    wc_pool_give(&life->tenant_pool, slot);
}

void wc_life_queue_admit(struct wc_life *life)
{
    while (life->stats.active < life->limits.active_max && life->line.count) {
        uint32_t tenant = life->line.head, query = life->tenants[tenant].queued.head;

        /* To the end of the line first: with its last query, or place, the tenant leaves it. */
        wc_list_remove(&life->line, life->line_links, tenant);
        wc_list_push(&life->line, life->line_links, tenant);
        wc_life_hear(life, query, WC_QUERY_HEARD_ADMIT);
    }
}

struct wc_life_tenant_view wc_life_tenant(const struct wc_life *life, struct wc_tenant_id id)
{
    uint32_t slot = wc_index_first(&life->tenant_index, id.v);
    const struct wc_life_tenant *tenant = slot == WC_NONE ? NULL : &life->tenants[slot];

    if (!tenant)
        return (struct wc_life_tenant_view){ 0 };
    return (struct wc_life_tenant_view){ .active = tenant->active,
                                         .queued = tenant->queued.count,
                                         .streams = tenant->streams,
                                         .in_line = tenant->in_line };
}
