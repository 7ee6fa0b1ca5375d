/* api.c - the API side: creation and the one entry, which hands each event to its table. */
#include "api_int.h"

#include <assert.h>
#include <stdlib.h>

#define DIAL_MAX_MS (qf_time_ms)3600000

struct wc_api_limits wc_api_limits_default(void)
{
    return (struct wc_api_limits){
        .workers_max = 1024,
        .queries_max = 1024,
        .items_max = 65536,
        .attempts_max = 8,
        .deaths_max = 2,
        .heartbeat_ms = WC_HEARTBEAT_MS,
        .heartbeats_max = WC_HEARTBEATS_MISSED_MAX,
        .dial_min_ms = 100,
        .dial_max_ms = 10000,
        .retry_delay_ms = 200,
        .worker_wait_ms = 30000,
        .hedge_delay_ms = 100,
        .hedge_percent = 10,
        .hedges_min = 4,
    };
}

static struct wc_api_limits completed(const struct wc_api_limits *given)
{
    struct wc_api_limits limits = *given, standard = wc_api_limits_default();

    limits.workers_max = limits.workers_max ? limits.workers_max : standard.workers_max;
    limits.queries_max = limits.queries_max ? limits.queries_max : standard.queries_max;
    limits.items_max = limits.items_max ? limits.items_max : standard.items_max;
    limits.attempts_max = limits.attempts_max ? limits.attempts_max : standard.attempts_max;
    limits.deaths_max = limits.deaths_max ? limits.deaths_max : standard.deaths_max;
    limits.heartbeat_ms = limits.heartbeat_ms ? limits.heartbeat_ms : standard.heartbeat_ms;
    limits.heartbeats_max = limits.heartbeats_max ? limits.heartbeats_max : standard.heartbeats_max;
    limits.hedge_delay_ms = limits.hedge_delay_ms ? limits.hedge_delay_ms : standard.hedge_delay_ms;
    limits.hedge_percent = limits.hedge_percent ? limits.hedge_percent : standard.hedge_percent;
    limits.hedges_min = limits.hedges_min ? limits.hedges_min : standard.hedges_min;
    /* Doubled twenty times it must still be a number. */
    limits.dial_max_ms = QF_MIN(limits.dial_max_ms, DIAL_MAX_MS);
    limits.dial_min_ms = QF_MIN(limits.dial_min_ms, limits.dial_max_ms);
    return limits;
}

/* Most effects one step can have. Per item: CANCEL of both attempts and ASSIGN or HEDGE, or BLAMED,
 * CANCEL and ASSIGN, or ACK, COMMITTED and CANCEL. Per worker: LOST, HANGUP, DIAL, HEARTBEAT. Per query: ENDED. One more for
 * an answer to a stranger. */
static size_t effects_max(const struct wc_api_limits *limits)
{
    return 3 * (size_t)limits->items_max + 4 * (size_t)limits->workers_max + limits->queries_max +
           1;
}

static void carve(struct wc_api *wc, struct wc_carver *carver)
{
    const struct wc_api_limits *limits = &wc->limits;

    wc->peers = wc_carve(carver, limits->workers_max, sizeof(*wc->peers));
    wc_pool_carve(&wc->peer_pool, carver, limits->workers_max);
    wc_index_carve(&wc->peer_index, carver, limits->workers_max);
    wc->peer_links = wc_carve(carver, limits->workers_max, sizeof(*wc->peer_links));
    wc->ring.keys = wc_carve(carver, limits->workers_max, sizeof(*wc->ring.keys));
    wc->ring.peers = wc_carve(carver, limits->workers_max, sizeof(*wc->ring.peers));

    wc->queries = wc_carve(carver, limits->queries_max, sizeof(*wc->queries));
    wc_pool_carve(&wc->query_pool, carver, limits->queries_max);
    wc_index_carve(&wc->query_index, carver, limits->queries_max);
    wc->query_links = wc_carve(carver, limits->queries_max, sizeof(*wc->query_links));

    wc->tenants = wc_carve(carver, limits->queries_max, sizeof(*wc->tenants));
    wc_pool_carve(&wc->tenant_pool, carver, limits->queries_max);
    wc_index_carve(&wc->tenant_index, carver, limits->queries_max);
    wc->tenant_links = wc_carve(carver, limits->queries_max, sizeof(*wc->tenant_links));

    wc->items = wc_carve(carver, limits->items_max, sizeof(*wc->items));
    wc_pool_carve(&wc->item_pool, carver, limits->items_max);
    wc_index_carve(&wc->item_index, carver, limits->items_max);
    wc->item_query_links = wc_carve(carver, limits->items_max, sizeof(*wc->item_query_links));
    wc->item_place_links = wc_carve(carver, limits->items_max, sizeof(*wc->item_place_links));
    wc->item_hedge_links = wc_carve(carver, limits->items_max, sizeof(*wc->item_hedge_links));

    wc_timers_carve(&wc->timers, carver, wc_timer_beat(wc) + 1);
    wc->state_size = carver->used;
    wc->effect_capacity = effects_max(limits);
    wc->effects = wc_carve(carver, wc->effect_capacity, sizeof(*wc->effects));
}

struct wc_api *wc_api_new(const struct wc_api_limits *limits)
{
    struct wc_api sizing = { .limits = completed(limits) }, *wc;
    struct wc_carver carver = { NULL, 0 };

    (void)wc_carve(&carver, 1, sizeof(*wc));
    carve(&sizing, &carver);
    wc = calloc(1, carver.used);
    if (!wc)
        return NULL;
    wc->limits = sizing.limits;
    carver = (struct wc_carver){ (char *)wc, 0 };
    (void)wc_carve(&carver, 1, sizeof(*wc));
    carve(wc, &carver);

    wc_pool_fill(&wc->peer_pool, wc->limits.workers_max);
    wc_pool_fill(&wc->query_pool, wc->limits.queries_max);
    wc_pool_fill(&wc->tenant_pool, wc->limits.queries_max);
    wc_pool_fill(&wc->item_pool, wc->limits.items_max);
    wc_index_clear(&wc->peer_index);
    wc_index_clear(&wc->query_index);
    wc_index_clear(&wc->tenant_index);
    wc_index_clear(&wc->item_index);
    wc_list_init(&wc->peer_order);
    wc_list_init(&wc->query_order);
    wc_list_init(&wc->loose);
    wc_list_init(&wc->fresh);
    wc_list_init(&wc->parked);
    wc_list_init(&wc->hedge_due);
    wc->now = INT64_MIN;
    wc->stats.oldest_at = QF_TIME_NEVER;
    return wc;
}

struct wc_api *wc_api_free(struct wc_api *wc)
{
    free(wc);
    return NULL;
}

void wc_api_trace(struct wc_api *wc, wc_trace_fn *trace, void *ctx)
{
    wc->trace = trace;
    wc->trace_ctx = ctx;
}

struct wc_api_effect *wc_api_emit(struct wc_api *wc, enum wc_api_effect_type type)
{
    assert(wc->effect_count < wc->effect_capacity);
    wc->effects[wc->effect_count] = (struct wc_api_effect){ .type = type };
    return &wc->effects[wc->effect_count++];
}

static qf_rc on_tick(struct wc_api *wc)
{
    uint32_t slot, first_item = wc_timer_item(wc, 0);

    while ((slot = wc_timers_due(&wc->timers, wc->now)) != WC_NONE) {
        wc_timers_clear(&wc->timers, slot);
        if (slot < first_item)
            wc_peer_on_timer(wc, slot);
        else if (slot < wc_timer_beat(wc))
            wc_assign_on_timer(wc, slot - first_item);
        else
            wc_peer_beat(wc);
    }
    return QF_OK;
}

/* A stream nobody knows must not stay open. */
static void hang_up_on_stranger(struct wc_api *wc)
{
    struct wc_api_effect *effect = wc_api_emit(wc, WC_API_DO_HANGUP);

    effect->worker = wc->event->worker;
    effect->session = wc->event->session;
    wc->stats.stale++;
}

static qf_rc on_connected(struct wc_api *wc)
{
    uint32_t peer = wc_index_first(&wc->peer_index, wc->event->worker.v);

    if (peer == WC_NONE)
        hang_up_on_stranger(wc);
    else if (wc->peers[peer].session.v == wc->event->session.v || !wc->event->session.v)
        wc->stats.stale++; /* Said twice, or no session at all. */
    else
        wc_peer_hear(wc, peer, WC_PEER_HEARD_CONNECTED);
    return QF_OK;
}

/* Session 0, a failed dial, fits a worker without a stream; any other must be the current one. */
static qf_rc on_disconnected(struct wc_api *wc)
{
    uint32_t peer = wc_index_first(&wc->peer_index, wc->event->worker.v);

    if (peer == WC_NONE || wc->peers[peer].session.v != wc->event->session.v)
        wc->stats.stale++;
    else
        wc_peer_hear(wc, peer, WC_PEER_HEARD_LOST);
    return QF_OK;
}

static qf_rc on_removed(struct wc_api *wc)
{
    uint32_t peer = wc_index_first(&wc->peer_index, wc->event->worker.v);

    if (peer == WC_NONE)
        wc->stats.stale++;
    else
        wc_peer_hear(wc, peer, WC_PEER_HEARD_REMOVED);
    return QF_OK;
}

static qf_rc on_status(struct wc_api *wc)
{
    uint32_t peer = wc_peer_of_message(wc);

    if (peer != WC_NONE)
        wc_peer_hear(wc, peer, WC_PEER_HEARD_STATUS);
    return QF_OK;
}

static qf_rc on_heartbeat(struct wc_api *wc)
{
    uint32_t peer = wc_peer_of_message(wc);

    if (peer != WC_NONE)
        wc->peers[peer].rtt_ms = QF_MAX(wc->now - wc->event->sent_at, 0);
    return QF_OK;
}

static qf_rc on_work_message(struct wc_api *wc)
{
    uint32_t peer = wc_peer_of_message(wc);

    if (peer != WC_NONE)
        wc_item_on_message(wc, peer);
    return QF_OK;
}

static qf_rc on_fetch(struct wc_api *wc)
{
    wc_item_on_fetch(wc);
    return QF_OK;
}

static qf_rc on_query_cancel(struct wc_api *wc)
{
    uint32_t query = wc_index_first(&wc->query_index, wc->event->query.v);
    qf_rc rc = wc->event->rc < 0 ? wc->event->rc : QF_ECANCELED;

    if (query == WC_NONE)
        wc->stats.stale++; /* It ended by itself a moment ago. */
    else
        wc_query_end(wc, query, rc, (struct wc_work_id){ 0 });
    return QF_OK;
}

static qf_rc (*const handlers[WC_API_EV__COUNT])(struct wc_api *wc) = {
    [WC_API_EV_TICK] = on_tick,
    [WC_API_EV_DISCOVERED] = wc_peer_on_discovered,
    [WC_API_EV_REMOVED] = on_removed,
    [WC_API_EV_CONNECTED] = on_connected,
    [WC_API_EV_DISCONNECTED] = on_disconnected,
    [WC_API_EV_STATUS] = on_status,
    [WC_API_EV_HEARTBEAT] = on_heartbeat,
    [WC_API_EV_ACCEPTED] = on_work_message,
    [WC_API_EV_REJECTED] = on_work_message,
    [WC_API_EV_READY] = on_work_message,
    [WC_API_EV_FAILED] = on_work_message,
    [WC_API_EV_FETCHED] = on_fetch,
    [WC_API_EV_FETCH_FAILED] = on_fetch,
    [WC_API_EV_QUERY_BEGIN] = wc_query_on_begin,
    [WC_API_EV_QUERY_CANCEL] = on_query_cancel,
};

static void refresh_gauges(struct wc_api *wc)
{
    uint32_t oldest = wc->query_order.head;

    wc->stats.items_pending = wc->item_counts[WC_ITEM_PENDING];
    wc->stats.items_assigned = wc->item_counts[WC_ITEM_ASSIGNED];
    wc->stats.items_accepted = wc->item_counts[WC_ITEM_ACCEPTED];
    wc->stats.items_ready = wc->item_counts[WC_ITEM_READY];
    wc->stats.items_fetched = wc->item_counts[WC_ITEM_FETCHED];
    wc->stats.queries = wc->query_order.count;
    wc->stats.workers = wc->peer_order.count;
    wc->stats.oldest_at = oldest == WC_NONE ? QF_TIME_NEVER : wc->queries[oldest].begun_at;
}

qf_rc wc_api_step(struct wc_api *wc, const struct wc_api_event *event,
                  struct wc_api_effects *ret_effects)
{
    qf_rc rc;

    assert((size_t)event->type < WC_API_EV__COUNT);
    wc->event = event;
    wc->now = QF_MAX(wc->now, event->now);
    wc->effect_count = 0;
    wc->stats.steps++;
    wc->trace_illegal = wc->stats.illegal;
    wc->trace_stale = wc->stats.stale;

    rc = handlers[event->type](wc);
    wc_assign_fresh(wc);
    wc_hedge_send_due(wc);
    wc_peer_release_idle(wc);
    refresh_gauges(wc);

    if (wc->trace)
        wc_api_trace_step(wc, rc);
    wc->event = NULL;
    *ret_effects = (struct wc_api_effects){ wc->effects, wc->effect_count };
    return rc;
}

qf_time_ms wc_api_deadline(const struct wc_api *wc)
{
    return wc_timers_next(&wc->timers);
}
