/* worker.c - the worker side: creation, sessions, drain, and the one entry. */
#include "worker_int.h"

#include <assert.h>
#include <stdlib.h>

static struct wc_worker_limits completed(const struct wc_worker_limits *given)
{
    struct wc_worker_limits limits = *given;

    limits.sessions_max = limits.sessions_max ? limits.sessions_max : 64;
    limits.runs_max = limits.runs_max ? limits.runs_max : 16384;
    limits.spec_bytes_max = limits.spec_bytes_max ? limits.spec_bytes_max : UINT64_C(256) << 20;
    limits.slots = limits.slots ? limits.slots : 1;
    limits.heartbeat_ms = limits.heartbeat_ms ? limits.heartbeat_ms : WC_HEARTBEAT_MS;
    limits.heartbeats_max =
        limits.heartbeats_max ? limits.heartbeats_max : WC_HEARTBEATS_MISSED_MAX;
    limits.artifact_ms = limits.artifact_ms ? limits.artifact_ms : 600000;
    limits.artifact_ack_ms = limits.artifact_ack_ms ? limits.artifact_ack_ms : 30000;
    return limits;
}

static void carve(struct wc_worker *wc, struct wc_carver *carver)
{
    const struct wc_worker_limits *limits = &wc->limits;

    wc->sessions = wc_carve(carver, limits->sessions_max, sizeof(*wc->sessions));
    wc_pool_carve(&wc->session_pool, carver, limits->sessions_max);
    wc_index_carve(&wc->session_index, carver, limits->sessions_max);
    wc->session_links = wc_carve(carver, limits->sessions_max, sizeof(*wc->session_links));
    wc->session_turn_links =
        wc_carve(carver, limits->sessions_max, sizeof(*wc->session_turn_links));

    wc->turns = wc_carve(carver, limits->runs_max, sizeof(*wc->turns));
    wc_pool_carve(&wc->turn_pool, carver, limits->runs_max);
    wc_index_carve(&wc->turn_index, carver, limits->runs_max);
    wc->turn_links = wc_carve(carver, limits->runs_max, sizeof(*wc->turn_links));

    wc->runs = wc_carve(carver, limits->runs_max, sizeof(*wc->runs));
    wc_pool_carve(&wc->run_pool, carver, limits->runs_max);
    wc_index_carve(&wc->run_index, carver, limits->runs_max);
    wc_index_carve(&wc->work_index, carver, limits->runs_max);
    wc->run_session_links = wc_carve(carver, limits->runs_max, sizeof(*wc->run_session_links));
    wc->run_place_links = wc_carve(carver, limits->runs_max, sizeof(*wc->run_place_links));

    wc_timers_carve(&wc->timers, carver, wc_timer_drain(wc) + 1);
    wc->state_size = carver->used;
    /* Per run three (RELEASE or DROP, FAILED and FORGET), per session two (HANGUP and STATUS), and
     * REJECT or ECHO and STATUS, the DROP and FORGET that make room, and DRAINED. */
    wc->effect_capacity = 3 * (size_t)limits->runs_max + 2 * (size_t)limits->sessions_max + 5;
    wc->effects = wc_carve(carver, wc->effect_capacity, sizeof(*wc->effects));
}

struct wc_worker *wc_worker_new(const struct wc_worker_limits *limits)
{
    struct wc_worker sizing = { .limits = completed(limits) }, *wc;
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

    wc_pool_fill(&wc->session_pool, wc->limits.sessions_max);
    wc_pool_fill(&wc->turn_pool, wc->limits.runs_max);
    wc_pool_fill(&wc->run_pool, wc->limits.runs_max);
    wc_index_clear(&wc->session_index);
    wc_index_clear(&wc->turn_index);
    wc_index_clear(&wc->run_index);
    wc_index_clear(&wc->work_index);
    wc_list_init(&wc->session_order);
    wc_list_init(&wc->turn_sessions);
    wc_list_init(&wc->acked);
    wc->now = INT64_MIN;
    wc->willing = true;
    wc->stats.accepting = true;
    wc->stats.slots = wc->limits.slots;
    return wc;
}

struct wc_worker *wc_worker_free(struct wc_worker *wc)
{
    free(wc);
    return NULL;
}

void wc_worker_trace(struct wc_worker *wc, wc_trace_fn *trace, void *ctx)
{
    wc->trace = trace;
    wc->trace_ctx = ctx;
}

struct wc_worker_effect *wc_worker_emit(struct wc_worker *wc, enum wc_worker_effect_type type)
{
    assert(wc->effect_count < wc->effect_capacity);
    wc->effects[wc->effect_count] = (struct wc_worker_effect){ .type = type };
    return &wc->effects[wc->effect_count++];
}

static void emit_status(struct wc_worker *wc, uint32_t session)
{
    wc_worker_emit(wc, WC_WORKER_DO_STATUS)->session = wc->sessions[session].id;
}

static qf_time_ms silence(const struct wc_worker *wc)
{
    return wc->limits.heartbeat_ms * wc->limits.heartbeats_max;
}

static qf_rc on_session_open(struct wc_worker *wc)
{
    uint32_t slot = wc_index_first(&wc->session_index, wc->event->session.v);
    struct wc_session *session;

    if (slot != WC_NONE)
        return QF_EEXIST;
    if (!wc->session_pool.count)
        return QF_ELIMIT;
    slot = wc_pool_take(&wc->session_pool);
    session = &wc->sessions[slot];
    *session = (struct wc_session){ .id = wc->event->session, .heard_at = wc->now };
    wc_list_init(&session->runs);
    wc_list_init(&session->turns);
    wc_index_put(&wc->session_index, session->id.v, slot);
    wc_list_push(&wc->session_order, wc->session_links, slot);
    wc_timers_set(&wc->timers, slot, wc_time_add(wc->now, silence(wc)));
    wc->stats.sessions++;
    emit_status(wc, slot);
    return QF_OK;
}

static void end_session(struct wc_worker *wc, uint32_t slot)
{
    struct wc_session *session = &wc->sessions[slot];

    while (session->runs.count)
        wc_run_hear(wc, session->runs.head, WC_RUN_HEARD_LOST);
    wc_timers_clear(&wc->timers, slot);
    wc_index_remove(&wc->session_index, slot);
    wc_list_remove(&wc->session_order, wc->session_links, slot);
    wc_pool_give(&wc->session_pool, slot);
    wc->stats.sessions--;
    wc->stats.sessions_lost++;
}

static void on_session_timer(struct wc_worker *wc, uint32_t slot)
{
    qf_time_ms lost_at = wc_time_add(wc->sessions[slot].heard_at, silence(wc));

    if (lost_at > wc->now) {
        wc_timers_set(&wc->timers, slot, lost_at);
        return;
    }
    wc->stats.sessions_silent++;
    wc_worker_emit(wc, WC_WORKER_DO_HANGUP)->session = wc->sessions[slot].id;
    end_session(wc, slot);
}

/* Runs that an exit would lose. */
static uint32_t unfinished(const struct wc_worker *wc)
{
    const uint32_t *runs = wc->stats.runs;

    return runs[WC_RUN_QUEUED] + wc_run_slots_taken(wc) + runs[WC_RUN_READY];
}

static void say_drained(struct wc_worker *wc)
{
    if (wc->stats.drained)
        return;
    wc->stats.drained = true;
    wc_worker_emit(wc, WC_WORKER_DO_DRAINED)->count = unfinished(wc);
}

static qf_rc on_tick(struct wc_worker *wc)
{
    uint32_t slot, first_run = wc_timer_run(wc, 0);

    while ((slot = wc_timers_due(&wc->timers, wc->now)) != WC_NONE) {
        wc_timers_clear(&wc->timers, slot);
        if (slot < first_run)
            on_session_timer(wc, slot);
        else if (slot < wc_timer_drain(wc))
            wc_run_hear(wc, slot - first_run, WC_RUN_HEARD_EXPIRE);
        else
            say_drained(wc);
    }
    return QF_OK;
}

/* The session a message came on, WC_NONE (and counted) if it is over. */
static uint32_t session_of_message(struct wc_worker *wc)
{
    uint32_t slot = wc_index_first(&wc->session_index, wc->event->session.v);

    if (slot == WC_NONE)
        wc->stats.stale++;
    else
        wc->sessions[slot].heard_at = wc->now;
    return slot;
}

static qf_rc on_session_closed(struct wc_worker *wc)
{
    uint32_t session = session_of_message(wc);

    if (session != WC_NONE)
        end_session(wc, session);
    return QF_OK;
}

static qf_rc on_heartbeat(struct wc_worker *wc)
{
    struct wc_worker_effect *effect;
    uint32_t session = session_of_message(wc);

    if (session == WC_NONE)
        return QF_OK;
    effect = wc_worker_emit(wc, WC_WORKER_DO_ECHO);
    effect->session = wc->event->session;
    effect->sent_at = wc->event->sent_at;
    emit_status(wc, session);
    return QF_OK;
}

static qf_rc on_assign(struct wc_worker *wc)
{
    uint32_t session = session_of_message(wc);

    if (session != WC_NONE)
        wc_run_on_assign(wc, session);
    return QF_OK;
}

static void hear_or_stale(struct wc_worker *wc, uint32_t run, enum wc_run_heard heard)
{
    if (run == WC_NONE)
        wc->stats.stale++;
    else
        wc_run_hear(wc, run, heard);
}

static qf_rc on_cancel_or_ack(struct wc_worker *wc)
{
    uint32_t session = session_of_message(wc);
    bool ack = wc->event->type == WC_WORKER_EV_ACK;

    if (session != WC_NONE)
        hear_or_stale(wc, wc_run_find(wc, session, wc->event->work, wc->event->attempt),
                      ack ? WC_RUN_HEARD_ACK : WC_RUN_HEARD_CANCEL);
    return QF_OK;
}

static qf_rc on_run_event(struct wc_worker *wc)
{
    static const enum wc_run_heard heard[WC_WORKER_EV__COUNT] = {
        [WC_WORKER_EV_RUN_LOADED] = WC_RUN_HEARD_LOADED,
        [WC_WORKER_EV_RUN_DONE] = WC_RUN_HEARD_DONE,
        [WC_WORKER_EV_RUN_FAILED] = WC_RUN_HEARD_FAIL,
        [WC_WORKER_EV_EVICTED] = WC_RUN_HEARD_EVICT,
    };

    hear_or_stale(wc, wc_index_first(&wc->run_index, wc->event->run.v), heard[wc->event->type]);
    return QF_OK;
}

static qf_rc on_accepting(struct wc_worker *wc)
{
    wc->willing = wc->event->accepting;
    return QF_OK;
}

static qf_rc on_drain(struct wc_worker *wc)
{
    wc->status_due = !wc->stats.draining;
    wc->stats.draining = true;
    if (wc->event->drain_deadline != QF_TIME_NEVER)
        wc_timers_set(&wc->timers, wc_timer_drain(wc), wc->event->drain_deadline);
    return QF_OK;
}

/* Artifacts stay: whoever knows of one may fetch it as long as the process lives. */
static void end_unfinished(struct wc_worker *wc, const struct wc_session *session)
{
    for (uint32_t slot = session->runs.head, next; slot != WC_NONE; slot = next) {
        next = wc->run_session_links[slot].next;
        if (wc->runs[slot].state < WC_RUN_READY)
            wc_run_hear(wc, slot, WC_RUN_HEARD_END);
    }
}

static qf_rc on_end(struct wc_worker *wc)
{
    wc->status_due = !wc->stats.draining;
    wc->stats.draining = true;
    for (uint32_t slot = wc->session_order.head; slot != WC_NONE;
         slot = wc->session_links[slot].next)
        end_unfinished(wc, &wc->sessions[slot]);
    return QF_OK;
}

/* Full is over once an eighth of the table has room and a quarter of the memory, so that a STATUS is
 * worth its while. */
static void refresh_full(struct wc_worker *wc)
{
    uint32_t room = wc_run_room(wc);
    uint64_t bytes = wc_run_bytes_free(wc);

    if (!room || bytes < wc->limits.spec_bytes_max / 8)
        wc->full = true;
    else if (room > wc->limits.runs_max / 8 && bytes >= wc->limits.spec_bytes_max / 4)
        wc->full = false;
}

static void refresh_status(struct wc_worker *wc)
{
    bool accepting;

    refresh_full(wc);
    accepting = wc->willing && !wc->full && !wc->stats.draining;
    if (accepting == wc->stats.accepting && !wc->status_due)
        return;
    wc->status_due = false;
    wc->stats.accepting = accepting;
    for (uint32_t slot = wc->session_order.head; slot != WC_NONE;
         slot = wc->session_links[slot].next)
        emit_status(wc, slot);
}

static qf_rc (*const handlers[WC_WORKER_EV__COUNT])(struct wc_worker *wc) = {
    [WC_WORKER_EV_TICK] = on_tick,
    [WC_WORKER_EV_SESSION_OPEN] = on_session_open,
    [WC_WORKER_EV_SESSION_CLOSED] = on_session_closed,
    [WC_WORKER_EV_HEARTBEAT] = on_heartbeat,
    [WC_WORKER_EV_ASSIGN] = on_assign,
    [WC_WORKER_EV_CANCEL] = on_cancel_or_ack,
    [WC_WORKER_EV_ACK] = on_cancel_or_ack,
    [WC_WORKER_EV_RUN_LOADED] = on_run_event,
    [WC_WORKER_EV_RUN_DONE] = on_run_event,
    [WC_WORKER_EV_RUN_FAILED] = on_run_event,
    [WC_WORKER_EV_EVICTED] = on_run_event,
    [WC_WORKER_EV_ACCEPTING] = on_accepting,
    [WC_WORKER_EV_DRAIN] = on_drain,
    [WC_WORKER_EV_END] = on_end,
};

qf_rc wc_worker_step(struct wc_worker *wc, const struct wc_worker_event *event,
                     struct wc_worker_effects *ret_effects)
{
    qf_rc rc;

    assert((size_t)event->type < WC_WORKER_EV__COUNT);
    wc->event = event;
    wc->now = QF_MAX(wc->now, event->now);
    wc->effect_count = 0;
    wc->stats.steps++;
    wc->trace_illegal = wc->stats.illegal;
    wc->trace_stale = wc->stats.stale;

    rc = handlers[event->type](wc);
    wc_run_start_queued(wc);
    refresh_status(wc);
    if (wc->stats.draining && !unfinished(wc))
        say_drained(wc);

    if (wc->trace)
        wc_worker_trace_step(wc, rc);
    wc->event = NULL;
    *ret_effects = (struct wc_worker_effects){ wc->effects, wc->effect_count };
    return rc;
}

qf_time_ms wc_worker_deadline(const struct wc_worker *wc)
{
    return wc_timers_next(&wc->timers);
}

const struct wc_worker_stats *wc_worker_stats(const struct wc_worker *wc)
{
    return &wc->stats;
}

bool wc_worker_run(const struct wc_worker *wc, struct wc_run_id run,
                   struct wc_worker_run_view *ret_view)
{
    uint32_t slot = wc_index_first(&wc->run_index, run.v);
    const struct wc_run *found;

    if (slot == WC_NONE)
        return false;
    found = &wc->runs[slot];
    *ret_view = (struct wc_worker_run_view){
        .query = found->query,
        .work = found->work,
        .attempt = found->attempt,
        .state = (enum wc_run_state)found->state,
        .since = found->since,
    };
    if (found->session != WC_NONE)
        ret_view->session = wc->sessions[found->session].id;
    return true;
}

struct wc_run_id wc_worker_find(const struct wc_worker *wc, struct wc_session_id session,
                                struct wc_work_id work, uint32_t attempt)
{
    uint32_t slot = wc_index_first(&wc->session_index, session.v);

    if (slot != WC_NONE)
        slot = wc_run_find(wc, slot, work, attempt);
    return slot == WC_NONE ? (struct wc_run_id){ 0 } : wc->runs[slot].id;
}
