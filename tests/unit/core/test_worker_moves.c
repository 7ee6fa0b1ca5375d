/* test_worker_moves.c - every cell of the worker side's table of runs. */
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "tests/lib/core/check.h"
#include "worker_int.h"

/* r running, s stopping, e ready, k acked, g gone, . illegal. */
static const char *const run_table[] = {
    /* START CANCEL LOST DONE FAIL ACK EVICT EXPIRE */
    [WC_RUN_QUEUED] = "rgg.....", [WC_RUN_RUNNING] = ".sseg...", [WC_RUN_STOPPING] = "...gg...",
    [WC_RUN_READY] = ".gg..kgg",  [WC_RUN_ACKED] = ".gg...gg",
};

static void freep(struct wc_worker **wc)
{
    wc_worker_free(*wc);
}

static void step(struct wc_worker *wc, enum wc_worker_event_type type, uint64_t k, uint64_t r)
{
    struct wc_worker_event event = { .type = type, .session = { 1 }, .work = { k }, .attempt = 1 };
    struct wc_worker_effects effects;

    event.run.v = r;
    CHECK_EQ(wc_worker_step(wc, &event, &effects), QF_OK);
    CHECK_MSG(!core_check_worker(wc), "%s", core_check_worker(wc));
}

static struct wc_worker *run_in(enum wc_run_state state)
{
    struct wc_worker *wc = wc_worker_new(&(struct wc_worker_limits){ .runs_max = 8 });

    step(wc, WC_WORKER_EV_SESSION_OPEN, 0, 0);
    if (state == WC_RUN_QUEUED)
        step(wc, WC_WORKER_EV_ASSIGN, 9, 0); /* takes the only slot */
    step(wc, WC_WORKER_EV_ASSIGN, 1, 0);
    if (state == WC_RUN_STOPPING)
        step(wc, WC_WORKER_EV_CANCEL, 1, 0);
    if (state >= WC_RUN_READY)
        step(wc, WC_WORKER_EV_RUN_DONE, 0, 1);
    if (state == WC_RUN_ACKED)
        step(wc, WC_WORKER_EV_ACK, 1, 0);
    return wc;
}

static void check_cell(enum wc_run_state state, enum wc_run_heard heard)
{
    QF_CLEANUP(freep) struct wc_worker *wc = run_in(state);
    QF_CLEANUP(qf_freep) struct wc_worker *before = malloc(wc->state_size);
    static const char letters[] = "qrsekg";
    struct wc_worker_event event = { .type = WC_WORKER_EV_TICK };
    uint32_t run = wc_index_first(&wc->run_index, state == WC_RUN_QUEUED ? 2 : 1);
    char want = run_table[state][heard];

    CHECK_EQ(wc->runs[run].state, state);
    wc->event = &event;
    wc->effect_count = 0;
    memcpy(before, wc, wc->state_size);
    wc_run_hear(wc, run, heard);
    if (want == '.') {
        before->stats.illegal++;
        CHECK_MSG(memcmp(before, wc, wc->state_size) == 0, "%s changed by illegal %d",
                  wc_run_state_name(state), heard);
        return;
    }
    CHECK_EQ(wc->stats.illegal, before->stats.illegal);
    CHECK_MSG(letters[wc->runs[run].state] == want, "%s hears %d: %s, not %c",
              wc_run_state_name(state), heard,
              wc_run_state_name((enum wc_run_state)wc->runs[run].state), want);
}

/* Legal moves of a run lead where the manual says; all others are counted and change nothing. */
TEST(every_run_state_hears_everything_as_the_manual_says)
{
    for (int state = WC_RUN_QUEUED; state <= WC_RUN_ACKED; state++) {
        for (int heard = 0; heard < WC_RUN_HEARD__COUNT; heard++)
            check_cell((enum wc_run_state)state, (enum wc_run_heard)heard);
    }
}

/* Stale messages change nothing: unknown session, unknown work, unknown run. */
TEST(stale_messages_to_a_worker_are_counted_and_change_nothing)
{
    QF_CLEANUP(freep) struct wc_worker *wc = run_in(WC_RUN_RUNNING);

    for (int type = WC_WORKER_EV_SESSION_CLOSED; type <= WC_WORKER_EV_EVICTED; type++) {
        QF_CLEANUP(qf_freep) struct wc_worker *before = malloc(wc->state_size);
        struct wc_worker_event event = { .type = (enum wc_worker_event_type)type };
        struct wc_worker_effects effects;

        event.session.v = 99;
        event.run.v = 99;
        memcpy(before, wc, wc->state_size);
        CHECK_EQ(wc_worker_step(wc, &event, &effects), QF_OK);
        CHECK_EQ(effects.count, 0);
        before->stats.stale++;
        before->stats.steps++;
        before->trace_stale = wc->trace_stale;
        before->effect_count = 0;
        CHECK_MSG(memcmp(before, wc, wc->state_size) == 0, "%s changed something",
                  wc_worker_event_name(event.type));
    }
}
