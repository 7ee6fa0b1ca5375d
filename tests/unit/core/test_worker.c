/* test_worker.c - the worker side: sessions, acceptance, turns, artifacts, drain. */
#include "tests/lib/test.h"

#include <string.h>

#include "base/pure/alloc.h"
#include "tests/lib/core/check.h"
#include "worker_int.h"

struct bench {
    struct wc_worker *wc;
    qf_time_ms now;
    qf_rc rc;
    struct wc_worker_effects effects;
    char trace[WC_TRACE_MAX + 64];
    const char *did;
};

static void on_trace(void *ctx, const char *line, size_t len)
{
    struct bench *bench = ctx;
    const char *arrow;

    memcpy(bench->trace, line, len);
    bench->trace[len] = '\0';
    arrow = strstr(bench->trace, " -> ");
    bench->did = arrow ? arrow + 4 : "";
}

static void bench_init(struct bench *bench, uint32_t sessions, uint32_t runs, uint32_t slots)
{
    struct wc_worker_limits limits = { .sessions_max = sessions, .runs_max = runs, .slots = slots };

    *bench = (struct bench){ .wc = wc_worker_new(&limits), .did = "" };
    wc_worker_trace(bench->wc, on_trace, bench);
}

static void bench_done(struct bench *bench)
{
    bench->wc = wc_worker_free(bench->wc);
}

static void feed(struct bench *bench, struct wc_worker_event event)
{
    event.now = bench->now;
    bench->rc = wc_worker_step(bench->wc, &event, &bench->effects);
    CHECK_MSG(!core_check_worker(bench->wc), "%s", core_check_worker(bench->wc));
}

static void open_session(struct bench *bench, uint64_t s)
{
    feed(bench, (struct wc_worker_event){ .type = WC_WORKER_EV_SESSION_OPEN, .session = { s } });
}

static void assign(struct bench *bench, uint64_t s, uint64_t q, uint64_t k)
{
    feed(bench, (struct wc_worker_event){ .type = WC_WORKER_EV_ASSIGN,
                                          .session = { s },
                                          .work = { k },
                                          .attempt = 1,
                                          .assign = { .query = { q } } });
}

static void tell(struct bench *bench, enum wc_worker_event_type type, uint64_t s, uint64_t k)
{
    feed(bench,
         (struct wc_worker_event){ .type = type, .session = { s }, .work = { k }, .attempt = 1 });
}

static void run_loaded(struct bench *bench, uint64_t r)
{
    feed(bench, (struct wc_worker_event){ .type = WC_WORKER_EV_RUN_LOADED, .run = { r } });
}

static void run_done(struct bench *bench, uint64_t r)
{
    feed(bench, (struct wc_worker_event){ .type = WC_WORKER_EV_RUN_DONE, .run = { r } });
}

/* From assignment @k of session @s to run @r's artifact. */
static void finish(struct bench *bench, uint64_t s, uint64_t k, uint64_t r)
{
    assign(bench, s, 1, k);
    run_loaded(bench, r);
    run_done(bench, r);
}

static void run_failed(struct bench *bench, uint64_t r, qf_rc rc, bool retryable)
{
    feed(bench, (struct wc_worker_event){
                    .type = WC_WORKER_EV_RUN_FAILED, .run = { r }, .failure = { rc, retryable } });
}

static void tick(struct bench *bench, qf_time_ms now)
{
    bench->now = now;
    feed(bench, (struct wc_worker_event){ .type = WC_WORKER_EV_TICK });
}

static void drain(struct bench *bench, qf_time_ms deadline)
{
    feed(bench, (struct wc_worker_event){ .type = WC_WORKER_EV_DRAIN, .drain_deadline = deadline });
}

#define BENCH(name, sessions, runs, slots)                                                         \
    QF_CLEANUP(bench_done) struct bench name;                                                      \
    bench_init(&name, sessions, runs, slots)

/* The first thing an API hears is the status; work is accepted before it starts. */
TEST(a_session_is_greeted_and_its_work_accepted_loaded_and_executed)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    CHECK_STR(bench.did, "status s1 accepting");
    assign(&bench, 1, 1, 1);
    CHECK_STR(bench.did, "accept s1 k1#1 r1; load s1 q1 k1#1 r1");
    assign(&bench, 1, 1, 2);
    CHECK_STR(bench.did, "accept s1 k2#1 r2"); /* capacity is a queue, not a rejection */
    run_loaded(&bench, 1);
    CHECK_STR(bench.did, "execute r1");
    run_done(&bench, 1);
    CHECK_STR(bench.did, "release r1; ready s1 k1#1 r1; load s1 q1 k2#1 r2");
    run_failed(&bench, 2, QF_ECORRUPT, false);
    CHECK_STR(bench.did, "release r2; failed s1 k2#1 r2 corrupt; forget r2");
}

/* Turns go round the sessions, then round the queries of a session, first come within a query. */
TEST(slots_are_shared_fairly_between_sessions_and_queries)
{
    BENCH(bench, 2, 16, 1);

    open_session(&bench, 1);
    open_session(&bench, 2);
    for (uint64_t k = 1; k <= 4; k++)
        assign(&bench, 1, 1, k);
    assign(&bench, 1, 1, 40); /* r5 */
    for (uint64_t k = 5; k <= 6; k++)
        assign(&bench, 1, 2, k);
    for (uint64_t k = 20; k <= 21; k++)
        assign(&bench, 2, 9, k);
    run_failed(&bench, 1, QF_EIO, false); /* s1 q1 has had a turn */
    CHECK(strstr(bench.did, "load s1 q1 k2#1 r2"));
    run_failed(&bench, 2, QF_EIO, false);
    CHECK_MSG(strstr(bench.did, "load s2 q9 k20#1 r8"), "%s", bench.did);
    run_failed(&bench, 8, QF_EIO, false);
    CHECK_MSG(strstr(bench.did, "load s1 q2 k5#1 r6"), "%s", bench.did);
    run_failed(&bench, 6, QF_EIO, false);
    CHECK_MSG(strstr(bench.did, "load s2 q9 k21#1 r9"), "%s", bench.did);
    run_failed(&bench, 9, QF_EIO, false);
    CHECK_MSG(strstr(bench.did, "load s1 q1 k3#1 r3"), "%s", bench.did);
    run_failed(&bench, 3, QF_EIO, false);
    CHECK_MSG(strstr(bench.did, "load s1 q2 k6#1 r7"), "%s", bench.did);
}

/* The same number may be work of several sessions, queries or attempts at once. */
TEST(equal_numbers_of_different_sessions_do_not_meet)
{
    BENCH(bench, 8, 64, 1);

    for (uint64_t s = 1; s <= 4; s++) {
        open_session(&bench, s);
        for (uint64_t k = 1; k <= 8; k++)
            assign(&bench, s, k % 3, k);
    }
    CHECK_EQ(wc_worker_stats(bench.wc)->accepted, 32);
    tell(&bench, WC_WORKER_EV_CANCEL, 3, 5);
    CHECK_STR(bench.did, "forget r21");
    CHECK_EQ(wc_worker_find(bench.wc, (struct wc_session_id){ 3 }, (struct wc_work_id){ 5 }, 1).v,
             0);
    CHECK_EQ(wc_worker_find(bench.wc, (struct wc_session_id){ 4 }, (struct wc_work_id){ 5 }, 1).v,
             29);
    CHECK_EQ(wc_worker_find(bench.wc, (struct wc_session_id){ 9 }, (struct wc_work_id){ 5 }, 1).v,
             0);
    CHECK_EQ(wc_worker_find(bench.wc, (struct wc_session_id){ 4 }, (struct wc_work_id){ 5 }, 2).v,
             0);
}

/* Numbers made so that their hash keys are equal are still told apart. */
TEST(colliding_keys_are_told_apart)
{
    /* The inverse of WC_KEY's factor modulo 2^64: five Newton steps double the right bits each. */
    uint64_t factor = WC_KEY(UINT64_C(1), 0), inverse = factor;
    BENCH(bench, 4, 16, 1);

    for (int i = 0; i < 5; i++)
        inverse *= 2 - factor * inverse;
    CHECK(factor * inverse == 1);
    open_session(&bench, 1);
    open_session(&bench, 2);
    assign(&bench, 1, 1, 99); /* takes the slot */
    assign(&bench, 1, 1000, 7);
    assign(&bench, 2, 1000 - inverse, 7 - (inverse << 32)); /* session slots 0 and 1 */
    feed(&bench, (struct wc_worker_event){ .type = WC_WORKER_EV_ASSIGN,
                                           .session = { 1 },
                                           .work = { 7 - inverse }, /* attempts 1 and 2 */
                                           .attempt = 2,
                                           .assign = { .query = { 1000 } } });
    CHECK_EQ(wc_worker_stats(bench.wc)->accepted, 4);
    CHECK_EQ(bench.wc->turn_pool.count, 14); /* two queries are waiting, not three */
    CHECK_EQ(wc_worker_find(bench.wc, (struct wc_session_id){ 1 }, (struct wc_work_id){ 7 }, 1).v,
             2);
    CHECK_EQ(wc_worker_find(bench.wc, (struct wc_session_id){ 2 },
                            (struct wc_work_id){ 7 - (inverse << 32) }, 1)
                 .v,
             3);
    tell(&bench, WC_WORKER_EV_CANCEL, 1, 7);
    CHECK_STR(bench.did, "forget r2");
}

/* An assignment that is known already is not run twice. */
TEST(a_repeated_assignment_is_ignored)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    assign(&bench, 1, 1, 1);
    assign(&bench, 1, 1, 1);
    CHECK_STR(bench.did, "");
    CHECK_EQ(wc_worker_stats(bench.wc)->duplicates, 1);
}

/* A stopped run keeps its slot until it has really ended; its artifact, if any, goes. */
TEST(a_canceled_run_frees_its_slot_only_when_it_ends)
{
    BENCH(bench, 2, 8, 1);
    struct wc_worker_run_view view;

    open_session(&bench, 1);
    assign(&bench, 1, 1, 1);
    assign(&bench, 1, 1, 2);
    run_loaded(&bench, 1);
    tell(&bench, WC_WORKER_EV_CANCEL, 1, 1);
    CHECK_STR(bench.did, "stop r1");
    CHECK(wc_worker_run(bench.wc, (struct wc_run_id){ 1 }, &view));
    CHECK_EQ(view.state, WC_RUN_STOPPING);
    CHECK_EQ(view.session.v, 0);
    run_done(&bench, 1);
    CHECK_STR(bench.did, "release r1; drop r1; forget r1; load s1 q1 k2#1 r2");
    CHECK(!wc_worker_run(bench.wc, (struct wc_run_id){ 1 }, &view));
    CHECK(wc_worker_run(bench.wc, (struct wc_run_id){ 2 }, &view));
    CHECK_EQ(view.session.v, 1);
}

/* Nobody waits for segments of a run that is over: its slot is free at once, and segments that
 * arrive later find nobody. */
TEST(a_run_canceled_while_it_loads_lets_go_and_frees_its_slot)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    assign(&bench, 1, 1, 1);
    assign(&bench, 1, 1, 2);
    tell(&bench, WC_WORKER_EV_CANCEL, 1, 1);
    CHECK_STR(bench.did, "release r1; forget r1; load s1 q1 k2#1 r2");
    run_loaded(&bench, 1);
    CHECK_STR(bench.did, "");
    CHECK_EQ(wc_worker_stats(bench.wc)->stale, 1);
}

/* Everything an API owns goes with its stream, and nothing of another API. */
TEST(losing_a_session_cancels_its_work_only)
{
    BENCH(bench, 2, 16, 3);

    open_session(&bench, 1);
    open_session(&bench, 2);
    finish(&bench, 1, 1, 1); /* ready */
    finish(&bench, 1, 2, 2);
    tell(&bench, WC_WORKER_EV_ACK, 1, 2); /* acked */
    assign(&bench, 1, 1, 3);              /* running */
    run_loaded(&bench, 3);
    assign(&bench, 2, 1, 4); /* running, of the other */
    run_loaded(&bench, 4);
    assign(&bench, 1, 1, 5); /* loading */
    assign(&bench, 1, 1, 6); /* queued */
    tell(&bench, WC_WORKER_EV_SESSION_CLOSED, 1, 0);
    CHECK_STR(bench.did, "drop r1; forget r1; drop r2; forget r2; stop r3; release r5; forget r5; "
                         "forget r6");
    CHECK_EQ(wc_worker_stats(bench.wc)->runs[WC_RUN_RUNNING], 1);
    CHECK_EQ(wc_worker_stats(bench.wc)->sessions, 1);
}

/* An API that is silent for three heartbeats is lost; each heartbeat is echoed with a status. */
TEST(a_silent_api_is_lost)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    assign(&bench, 1, 1, 1);
    run_loaded(&bench, 1);
    bench.now = 900;
    tell(&bench, WC_WORKER_EV_HEARTBEAT, 1, 0);
    CHECK_STR(bench.did, "echo s1; status s1 accepting");
    tick(&bench, 3000);
    CHECK_STR(bench.did, "");
    CHECK_EQ(wc_worker_deadline(bench.wc), 3900);
    tick(&bench, 3900);
    CHECK_STR(bench.did, "hangup s1; stop r1");
    CHECK_EQ(wc_worker_stats(bench.wc)->sessions_silent, 1);
}

/* Ten minutes for an artifact nobody acknowledges: its work is reported for retry. */
TEST(an_unacknowledged_artifact_expires_and_its_work_is_retried)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    finish(&bench, 1, 1, 1);
    for (qf_time_ms now = 2000; now < 600000; now += 2000) {
        bench.now = now;
        tell(&bench, WC_WORKER_EV_HEARTBEAT, 1, 0);
    }
    tick(&bench, 599999);
    CHECK_STR(bench.did, "");
    tick(&bench, 600000);
    CHECK_STR(bench.did, "failed s1 k1#1 r1 not_found retryable; drop r1; forget r1");
    CHECK_EQ(wc_worker_stats(bench.wc)->expired_unacked, 1);
}

/* Thirty seconds after the acknowledgement. */
TEST(an_acknowledged_artifact_stays_thirty_seconds)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    finish(&bench, 1, 1, 1);
    bench.now = 1000;
    tell(&bench, WC_WORKER_EV_ACK, 1, 1);
    for (qf_time_ms now = 2000; now < 32000; now += 2000) {
        bench.now = now;
        tell(&bench, WC_WORKER_EV_HEARTBEAT, 1, 0);
    }
    tick(&bench, 30999);
    CHECK_STR(bench.did, "");
    tick(&bench, 31000);
    CHECK_STR(bench.did, "drop r1; forget r1");
    CHECK_EQ(wc_worker_stats(bench.wc)->expired_acked, 1);
}

/* The disk budget takes an artifact: if nobody has it yet its work is reported for retry. */
TEST(an_evicted_artifact_is_reported_unless_acknowledged)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    finish(&bench, 1, 1, 1);
    finish(&bench, 1, 2, 2);
    tell(&bench, WC_WORKER_EV_ACK, 1, 2);
    feed(&bench, (struct wc_worker_event){ .type = WC_WORKER_EV_EVICTED, .run = { 1 } });
    CHECK_STR(bench.did, "failed s1 k1#1 r1 not_found retryable; forget r1");
    feed(&bench, (struct wc_worker_event){ .type = WC_WORKER_EV_EVICTED, .run = { 2 } });
    CHECK_STR(bench.did, "forget r2");
    CHECK_EQ(wc_worker_stats(bench.wc)->evicted_unacked, 1);
    CHECK_EQ(wc_worker_stats(bench.wc)->evicted_acked, 1);
}

/* Draining: everybody is told, new work rejected, accepted work finished and waited for. */
TEST(draining_rejects_new_work_and_finishes_what_is_accepted)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    open_session(&bench, 2);
    assign(&bench, 1, 1, 1);
    assign(&bench, 2, 1, 2);
    drain(&bench, QF_TIME_NEVER);
    CHECK_STR(bench.did, "status s1 draining; status s2 draining");
    assign(&bench, 1, 1, 3);
    CHECK_STR(bench.did, "reject s1 k3#1 draining");
    run_loaded(&bench, 1);
    run_done(&bench, 1);
    run_failed(&bench, 2, QF_EIO, true);
    CHECK_STR(bench.did, "release r2; failed s2 k2#1 r2 io retryable; forget r2");
    tell(&bench, WC_WORKER_EV_ACK, 1, 1);
    CHECK_STR(bench.did, "acked r1; drained unfinished=0");
    drain(&bench, 5);
    tick(&bench, 5);
    CHECK_STR(bench.did, ""); /* said once */
}

/* An idle worker is drained at once, and a worker that was not accepting still says it drains. */
TEST(an_idle_worker_is_drained_at_once)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    feed(&bench, (struct wc_worker_event){ .type = WC_WORKER_EV_ACCEPTING, .accepting = false });
    CHECK_STR(bench.did, "status s1");
    drain(&bench, QF_TIME_NEVER);
    CHECK_STR(bench.did, "status s1 draining; drained unfinished=0");
}

/* The drain has a limit; what is left is told. */
TEST(a_drain_ends_at_its_deadline)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    assign(&bench, 1, 1, 1);
    drain(&bench, 700);
    CHECK_EQ(wc_worker_deadline(bench.wc), 700);
    tick(&bench, 700);
    CHECK_STR(bench.did, "drained unfinished=1");
}

static void assign_until(struct bench *bench, uint64_t k, qf_time_ms deadline)
{
    feed(bench, (struct wc_worker_event){ .type = WC_WORKER_EV_ASSIGN,
                                          .session = { 1 },
                                          .work = { k },
                                          .attempt = 1,
                                          .assign = { .query = { 1 }, .deadline = deadline } });
}

/* Whatever it is doing, a run whose query is out of time ends, and its API is told once. */
TEST(a_passed_deadline_ends_a_run_wherever_it_is)
{
    BENCH(bench, 2, 8, 2);

    open_session(&bench, 1);
    assign_until(&bench, 1, 100);
    run_loaded(&bench, 1);
    assign_until(&bench, 2, 200);
    assign_until(&bench, 3, 300);
    CHECK_EQ(wc_worker_deadline(bench.wc), 100);
    tick(&bench, 99);
    CHECK_STR(bench.did, "");
    tick(&bench, 100);
    CHECK_STR(bench.did, "stop r1; failed s1 k1#1 r1 timeout");
    tick(&bench, 200);
    CHECK_STR(bench.did, "release r2; failed s1 k2#1 r2 timeout; forget r2; load s1 q1 k3#1 r3");
    assign_until(&bench, 4, 250);
    tick(&bench, 250);
    CHECK_STR(bench.did, "failed s1 k4#1 r4 timeout; forget r4");
    run_done(&bench, 1); /* too late: nobody hears of it */
    CHECK_STR(bench.did, "release r1; drop r1; forget r1");
    CHECK_EQ(wc_worker_stats(bench.wc)->timed_out, 3);
}

/* A slot that becomes free before the tick does not go to a run that is out of time. */
TEST(an_overdue_run_is_not_started)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    assign(&bench, 1, 1, 1);
    assign_until(&bench, 2, 50);
    assign(&bench, 1, 1, 3);
    bench.now = 50;
    run_failed(&bench, 1, QF_EIO, true);
    CHECK_STR(bench.did, "release r1; failed s1 k1#1 r1 io retryable; forget r1; "
                         "failed s1 k2#1 r2 timeout; forget r2; load s1 q1 k3#1 r3");
}

/* The deadline is the run's, not its artifact's. */
TEST(an_artifact_outlives_the_deadline_of_its_run)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    assign_until(&bench, 1, 100);
    run_loaded(&bench, 1);
    run_done(&bench, 1);
    tick(&bench, 100);
    CHECK_STR(bench.did, "");
}

/* The process ends now: nothing starts, tasks are stopped and told of, artifacts stay. */
TEST(an_end_ends_everything_but_artifacts)
{
    BENCH(bench, 2, 8, 2);

    open_session(&bench, 1);
    finish(&bench, 1, 1, 1);
    assign(&bench, 1, 1, 2);
    run_loaded(&bench, 2);
    assign(&bench, 1, 1, 3);
    assign(&bench, 1, 1, 4);
    feed(&bench, (struct wc_worker_event){ .type = WC_WORKER_EV_END });
    CHECK_STR(bench.did, "stop r2; failed s1 k2#1 r2 unavailable retryable; release r3; "
                         "forget r3; forget r4; status s1 draining");
    run_failed(&bench, 2, QF_ECANCELED, false);
    CHECK_STR(bench.did, "release r2; forget r2");
    CHECK_EQ(wc_worker_stats(bench.wc)->runs[WC_RUN_READY], 1);
    feed(&bench, (struct wc_worker_event){ .type = WC_WORKER_EV_END });
    CHECK_STR(bench.did, "");
    assign(&bench, 1, 1, 5);
    CHECK_STR(bench.did, "reject s1 k5#1 draining");
}

/* Told not to accept: rejected with that reason, and back. */
TEST(an_unwilling_worker_rejects)
{
    BENCH(bench, 2, 8, 1);

    open_session(&bench, 1);
    feed(&bench, (struct wc_worker_event){ .type = WC_WORKER_EV_ACCEPTING, .accepting = false });
    assign(&bench, 1, 1, 1);
    CHECK_STR(bench.did, "reject s1 k1#1 not_accepting");
    feed(&bench, (struct wc_worker_event){ .type = WC_WORKER_EV_ACCEPTING, .accepting = true });
    CHECK_STR(bench.did, "status s1 accepting");
}

/* A full table is announced before anything is rejected, and over only when there is real room. */
TEST(a_full_worker_says_so_and_recovers_with_room)
{
    BENCH(bench, 2, 16, 1);

    open_session(&bench, 1);
    for (uint64_t k = 1; k <= 15; k++)
        assign(&bench, 1, 1, k);
    assign(&bench, 1, 1, 16);
    CHECK_STR(bench.did, "accept s1 k16#1 r16; status s1");
    assign(&bench, 1, 1, 17);
    CHECK_STR(bench.did, "reject s1 k17#1 full");
    tell(&bench, WC_WORKER_EV_CANCEL, 1, 16);
    tell(&bench, WC_WORKER_EV_CANCEL, 1, 15);
    CHECK_STR(bench.did, "forget r15");
    tell(&bench, WC_WORKER_EV_CANCEL, 1, 14);
    CHECK_STR(bench.did, "forget r14; status s1 accepting");
}

static void assign_bytes(struct bench *bench, uint64_t k, uint64_t bytes)
{
    feed(bench, (struct wc_worker_event){ .type = WC_WORKER_EV_ASSIGN,
                                          .session = { 1 },
                                          .work = { k },
                                          .attempt = 1,
                                          .assign = { .query = { 1 }, .bytes = bytes } });
}

/* What is queued holds bounded memory: little is left is said before anything is rejected. */
TEST(assignments_hold_bounded_memory)
{
    struct wc_worker_limits limits = { .sessions_max = 2, .runs_max = 64, .spec_bytes_max = 800 };
    QF_CLEANUP(bench_done) struct bench bench = { .wc = wc_worker_new(&limits), .did = "" };

    wc_worker_trace(bench.wc, on_trace, &bench);
    open_session(&bench, 1);
    assign_bytes(&bench, 1, 101);
    CHECK_STR(bench.did, "reject s1 k1#1 full"); /* it never fits: more than an eighth */
    for (uint64_t k = 2; k <= 8; k++)
        assign_bytes(&bench, k, 100);
    CHECK_STR(bench.did, "accept s1 k8#1 r7");
    assign_bytes(&bench, 9, 1);
    CHECK_STR(bench.did, "accept s1 k9#1 r8; status s1");
    assign_bytes(&bench, 10, 1);
    CHECK_STR(bench.did, "reject s1 k10#1 full");
    CHECK_EQ(wc_worker_stats(bench.wc)->spec_bytes, 701);
    tell(&bench, WC_WORKER_EV_CANCEL, 1, 8); /* queued */
    CHECK_STR(bench.did, "forget r7");
    run_loaded(&bench, 1);
    run_done(&bench, 1); /* an artifact needs no assignment any more */
    CHECK_STR(bench.did, "release r1; ready s1 k2#1 r1; load s1 q1 k3#1 r2; status s1 accepting");
    tell(&bench, WC_WORKER_EV_SESSION_CLOSED, 1, 0);
    CHECK_EQ(wc_worker_stats(bench.wc)->spec_bytes, 0);
}

/* Acknowledged artifacts make room for new work, oldest first. */
TEST(acknowledged_artifacts_make_room)
{
    BENCH(bench, 2, 2, 1);

    open_session(&bench, 1);
    for (uint64_t k = 1; k <= 2; k++) {
        finish(&bench, 1, k, k);
        tell(&bench, WC_WORKER_EV_ACK, 1, k);
    }
    CHECK(wc_worker_stats(bench.wc)->accepting);
    assign(&bench, 1, 1, 3);
    CHECK_STR(bench.did, "drop r1; forget r1; accept s1 k3#1 r3; load s1 q1 k3#1 r3");
}

/* Sessions are bounded and unique: refused, nothing changed. */
TEST(a_full_table_of_sessions_refuses_and_changes_nothing)
{
    BENCH(bench, 1, 4, 1);

    open_session(&bench, 1);
    open_session(&bench, 1);
    CHECK_EQ(bench.rc, QF_EEXIST);
    open_session(&bench, 2);
    CHECK_EQ(bench.rc, QF_ELIMIT);
    CHECK_EQ(bench.effects.count, 0);
    CHECK(strstr(bench.trace, "!limit"));
    CHECK_EQ(wc_worker_stats(bench.wc)->sessions, 1);
}

/* Long traces are cut here too, and tracing can be turned off. */
TEST(worker_traces_are_bounded_and_optional)
{
    BENCH(bench, 2, 200, 1);

    open_session(&bench, 1);
    for (uint64_t k = 1; k <= 150; k++)
        assign(&bench, 1, k, k);
    tell(&bench, WC_WORKER_EV_SESSION_CLOSED, 1, 0);
    CHECK_MSG(strstr(bench.trace, " ..(+"), "%s", bench.trace);
    wc_worker_trace(bench.wc, NULL, NULL);
    tick(&bench, 77);
    CHECK(!strstr(bench.trace, "[77]"));
}

/* Defaults for zero, NULL without memory. */
TEST(worker_limits_have_defaults_and_creation_fails_cleanly)
{
    struct wc_worker_limits limits = { 0 };
    struct wc_worker *wc = wc_worker_new(&limits);

    CHECK_EQ(wc->limits.slots, 1);
    CHECK_EQ(wc->limits.artifact_ms, 600000);
    CHECK_EQ(wc->limits.artifact_ack_ms, 30000);
    wc_worker_free(wc);
    limits = (struct wc_worker_limits){ .sessions_max = 1,
                                        .runs_max = 1,
                                        .slots = 2,
                                        .heartbeat_ms = 5,
                                        .heartbeats_max = 2,
                                        .artifact_ms = 7,
                                        .artifact_ack_ms = 3 };
    wc = wc_worker_new(&limits);
    CHECK_EQ(wc->limits.artifact_ms, 7);
    wc_worker_free(wc);
    limits.runs_max = UINT32_MAX - 100000;
    CHECK(!wc_worker_new(&limits));
}
