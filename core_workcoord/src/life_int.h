/* life_int.h - the tables of the queries' lives, shared by its files.
 *
 * life_moves.c alone writes a query's state. A step runs its event first, which may free places,
 * then admits who stands in line: so a query is admitted or ended by a step, never both. */
#ifndef CORE_WORKCOORD_LIFE_INT_H
#define CORE_WORKCOORD_LIFE_INT_H

#include "table.h"
#include "workcoord/life.h"

enum wc_query_heard {
    WC_QUERY_HEARD_ADMIT,
    WC_QUERY_HEARD_PLANNED,
    WC_QUERY_HEARD_ASK,
    WC_QUERY_HEARD_TOLD,
    WC_QUERY_HEARD_UNTOLD,
    WC_QUERY_HEARD_PAUSED,
    WC_QUERY_HEARD_MORE,
    WC_QUERY_HEARD_ANSWERED,
    WC_QUERY_HEARD_REFUSED,
    WC_QUERY_HEARD_DONE,
    WC_QUERY_HEARD_VANISHED,
    WC_QUERY_HEARD_FAILED,
    WC_QUERY_HEARD_ROOM,
    WC_QUERY_HEARD_CANCEL,
    WC_QUERY_HEARD_CROWDED,
    WC_QUERY_HEARD__COUNT
};

struct wc_life_query {
    struct wc_query_id id;
    uint32_t tenant; /* slot */
    uint32_t replans;
    qf_rc rc;      /* why it is being stopped or dropped */
    uint8_t state; /* enum wc_query_state */
    bool place;    /* counted in stats.active */
    bool room;     /* there was ROOM during this turn */
};

/* One with queries; the others are not known. */
struct wc_life_tenant {
    struct wc_tenant_id id;
    struct wc_tenant_share share;    /* without zeroes */
    struct wc_list queued;           /* oldest first */
    uint32_t alive, active, streams; /* its queries; with a place; with neither place nor queue */
    bool in_line;                    /* has queued queries, and room for one in its share */
};

struct wc_life {
    struct wc_life_limits limits;
    struct wc_life_stats stats;
    qf_time_ms now;
    const struct wc_life_event *event; /* of the running step */
    size_t state_size;                 /* bytes from here that are state: all but the effects */
    bool draining;

    struct wc_life_query *queries;
    struct wc_pool query_pool;
    struct wc_index query_index;
    struct wc_link *alive_links, *queued_links;
    struct wc_list alive; /* by submission */

    struct wc_life_tenant *tenants;
    struct wc_pool tenant_pool;
    struct wc_index tenant_index;
    struct wc_link *line_links;
    struct wc_list line; /* who is admitted next */

    struct wc_timers timers; /* slots: queries */

    wc_trace_fn *trace;
    void *trace_ctx;
    uint64_t trace_illegal, trace_stale; /* counters before the step */

    struct wc_life_effect *effects;
    size_t effect_count, effect_capacity;
};

/* life.c: an effect of @type for the query to fill in. */
struct wc_life_effect *wc_life_emit(struct wc_life *life, uint32_t query,
                                    enum wc_life_effect_type type);

/* life_moves.c */
void wc_life_hear(struct wc_life *life, uint32_t query, enum wc_query_heard heard);
void wc_life_enter(struct wc_life *life, uint32_t query); /* a new one, queued */

/* life_queue.c: who stands in line */
/* Whether the tenant of this SUBMIT has too much to submit more. */
bool wc_life_queue_full(const struct wc_life *life);
/* The query of this SUBMIT: its tenant's youngest. */
void wc_life_queue_join(struct wc_life *life, uint32_t query);
void wc_life_queue_leave(struct wc_life *life, uint32_t query);
/* What the tenant has, or may have, is another than before: in line with it, or out. */
void wc_life_queue_settle(struct wc_life *life, uint32_t tenant);
/* Fail what the tenant has queued, if it has as many streams as it may have. */
void wc_life_queue_refuse(struct wc_life *life, uint32_t tenant);
void wc_life_queue_forget(struct wc_life *life, uint32_t query); /* It has ended. */
void wc_life_queue_admit(struct wc_life *life);

/* life_trace.c */
void wc_life_trace_step(struct wc_life *life, qf_rc rc);

#endif
