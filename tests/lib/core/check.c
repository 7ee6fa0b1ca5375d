/* check.c - walk the tables and compare what must agree. */
#include "tests/lib/core/check.h"

#include "api_int.h"

static uint32_t list_len(const struct wc_list *list, const struct wc_link *links)
{
    uint32_t count = 0;

    for (uint32_t slot = list->head; slot != WC_NONE && count <= list->count;
         slot = links[slot].next)
        count++;
    return count;
}

static bool waits_for_a_hedge(const struct wc_api *wc, const struct wc_item *item)
{
    return item->peer != WC_NONE && wc->limits.hedge_after > 0 && item->expect_ms && !item->hedged;
}

static const char *check_hedge(const struct wc_api *wc, const struct wc_item *item, uint32_t slot)
{
    const struct wc_hedge *hedge = &item->hedge;
    const struct wc_peer *peer = &wc->peers[hedge->peer];

    if (item->state != WC_ITEM_PENDING &&
        waits_for_a_hedge(wc, item) != (wc->timers.pos[wc_timer_item(wc, slot)] != 0))
        return "an item waits for a hedge without an end, or cannot have one and waits";
    if (hedge->state == WC_HEDGE_NONE)
        return NULL;
    if (!item->hedged)
        return "a hedge is not counted as the item's";
    if (item->peer == WC_NONE || item->peer == hedge->peer)
        return "a hedge without an attempt of the item, or on the same worker";
    if (hedge->attempt == item->attempt || hedge->attempt > item->attempts)
        return "a hedge with the number of another attempt";
    if (peer->state != WC_PEER_ALIVE || !peer->session.v || peer->leaving)
        return "a hedge sits on a worker that is not alive, or leaves";
    if (hedge->state == WC_HEDGE_ASSIGNED && peer->draining)
        return "an unstarted hedge sits on a draining worker";
    return NULL;
}

static bool on_a_worker(const struct wc_item *item)
{
    return item->state == WC_ITEM_ASSIGNED || item->state == WC_ITEM_ACCEPTED ||
           item->state == WC_ITEM_READY;
}

static const char *check_item(const struct wc_api *wc, const struct wc_item *item, uint32_t slot)
{
    const struct wc_peer *peer = item->peer == WC_NONE ? NULL : &wc->peers[item->peer];
    bool placed = on_a_worker(item);
    bool parked = item->state == WC_ITEM_PENDING && item->wait == WC_WAIT_PARKED;
    bool kept = item->state == WC_ITEM_PENDING && item->wait == WC_WAIT_KEPT;

    if (placed != (peer != NULL))
        return "an item has a worker in the wrong state";
    if (peer && (peer->state != WC_PEER_ALIVE || !peer->session.v))
        return "an item sits on a worker that is not alive";
    if (item->state == WC_ITEM_ASSIGNED && (peer->draining || peer->leaving))
        return "unstarted work sits on a draining or leaving worker";
    if (item->state == WC_ITEM_PENDING && item->wait == WC_WAIT_FRESH)
        return "a pending item was left unattended by the step";
    if (parked && wc->stats.workers_available && !item->hold)
        return "an item is pending although a worker is available";
    if (parked && item->hold && !wc->timers.pos[wc_timer_item(wc, slot)])
        return "an item is held back without an end";
    if (kept && wc->timers.pos[wc_timer_item(wc, slot)])
        return "an item waits for its tenant's share, and for something else";
    if (item->failures >= wc->limits.attempts_max)
        return "an item outlived its attempts";
    if (item->deaths >= wc->limits.deaths_max)
        return "an item outlived the workers that died of it";
    if (item->late > item->attempts || item->attempt > item->attempts)
        return "an attempt of the future";
    return check_hedge(wc, item, slot);
}

static const char *check_queries(const struct wc_api *wc, uint32_t *counts, uint32_t *ret_items)
{
    for (uint32_t q = wc->query_order.head; q != WC_NONE; q = wc->query_links[q].next) {
        const struct wc_query *query = &wc->queries[q];
        uint32_t fetched = counts[WC_ITEM_FETCHED];

        if (!query->items.count)
            return "a query without items is alive";
        for (uint32_t i = query->items.head; i != WC_NONE; i = wc->item_query_links[i].next) {
            const char *why = check_item(wc, &wc->items[i], i);

            if (why)
                return why;
            counts[wc->items[i].state]++;
            ++*ret_items;
        }
        fetched = counts[WC_ITEM_FETCHED] - fetched;
        if (fetched != query->committed)
            return "committed and fetched disagree";
        if (fetched == query->items.count)
            return "a finished query is alive";
    }
    return NULL;
}

static const char *check_peers(const struct wc_api *wc, uint32_t *ret_placed)
{
    uint32_t hedges = 0, available = 0, draining = 0, alive = 0, streams = 0;

    for (uint32_t p = wc->peer_order.head; p != WC_NONE; p = wc->peer_links[p].next) {
        const struct wc_peer *peer = &wc->peers[p];
        bool takes =
            peer->state == WC_PEER_ALIVE && peer->accepting && !peer->draining && !peer->leaving;

        if (takes != peer->available)
            return "rotation disagrees with the worker's flags";
        if (peer->state != WC_PEER_DIALING && !wc->timers.pos[p])
            return "a worker has no timer: it would never be dialed or missed";
        for (int list = 0; list < WC_PEER__LISTS; list++)
            *ret_placed += list_len(&peer->items[list], wc->item_place_links);
        hedges += list_len(&peer->hedges, wc->item_hedge_links);
        available += takes;
        draining += peer->draining;
        alive += peer->state == WC_PEER_ALIVE;
        streams += peer->session.v != 0;
    }
    if (available != wc->stats.workers_available || draining != wc->stats.workers_draining ||
        alive != wc->stats.workers_alive || streams != wc->streams)
        return "the gauges of workers are wrong";
    if (hedges != wc->stats.hedges || wc->hedge_due.count)
        return "the gauge of hedges is wrong, or one is left due";
    if (wc->stats.hedged != hedges + wc->stats.hedges_won + wc->stats.hedges_lost)
        return "a hedge ended without being counted";
    return NULL;
}

/* What the queries of the tenant in slot @t have. */
static const char *check_tenant(const struct wc_api *wc, uint32_t t)
{
    const struct wc_work_tenant *tenant = &wc->tenants[t];
    uint32_t queries = 0, sent = 0, kept = 0;

    for (uint32_t q = wc->query_order.head; q != WC_NONE; q = wc->query_links[q].next) {
        if (wc->queries[q].tenant != t)
            continue;
        queries++;
        for (uint32_t i = wc->queries[q].items.head; i != WC_NONE;
             i = wc->item_query_links[i].next) {
            sent += on_a_worker(&wc->items[i]);
            kept += wc->items[i].state == WC_ITEM_PENDING && wc->items[i].wait == WC_WAIT_KEPT;
        }
    }
    if (queries != tenant->queries || sent != tenant->sent || kept != tenant->kept.count ||
        list_len(&tenant->kept, wc->item_place_links) != kept)
        return "what a tenant has with workers is wrong";
    if (kept && sent < tenant->sent_max)
        return "an item is kept although its tenant has less than its share";
    return NULL;
}

static const char *check_tenants(const struct wc_api *wc)
{
    uint32_t tenants = 0, kept = 0;

    for (uint32_t t = 0; t < wc->limits.queries_max; t++) {
        const char *why = wc->tenants[t].queries ? check_tenant(wc, t) : NULL;

        if (why)
            return why;
        tenants += wc->tenants[t].queries > 0;
        kept += wc->tenants[t].queries ? wc->tenants[t].kept.count : 0;
    }
    if (wc->loose.count)
        return "a tenant was left unattended by the step";
    if (kept != wc->stats.items_kept)
        return "the gauge of kept items is wrong";
    return tenants + wc->tenant_pool.count == wc->limits.queries_max ? NULL
                                                                     : "a tenant slot leaked";
}

const char *core_check_api(const struct wc_api *wc)
{
    uint32_t counts[WC_ITEM__COUNT] = { 0 }, items = 0, placed = 0;
    const char *why = check_queries(wc, counts, &items);

    if (!why)
        why = check_peers(wc, &placed);
    if (why)
        return why;
    for (int state = 0; state < WC_ITEM__COUNT; state++) {
        if (counts[state] != wc->item_counts[state])
            return "the gauges of items are wrong";
    }
    if (items + wc->item_pool.count != wc->limits.items_max)
        return "an item slot leaked";
    if (wc->query_order.count + wc->query_pool.count != wc->limits.queries_max)
        return "a query slot leaked";
    if (wc->peer_order.count + wc->peer_pool.count != wc->limits.workers_max)
        return "a worker slot leaked";
    if (placed != counts[WC_ITEM_ASSIGNED] + counts[WC_ITEM_ACCEPTED] + counts[WC_ITEM_READY])
        return "an item is not on its worker's list";
    if (wc->fresh.count || wc->parked.count + wc->stats.items_kept != counts[WC_ITEM_PENDING])
        return "an item is pending but neither parked nor kept";
    return check_tenants(wc);
}
