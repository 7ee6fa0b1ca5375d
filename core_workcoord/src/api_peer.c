/* api_peer.c - the life of a worker as the API sees it: dialing, sessions, liveness, rotation. */
#include "api_int.h"

#include <assert.h>

#include "base/pure/prng.h"

static struct wc_api_effect *emit_for(struct wc_api *wc, uint32_t slot,
                                      enum wc_api_effect_type type)
{
    struct wc_api_effect *effect = wc_api_emit(wc, type);

    effect->worker = wc->peers[slot].id;
    effect->session = wc->peers[slot].session;
    return effect;
}

static bool has_stream(const struct wc_peer *peer)
{
    return peer->session.v != 0;
}

/* Bring rotation and gauges in line with the peer's state and flags. */
void wc_peer_changed(struct wc_api *wc, uint32_t slot)
{
    struct wc_peer *peer = &wc->peers[slot];
    bool available =
        peer->state == WC_PEER_ALIVE && peer->accepting && !peer->draining && !peer->leaving;

    if (available == peer->available)
        return;
    peer->available = available;
    wc->ring.stale = true;
    if (available) {
        wc->unpark = true;
        wc->stats.workers_available++;
    } else {
        wc->stats.workers_available--;
    }
}

static void set_draining(struct wc_api *wc, struct wc_peer *peer, bool draining)
{
    if (draining && !peer->draining)
        wc->stats.workers_draining++;
    if (!draining && peer->draining)
        wc->stats.workers_draining--;
    peer->draining = draining;
}

static void set_leaving(struct wc_api *wc, struct wc_peer *peer, bool leaving)
{
    if (leaving && !peer->leaving)
        wc->leaving++;
    if (!leaving && peer->leaving)
        wc->leaving--;
    peer->leaving = leaving;
}

static void move_unstarted(struct wc_api *wc, struct wc_peer *peer)
{
    while (peer->items[WC_PEER_UNSTARTED].count)
        wc_item_hear(wc, peer->items[WC_PEER_UNSTARTED].head, WC_ITEM_HEARD_MOVED);
}

/* A hedge is worth no waiting for: @all of a worker that leaves, else what it has not accepted. */
static void move_hedges(struct wc_api *wc, struct wc_peer *peer, bool all)
{
    uint32_t next;

    for (uint32_t slot = peer->hedges.head; slot != WC_NONE; slot = next) {
        next = wc->item_hedge_links[slot].next;
        if (all || wc->items[slot].hedge.state == WC_HEDGE_ASSIGNED)
            wc_hedge_hear(wc, slot, WC_HEDGE_HEARD_MOVED);
    }
}

/* Each runs before the state changes. */
typedef void move_fn(struct wc_api *wc, uint32_t slot);

static void stay(struct wc_api *wc, uint32_t slot)
{
    set_leaving(wc, &wc->peers[slot], false);
}

/* Jitter over the upper half of the delay, so that a fleet does not come back in lockstep. */
static qf_time_ms redial_delay(const struct wc_api *wc, const struct wc_peer *peer)
{
    struct qf_prng prng = { wc->event->random ^ peer->id.v };
    uint32_t doublings = QF_MIN(peer->dials_failed, UINT32_C(20));
    qf_time_ms delay = QF_MIN(wc->limits.dial_min_ms << doublings, wc->limits.dial_max_ms);

    return delay - (qf_time_ms)qf_prng_below(&prng, (uint64_t)(delay / 2 + 1));
}

static void dial(struct wc_api *wc, uint32_t slot)
{
    (void)emit_for(wc, slot, WC_API_DO_DIAL);
}

static void redial_later(struct wc_api *wc, uint32_t slot)
{
    struct wc_peer *peer = &wc->peers[slot];

    wc_timers_set(&wc->timers, slot, wc_time_add(wc->now, redial_delay(wc, peer)));
    peer->dials_failed++;
    wc->stats.redials++;
}

static void open_stream(struct wc_api *wc, uint32_t slot)
{
    struct wc_peer *peer = &wc->peers[slot];
    qf_time_ms silence = wc->limits.heartbeat_ms * wc->limits.heartbeats_max;

    peer->session = wc->event->session;
    peer->heard_at = wc->now;
    peer->rtt_ms = -1;
    wc_timers_set(&wc->timers, slot, wc_time_add(wc->now, silence));
    if (!wc->streams++)
        wc_timers_set(&wc->timers, wc_timer_beat(wc),
                      wc_time_add(wc->now, wc->limits.heartbeat_ms));
}

/* What a worker was running when it died may be what it died of. What it had not begun is not. */
static void blame_running(struct wc_api *wc, uint32_t slot)
{
    const struct wc_peer *peer = &wc->peers[slot];
    uint32_t at;

    if (wc->event->type != WC_API_EV_DISCONNECTED || !wc->event->died || peer->draining)
        return;
    for (at = peer->items[WC_PEER_STARTED].head; at != WC_NONE; at = wc->item_place_links[at].next)
        if (wc->items[at].state == WC_ITEM_ACCEPTED)
            wc_item_blame(wc, at, slot, wc->items[at].attempt);
    for (at = peer->hedges.head; at != WC_NONE; at = wc->item_hedge_links[at].next)
        if (wc->items[at].hedge.state == WC_HEDGE_ACCEPTED)
            wc_item_blame(wc, at, slot, wc->items[at].hedge.attempt);
}

/* The item may be run by its own worker still; one that cost too many is taken from that as well. */
static void lose_hedge(struct wc_api *wc, uint32_t slot)
{
    wc_hedge_hear(wc, slot, WC_HEDGE_HEARD_LOST);
    if (wc_item_condemned(wc, &wc->items[slot]))
        wc_item_hear(wc, slot, WC_ITEM_HEARD_HEDGE_FAILED);
}

/* The session is dead, and with it everything not yet fetched from it. */
static void end_stream(struct wc_api *wc, uint32_t slot)
{
    struct wc_peer *peer = &wc->peers[slot];

    emit_for(wc, slot, WC_API_DO_LOST)->rc = QF_EUNAVAILABLE;
    wc->stats.workers_lost++;
    blame_running(wc, slot);
    peer->session = (struct wc_session_id){ 0 };
    for (int list = 0; list < WC_PEER__LISTS; list++) {
        while (peer->items[list].count)
            wc_item_hear(wc, peer->items[list].head, WC_ITEM_HEARD_LOST);
    }
    while (peer->hedges.count)
        lose_hedge(wc, peer->hedges.head);
    peer->accepting = false;
    set_draining(wc, peer, false);
    wc_timers_clear(&wc->timers, slot);
    wc->streams--;
}

static void lose(struct wc_api *wc, uint32_t slot)
{
    end_stream(wc, slot);
    redial_later(wc, slot);
}

static void reopen_stream(struct wc_api *wc, uint32_t slot)
{
    (void)emit_for(wc, slot, WC_API_DO_HANGUP);
    end_stream(wc, slot);
    open_stream(wc, slot);
}

static void close_stream(struct wc_api *wc, uint32_t slot)
{
    (void)emit_for(wc, slot, WC_API_DO_HANGUP);
    end_stream(wc, slot);
}

static void hear_status(struct wc_api *wc, uint32_t slot)
{
    struct wc_peer *peer = &wc->peers[slot];
    const struct wc_api_event *event = wc->event;
    uint64_t key = event->status.worker_key ? event->status.worker_key : 1; /* 0: not known yet */

    if (peer->key != key)
        wc->ring.stale = true;
    peer->key = key;
    peer->accepting = event->status.accepting;
    peer->slots = event->status.slots;
    peer->queue_depth = event->status.queue_depth;
    peer->dials_failed = 0;
    set_draining(wc, peer, event->status.draining);
    if (peer->draining) {
        move_unstarted(wc, peer);
        move_hedges(wc, peer, false);
    }
}

static void leave(struct wc_api *wc, uint32_t slot)
{
    set_leaving(wc, &wc->peers[slot], true);
    move_unstarted(wc, &wc->peers[slot]);
    move_hedges(wc, &wc->peers[slot], true);
}

static void forget(struct wc_api *wc, uint32_t slot)
{
    (void)wc;
    (void)slot;
}

struct move {
    enum wc_peer_state next;
    move_fn *act; /* NULL: not a legal move */
};

static const struct move moves[WC_PEER__COUNT][WC_PEER_HEARD__COUNT] = {
    [WC_PEER_DOWN] = {
        [WC_PEER_HEARD_DISCOVERED] = { WC_PEER_DOWN, stay },
        [WC_PEER_HEARD_CONNECTED] = { WC_PEER_CONNECTED, open_stream },
        [WC_PEER_HEARD_DIAL_DUE] = { WC_PEER_DIALING, dial },
        [WC_PEER_HEARD_REMOVED] = { WC_PEER_GONE, forget },
    },
    [WC_PEER_DIALING] = {
        [WC_PEER_HEARD_DISCOVERED] = { WC_PEER_DIALING, stay },
        [WC_PEER_HEARD_CONNECTED] = { WC_PEER_CONNECTED, open_stream },
        [WC_PEER_HEARD_LOST] = { WC_PEER_DOWN, redial_later },
        [WC_PEER_HEARD_REMOVED] = { WC_PEER_GONE, forget },
    },
    [WC_PEER_CONNECTED] = {
        [WC_PEER_HEARD_DISCOVERED] = { WC_PEER_CONNECTED, stay },
        [WC_PEER_HEARD_CONNECTED] = { WC_PEER_CONNECTED, reopen_stream },
        [WC_PEER_HEARD_STATUS] = { WC_PEER_ALIVE, hear_status },
        [WC_PEER_HEARD_LOST] = { WC_PEER_DOWN, lose },
        [WC_PEER_HEARD_REMOVED] = { WC_PEER_GONE, close_stream },
    },
    [WC_PEER_ALIVE] = {
        [WC_PEER_HEARD_DISCOVERED] = { WC_PEER_ALIVE, stay },
        [WC_PEER_HEARD_CONNECTED] = { WC_PEER_CONNECTED, reopen_stream },
        [WC_PEER_HEARD_STATUS] = { WC_PEER_ALIVE, hear_status },
        [WC_PEER_HEARD_LOST] = { WC_PEER_DOWN, lose },
        [WC_PEER_HEARD_REMOVED] = { WC_PEER_ALIVE, leave },
    },
};

static void release(struct wc_api *wc, uint32_t slot)
{
    struct wc_peer *peer = &wc->peers[slot];

    assert(!has_stream(peer));
    set_leaving(wc, peer, false);
    wc_timers_clear(&wc->timers, slot);
    wc_index_remove(&wc->peer_index, slot);
    wc_list_remove(&wc->peer_order, wc->peer_links, slot);
    wc_pool_give(&wc->peer_pool, slot);
    wc->ring.stale = true;
}

/* The only function that writes peer->state. */
void wc_peer_hear(struct wc_api *wc, uint32_t slot, enum wc_peer_heard heard)
{
    struct wc_peer *peer = &wc->peers[slot];
    const struct move *move = &moves[peer->state][heard];

    if (!move->act) {
        wc->stats.illegal++;
        return;
    }
    move->act(wc, slot);
    wc->stats.workers_alive -= peer->state == WC_PEER_ALIVE;
    peer->state = (uint8_t)move->next;
    wc->stats.workers_alive += peer->state == WC_PEER_ALIVE;
    wc_peer_changed(wc, slot);
    /* A worker that discovery gave up is dialed no more. */
    if (peer->state == WC_PEER_GONE || (peer->state == WC_PEER_DOWN && peer->leaving))
        release(wc, slot);
}

qf_rc wc_peer_on_discovered(struct wc_api *wc)
{
    uint32_t slot = wc_index_first(&wc->peer_index, wc->event->worker.v);
    struct wc_peer *peer;

    if (slot == WC_NONE) {
        if (!wc->peer_pool.count)
            return QF_ELIMIT;
        slot = wc_pool_take(&wc->peer_pool);
        peer = &wc->peers[slot];
        *peer = (struct wc_peer){ .id = wc->event->worker, .state = WC_PEER_DOWN, .rtt_ms = -1 };
        for (int list = 0; list < WC_PEER__LISTS; list++)
            wc_list_init(&peer->items[list]);
        wc_list_init(&peer->hedges);
        wc_index_put(&wc->peer_index, peer->id.v, slot);
        wc_list_push(&wc->peer_order, wc->peer_links, slot);
        wc_peer_hear(wc, slot, WC_PEER_HEARD_DIAL_DUE);
    } else {
        wc_peer_hear(wc, slot, WC_PEER_HEARD_DISCOVERED);
    }
    return QF_OK;
}

uint32_t wc_peer_of_message(struct wc_api *wc)
{
    uint32_t slot = wc_index_first(&wc->peer_index, wc->event->worker.v);

    if (slot == WC_NONE || !has_stream(&wc->peers[slot]) ||
        wc->peers[slot].session.v != wc->event->session.v) {
        wc->stats.stale++;
        return WC_NONE;
    }
    wc->peers[slot].heard_at = wc->now;
    return slot;
}

/* One timer per worker: the next dial while there is no stream, silence while there is one. Hearing
 * something does not touch it; it looks when it comes and sets itself again. */
void wc_peer_on_timer(struct wc_api *wc, uint32_t slot)
{
    struct wc_peer *peer = &wc->peers[slot];
    qf_time_ms lost_at;

    if (!has_stream(peer)) {
        wc_peer_hear(wc, slot, WC_PEER_HEARD_DIAL_DUE);
        return;
    }
    lost_at = wc_time_add(peer->heard_at, wc->limits.heartbeat_ms * wc->limits.heartbeats_max);
    if (lost_at > wc->now) {
        wc_timers_set(&wc->timers, slot, lost_at);
        return;
    }
    wc->stats.workers_silent++;
    (void)emit_for(wc, slot, WC_API_DO_HANGUP);
    wc_peer_hear(wc, slot, WC_PEER_HEARD_LOST);
}

void wc_peer_beat(struct wc_api *wc)
{
    for (uint32_t slot = wc->peer_order.head; slot != WC_NONE; slot = wc->peer_links[slot].next) {
        if (has_stream(&wc->peers[slot]))
            (void)emit_for(wc, slot, WC_API_DO_HEARTBEAT);
    }
    if (wc->streams)
        wc_timers_set(&wc->timers, wc_timer_beat(wc),
                      wc_time_add(wc->now, wc->limits.heartbeat_ms));
}

/* Leaving workers with nothing left to finish are let go. */
void wc_peer_release_idle(struct wc_api *wc)
{
    uint32_t next;

    if (!wc->leaving)
        return;
    for (uint32_t slot = wc->peer_order.head; slot != WC_NONE; slot = next) {
        struct wc_peer *peer = &wc->peers[slot];

        next = wc->peer_links[slot].next;
        if (peer->leaving && !peer->items[WC_PEER_STARTED].count) {
            (void)emit_for(wc, slot, WC_API_DO_HANGUP);
            wc_peer_hear(wc, slot, WC_PEER_HEARD_LOST);
        }
    }
}
