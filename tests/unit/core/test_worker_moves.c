/* test_worker_moves.c - every cell of the worker side's table of runs. */
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "tests/lib/core/check.h"
#include "worker_int.h"

struct cell {
    enum wc_run_state next;
    const char *did; /* effects, by the letters below, in order */
};

/* l load, x execute, s stop, r release, R ready, F failed, a acked, d drop, f forget. */
static const char effect_letters[] = {
    [WC_WORKER_DO_LOAD] = 'l',    [WC_WORKER_DO_EXECUTE] = 'x', [WC_WORKER_DO_STOP] = 's',
    [WC_WORKER_DO_RELEASE] = 'r', [WC_WORKER_DO_READY] = 'R',   [WC_WORKER_DO_FAILED] = 'F',
    [WC_WORKER_DO_ACKED] = 'a',   [WC_WORKER_DO_DROP] = 'd',    [WC_WORKER_DO_FORGET] = 'f',
};

#define GONE(did)                                                                                  \
    {                                                                                              \
        WC_RUN_GONE, did                                                                           \
    }

/* The manual once more, in the words of worker.h; cells that are not here are illegal. */
static const struct cell table[WC_RUN__COUNT][WC_RUN_HEARD__COUNT] = {
    [WC_RUN_QUEUED] = { [WC_RUN_HEARD_START] = { WC_RUN_LOADING, "l" },
                        [WC_RUN_HEARD_CANCEL] = GONE("f"),
                        [WC_RUN_HEARD_LOST] = GONE("f"),
                        [WC_RUN_HEARD_EXPIRE] = GONE("Ff"),
                        [WC_RUN_HEARD_END] = GONE("f") },
    [WC_RUN_LOADING] = { [WC_RUN_HEARD_CANCEL] = GONE("rf"),
                         [WC_RUN_HEARD_LOST] = GONE("rf"),
                         [WC_RUN_HEARD_LOADED] = { WC_RUN_RUNNING, "x" },
                         [WC_RUN_HEARD_FAIL] = GONE("rFf"),
                         [WC_RUN_HEARD_EXPIRE] = GONE("rFf"),
                         [WC_RUN_HEARD_END] = GONE("rf") },
    [WC_RUN_RUNNING] = { [WC_RUN_HEARD_CANCEL] = { WC_RUN_STOPPING, "s" },
                         [WC_RUN_HEARD_LOST] = { WC_RUN_STOPPING, "s" },
                         [WC_RUN_HEARD_DONE] = { WC_RUN_READY, "rR" },
                         [WC_RUN_HEARD_FAIL] = GONE("rFf"),
                         [WC_RUN_HEARD_EXPIRE] = { WC_RUN_STOPPING, "sF" },
                         [WC_RUN_HEARD_END] = { WC_RUN_STOPPING, "sF" } },
    [WC_RUN_STOPPING] = { [WC_RUN_HEARD_DONE] = GONE("rdf"), [WC_RUN_HEARD_FAIL] = GONE("rf") },
    [WC_RUN_READY] = { [WC_RUN_HEARD_CANCEL] = GONE("df"),
                       [WC_RUN_HEARD_LOST] = GONE("df"),
                       [WC_RUN_HEARD_ACK] = { WC_RUN_ACKED, "a" },
                       [WC_RUN_HEARD_EVICT] = GONE("Ff"),
                       [WC_RUN_HEARD_EXPIRE] = GONE("Fdf") },
    [WC_RUN_ACKED] = { [WC_RUN_HEARD_CANCEL] = GONE("df"),
                       [WC_RUN_HEARD_LOST] = GONE("df"),
                       [WC_RUN_HEARD_EVICT] = GONE("f"),
                       [WC_RUN_HEARD_EXPIRE] = GONE("df") },
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
    if (state >= WC_RUN_RUNNING)
        step(wc, WC_WORKER_EV_RUN_LOADED, 0, 1);
    if (state == WC_RUN_STOPPING)
        step(wc, WC_WORKER_EV_CANCEL, 1, 0);
    if (state >= WC_RUN_READY)
        step(wc, WC_WORKER_EV_RUN_DONE, 0, 1);
    if (state == WC_RUN_ACKED)
        step(wc, WC_WORKER_EV_ACK, 1, 0);
    return wc;
}

static void check_effects(const struct wc_worker *wc, const char *want)
{
    char did[8] = "";

    CHECK(wc->effect_count < sizeof(did));
    for (size_t i = 0; i < wc->effect_count; i++)
        did[i] = effect_letters[wc->effects[i].type];
    CHECK_STR(did, want);
}

static void check_cell(enum wc_run_state state, enum wc_run_heard heard)
{
    QF_CLEANUP(freep) struct wc_worker *wc = run_in(state);
    QF_CLEANUP(qf_freep) struct wc_worker *before = malloc(wc->state_size);
    struct wc_worker_event event = { .type = WC_WORKER_EV_TICK };
    uint32_t run = wc_index_first(&wc->run_index, state == WC_RUN_QUEUED ? 2 : 1);
    const struct cell *want = &table[state][heard];

    CHECK_EQ(wc->runs[run].state, state);
    wc->event = &event;
    wc->effect_count = 0;
    memcpy(before, wc, wc->state_size);
    wc_run_hear(wc, run, heard);
    if (!want->did) {
        before->stats.illegal++;
        CHECK_MSG(memcmp(before, wc, wc->state_size) == 0, "%s changed by illegal %d",
                  wc_run_state_name(state), heard);
        return;
    }
    CHECK_EQ(wc->stats.illegal, before->stats.illegal);
    CHECK_MSG(wc->runs[run].state == want->next, "%s hears %d: %s, not %s",
              wc_run_state_name(state), heard,
              wc_run_state_name((enum wc_run_state)wc->runs[run].state),
              wc_run_state_name(want->next));
    check_effects(wc, want->did);
}

/* Legal moves of a run lead where the manual says, with the effects it says in that order; all
 * others are counted and change nothing. */
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
