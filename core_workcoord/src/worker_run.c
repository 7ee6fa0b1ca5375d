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

uint64_t wc_run_bytes_free(const struct wc_worker *wc)
{
    return wc->limits.spec_bytes_max - wc->stats.spec_bytes;
}

uint32_t wc_run_slots_taken(const struct wc_worker *wc)
{
    const uint32_t *runs = wc->stats.runs;

    return runs[WC_RUN_LOADING] + runs[WC_RUN_RUNNING] + runs[WC_RUN_STOPPING];
}

/* One effect of a move. Each runs before the state changes, while the run still knows its
 * session. */
typedef void act_fn(struct wc_worker *wc, const struct wc_run *run);

static struct wc_worker_effect *emit(struct wc_worker *wc, const struct wc_run *run,
                                     enum wc_worker_effect_type type)
{
    struct wc_worker_effect *effect = wc_worker_emit(wc, type);

    effect->run = run->id;
    return effect;
}

static struct wc_worker_effect *emit_message(struct wc_worker *wc, const struct wc_run *run,
                                             enum wc_worker_effect_type type)
{
    struct wc_worker_effect *effect = emit(wc, run, type);

    effect->session = wc->sessions[run->session].id;
    effect->work = run->work;
    effect->attempt = run->attempt;
    return effect;
}

static void emit_failed(struct wc_worker *wc, const struct wc_run *run, qf_rc rc, bool retryable)
{
    struct wc_worker_effect *effect = emit_message(wc, run, WC_WORKER_DO_FAILED);

    effect->failure.rc = rc;
    effect->failure.retryable = retryable;
}

static void load(struct wc_worker *wc, const struct wc_run *run)
{
    struct wc_worker_effect *effect = emit_message(wc, run, WC_WORKER_DO_LOAD);

    effect->query = run->query;
    effect->leaf = run->leaf;
    wc->stats.started++;
}

static void execute(struct wc_worker *wc, const struct wc_run *run)
{
    (void)emit(wc, run, WC_WORKER_DO_EXECUTE);
}

static void stop(struct wc_worker *wc, const struct wc_run *run)
{
    (void)emit(wc, run, WC_WORKER_DO_STOP);
    wc->stats.stopped++;
}

static void let_go(struct wc_worker *wc, const struct wc_run *run)
{
    (void)emit(wc, run, WC_WORKER_DO_RELEASE);
}

static void announce(struct wc_worker *wc, const struct wc_run *run)
{
    emit_message(wc, run, WC_WORKER_DO_READY)->checksum = wc->event->checksum;
    wc->stats.ready++;
}

static void report_failure(struct wc_worker *wc, const struct wc_run *run)
{
    emit_failed(wc, run, wc->event->failure.rc, wc->event->failure.retryable);
    wc->stats.failed++;
}

static void report_timeout(struct wc_worker *wc, const struct wc_run *run)
{
    emit_failed(wc, run, QF_ETIMEOUT, false);
    wc->stats.timed_out++;
}

static void report_end(struct wc_worker *wc, const struct wc_run *run)
{
    emit_failed(wc, run, QF_EUNAVAILABLE, true);
}

/* The API may not have it yet: it must know that the work has to run again. */
static void report_evicted(struct wc_worker *wc, const struct wc_run *run)
{
    emit_failed(wc, run, QF_ENOTFOUND, true);
    wc->stats.evicted_unacked++;
}

static void report_expired(struct wc_worker *wc, const struct wc_run *run)
{
    emit_failed(wc, run, QF_ENOTFOUND, true);
    wc->stats.expired_unacked++;
}

static void drop(struct wc_worker *wc, const struct wc_run *run)
{
    (void)emit(wc, run, WC_WORKER_DO_DROP);
}

static void count_evicted(struct wc_worker *wc, const struct wc_run *run)
{
    (void)run;
    wc->stats.evicted_acked++;
}

static void count_expired(struct wc_worker *wc, const struct wc_run *run)
{
    (void)run;
    wc->stats.expired_acked++;
}

static void acknowledge(struct wc_worker *wc, const struct wc_run *run)
{
    (void)emit(wc, run, WC_WORKER_DO_ACKED);
    wc->stats.acked++;
}

static void forget(struct wc_worker *wc, const struct wc_run *run)
{
    (void)emit(wc, run, WC_WORKER_DO_FORGET);
}

struct move {
    enum wc_run_state next;
    act_fn *acts[3]; /* in this order; no first one: not a legal move */
};

/* The manual in worker.h draws this table. */
static const struct move moves[WC_RUN__COUNT][WC_RUN_HEARD__COUNT] = {
    [WC_RUN_QUEUED] = {
        [WC_RUN_HEARD_START] = { WC_RUN_LOADING, { load } },
        [WC_RUN_HEARD_CANCEL] = { WC_RUN_GONE, { forget } },
        [WC_RUN_HEARD_LOST] = { WC_RUN_GONE, { forget } },
        [WC_RUN_HEARD_EXPIRE] = { WC_RUN_GONE, { report_timeout, forget } },
        [WC_RUN_HEARD_END] = { WC_RUN_GONE, { forget } },
    },
    [WC_RUN_LOADING] = {
        [WC_RUN_HEARD_CANCEL] = { WC_RUN_GONE, { let_go, forget } },
        [WC_RUN_HEARD_LOST] = { WC_RUN_GONE, { let_go, forget } },
        [WC_RUN_HEARD_LOADED] = { WC_RUN_RUNNING, { execute } },
        [WC_RUN_HEARD_FAIL] = { WC_RUN_GONE, { let_go, report_failure, forget } },
        [WC_RUN_HEARD_EXPIRE] = { WC_RUN_GONE, { let_go, report_timeout, forget } },
        [WC_RUN_HEARD_END] = { WC_RUN_GONE, { let_go, forget } },
    },
    [WC_RUN_RUNNING] = {
        [WC_RUN_HEARD_CANCEL] = { WC_RUN_STOPPING, { stop } },
        [WC_RUN_HEARD_LOST] = { WC_RUN_STOPPING, { stop } },
        [WC_RUN_HEARD_DONE] = { WC_RUN_READY, { let_go, announce } },
        [WC_RUN_HEARD_FAIL] = { WC_RUN_GONE, { let_go, report_failure, forget } },
        [WC_RUN_HEARD_EXPIRE] = { WC_RUN_STOPPING, { stop, report_timeout } },
        [WC_RUN_HEARD_END] = { WC_RUN_STOPPING, { stop, report_end } },
    },
    [WC_RUN_STOPPING] = {
        [WC_RUN_HEARD_DONE] = { WC_RUN_GONE, { let_go, drop, forget } },
        [WC_RUN_HEARD_FAIL] = { WC_RUN_GONE, { let_go, forget } },
    },
    [WC_RUN_READY] = {
        [WC_RUN_HEARD_CANCEL] = { WC_RUN_GONE, { drop, forget } },
        [WC_RUN_HEARD_LOST] = { WC_RUN_GONE, { drop, forget } },
        [WC_RUN_HEARD_ACK] = { WC_RUN_ACKED, { acknowledge } },
        [WC_RUN_HEARD_EVICT] = { WC_RUN_GONE, { report_evicted, forget } },
        [WC_RUN_HEARD_EXPIRE] = { WC_RUN_GONE, { report_expired, drop, forget } },
    },
    [WC_RUN_ACKED] = {
        [WC_RUN_HEARD_CANCEL] = { WC_RUN_GONE, { drop, forget } },
        [WC_RUN_HEARD_LOST] = { WC_RUN_GONE, { drop, forget } },
        [WC_RUN_HEARD_EVICT] = { WC_RUN_GONE, { count_evicted, forget } },
        [WC_RUN_HEARD_EXPIRE] = { WC_RUN_GONE, { count_expired, drop, forget } },
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

static void give_back(struct wc_worker *wc, uint32_t slot)
{
    detach(wc, slot);
    wc_index_remove(&wc->run_index, slot);
    wc_pool_give(&wc->run_pool, slot);
}

/* When the run, as it is now, expires. */
static qf_time_ms expiry(const struct wc_worker *wc, const struct wc_run *run)
{
    if (run->state == WC_RUN_STOPPING)
        return QF_TIME_NEVER;
    if (run->state == WC_RUN_READY)
        return wc_time_add(wc->now, wc->limits.artifact_ms);
    if (run->state == WC_RUN_ACKED)
        return wc_time_add(wc->now, wc->limits.artifact_ack_ms);
    return run->deadline;
}

static void set_timer(struct wc_worker *wc, uint32_t slot)
{
    qf_time_ms at = expiry(wc, &wc->runs[slot]);

    if (at != QF_TIME_NEVER)
        wc_timers_set(&wc->timers, wc_timer_run(wc, slot), at);
}

/* The only function that writes run->state after its birth. */
static void set_state(struct wc_worker *wc, uint32_t slot, enum wc_run_state next)
{
    struct wc_run *run = &wc->runs[slot];

    leave_state(wc, slot);
    if (run->state < WC_RUN_READY && next >= WC_RUN_READY)
        wc->stats.spec_bytes -= run->bytes;
    run->state = (uint8_t)next;
    run->since = wc->now;
    if (next == WC_RUN_GONE) {
        give_back(wc, slot);
        return;
    }
    wc->stats.runs[next]++;
    if (next == WC_RUN_STOPPING)
        detach(wc, slot);
    if (next == WC_RUN_ACKED)
        wc_list_push(&wc->acked, wc->run_place_links, slot);
    set_timer(wc, slot);
}

void wc_run_hear(struct wc_worker *wc, uint32_t slot, enum wc_run_heard heard)
{
    const struct move *move = &moves[wc->runs[slot].state][heard];

    if (!move->acts[0]) {
        wc->stats.illegal++;
        return;
    }
    for (size_t i = 0; i < QF_COUNT_OF(move->acts) && move->acts[i]; i++)
        move->acts[i](wc, &wc->runs[slot]);
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
        .bytes = event->assign.bytes,
        .deadline = event->assign.deadline ? event->assign.deadline : QF_TIME_NEVER,
    };
    wc_index_put(&wc->run_index, run->id.v, slot);
    wc_index_put(&wc->work_index, work_key(session, run->work, run->attempt), slot);
    wc_list_push(&wc->sessions[session].runs, wc->run_session_links, slot);
    wc_queue_add(wc, slot);
    set_timer(wc, slot);
    wc->stats.runs[WC_RUN_QUEUED]++;
    wc->stats.accepted++;
    wc->stats.spec_bytes += run->bytes;
    (void)emit_message(wc, run, WC_WORKER_DO_ACCEPT);
}

void wc_run_on_assign(struct wc_worker *wc, uint32_t session)
{
    if (wc_run_find(wc, session, wc->event->work, wc->event->attempt) != WC_NONE) {
        wc->stats.duplicates++;
        return;
    }
    if (!wc->stats.accepting || wc->event->assign.bytes > wc->limits.spec_bytes_max / 8) {
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
    while (wc_run_slots_taken(wc) < wc->limits.slots) {
        uint32_t run = wc_queue_next(wc);

        if (run == WC_NONE)
            return;
        wc_queue_rotate(wc);
        wc_run_hear(wc, run,
                    wc->runs[run].deadline <= wc->now ? WC_RUN_HEARD_EXPIRE : WC_RUN_HEARD_START);
    }
}
