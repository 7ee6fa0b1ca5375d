/* test_life.c - admission, fairness, turns, pauses, replans, cancellation and deadlines. */
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "life_int.h"
#include "tests/lib/core/check.h"

struct lives {
    struct wc_life *life;
    qf_time_ms now;
    qf_rc rc;
    char trace[WC_TRACE_MAX + 64];
    const char *did; /* the effects in trace, "" if there were none */
};

static void on_trace(void *ctx, const char *line, size_t len)
{
    struct lives *lives = ctx;
    const char *arrow;

    memcpy(lives->trace, line, len);
    lives->trace[len] = '\0';
    arrow = strstr(lives->trace, " -> ");
    lives->did = arrow ? arrow + 4 : "";
}

static struct lives *lives_new(uint32_t queries, uint32_t active, uint32_t queue)
{
    struct wc_life_limits limits = { .queries_max = queries,
                                     .active_max = active,
                                     .tenant_queue_max = queue };
    struct lives *lives = qf_xcalloc(1, sizeof(*lives));

    lives->life = wc_life_new(&limits);
    lives->did = "";
    wc_life_trace(lives->life, on_trace, lives);
    return lives;
}

static void lives_freep(struct lives **lives)
{
    wc_life_free((*lives)->life);
    free(*lives);
}

static void step(struct lives *lives, struct wc_life_event event)
{
    struct wc_life_effects effects;

    event.now = lives->now;
    lives->rc = wc_life_step(lives->life, &event, &effects);
    CHECK_MSG(!core_check_life(lives->life), "%s", core_check_life(lives->life));
}

static const char *say(struct lives *lives, enum wc_life_event_type type, uint64_t q, qf_rc rc)
{
    step(lives, (struct wc_life_event){ .type = type, .query = { q }, .rc = rc });
    return lives->did;
}

static const char *submit_with(struct lives *lives, uint64_t q, uint64_t t,
                               struct wc_tenant_share share)
{
    step(lives, (struct wc_life_event){ .type = WC_LIFE_EV_SUBMIT,
                                        .query = { q },
                                        .submit = { { t }, QF_TIME_NEVER, share } });
    return lives->did;
}

static const char *submit(struct lives *lives, uint64_t q, uint64_t t, qf_time_ms deadline)
{
    step(lives, (struct wc_life_event){ .type = WC_LIFE_EV_SUBMIT,
                                        .query = { q },
                                        .submit = { { t }, deadline, { 0 } } });
    return lives->did;
}

static const char *tick(struct lives *lives, qf_time_ms now)
{
    lives->now = now;
    return say(lives, WC_LIFE_EV_TICK, 0, QF_OK);
}

static enum wc_query_state state(const struct lives *lives, uint64_t q)
{
    return wc_life_state(lives->life, (struct wc_query_id){ q });
}

/* From the question to the end of the answer. */
TEST(a_query_plans_works_and_answers)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(4, 2, 2);

    CHECK_STR(submit(lives, 1, 7, QF_TIME_NEVER), "plan q1");
    CHECK_STR(lives->trace, "[0] submit q1 t7 -> plan q1");
    CHECK_STR(say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK), "work q1");
    CHECK_STR(say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_OK), "answer q1");
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 1, QF_OK), "end q1 ok");
    CHECK_EQ(state(lives, 1), WC_QUERY_ENDED);
    CHECK_EQ(wc_life_stats(lives->life)->ended, 1);
    CHECK_EQ(wc_life_deadline(lives->life), QF_TIME_NEVER);
}

/* A plan that must know what is fresh asks, and goes on when it is told; planned again it asks
 * again. */
TEST(a_query_asks_what_is_fresh)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(4, 1, 2);

    submit(lives, 1, 7, QF_TIME_NEVER);
    CHECK_STR(say(lives, WC_LIFE_EV_ASK, 1, QF_OK), "ask q1");
    CHECK_STR(submit(lives, 2, 7, QF_TIME_NEVER), ""); /* who asks holds its place */
    CHECK_EQ(state(lives, 1), WC_QUERY_ASKING);
    CHECK_STR(say(lives, WC_LIFE_EV_TOLD, 1, QF_OK), "resume q1");
    CHECK_STR(say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK), "work q1");
    CHECK_STR(say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_ENOTFOUND), "plan q1 replans=1");
    CHECK_STR(say(lives, WC_LIFE_EV_ASK, 1, QF_OK), "ask q1");
    CHECK_STR(say(lives, WC_LIFE_EV_TOLD, 1, QF_OK), "resume q1 replans=1");
    say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_EGONE), "plan q1 replans=2");
    CHECK_EQ(wc_life_stats(lives->life)->admitted, 1);
}

/* What is fresh cannot be known: the query fails of that. */
TEST(a_query_that_is_not_told_fails)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(4, 1, 2);

    submit(lives, 1, 7, QF_TIME_NEVER);
    submit(lives, 2, 7, QF_TIME_NEVER);
    say(lives, WC_LIFE_EV_ASK, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_TOLD, 1, QF_EUNAVAILABLE),
              "fail q1 untold unavailable; end q1 unavailable; plan q2");
    say(lives, WC_LIFE_EV_ASK, 2, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_REFUSED, 2, QF_OK), "fail q2 refused busy; end q2 busy");
}

/* Nothing of a query that asks is under way: canceled or too late it ends at once, and what it is
 * told then is about nobody. */
TEST(a_query_that_asks_can_be_canceled)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(4, 1, 2);

    submit(lives, 1, 7, QF_TIME_NEVER);
    say(lives, WC_LIFE_EV_ASK, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_CANCEL, 1, 0), "fail q1 canceled canceled; end q1 canceled");
    CHECK_STR(say(lives, WC_LIFE_EV_TOLD, 1, QF_OK), "");
    CHECK_STR(lives->trace, "[0] told q1 (stale)");
    submit(lives, 2, 7, 500);
    say(lives, WC_LIFE_EV_ASK, 2, QF_OK);
    CHECK_STR(tick(lives, 500), "fail q2 canceled timeout; end q2 timeout");
    submit(lives, 3, 7, QF_TIME_NEVER); /* canceled before its turn says that it has to ask */
    say(lives, WC_LIFE_EV_CANCEL, 3, 0);
    CHECK_STR(say(lives, WC_LIFE_EV_ASK, 3, QF_OK), "fail q3 canceled canceled; end q3 canceled");
}

/* No more at once than there are places; the next comes with the end of one. */
TEST(queries_wait_for_a_place)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(8, 2, 8);

    submit(lives, 1, 1, QF_TIME_NEVER);
    submit(lives, 2, 1, QF_TIME_NEVER);
    CHECK_STR(submit(lives, 3, 1, QF_TIME_NEVER), "");
    CHECK_EQ(state(lives, 3), WC_QUERY_QUEUED);
    CHECK_EQ(wc_life_stats(lives->life)->active, 2);
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 2, QF_EPARSE), "end q2 parse; plan q3");
}

/* One tenant's hundred queries cost another one admission of waiting, not a hundred. */
TEST(tenants_take_turns)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(200, 1, 150);

    for (uint64_t q = 1; q <= 100; q++)
        submit(lives, q, 1, QF_TIME_NEVER);
    submit(lives, 101, 2, QF_TIME_NEVER);
    submit(lives, 102, 3, QF_TIME_NEVER);
    submit(lives, 103, 2, QF_TIME_NEVER);
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 1, QF_OK), "end q1 ok; plan q2");
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 2, QF_OK), "end q2 ok; plan q101");
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 101, QF_OK), "end q101 ok; plan q102");
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 102, QF_OK), "end q102 ok; plan q3");
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 3, QF_OK), "end q3 ok; plan q103");
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 103, QF_OK), "end q103 ok; plan q4");
    CHECK_EQ(wc_life_stats(lives->life)->tenants, 1);
}

/* A tenant with all its places leaves the others to others, and comes back behind them. */
TEST(a_tenant_waits_for_its_own_places)
{
    static const struct wc_tenant_share two = { .active_max = 2 };
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(16, 3, 8);

    for (uint64_t q = 1; q <= 4; q++)
        submit_with(lives, q, 1, two);
    CHECK_EQ(wc_life_stats(lives->life)->active, 2);
    CHECK_EQ(wc_life_stats(lives->life)->held, 2);
    CHECK_STR(submit(lives, 5, 2, QF_TIME_NEVER), "plan q5");
    submit(lives, 6, 2, QF_TIME_NEVER);
    /* A place of its own is free, but no place: now it stands in line, behind the other. */
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 1, QF_OK), "end q1 ok; plan q6");
    CHECK(wc_life_tenant(lives->life, (struct wc_tenant_id){ 1 }).in_line);
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 5, QF_OK), "end q5 ok; plan q3");
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 6, QF_OK), "end q6 ok");
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 2, QF_OK), "end q2 ok; plan q4");
}

/* Slow readers cost their own tenant, and not the one that reads: nobody waits for who may never read. */
TEST(a_tenants_slow_readers_refuse_its_queue)
{
    static const struct wc_tenant_share one = { .streams_max = 1 };
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(8, 1, 8);

    submit_with(lives, 1, 1, one);
    submit_with(lives, 2, 1, one);
    submit_with(lives, 3, 2, one);
    submit_with(lives, 4, 1, one);
    say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_PAUSED, 1, QF_OK),
              "fail q2 crowded busy; end q2 busy; fail q4 crowded busy; end q4 busy; plan q3");
    CHECK_EQ(wc_life_tenant(lives->life, (struct wc_tenant_id){ 1 }).streams, 1);
    submit_with(lives, 5, 1, one);
    CHECK_EQ(lives->rc, QF_EBUSY);
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 3, QF_OK), "end q3 ok");
    CHECK_STR(say(lives, WC_LIFE_EV_ROOM, 1, QF_OK), "answer q1");
    CHECK_STR(say(lives, WC_LIFE_EV_CANCEL, 1, QF_OK), "stop q1 canceled");
    CHECK_EQ(wc_life_tenant(lives->life, (struct wc_tenant_id){ 1 }).streams, 1);
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 1, QF_ECANCELED), "end q1 canceled");
    CHECK_STR(submit_with(lives, 6, 1, one), "plan q6");
}

/* Fewer than it may have: its queue goes on. A pause that ends a stopped query is no stream. */
TEST(streams_within_the_share_refuse_nobody)
{
    static const struct wc_tenant_share two = { .streams_max = 2 };
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(8, 1, 8);

    for (uint64_t q = 1; q <= 3; q++)
        submit_with(lives, q, 1, two);
    say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_PAUSED, 1, QF_OK), "plan q2");
    say(lives, WC_LIFE_EV_PLANNED, 2, QF_OK);
    say(lives, WC_LIFE_EV_WORK_OVER, 2, QF_OK);
    say(lives, WC_LIFE_EV_CANCEL, 2, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_PAUSED, 2, QF_OK),
              "fail q2 canceled canceled; end q2 canceled; plan q3");
}

/* The share of the latest submission counts, for those that wait as well; zero is no share. */
TEST(a_share_may_change)
{
    static const struct wc_tenant_share one = { .active_max = 1, .queued_max = 1 };
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(8, 4, 8);

    submit_with(lives, 1, 1, one);
    CHECK_STR(submit_with(lives, 2, 1, one), "");
    submit_with(lives, 3, 1, one);
    CHECK_EQ(lives->rc, QF_EBUSY);
    CHECK_STR(submit(lives, 3, 1, QF_TIME_NEVER), "plan q2; plan q3");
    CHECK_EQ(wc_life_tenant(lives->life, (struct wc_tenant_id){ 1 }).active, 3);
    CHECK_STR(submit_with(lives, 4, 1, one), "");
    CHECK_EQ(wc_life_tenant(lives->life, (struct wc_tenant_id){ 1 }).queued, 1);
    CHECK_STR(say(lives, WC_LIFE_EV_CANCEL, 4, QF_OK),
              "fail q4 canceled canceled; end q4 canceled");
    CHECK_EQ(wc_life_tenant(lives->life, (struct wc_tenant_id){ 9 }).active, 0);
}

/* Each refusal says which bound was reached, and costs nobody anything. */
TEST(full_queues_refuse)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(3, 1, 1);

    submit(lives, 1, 1, QF_TIME_NEVER);
    submit(lives, 2, 1, QF_TIME_NEVER);
    submit(lives, 3, 1, QF_TIME_NEVER);
    CHECK_EQ(lives->rc, QF_EBUSY);
    CHECK_STR(lives->trace, "[0] submit q3 t1 !busy");
    submit(lives, 3, 2, QF_TIME_NEVER);
    CHECK_EQ(lives->rc, QF_OK);
    submit(lives, 4, 3, QF_TIME_NEVER);
    CHECK_EQ(lives->rc, QF_ELIMIT);
    submit(lives, 3, 3, QF_TIME_NEVER);
    CHECK_EQ(lives->rc, QF_EEXIST);
    CHECK_EQ(wc_life_stats(lives->life)->refused, 3);
    CHECK_EQ(wc_life_stats(lives->life)->alive, 3);
}

/* Draining takes none, and lets those that are there finish, queued ones included. */
TEST(draining_refuses_new_queries)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(4, 1, 4);

    submit(lives, 1, 1, QF_TIME_NEVER);
    submit(lives, 2, 1, QF_TIME_NEVER);
    CHECK_STR(say(lives, WC_LIFE_EV_DRAIN, 0, QF_OK), "");
    submit(lives, 3, 1, QF_TIME_NEVER);
    CHECK_EQ(lives->rc, QF_EUNAVAILABLE);
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 1, QF_OK), "end q1 ok; plan q2");
}

/* A drain cut short: those that wait are told at once, the others as soon as they stop. */
TEST(a_cut_ends_everything)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(4, 2, 4);

    submit(lives, 1, 1, QF_TIME_NEVER);
    submit(lives, 2, 1, QF_TIME_NEVER);
    submit(lives, 3, 1, QF_TIME_NEVER);
    say(lives, WC_LIFE_EV_PLANNED, 2, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_CUT, 0, QF_OK),
              "stop q1 unavailable; drop q2 unavailable; fail q3 canceled unavailable; "
              "end q3 unavailable");
    CHECK_STR(say(lives, WC_LIFE_EV_CUT, 0, QF_OK), "");
    CHECK_STR(say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK),
              "fail q1 canceled unavailable; end q1 unavailable");
    CHECK_STR(say(lives, WC_LIFE_EV_WORK_OVER, 2, QF_OK),
              "fail q2 canceled unavailable; end q2 unavailable");
    CHECK_EQ(wc_life_stats(lives->life)->alive, 0);
}

/* A slow reader gives its place away, once; it goes on whenever there is room. */
TEST(a_slow_reader_holds_no_place)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(4, 1, 4);

    submit(lives, 1, 1, QF_TIME_NEVER);
    submit(lives, 2, 1, QF_TIME_NEVER);
    say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_PAUSED, 1, QF_OK), "plan q2");
    CHECK_STR(say(lives, WC_LIFE_EV_ROOM, 1, QF_OK), "answer q1");
    CHECK_EQ(wc_life_stats(lives->life)->active, 1);
    CHECK_STR(say(lives, WC_LIFE_EV_PAUSED, 1, QF_OK), "");
    CHECK_STR(say(lives, WC_LIFE_EV_ROOM, 1, QF_OK), "answer q1");
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 1, QF_OK), "end q1 ok");
}

/* Room that came while the turn was under way is not forgotten, nor is it remembered twice. */
TEST(room_during_a_turn_means_another_turn)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(4, 1, 4);

    submit(lives, 1, 1, QF_TIME_NEVER);
    say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_ROOM, 1, QF_OK), "");
    CHECK_STR(say(lives, WC_LIFE_EV_PAUSED, 1, QF_OK), "answer q1");
    CHECK_STR(say(lives, WC_LIFE_EV_PAUSED, 1, QF_OK), "");
    say(lives, WC_LIFE_EV_ROOM, 1, QF_OK);
    say(lives, WC_LIFE_EV_ROOM, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_PAUSED, 1, QF_OK), "answer q1");
    CHECK_EQ(state(lives, 1), WC_QUERY_STREAMING);
}

/* Segments that vanish are looked for again, a bounded number of times. */
TEST(vanished_segments_mean_another_plan)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(4, 1, 4);

    submit(lives, 1, 1, QF_TIME_NEVER);
    say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_ENOTFOUND), "plan q1 replans=1");
    say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_ENOTFOUND), "plan q1 replans=2");
    say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_ENOTFOUND), "plan q1 replans=3");
    say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_ENOTFOUND),
              "fail q1 work not_found; end q1 not_found");
    CHECK_EQ(wc_life_stats(lives->life)->replanned, 3);
}

/* Work that failed for good, and a pool that takes no turn, end the query with their reason. */
TEST(failures_end_a_query)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(4, 4, 4);

    submit(lives, 1, 1, QF_TIME_NEVER);
    say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_ECORRUPT),
              "fail q1 work corrupt; end q1 corrupt");
    submit(lives, 2, 1, QF_TIME_NEVER);
    CHECK_STR(say(lives, WC_LIFE_EV_REFUSED, 2, QF_OK), "fail q2 refused busy; end q2 busy");
}

/* A canceled query gets no further turn, wherever it is; the first reason stands. */
TEST(a_query_can_be_canceled_in_every_state)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(8, 1, 8);

    submit(lives, 1, 1, QF_TIME_NEVER); /* planning */
    submit(lives, 2, 1, QF_TIME_NEVER); /* queued */
    CHECK_STR(say(lives, WC_LIFE_EV_CANCEL, 2, 0), "fail q2 canceled canceled; end q2 canceled");
    CHECK_STR(say(lives, WC_LIFE_EV_CANCEL, 1, QF_ETIMEOUT), "stop q1 timeout");
    CHECK_STR(say(lives, WC_LIFE_EV_CANCEL, 1, QF_ECANCELED), "");
    CHECK_STR(lives->trace, "[0] cancel q1 canceled (stale)");
    CHECK_STR(say(lives, WC_LIFE_EV_ROOM, 1, QF_OK), "");
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 1, QF_ETIMEOUT), "end q1 timeout");

    submit(lives, 3, 1, QF_TIME_NEVER); /* working */
    say(lives, WC_LIFE_EV_PLANNED, 3, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_CANCEL, 3, 0), "drop q3 canceled");
    CHECK_STR(say(lives, WC_LIFE_EV_WORK_OVER, 3, QF_ENOTFOUND),
              "fail q3 canceled canceled; end q3 canceled");

    submit(lives, 4, 1, QF_TIME_NEVER); /* paused, then streaming */
    say(lives, WC_LIFE_EV_PLANNED, 4, QF_OK);
    say(lives, WC_LIFE_EV_WORK_OVER, 4, QF_OK);
    say(lives, WC_LIFE_EV_PAUSED, 4, QF_OK);
    say(lives, WC_LIFE_EV_ROOM, 4, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_CANCEL, 4, 0), "stop q4 canceled");
    CHECK_EQ(wc_life_stats(lives->life)->active, 0);
    CHECK_STR(say(lives, WC_LIFE_EV_PAUSED, 4, QF_OK),
              "fail q4 canceled canceled; end q4 canceled");

    submit(lives, 5, 1, QF_TIME_NEVER);
    say(lives, WC_LIFE_EV_PLANNED, 5, QF_OK);
    say(lives, WC_LIFE_EV_WORK_OVER, 5, QF_OK);
    say(lives, WC_LIFE_EV_PAUSED, 5, QF_OK);
    CHECK_STR(say(lives, WC_LIFE_EV_CANCEL, 5, 0), "fail q5 canceled canceled; end q5 canceled");
    CHECK_STR(say(lives, WC_LIFE_EV_CANCEL, 5, 0), "");
    CHECK_STR(lives->trace, "[0] cancel q5 (stale)");
}

/* Deadlines count from submission: a queue is no excuse. */
TEST(a_deadline_ends_queued_and_running_queries)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(8, 1, 8);

    submit(lives, 1, 1, 500);
    submit(lives, 2, 1, 300);
    submit(lives, 3, 1, QF_TIME_NEVER);
    CHECK_EQ(wc_life_deadline(lives->life), 300);
    CHECK_STR(tick(lives, 299), "");
    CHECK_STR(tick(lives, 300), "fail q2 canceled timeout; end q2 timeout");
    CHECK_STR(tick(lives, 501), "stop q1 timeout");
    CHECK_EQ(wc_life_deadline(lives->life), QF_TIME_NEVER);
    CHECK_STR(say(lives, WC_LIFE_EV_ANSWERED, 1, QF_ETIMEOUT), "end q1 timeout; plan q3");
    CHECK_STR(tick(lives, 1), ""); /* time does not run backwards */
    CHECK_STR(lives->trace, "[501] tick");
}

/* Messages about a query that is over are counted and change nothing. */
TEST(messages_about_ended_queries_are_stale)
{
    static const enum wc_life_event_type types[] = {
        WC_LIFE_EV_PLANNED,   WC_LIFE_EV_PAUSED, WC_LIFE_EV_ANSWERED,
        WC_LIFE_EV_REFUSED,   WC_LIFE_EV_ROOM,   WC_LIFE_EV_CANCEL,
        WC_LIFE_EV_WORK_OVER, WC_LIFE_EV_ASK,    WC_LIFE_EV_TOLD,
    };
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(2, 1, 2);

    for (size_t i = 0; i < QF_COUNT_OF(types); i++) {
        CHECK_STR(say(lives, types[i], 9, QF_ENOTFOUND), "");
        CHECK_EQ(wc_life_stats(lives->life)->stale, i + 1);
    }
}

/* What makes no sense in a query's state is counted and said, and changes nothing. */
TEST(impossible_messages_are_counted_and_said)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(2, 1, 2);

    submit(lives, 1, 1, QF_TIME_NEVER);
    CHECK_STR(say(lives, WC_LIFE_EV_PAUSED, 1, QF_OK), "");
    CHECK_STR(lives->trace, "[0] paused q1 (illegal)");
    CHECK_EQ(wc_life_stats(lives->life)->illegal, 1);
    CHECK_EQ(state(lives, 1), WC_QUERY_PLANNING);
}

/* A value outside of its table has no name. */
TEST(names_of_the_life_end_with_their_tables)
{
    CHECK_STR(wc_query_state_name(WC_QUERY_DROPPING), "dropping");
    CHECK_STR(wc_query_state_name(WC_QUERY__COUNT), "?");
    CHECK_STR(wc_life_event_name(WC_LIFE_EV__COUNT), "?");
    CHECK_STR(wc_life_effect_name(WC_LIFE_DO__COUNT), "?");
    CHECK_STR(wc_life_cause_name(WC_LIFE_CAUSE__COUNT), "?");
}

/* A trace has a bound: what does not fit is counted. */
TEST(a_long_trace_is_cut)
{
    QF_CLEANUP(lives_freep) struct lives *lives = lives_new(64, 1, 64);

    for (uint64_t q = 1; q <= 64; q++)
        submit(lives, q, 1, QF_TIME_NEVER);
    say(lives, WC_LIFE_EV_CUT, 0, QF_OK);
    CHECK(strstr(lives->trace, " ..(+") != NULL);
    wc_life_trace(lives->life, NULL, NULL);
    say(lives, WC_LIFE_EV_TICK, 0, QF_OK);
}

/* Zero means the default; more than there is memory for is an error, not a crash. */
TEST(life_limits_have_defaults_and_memory_has_an_end)
{
    struct wc_life_limits none = { 0 }, all = { .queries_max = UINT32_MAX };
    struct wc_life *life = wc_life_new(&none);

    CHECK_EQ(life->limits.active_max, 64);
    CHECK_EQ(life->limits.queries_max, 1024);
    CHECK_EQ(life->limits.replans_max, wc_life_limits_default().replans_max);
    CHECK_EQ(life->limits.tenant_queue_max, 512);
    CHECK(!wc_life_free(life));
    CHECK(!wc_life_new(&all));
}

/* --- every cell of the table; the expectations repeat the tables in life.h --- */

/* q queued, p planning, k asking, w working, a answering, u paused, s streaming, t stopping, d
 * dropping, e ended, . illegal. */
static const char letters[] = "qpkwaustde";
static const char *const table[] = {
    /* ADMIT PLANNED ASK TOLD UNTOLD PAUSED MORE ANSWERED REFUSED DONE VANISHED FAILED ROOM CANCEL
     * CROWDED */
    [WC_QUERY_QUEUED] = "p............ee",    [WC_QUERY_PLANNING] = ".wk....ee....t.",
    [WC_QUERY_ASKING] = "...pe...e....e.",    [WC_QUERY_WORKING] = ".........ape.d.",
    [WC_QUERY_ANSWERING] = ".....uaee...at.", [WC_QUERY_PAUSED] = "............se.",
    [WC_QUERY_STREAMING] = ".....usee...st.", [WC_QUERY_STOPPING] = ".ee..eeee...t..",
    [WC_QUERY_DROPPING] = ".........eee...",
};

/* Query 1 in @want; for stopping and dropping the state it is canceled in comes first. */
static struct lives *query_in(enum wc_query_state want)
{
    struct lives *lives = lives_new(2, 1, 2);

    if (want == WC_QUERY_QUEUED)
        submit(lives, 2, 1, QF_TIME_NEVER);
    submit(lives, 1, 1, 1000);
    if (want == WC_QUERY_ASKING)
        say(lives, WC_LIFE_EV_ASK, 1, QF_OK);
    else if (want != WC_QUERY_QUEUED && want != WC_QUERY_PLANNING && want != WC_QUERY_STOPPING)
        say(lives, WC_LIFE_EV_PLANNED, 1, QF_OK);
    if (want == WC_QUERY_ANSWERING || want == WC_QUERY_PAUSED || want == WC_QUERY_STREAMING)
        say(lives, WC_LIFE_EV_WORK_OVER, 1, QF_OK);
    if (want == WC_QUERY_PAUSED || want == WC_QUERY_STREAMING)
        say(lives, WC_LIFE_EV_PAUSED, 1, QF_OK);
    if (want == WC_QUERY_STREAMING)
        say(lives, WC_LIFE_EV_ROOM, 1, QF_OK);
    if (want == WC_QUERY_STOPPING || want == WC_QUERY_DROPPING)
        say(lives, WC_LIFE_EV_CANCEL, 1, QF_ECANCELED);
    CHECK_EQ(state(lives, 1), want);
    return lives;
}

static void check_cell(enum wc_query_state from, enum wc_query_heard heard)
{
    QF_CLEANUP(lives_freep) struct lives *lives = query_in(from);
    QF_CLEANUP(qf_freep) struct wc_life *before = malloc(lives->life->state_size);
    struct wc_life_event event = { .type = WC_LIFE_EV_CANCEL, .rc = QF_ECANCELED };
    uint32_t slot = wc_index_first(&lives->life->query_index, 1);
    char want = table[from][heard];

    lives->life->effect_count = 0;
    lives->life->event = &event;
    memcpy(before, lives->life, lives->life->state_size);
    wc_life_hear(lives->life, slot, heard);
    if (want == '.') {
        before->stats.illegal++;
        CHECK_MSG(memcmp(before, lives->life, lives->life->state_size) == 0,
                  "%s changed by illegal %d", wc_query_state_name(from), heard);
        return;
    }
    CHECK_EQ(lives->life->stats.illegal, before->stats.illegal);
    CHECK_MSG(letters[state(lives, 1)] == want, "%s hears %d: %s, not %c",
              wc_query_state_name(from), heard, wc_query_state_name(state(lives, 1)), want);
}

/* Legal moves of a query lead where the manual says; all others are counted and change nothing. */
TEST(every_query_state_hears_everything_as_the_manual_says)
{
    for (int from = WC_QUERY_QUEUED; from < WC_QUERY_ENDED; from++) {
        for (int heard = 0; heard < WC_QUERY_HEARD__COUNT; heard++)
            check_cell((enum wc_query_state)from, (enum wc_query_heard)heard);
    }
}
