/* api_view.c - what the API side shows of itself. */
#include "api_int.h"

const struct wc_api_stats *wc_api_stats(const struct wc_api *wc)
{
    return &wc->stats;
}

struct wc_api_queue wc_api_queue(const struct wc_api *wc, qf_time_ms now)
{
    const struct wc_api_stats *stats = &wc->stats;
    struct wc_api_queue queue = {
        .queued = stats->items_pending - stats->items_kept + stats->items_assigned,
        .running = stats->items_accepted + stats->items_ready,
    };

    queue.inflight = queue.queued + queue.running;
    if (stats->oldest_at < now)
        queue.oldest_age_ms = now - stats->oldest_at;
    return queue;
}

static void view_worker(const struct wc_api *wc, uint32_t slot, struct wc_api_worker_view *ret_view)
{
    const struct wc_peer *peer = &wc->peers[slot];

    *ret_view = (struct wc_api_worker_view){
        .worker = peer->id,
        .session = peer->session,
        .state = (enum wc_peer_state)peer->state,
        .accepting = peer->accepting,
        .draining = peer->draining,
        .leaving = peer->leaving,
        .available = peer->available,
        .worker_key = peer->key,
        .slots = peer->slots,
        .queue_depth = peer->queue_depth,
        .assigned = peer->items[WC_PEER_UNSTARTED].count,
        .accepted = peer->items[WC_PEER_STARTED].count - peer->ready,
        .ready = peer->ready,
        .hedges = peer->hedges.count,
        .heard_at = peer->heard_at,
        .rtt_ms = peer->rtt_ms,
        .dials_failed = peer->dials_failed,
    };
}

bool wc_api_worker(const struct wc_api *wc, struct wc_worker_id worker,
                   struct wc_api_worker_view *ret_view)
{
    uint32_t slot = wc_index_first(&wc->peer_index, worker.v);

    if (slot == WC_NONE)
        return false;
    view_worker(wc, slot, ret_view);
    return true;
}

size_t wc_api_workers(const struct wc_api *wc, struct wc_api_worker_view *views, size_t capacity)
{
    size_t count = 0;

    for (uint32_t slot = wc->peer_order.head; slot != WC_NONE; slot = wc->peer_links[slot].next) {
        if (count < capacity)
            view_worker(wc, slot, &views[count]);
        count++;
    }
    return count;
}

bool wc_api_item(const struct wc_api *wc, struct wc_work_id work, struct wc_api_item_view *ret_view)
{
    uint32_t slot = wc_index_first(&wc->item_index, work.v);
    const struct wc_item *item;

    if (slot == WC_NONE)
        return false;
    item = &wc->items[slot];
    *ret_view = (struct wc_api_item_view){
        .query = wc->queries[item->query].id,
        .leaf = item->leaf,
        .state = (enum wc_item_state)item->state,
        .attempt = item->attempt,
        .failures = item->failures,
        .deaths = item->deaths,
        .checksum = item->checksum,
    };
    if (item->peer != WC_NONE)
        ret_view->worker = wc->peers[item->peer].id;
    if (wc_hedge_alive(item)) {
        ret_view->hedge.state = (enum wc_hedge_state)item->hedge.state;
        ret_view->hedge.worker = wc->peers[item->hedge.peer].id;
        ret_view->hedge.attempt = item->hedge.attempt;
    }
    return true;
}

bool wc_api_query(const struct wc_api *wc, struct wc_query_id query,
                  struct wc_api_query_view *ret_view)
{
    uint32_t slot = wc_index_first(&wc->query_index, query.v);

    if (slot == WC_NONE)
        return false;
    *ret_view = (struct wc_api_query_view){
        .items = wc->queries[slot].items.count,
        .committed = wc->queries[slot].committed,
        .begun_at = wc->queries[slot].begun_at,
    };
    return true;
}
