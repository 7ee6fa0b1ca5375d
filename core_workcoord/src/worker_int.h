/* worker_int.h - the tables of the worker side, shared by its files.
 *
 * worker_run.c alone writes run->state. A step runs its event first, then fills free slots from the
 * queue, then tells every session if accepting or draining changed, then says whether it is
 * drained. */
#ifndef CORE_WORKCOORD_WORKER_INT_H
#define CORE_WORKCOORD_WORKER_INT_H

#include "table.h"
#include "workcoord/worker.h"

enum wc_run_heard {
    WC_RUN_HEARD_START,
    WC_RUN_HEARD_CANCEL,
    WC_RUN_HEARD_LOST,
    WC_RUN_HEARD_LOADED,
    WC_RUN_HEARD_DONE,
    WC_RUN_HEARD_FAIL,
    WC_RUN_HEARD_ACK,
    WC_RUN_HEARD_EVICT,
    WC_RUN_HEARD_EXPIRE,
    WC_RUN_HEARD_END,
    WC_RUN_HEARD__COUNT
};

struct wc_run {
    struct wc_run_id id;
    struct wc_query_id query;
    struct wc_leaf_id leaf;
    struct wc_work_id work;
    uint32_t attempt;
    uint32_t session; /* slot; WC_NONE once it is stopping */
    uint32_t turn;    /* slot of its query's queue, while queued */
    uint8_t state;    /* enum wc_run_state */
    uint64_t bytes;   /* of its assignment; held until it is ready or over */
    qf_time_ms since;
    qf_time_ms deadline; /* of its query; QF_TIME_NEVER: none */
};

struct wc_session {
    struct wc_session_id id;
    qf_time_ms heard_at;
    struct wc_list runs;  /* all but stopping ones */
    struct wc_list turns; /* its queries that have runs queued, next one first */
};

/* The queued runs of one query of one session. */
struct wc_turn {
    struct wc_query_id query;
    uint32_t session;
    struct wc_list runs;
};

struct wc_worker {
    struct wc_worker_limits limits;
    struct wc_worker_stats stats;
    qf_time_ms now;
    const struct wc_worker_event *event; /* of the running step */
    size_t state_size;                   /* bytes from here that are state: all but the effects */
    uint64_t last_run;
    bool willing;    /* as ACCEPTING said last */
    bool status_due; /* draining began in this step */
    bool full; /* no room until an eighth of the table, a quarter of the memory is free again */

    struct wc_session *sessions;
    struct wc_pool session_pool;
    struct wc_index session_index;
    struct wc_link *session_links, *session_turn_links;
    struct wc_list session_order; /* by opening */
    struct wc_list turn_sessions; /* those with runs queued, next one first */

    struct wc_turn *turns;
    struct wc_pool turn_pool;
    struct wc_index turn_index;
    struct wc_link *turn_links; /* session->turns */

    struct wc_run *runs;
    struct wc_pool run_pool;
    struct wc_index run_index, work_index; /* by run id; by session, work and attempt */
    struct wc_link *run_session_links;     /* session->runs */
    struct wc_link *run_place_links;       /* turn->runs, or acked */
    struct wc_list acked;                  /* oldest first */

    struct wc_timers timers; /* slots: sessions, runs, one for the drain */

    wc_trace_fn *trace;
    void *trace_ctx;
    uint64_t trace_illegal, trace_stale; /* counters before the step */

    struct wc_worker_effect *effects;
    size_t effect_count, effect_capacity;
};

static inline uint32_t wc_timer_run(const struct wc_worker *wc, uint32_t run)
{
    return wc->limits.sessions_max + run;
}
static inline uint32_t wc_timer_drain(const struct wc_worker *wc)
{
    return wc->limits.sessions_max + wc->limits.runs_max;
}

/* worker.c: a zeroed effect of @type to fill in. */
struct wc_worker_effect *wc_worker_emit(struct wc_worker *wc, enum wc_worker_effect_type type);

/* worker_run.c */
uint32_t wc_run_find(const struct wc_worker *wc, uint32_t session, struct wc_work_id work,
                     uint32_t attempt);
void wc_run_hear(struct wc_worker *wc, uint32_t run, enum wc_run_heard heard);
void wc_run_on_assign(struct wc_worker *wc, uint32_t session);
void wc_run_start_queued(struct wc_worker *wc);
uint32_t wc_run_slots_taken(const struct wc_worker *wc);
uint64_t wc_run_bytes_free(const struct wc_worker *wc); /* of memory for assignments */
uint32_t wc_run_room(const struct wc_worker *wc); /* free, or held by acknowledged artifacts */

/* worker_queue.c */
void wc_queue_add(struct wc_worker *wc, uint32_t run);
void wc_queue_remove(struct wc_worker *wc, uint32_t run);
uint32_t wc_queue_next(const struct wc_worker *wc); /* WC_NONE: empty */
void wc_queue_rotate(struct wc_worker *wc);         /* the next in line had its turn */

/* worker_trace.c */
void wc_worker_trace_step(struct wc_worker *wc, qf_rc rc);

#endif
