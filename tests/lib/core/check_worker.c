/* check_worker.c - the same for the worker side. */
#include "tests/lib/core/check.h"

#include "worker_int.h"

static const char *check_run(const struct wc_worker *wc, uint32_t slot, uint32_t session)
{
    const struct wc_run *run = &wc->runs[slot];
    bool kept = run->state == WC_RUN_READY || run->state == WC_RUN_ACKED;
    bool ends = kept || run->deadline != QF_TIME_NEVER;

    if (run->session != session)
        return "a run is on the list of another session";
    if (run->state == WC_RUN_STOPPING || run->state == WC_RUN_GONE)
        return "a session lists a run that is over";
    if (ends != (wc->timers.pos[wc_timer_run(wc, slot)] != 0))
        return "an artifact or deadline without an end, or an end without either";
    if (wc_run_find(wc, session, run->work, run->attempt) != slot)
        return "a run cannot be found by its assignment";
    return NULL;
}

static const char *check_turns(const struct wc_worker *wc, const struct wc_session *session,
                               uint32_t *ret_queued)
{
    for (uint32_t t = session->turns.head; t != WC_NONE; t = wc->turn_links[t].next) {
        if (!wc->turns[t].runs.count)
            return "a query without queued runs has a turn";
        *ret_queued += wc->turns[t].runs.count;
    }
    return NULL;
}

const char *core_check_worker(const struct wc_worker *wc)
{
    const uint32_t *runs = wc->stats.runs;
    uint32_t listed = 0, queued = 0, total = 0, taken;

    for (uint32_t s = wc->session_order.head; s != WC_NONE; s = wc->session_links[s].next) {
        const struct wc_session *session = &wc->sessions[s];
        const char *why = check_turns(wc, session, &queued);

        for (uint32_t r = session->runs.head; r != WC_NONE && !why;
             r = wc->run_session_links[r].next, listed++)
            why = check_run(wc, r, s);
        if (why)
            return why;
        if (!wc->timers.pos[s])
            return "a session has no timer: its silence would go unnoticed";
    }
    for (int state = 0; state < WC_RUN_GONE; state++)
        total += runs[state];
    if (listed + runs[WC_RUN_STOPPING] != total ||
        total + wc->run_pool.count != wc->limits.runs_max)
        return "a run slot leaked";
    if (queued != runs[WC_RUN_QUEUED])
        return "a queued run has no turn";
    if (wc->acked.count != runs[WC_RUN_ACKED])
        return "the list of acknowledged artifacts is wrong";
    taken = runs[WC_RUN_LOADING] + runs[WC_RUN_RUNNING] + runs[WC_RUN_STOPPING];
    if (taken > wc->limits.slots)
        return "more runs than slots";
    if (queued && taken < wc->limits.slots)
        return "a slot is idle although work is queued";
    if (wc->stats.spec_bytes > wc->limits.spec_bytes_max)
        return "assignments hold more memory than they may";
    if (!runs[WC_RUN_QUEUED] && !taken && wc->stats.spec_bytes)
        return "memory of assignments is counted that nobody holds";
    if (wc->stats.accepting && (wc->stats.draining || !wc->willing || !wc_run_room(wc)))
        return "accepting without room or will";
    return NULL;
}
