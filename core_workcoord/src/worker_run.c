/* worker_run.c - the life of a run: what is heard moves it and says what to do. */
#include "worker_int.h"

static uint64_t work_key(uint32_t session, struct wc_work_id work, uint32_t attempt)
{
    return WC_KEY(work.v, (uint64_t)session << 32 | attempt);
}

uint32_t wc_run_find(const struct wc_worker *wc, uint32_t session, struct wc_work_id work,
                     uint32_t attempt)
{
    uint32_t slot = wc_index_first(&wc->work_index, work_key(session, work, attempt));

    while (slot != WC_NONE &&
           (wc->runs[slot].session != session || wc->runs[slot].attempt != attempt))
        slot = wc_index_next(&wc->work_index, slot);
    return slot;
}

uint32_t wc_run_room(const struct wc_worker *wc)
{
    return wc->run_pool.count + wc->acked.count;
}

/* Each runs before the state changes, while the run still knows its session. */
typedef void move_fn(struct wc_worker *wc, struct wc_run *run);

static struct wc_worker_effect *emit_message(struct wc_worker *wc, const struct wc_run *run,
                                             enum wc_worker_effect_type type)
{
    struct wc_worker_effect *effect = wc_worker_emit(wc, type);

    effect->session = wc->sessions[run->session].id;
    effect->work = run->work;
    effect->attempt = run->attempt;
    effect->run = run->id;
    return effect;
}

static void nothing(struct wc_worker *wc, struct wc_run *run)
{
    (void)wc;
    (void)run;
}

static void start(struct wc_worker *wc, struct wc_run *run)
{
    struct wc_worker_effect *effect = emit_message(wc, run, WC_WORKER_DO_START);

    effect->query = run->query;
    effect->leaf = run->leaf;
    wc->stats.started++;
}

static void stop(struct wc_worker *wc, struct wc_run *run)
{
    wc_worker_emit(wc, WC_WORKER_DO_STOP)->run = run->id;
    wc->stats.stopped++;
}

static void forget_spec(struct wc_worker *wc, struct wc_run *run)
{
    wc_worker_emit(wc, WC_WORKER_DO_FORGET)->run = run->id;
}

static void announce(struct wc_worker *wc, struct wc_run *run)
{
    emit_message(wc, run, WC_WORKER_DO_READY)->checksum = wc->event->checksum;
    wc->stats.ready++;
}

static void report_failure(struct wc_worker *wc, struct wc_run *run)
{
    struct wc_worker_effect *effect = emit_message(wc, run, WC_WORKER_DO_FAILED);

    effect->failure.rc = wc->event->failure.rc;
    effect->failure.retryable = wc->event->failure.retryable;
    wc->stats.failed++;
}

/* The API may not have it yet: it must know that the work has to run again. */
static void report_gone(struct wc_worker *wc, struct wc_run *run)
{
    struct wc_worker_effect *effect = emit_message(wc, run, WC_WORKER_DO_FAILED);

    effect->failure.rc = QF_ENOTFOUND;
    effect->failure.retryable = true;
}

static void drop(struct wc_worker *wc, struct wc_run *run)
{
    wc_worker_emit(wc, WC_WORKER_DO_DROP)->run = run->id;
}

static void evict_unacked(struct wc_worker *wc, struct wc_run *run)
{
    report_gone(wc, run);
    wc->stats.evicted_unacked++;
}

static void evict_acked(struct wc_worker *wc, struct wc_run *run)
{
    (void)run;
    wc->stats.evicted_acked++;
}

static void expire_unacked(struct wc_worker *wc, struct wc_run *run)
{
    report_gone(wc, run);
    drop(wc, run);
    wc->stats.expired_unacked++;
}

static void expire_acked(struct wc_worker *wc, struct wc_run *run)
{
    drop(wc, run);
    wc->stats.expired_acked++;
}

static void count_ack(struct wc_worker *wc, struct wc_run *run)
{
    (void)run;
    wc->stats.acked++;
}

struct move {
    enum wc_run_state next;
    move_fn *act; /* NULL: not a legal move */
};

static const struct move moves[WC_RUN__COUNT][WC_RUN_HEARD__COUNT] = {
    [WC_RUN_QUEUED] = {
        [WC_RUN_HEARD_START] = { WC_RUN_RUNNING, start },
        [WC_RUN_HEARD_CANCEL] = { WC_RUN_GONE, forget_spec },
        [WC_RUN_HEARD_LOST] = { WC_RUN_GONE, forget_spec },
    },
    [WC_RUN_RUNNING] = {
        [WC_RUN_HEARD_CANCEL] = { WC_RUN_STOPPING, stop },
        [WC_RUN_HEARD_LOST] = { WC_RUN_STOPPING, stop },
        [WC_RUN_HEARD_DONE] = { WC_RUN_READY, announce },
        [WC_RUN_HEARD_FAIL] = { WC_RUN_GONE, report_failure },
    },
    [WC_RUN_STOPPING] = {
        [WC_RUN_HEARD_DONE] = { WC_RUN_GONE, drop },
        [WC_RUN_HEARD_FAIL] = { WC_RUN_GONE, nothing },
    },
    [WC_RUN_READY] = {
        [WC_RUN_HEARD_CANCEL] = { WC_RUN_GONE, drop },
        [WC_RUN_HEARD_LOST] = { WC_RUN_GONE, drop },
        [WC_RUN_HEARD_ACK] = { WC_RUN_ACKED, count_ack },
        [WC_RUN_HEARD_EVICT] = { WC_RUN_GONE, evict_unacked },
        [WC_RUN_HEARD_EXPIRE] = { WC_RUN_GONE, expire_unacked },
    },
    [WC_RUN_ACKED] = {
        [WC_RUN_HEARD_CANCEL] = { WC_RUN_GONE, drop },
        [WC_RUN_HEARD_LOST] = { WC_RUN_GONE, drop },
        [WC_RUN_HEARD_EVICT] = { WC_RUN_GONE, evict_acked },
        [WC_RUN_HEARD_EXPIRE] = { WC_RUN_GONE, expire_acked },
    },
};

static void leave_state(struct wc_worker *wc, uint32_t slot)
{
    struct wc_run *run = &wc->runs[slot];

    if (run->state == WC_RUN_QUEUED)
        wc_queue_remove(wc, slot);
    if (run->state == WC_RUN_ACKED)
        wc_list_remove(&wc->acked, wc->run_place_links, slot);
    wc->stats.runs[run->state]--;
    wc_timers_clear(&wc->timers, wc_timer_run(wc, slot));
}

/* From here on nobody can name it by its assignment: its session may end and come again. */
static void detach(struct wc_worker *wc, uint32_t slot)
{
    struct wc_run *run = &wc->runs[slot];

    if (run->session == WC_NONE)
        return;
    wc_list_remove(&wc->sessions[run->session].runs, wc->run_session_links, slot);
    wc_index_remove(&wc->work_index, slot);
    run->session = WC_NONE;
}

static void release(struct wc_worker *wc, uint32_t slot)
{
    detach(wc, slot);
    wc_index_remove(&wc->run_index, slot);
    wc_pool_give(&wc->run_pool, slot);
}

/* The only function that writes run->state after its birth. */
static void set_state(struct wc_worker *wc, uint32_t slot, enum wc_run_state next)
{
    struct wc_run *run = &wc->runs[slot];

    leave_state(wc, slot);
    run->state = (uint8_t)next;
    run->since = wc->now;
    if (next == WC_RUN_GONE) {
        release(wc, slot);
        return;
    }
    wc->stats.runs[next]++;
    if (next == WC_RUN_STOPPING)
        detach(wc, slot);
    if (next == WC_RUN_READY)
        wc_timers_set(&wc->timers, wc_timer_run(wc, slot),
                      wc_time_add(wc->now, wc->limits.artifact_ms));
    if (next == WC_RUN_ACKED) {
        wc_list_push(&wc->acked, wc->run_place_links, slot);
        wc_timers_set(&wc->timers, wc_timer_run(wc, slot),
                      wc_time_add(wc->now, wc->limits.artifact_ack_ms));
    }
}

void wc_run_hear(struct wc_worker *wc, uint32_t slot, enum wc_run_heard heard)
{
    const struct move *move = &moves[wc->runs[slot].state][heard];

    if (!move->act) {
        wc->stats.illegal++;
        return;
    }
    move->act(wc, &wc->runs[slot]);
    set_state(wc, slot, move->next);
}

static void reject(struct wc_worker *wc, uint32_t session)
{
    enum wc_reject why = wc->stats.draining ? WC_REJECT_DRAINING
                         : !wc->willing     ? WC_REJECT_NOT_ACCEPTING
                                            : WC_REJECT_FULL;
    struct wc_worker_effect *effect = wc_worker_emit(wc, WC_WORKER_DO_REJECT);

    effect->session = wc->sessions[session].id;
    effect->work = wc->event->work;
    effect->attempt = wc->event->attempt;
    effect->reject = why;
    wc->stats.rejected[why]++;
}

static void accept(struct wc_worker *wc, uint32_t session)
{
    const struct wc_worker_event *event = wc->event;
    uint32_t slot = wc_pool_take(&wc->run_pool);
    struct wc_run *run = &wc->runs[slot];

    *run = (struct wc_run){
        .id = { ++wc->last_run },
        .query = event->assign.query,
        .leaf = event->assign.leaf,
        .work = event->work,
        .attempt = event->attempt,
        .session = session,
        .state = WC_RUN_QUEUED,
        .since = wc->now,
    };
    wc_index_put(&wc->run_index, run->id.v, slot);
    wc_index_put(&wc->work_index, work_key(session, run->work, run->attempt), slot);
    wc_list_push(&wc->sessions[session].runs, wc->run_session_links, slot);
    wc_queue_add(wc, slot);
    wc->stats.runs[WC_RUN_QUEUED]++;
    wc->stats.accepted++;
    (void)emit_message(wc, run, WC_WORKER_DO_ACCEPT);
}

void wc_run_on_assign(struct wc_worker *wc, uint32_t session)
{
    if (wc_run_find(wc, session, wc->event->work, wc->event->attempt) != WC_NONE) {
        wc->stats.duplicates++;
        return;
    }
    if (!wc->stats.accepting) {
        reject(wc, session);
        return;
    }
    /* Acknowledged artifacts are kept as a courtesy: the oldest makes room. */
    if (!wc->run_pool.count)
        wc_run_hear(wc, wc->acked.head, WC_RUN_HEARD_EXPIRE);
    accept(wc, session);
}

void wc_run_start_queued(struct wc_worker *wc)
{
    while (wc->stats.runs[WC_RUN_RUNNING] + wc->stats.runs[WC_RUN_STOPPING] < wc->limits.slots) {
        uint32_t run = wc_queue_next(wc);

        if (run == WC_NONE)
            return;
        wc_queue_rotate(wc);
        wc_run_hear(wc, run, WC_RUN_HEARD_START);
    }
}
