/* api_query.c - queries: all of their items come in with one event and go with one effect. */
#include "api_int.h"

#include <string.h>

static void release_item(struct wc_api *wc, struct wc_query *query, uint32_t slot)
{
    wc->item_counts[wc->items[slot].state]--;
    wc_list_remove(&query->items, wc->item_query_links, slot);
    wc_index_remove(&wc->item_index, slot);
    wc_pool_give(&wc->item_pool, slot);
}

static void count_end(struct wc_api_stats *stats, qf_rc rc)
{
    if (rc == QF_OK)
        stats->queries_ok++;
    else if (rc == QF_ECANCELED)
        stats->queries_canceled++;
    else if (rc == QF_ETIMEOUT)
        stats->queries_timed_out++;
    else
        stats->queries_failed++;
}

void wc_query_end(struct wc_api *wc, uint32_t slot, qf_rc rc, struct wc_work_id blame)
{
    struct wc_query *query = &wc->queries[slot];
    struct wc_api_effect *effect;

    while (query->items.count) {
        uint32_t item = query->items.head;

        wc_item_hear(wc, item, WC_ITEM_HEARD_CANCEL);
        release_item(wc, query, item);
    }
    effect = wc_api_emit(wc, WC_API_DO_QUERY_ENDED);
    effect->query = query->id;
    effect->work = blame;
    effect->rc = rc;
    count_end(&wc->stats, rc);
    wc_tenant_leave(wc, slot);
    wc_index_remove(&wc->query_index, slot);
    wc_list_remove(&wc->query_order, wc->query_links, slot);
    wc_pool_give(&wc->query_pool, slot);
}

static void add_item(struct wc_api *wc, uint32_t query, const struct wc_api_item_spec *spec)
{
    uint32_t slot = wc_pool_take(&wc->item_pool);
    struct wc_item *item = &wc->items[slot];

    *item = (struct wc_item){
        .work = spec->work,
        .leaf = spec->leaf,
        .affinity = spec->affinity,
        .expect_ms = spec->expect_ms,
        .deaths = spec->deaths,
        .query = query,
        .peer = WC_NONE,
        .state = WC_ITEM_PENDING,
    };
    item->owner_count = QF_MIN(spec->owner_count, (uint32_t)WC_OWNERS_MAX);
    memcpy(item->owners, spec->owners, item->owner_count * sizeof(item->owners[0]));
    wc->item_counts[WC_ITEM_PENDING]++;
    wc_index_put(&wc->item_index, spec->work.v, slot);
    wc_list_push(&wc->queries[query].items, wc->item_query_links, slot);
    wc_list_push(&wc->fresh, wc->item_place_links, slot);
}

/* Take back the items of a query that cannot begin after all. */
static void remove_items(struct wc_api *wc, struct wc_query *query)
{
    while (query->items.count) {
        uint32_t item = query->items.tail;

        wc_assign_forget(wc, item);
        release_item(wc, query, item);
    }
}

static bool add_items(struct wc_api *wc, uint32_t query)
{
    const struct wc_api_event *event = wc->event;

    for (size_t i = 0; i < event->begin.count; i++) {
        if (wc_index_first(&wc->item_index, event->begin.items[i].work.v) != WC_NONE) {
            remove_items(wc, &wc->queries[query]);
            return false;
        }
        add_item(wc, query, &event->begin.items[i]);
    }
    return true;
}

qf_rc wc_query_on_begin(struct wc_api *wc)
{
    const struct wc_api_event *event = wc->event;
    struct wc_query *query;
    uint32_t slot;

    if (wc_index_first(&wc->query_index, event->query.v) != WC_NONE)
        return QF_EEXIST;
    if (!wc->query_pool.count || wc->item_pool.count < event->begin.count)
        return QF_ELIMIT;
    slot = wc_pool_take(&wc->query_pool);
    query = &wc->queries[slot];
    *query = (struct wc_query){
        .id = event->query,
        .begun_at = wc->now,
    };
    wc_list_init(&query->items);
    if (!add_items(wc, slot)) {
        wc_pool_give(&wc->query_pool, slot);
        return QF_EEXIST;
    }
    wc_tenant_join(wc, slot);
    wc_index_put(&wc->query_index, query->id.v, slot);
    wc_list_push(&wc->query_order, wc->query_links, slot);
    wc->stats.queries_begun++;
    if (!event->begin.count)
        wc_query_end(wc, slot, QF_OK, (struct wc_work_id){ 0 });
    return QF_OK;
}
