/* api_int.h - the tables of the API side, shared by its files.
 *
 * Who writes what: api_item.c alone writes item->state, api_hedge.c alone item->hedge.state,
 * api_peer.c alone peer->state. A step runs its event first, which may leave items on the fresh
 * list, then assigns those (api_assign.c), then sends out hedges that are due: so each item is sent
 * out at most once per step, however many workers a tick declares lost. */
#ifndef CORE_WORKCOORD_API_INT_H
#define CORE_WORKCOORD_API_INT_H

#include "table.h"
#include "workcoord/api.h"

/* Workers an item remembers to have failed on; the oldest is forgotten first. */
#define WC_AVOID_MAX 8

enum wc_item_heard {
    WC_ITEM_HEARD_ASSIGN, /* a worker was chosen: item->peer */
    WC_ITEM_HEARD_ACCEPTED,
    WC_ITEM_HEARD_REJECTED,
    WC_ITEM_HEARD_READY,
    WC_ITEM_HEARD_FETCHED,
    WC_ITEM_HEARD_FETCH_FAILED,
    WC_ITEM_HEARD_RETRY,
    WC_ITEM_HEARD_FAILED,
    WC_ITEM_HEARD_LOST,
    WC_ITEM_HEARD_MOVED,
    WC_ITEM_HEARD_LATE_FETCHED,
    WC_ITEM_HEARD_CANCEL,
    WC_ITEM_HEARD_HEDGE_FAILED,
    WC_ITEM_HEARD_ADOPT_ASSIGNED, /* the hedge's attempt, in this state, is now the item's own */
    WC_ITEM_HEARD_ADOPT_ACCEPTED,
    WC_ITEM_HEARD_ADOPT_READY,
    WC_ITEM_HEARD__COUNT
};

enum wc_hedge_heard {
    WC_HEDGE_HEARD_HEDGE, /* a worker was chosen: hedge.peer */
    WC_HEDGE_HEARD_ACCEPTED,
    WC_HEDGE_HEARD_REJECTED,
    WC_HEDGE_HEARD_READY,
    WC_HEDGE_HEARD_FETCHED,
    WC_HEDGE_HEARD_FETCH_FAILED,
    WC_HEDGE_HEARD_RETRY,
    WC_HEDGE_HEARD_FAILED,
    WC_HEDGE_HEARD_LOST,
    WC_HEDGE_HEARD_MOVED,
    WC_HEDGE_HEARD_DROP,
    WC_HEDGE_HEARD_ADOPT,
    WC_HEDGE_HEARD__COUNT
};

enum wc_peer_heard {
    WC_PEER_HEARD_DISCOVERED,
    WC_PEER_HEARD_CONNECTED,
    WC_PEER_HEARD_STATUS,
    WC_PEER_HEARD_LOST,
    WC_PEER_HEARD_DIAL_DUE,
    WC_PEER_HEARD_REMOVED,
    WC_PEER_HEARD__COUNT
};

/* Why an item is pending. */
enum wc_item_wait {
    WC_WAIT_FRESH,  /* looked at by the end of this step */
    WC_WAIT_PARKED, /* there is no worker for it, or not yet */
    WC_WAIT_KEPT,   /* its tenant has as many with workers as it may have */
};

/* A second attempt at an item, on another worker. */
struct wc_hedge {
    uint32_t peer, attempt;
    uint8_t state; /* enum wc_hedge_state */
    struct wc_checksum checksum;
};

struct wc_item {
    struct wc_work_id work;
    struct wc_leaf_id leaf;
    uint64_t affinity;
    uint32_t query, peer; /* slots; peer: WC_NONE unless assigned, accepted or ready */
    uint32_t attempt, failures, deaths;
    uint32_t attempts; /* the highest number given out */
    qf_time_ms expect_ms;
    struct wc_hedge hedge;
    bool hedged;   /* it has had its hedge */
    bool due;      /* on the hedge_due list */
    uint32_t late; /* older attempt whose download is still under way, 0: none */
    uint8_t state; /* enum wc_item_state */
    uint8_t avoid_count;
    bool hold;    /* the last run failed: do not go back to a failed worker without delay */
    uint8_t wait; /* enum wc_item_wait: which list it is on (pending only) */
    struct wc_checksum checksum, late_checksum;
    uint64_t avoid[WC_AVOID_MAX]; /* worker ids, oldest first */
    uint32_t owner_count;
    uint64_t owners[WC_OWNERS_MAX]; /* worker keys */
};

enum { WC_PEER_UNSTARTED, WC_PEER_STARTED, WC_PEER__LISTS };

struct wc_peer {
    struct wc_worker_id id;
    struct wc_session_id session;
    uint64_t key;
    uint8_t state; /* enum wc_peer_state */
    bool accepting, draining, leaving;
    bool available; /* what the ring believes */
    uint32_t slots, queue_depth, dials_failed, ready;
    qf_time_ms heard_at, rtt_ms;
    struct wc_list items[WC_PEER__LISTS]; /* assigned; accepted and ready */
    struct wc_list hedges;                /* items it has as a second worker */
};

/* One with queries; the others are not known. */
struct wc_work_tenant {
    struct wc_tenant_id id;
    uint32_t queries;
    uint32_t sent, sent_max; /* items with workers */
    struct wc_list kept;     /* oldest first; empty if sent < sent_max, between steps */
    bool loose;              /* on that list: there may be room for those that are kept */
};

struct wc_query {
    struct wc_query_id id;
    uint32_t tenant; /* slot */
    qf_time_ms begun_at;
    uint32_t committed;
    struct wc_list items;
};

/* Workers whose key is known, packed for the scan of an assignment. */
struct wc_ring {
    uint64_t *keys;
    uint32_t *peers;
    uint32_t count, available;
    bool stale;
};

struct wc_api {
    struct wc_api_limits limits;
    struct wc_api_stats stats;
    qf_time_ms now;
    const struct wc_api_event *event; /* of the running step */
    size_t state_size;                /* bytes from here that are state: all but the effects */

    struct wc_peer *peers;
    struct wc_pool peer_pool;
    struct wc_index peer_index;
    struct wc_link *peer_links;
    struct wc_list peer_order; /* by discovery */
    uint32_t streams, leaving; /* connected or alive; leaving */

    struct wc_query *queries;
    struct wc_pool query_pool;
    struct wc_index query_index;
    struct wc_link *query_links;
    struct wc_list query_order; /* by begin */

    struct wc_work_tenant *tenants;
    struct wc_pool tenant_pool;
    struct wc_index tenant_index;
    struct wc_link *tenant_links;
    struct wc_list loose; /* empty between steps */

    struct wc_item *items;
    struct wc_pool item_pool;
    struct wc_index item_index;
    struct wc_link *item_query_links; /* query->items */
    struct wc_link *item_place_links; /* fresh, parked, a tenant's kept or a peer's lists */
    struct wc_link *item_hedge_links; /* hedge_due or a peer's hedges */
    struct wc_list hedge_due;         /* empty between steps */
    uint32_t item_counts[WC_ITEM__COUNT];
    struct wc_list fresh, parked;
    bool unpark; /* a worker became available in this step */

    struct wc_ring ring;
    struct wc_timers timers; /* slots: peers, items, one beat */

    wc_trace_fn *trace;
    void *trace_ctx;
    uint64_t trace_illegal, trace_stale; /* counters before the step */

    struct wc_api_effect *effects;
    size_t effect_count, effect_capacity;
};

/* Timer slots. */
static inline uint32_t wc_timer_item(const struct wc_api *wc, uint32_t item)
{
    return wc->limits.workers_max + item;
}
static inline uint32_t wc_timer_beat(const struct wc_api *wc)
{
    return wc->limits.workers_max + wc->limits.items_max;
}

/* api.c: a zeroed effect of @type to fill in. */
struct wc_api_effect *wc_api_emit(struct wc_api *wc, enum wc_api_effect_type type);

/* api_item.c */
void wc_item_hear(struct wc_api *wc, uint32_t item, enum wc_item_heard heard);
void wc_item_on_message(struct wc_api *wc, uint32_t peer); /* ACCEPTED REJECTED READY FAILED */
void wc_item_on_fetch(struct wc_api *wc);                  /* FETCHED FETCH_FAILED */

/* The worker @peer died while it ran attempt @attempt of the item. */
void wc_item_blame(struct wc_api *wc, uint32_t item, uint32_t peer, uint32_t attempt);
/* Too many workers died of it. */
bool wc_item_condemned(const struct wc_api *wc, const struct wc_item *item);
/* Cancel an attempt on a worker, unless its stream is just being lost. */
void wc_item_cancel_on(struct wc_api *wc, const struct wc_item *item, uint32_t peer,
                       uint32_t attempt);
struct wc_api_effect *wc_item_emit(struct wc_api *wc, const struct wc_item *item,
                                   enum wc_api_effect_type type, uint32_t peer, uint32_t attempt);
/* The same of an attempt that begins: ASSIGN or HEDGE. */
void wc_item_send(struct wc_api *wc, const struct wc_item *item, enum wc_api_effect_type type,
                  uint32_t peer, uint32_t attempt);
void wc_item_avoid(struct wc_item *item, uint64_t worker);
/* A worker rejects only while it is not accepting: believe that until it says otherwise. */
void wc_item_believe_reject(struct wc_api *wc, uint32_t peer);

/* api_hedge.c */
static inline bool wc_hedge_alive(const struct wc_item *item)
{
    return item->hedge.state != WC_HEDGE_NONE;
}
void wc_hedge_hear(struct wc_api *wc, uint32_t item, enum wc_hedge_heard heard);
void wc_hedge_arm(struct wc_api *wc, uint32_t item);      /* it was assigned: wait for it */
void wc_hedge_disarm(struct wc_api *wc, uint32_t item);   /* no worker has it any more */
void wc_hedge_on_timer(struct wc_api *wc, uint32_t item); /* it takes too long */
void wc_hedge_adopt(struct wc_api *wc, uint32_t item);    /* a pending one takes it over */
void wc_hedge_send_due(struct wc_api *wc);

/* api_peer.c */
qf_rc wc_peer_on_discovered(struct wc_api *wc);
void wc_peer_hear(struct wc_api *wc, uint32_t peer, enum wc_peer_heard heard);
uint32_t wc_peer_of_message(struct wc_api *wc); /* WC_NONE: stale */
void wc_peer_changed(struct wc_api *wc, uint32_t peer);
void wc_peer_on_timer(struct wc_api *wc, uint32_t peer);
void wc_peer_beat(struct wc_api *wc);
void wc_peer_release_idle(struct wc_api *wc);

/* api_query.c */
qf_rc wc_query_on_begin(struct wc_api *wc);
void wc_query_end(struct wc_api *wc, uint32_t query, qf_rc rc, struct wc_work_id blame);

/* api_tenant.c: how much of a tenant's work is with workers */
void wc_tenant_join(struct wc_api *wc, uint32_t query); /* of this QUERY_BEGIN */
void wc_tenant_leave(struct wc_api *wc, uint32_t query);
static inline struct wc_work_tenant *wc_tenant_of(struct wc_api *wc, const struct wc_item *item)
{
    return &wc->tenants[wc->queries[item->query].tenant];
}
/* The item is on its way to a worker (1), or no longer with one (-1). */
void wc_tenant_count(struct wc_api *wc, const struct wc_item *item, int change);
/* A kept item that may be sent after all, now fresh; WC_NONE: there is none. */
uint32_t wc_tenant_let_go(struct wc_api *wc);

/* api_assign.c */
/* An available worker for a hedge: not the item's own, and none that failed it. WC_NONE: none. */
uint32_t wc_assign_second(struct wc_api *wc, const struct wc_item *item);
void wc_assign_fresh(struct wc_api *wc);
void wc_assign_on_timer(struct wc_api *wc, uint32_t item);
void wc_assign_forget(struct wc_api *wc, uint32_t item); /* take a pending item off its list */
/* The worker with @key keeps what @item reads. */
bool wc_assign_owned(const struct wc_item *item, uint64_t key);

/* api_trace.c */
void wc_api_trace_step(struct wc_api *wc, qf_rc rc);

#endif
