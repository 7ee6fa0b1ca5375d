/* api_assign.c - which worker gets an item: rendezvous hashing among those that may have it, its owners first.
 *
 * Pending items are fresh (looked at by the end of this step), parked (there is no worker, or only
 * ones they have failed on and their delay is not over) or kept (their tenant has its share of the
 * workers). A worker becoming available wakes all that are parked, an item that leaves its worker
 * lets one of its tenant's go that are kept. */
#include "api_int.h"

#include "workcoord/rendezvous.h"

/* Available workers first, so that the usual scan ends there. */
static void rebuild_ring(struct wc_api *wc)
{
    struct wc_ring *ring = &wc->ring;

    ring->count = 0;
    for (int available = 1; available >= 0; available--) {
        for (uint32_t slot = wc->peer_order.head; slot != WC_NONE;
             slot = wc->peer_links[slot].next) {
            if (wc->peers[slot].available != available || !wc->peers[slot].key)
                continue;
            ring->keys[ring->count] = wc->peers[slot].key;
            ring->peers[ring->count++] = slot;
        }
        if (available)
            ring->available = ring->count;
    }
    ring->stale = false;
}

bool wc_assign_owned(const struct wc_item *item, uint64_t key)
{
    for (uint32_t i = 0; i < item->owner_count; i++) {
        if (item->owners[i] == key)
            return true;
    }
    return false;
}

/* 0: never failed there; else the later it failed, the higher. */
static uint32_t avoid_rank(const struct wc_item *item, uint64_t worker)
{
    for (uint32_t i = 0; i < item->avoid_count; i++) {
        if (item->avoid[i] == worker)
            return i + 1;
    }
    return 0;
}

struct choice {
    uint32_t peer;
    uint32_t rank;
    bool home; /* the first choice among all known workers */
};

/* The usual case: the item has no owners and has failed nowhere, and every worker that is available will do. Scores are
 * compared in one loop without looking at anything else: with 1,000 workers that is what assigning costs. */
static struct choice choose_any(const struct wc_api *wc, const struct wc_item *item)
{
    const struct wc_ring *ring = &wc->ring;
    uint64_t best_score = 0, away_score = 0;
    size_t best = wc_rendezvous_best(item->affinity, ring->keys, ring->available, &best_score);

    (void)wc_rendezvous_best(item->affinity, ring->keys + ring->available,
                             ring->count - ring->available, &away_score);
    return (struct choice){ ring->peers[best], 0, best_score >= away_score };
}

/* Owners come before others, whatever the scores. */
struct merit {
    bool owner;
    uint64_t score;
};

static bool is_better(struct merit a, struct merit b)
{
    return a.owner == b.owner ? a.score > b.score : a.owner;
}

/* The worker that @item should go to, among all but @except. */
static struct choice choose(const struct wc_api *wc, const struct wc_item *item, uint32_t except)
{
    const struct wc_ring *ring = &wc->ring;
    struct choice best = { WC_NONE, UINT32_MAX, false };
    struct merit found = { 0 }, home = { 0 };

    if (!item->owner_count && !item->avoid_count && except == WC_NONE && ring->available)
        return choose_any(wc, item);
    for (uint32_t i = 0; i < ring->count; i++) {
        struct merit merit = { wc_assign_owned(item, ring->keys[i]),
                               wc_rendezvous_score(item->affinity, ring->keys[i]) };
        uint32_t rank;

        home = is_better(merit, home) ? merit : home;
        if (i >= ring->available || ring->peers[i] == except)
            continue;
        rank = item->avoid_count ? avoid_rank(item, wc->peers[ring->peers[i]].id.v) : 0;
        if (rank < best.rank || (rank == best.rank && is_better(merit, found))) {
            best.peer = ring->peers[i];
            best.rank = rank;
            found = merit;
        }
    }
    best.home = !is_better(home, found);
    return best;
}

static void park(struct wc_api *wc, uint32_t slot, qf_time_ms delay)
{
    wc_list_remove(&wc->fresh, wc->item_place_links, slot);
    wc_list_push(&wc->parked, wc->item_place_links, slot);
    wc->items[slot].wait = WC_WAIT_PARKED;
    if (delay)
        wc_timers_set(&wc->timers, wc_timer_item(wc, slot), wc_time_add(wc->now, delay));
}

static void keep(struct wc_api *wc, uint32_t slot)
{
    wc_list_remove(&wc->fresh, wc->item_place_links, slot);
    wc_list_push(&wc_tenant_of(wc, &wc->items[slot])->kept, wc->item_place_links, slot);
    wc->items[slot].wait = WC_WAIT_KEPT;
    wc->stats.items_kept++;
    wc->stats.kept++;
}

static bool share_used_up(struct wc_api *wc, uint32_t slot)
{
    const struct wc_work_tenant *tenant = wc_tenant_of(wc, &wc->items[slot]);

    return tenant->sent >= tenant->sent_max;
}

static void unpark(struct wc_api *wc, uint32_t slot)
{
    wc_list_remove(&wc->parked, wc->item_place_links, slot);
    wc_list_push(&wc->fresh, wc->item_place_links, slot);
    wc->items[slot].wait = WC_WAIT_FRESH;
    wc_timers_clear(&wc->timers, wc_timer_item(wc, slot));
}

static void assign(struct wc_api *wc, uint32_t slot)
{
    struct wc_item *item = &wc->items[slot];
    struct choice choice = choose(wc, item, WC_NONE);

    if (choice.rank && item->hold && wc->limits.retry_delay_ms) {
        park(wc, slot, wc->limits.retry_delay_ms);
        return;
    }
    if (choice.home)
        wc->stats.affinity_hits++;
    else
        wc->stats.affinity_misses++;
    item->peer = choice.peer;
    wc_item_hear(wc, slot, WC_ITEM_HEARD_ASSIGN);
}

static void assign_or_wait(struct wc_api *wc, uint32_t slot)
{
    if (wc->ring.stale)
        rebuild_ring(wc);
    if (share_used_up(wc, slot)) {
        keep(wc, slot);
    } else if (wc->ring.available) {
        assign(wc, slot);
    } else {
        wc->items[slot].hold = false; /* Whoever comes first may have it at once. */
        park(wc, slot, wc->limits.worker_wait_ms);
    }
}

void wc_assign_fresh(struct wc_api *wc)
{
    uint32_t slot;

    if (wc->unpark) {
        while (wc->parked.count)
            unpark(wc, wc->parked.head);
    }
    wc->unpark = false;
    while (wc->fresh.count)
        assign_or_wait(wc, wc->fresh.head);
    while ((slot = wc_tenant_let_go(wc)) != WC_NONE)
        assign_or_wait(wc, slot);
}

uint32_t wc_assign_second(struct wc_api *wc, const struct wc_item *item)
{
    struct choice choice;

    if (wc->ring.stale)
        rebuild_ring(wc);
    choice = choose(wc, item, item->peer);
    return choice.rank == 0 ? choice.peer : WC_NONE;
}

/* The time of an item is up. Of a parked one: its delay is over, or no worker has come in all the
 * time it waited. */
void wc_assign_on_timer(struct wc_api *wc, uint32_t slot)
{
    struct wc_item *item = &wc->items[slot];

    if (item->state != WC_ITEM_PENDING) {
        wc_hedge_on_timer(wc, slot);
    } else if (item->hold) {
        item->hold = false;
        unpark(wc, slot);
    } else {
        wc_query_end(wc, item->query, QF_EUNAVAILABLE, item->work);
    }
}

void wc_assign_forget(struct wc_api *wc, uint32_t slot)
{
    const struct wc_item *item = &wc->items[slot];
    struct wc_list *list = item->wait == WC_WAIT_PARKED ? &wc->parked : &wc->fresh;

    if (item->wait == WC_WAIT_KEPT) {
        list = &wc_tenant_of(wc, item)->kept;
        wc->stats.items_kept--;
    }
    wc_list_remove(list, wc->item_place_links, slot);
    wc_timers_clear(&wc->timers, wc_timer_item(wc, slot));
}
