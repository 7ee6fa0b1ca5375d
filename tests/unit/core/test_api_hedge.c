/* test_api_hedge.c - a second attempt at what takes far longer than its like. */
#include "tests/lib/test.h"

#include "api_int.h"
#include "tests/lib/core/check.h"
#include "tests/lib/core/world.h"

/* Twice as long as expected is too long; two workers, the items of worker 1. */
static struct world *slow_world(void)
{
    struct wc_api_limits limits = { .workers_max = 8, .items_max = 64, .hedge_after = 2 };
    struct world *world = world_new(&limits);

    world_up(world, 1);
    world_up(world, 2);
    return world;
}

static const struct wc_api_stats *stats(struct world *world)
{
    CHECK_MSG(!core_check_api(world->wc), "%s", core_check_api(world->wc));
    return wc_api_stats(world->wc);
}

/* The second in rendezvous order gets it once the time is up, and the first bytes count. */
TEST(a_slow_item_is_sent_to_a_second_worker)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 1, 1, 100);
    CHECK_STR(world->did, "assign k1#1 w1 s1");
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_tick(world, 199);
    CHECK_STR(world->did, "");
    world_tick(world, 200);
    CHECK_STR(world->did, "hedge k1#2 w2 s2");
    CHECK_EQ(stats(world)->hedges, 1);
    world_say(world, WC_API_EV_ACCEPTED, 2, 1, 2);
    world_say(world, WC_API_EV_READY, 2, 1, 2);
    CHECK_STR(world->did, "fetch k1#2 w2 s2");
    world_fetched(world, 1, 2, 1);
    CHECK_STR(world->did, "ack k1#2 w2 s2; cancel k1#1 w1 s1; committed k1#2; ended q1 ok");
    CHECK_EQ(stats(world)->hedges_won, 1);
    CHECK_EQ(stats(world)->hedged, 1);
    CHECK_EQ(stats(world)->reassigned, 0);
}

/* A worker too slow to hand over what it has made is too slow. */
TEST(a_slow_download_is_hedged_too)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 1, 1, 100);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world->now = 10;
    world_say(world, WC_API_EV_READY, 1, 1, 1);
    world_tick(world, 200);
    CHECK_STR(world->did, "hedge k1#2 w2 s2");
    CHECK_STR(world_item_text(world, 1), "ready w1 #1");
    world_say(world, WC_API_EV_ACCEPTED, 2, 1, 2);
    world_say(world, WC_API_EV_READY, 2, 1, 2);
    world_fetched(world, 1, 2, 1);
    CHECK_STR(world->did, "ack k1#2 w2 s2; cancel k1#1 w1 s1; committed k1#2; ended q1 ok");
    CHECK_EQ(stats(world)->hedges_won, 1);
}

/* The first attempt was faster after all: the second is canceled. */
TEST(the_loser_is_canceled)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 2, 1, 100);
    world_tick(world, 200);
    CHECK_STR(world->did, "hedge k1#2 w2 s2; hedge k2#2 w2 s2");
    world_say(world, WC_API_EV_ACCEPTED, 2, 1, 2);
    world_finish(world, 1, 1, 1);
    CHECK_STR(world->did, "ack k1#1 w1 s1; committed k1#1; cancel k1#2 w2 s2");
    CHECK_EQ(stats(world)->hedges_lost, 1);
    world_say(world, WC_API_EV_READY, 2, 1, 2); /* it had not heard */
    CHECK_STR(world->did, "ack k1#2 w2 s2");
    CHECK_EQ(stats(world)->duplicates, 1);
    world_cancel(world, 1);
    CHECK_STR(world->did, "cancel k2#1 w1 s1; cancel k2#2 w2 s2; ended q1 canceled");
    CHECK_EQ(stats(world)->hedges_lost, 2);
}

/* Off by default, and nothing is known to be slow of which nothing is known. */
TEST(without_an_expectation_there_is_no_hedge)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();
    QF_CLEANUP(world_freep) struct world *off = world_new(NULL);

    world_begin_expecting(world, 1, 1, 1, 1, 0);
    world_tick(world, 900);
    CHECK_STR(world->did, "");
    world_up(off, 1);
    world_up(off, 2);
    world_begin_expecting(off, 1, 1, 1, 1, 1);
    world_tick(off, 900);
    CHECK_STR(off->did, "");
    CHECK_EQ(stats(off)->hedged, 0);
}

/* What is expected to take a moment gets a little longer: a hiccup is not worth a second run. */
TEST(there_is_a_shortest_wait_and_a_longest)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 1, 1, 1);
    CHECK_EQ(wc_api_deadline(world->wc), 100);
    world_cancel(world, 1);
    world_begin_expecting(world, 2, 2, 1, 1, INT64_C(1) << 60);
    CHECK_EQ(world->wc->timers.due[wc_timer_item(world->wc, 0)], 3600000);
}

/* One in the life of an item, whatever happens to it. */
TEST(an_item_has_one_hedge)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 1, 1, 100);
    world_tick(world, 200);
    world_failed(world, 2, 1, 2, QF_EIO, true);
    CHECK_STR(world->did, "");
    CHECK_STR(world_item_text(world, 1), "assigned w1 #1");
    CHECK_EQ(stats(world)->hedges_lost, 1);
    world_peer(world, WC_API_EV_HEARTBEAT, 1, 1);
    world_peer(world, WC_API_EV_HEARTBEAT, 2, 2);
    world_tick(world, 900);
    CHECK_STR(world->did, "");
    /* The worker that failed it is the last choice, as after any failure. */
    world_up(world, 3);
    world_failed(world, 1, 1, 1, QF_EIO, true);
    CHECK_STR(world->did, "assign k1#3 w3 s3");
    CHECK_EQ(stats(world)->hedged, 1);
}

/* A new attempt of the item has all its time, if the item has not had its hedge. */
TEST(a_new_attempt_waits_anew)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 1, 1, 100);
    world->now = 150;
    world_say(world, WC_API_EV_REJECTED, 1, 1, 1);
    CHECK_STR(world->did, "assign k1#2 w2 s2");
    world_tick(world, 349);
    CHECK_STR(world->did, "");
    world_up(world, 3);
    world_tick(world, 350);
    CHECK_STR(world->did, "hedge k1#3 w3 s3");
}

/* When the item's own attempt comes to nothing the hedge is at hand: nothing is sent anew. */
TEST(a_hedge_takes_the_place_of_a_failed_attempt)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 3, 1, 100);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_tick(world, 200);
    world_say(world, WC_API_EV_ACCEPTED, 2, 2, 2);
    world_say(world, WC_API_EV_ACCEPTED, 2, 3, 2);
    world_say(world, WC_API_EV_READY, 2, 3, 2);
    world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
    CHECK_STR(world->did, "lost w1 s1");
    CHECK_STR(world_item_text(world, 1), "assigned w2 #2");
    CHECK_STR(world_item_text(world, 2), "accepted w2 #2");
    CHECK_STR(world_item_text(world, 3), "ready w2 #2");
    CHECK_EQ(stats(world)->hedges_won, 3);
    world_fetched(world, 3, 2, 3);
    CHECK_STR(world->did, "ack k3#2 w2 s2; committed k3#2");
    world_finish(world, 2, 1, 2);
    world_say(world, WC_API_EV_READY, 2, 2, 2);
    world_fetched(world, 2, 2, 2);
    CHECK_STR(world->did, "ack k2#2 w2 s2; committed k2#2; ended q1 ok");
}

/* A hedge whose worker is lost, drains, leaves or fails is dropped; the item does not notice. */
TEST(a_hedge_that_comes_to_nothing_costs_nothing)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();
    struct wc_api_item_view view;

    world_begin_expecting(world, 1, 1, 4, 1, 100);
    world_tick(world, 200);
    world_say(world, WC_API_EV_ACCEPTED, 2, 1, 2);
    world_say(world, WC_API_EV_REJECTED, 2, 3, 2);
    CHECK_STR(world->did, "");
    world_status(world, 2, 2, false, true); /* drains: the accepted one may finish */
    CHECK_STR(world->did, "cancel k2#2 w2 s2; cancel k4#2 w2 s2");
    CHECK_EQ(stats(world)->hedges, 1);
    world_say(world, WC_API_EV_READY, 2, 1, 2);
    world_fetch_failed(world, 1, 2, WC_FETCH_IO);
    CHECK_STR(world->did, "cancel k1#2 w2 s2");
    CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
    CHECK_EQ(view.failures, 0);
    CHECK_EQ(stats(world)->hedges_lost, 4);
}

/* How a hedge on @w comes to nothing. */
static void spoil(struct world *world, uint64_t w, int way)
{
    if (way >= 2)
        world_say(world, WC_API_EV_ACCEPTED, w, 1, 2);
    if (way >= 3)
        world_say(world, WC_API_EV_READY, w, 1, 2);
    if (way == 0)
        world_say(world, WC_API_EV_REJECTED, w, 1, 2);
    else if (way == 4)
        world_fetch_failed(world, 1, 2, WC_FETCH_IO);
    else
        world_failed(world, w, 1, 2, QF_EIO, true);
}

/* Rejected, failed before and after acceptance, expired, not fetched: that worker is the last the
 * item goes to. */
TEST(an_item_avoids_the_worker_of_a_spoilt_hedge)
{
    for (int way = 0; way <= 4; way++) {
        QF_CLEANUP(world_freep) struct world *world = slow_world();
        struct wc_api_item_view view;
        uint64_t second;

        world_up(world, 3);
        world_begin_expecting(world, 1, 1, 1, 1, 100);
        world_tick(world, 200);
        CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
        second = view.hedge.worker.v;
        spoil(world, second, way);
        CHECK_EQ(stats(world)->hedges_lost, 1);
        CHECK_EQ(stats(world)->workers_available, way ? 3 : 2);
        CHECK_EQ(stats(world)->rejected, way ? 0 : 1);
        world_status(world, second, second, true, false);
        world_failed(world, 1, 1, 1, QF_EIO, true);
        CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
        CHECK_EQ(view.worker.v, 5 - second);
    }
}

/* Acceptances and announcements of hedges count as any others. */
TEST(messages_about_hedges_are_counted)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 1, 1, 100);
    world_tick(world, 200);
    CHECK_EQ(stats(world)->assigned, 2);
    world_say(world, WC_API_EV_ACCEPTED, 2, 1, 2);
    CHECK_EQ(stats(world)->accepted, 1);
    world_say(world, WC_API_EV_READY, 2, 1, 2);
    CHECK_EQ(stats(world)->ready, 1);
}

/* The hedge on worker 2 comes as far as @state. */
static void hedge_until(struct world *world, enum wc_hedge_state state)
{
    world_begin_expecting(world, 1, 1, 1, 1, 100);
    world_tick(world, 200);
    if (state >= WC_HEDGE_ACCEPTED)
        world_say(world, WC_API_EV_ACCEPTED, 2, 1, 2);
    if (state >= WC_HEDGE_READY)
        world_say(world, WC_API_EV_READY, 2, 1, 2);
}

/* However far it has come. */
TEST(a_leaving_worker_keeps_no_hedge)
{
    for (int state = WC_HEDGE_ASSIGNED; state < WC_HEDGE__COUNT; state++) {
        QF_CLEANUP(world_freep) struct world *world = slow_world();

        hedge_until(world, (enum wc_hedge_state)state);
        world_peer(world, WC_API_EV_REMOVED, 2, 0);
        CHECK_STR(world->did, "cancel k1#2 w2 s2; hangup w2 s2; lost w2 s2");
        CHECK_STR(world_item_text(world, 1), "assigned w1 #1");
        CHECK_EQ(stats(world)->hedges_lost, 1);
    }
}

/* The worker of a hedge that lost is told, however far it has come. */
TEST(a_hedge_that_lost_is_canceled_in_every_state)
{
    for (int state = WC_HEDGE_ASSIGNED; state < WC_HEDGE__COUNT; state++) {
        QF_CLEANUP(world_freep) struct world *world = slow_world();

        hedge_until(world, (enum wc_hedge_state)state);
        world_finish(world, 1, 1, 1);
        CHECK_STR(world->did, "ack k1#1 w1 s1; committed k1#1; cancel k1#2 w2 s2; ended q1 ok");
    }
}

TEST(a_lost_worker_takes_its_hedges_along)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 1, 1, 100);
    world_tick(world, 200);
    world_peer(world, WC_API_EV_DISCONNECTED, 2, 2);
    CHECK_STR(world->did, "lost w2 s2");
    CHECK_STR(world_item_text(world, 1), "assigned w1 #1");
    CHECK_EQ(stats(world)->hedges, 0);
}

/* What fails for good does so on any worker; the first is told, however far it has come. */
TEST(a_final_failure_of_a_hedge_ends_the_query)
{
    for (int state = WC_ITEM_ASSIGNED; state <= WC_ITEM_READY; state++) {
        QF_CLEANUP(world_freep) struct world *world = slow_world();

        hedge_until(world, WC_HEDGE_ASSIGNED);
        if (state >= WC_ITEM_ACCEPTED)
            world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
        if (state >= WC_ITEM_READY)
            world_say(world, WC_API_EV_READY, 1, 1, 1);
        world_failed(world, 2, 1, 2, QF_ECORRUPT, false);
        CHECK_STR(world->did, "cancel k1#1 w1 s1; ended q1 corrupt k1");
        CHECK_EQ(stats(world)->hedges, 0);
    }
}

/* Wrong bytes of a hedge are a failed download of it. */
TEST(a_hedge_with_wrong_bytes_is_dropped)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 1, 1, 100);
    world_tick(world, 200);
    world_say(world, WC_API_EV_ACCEPTED, 2, 1, 2);
    world_fetched(world, 1, 2, 1); /* before it is ready: of no attempt we know */
    CHECK_EQ(stats(world)->stale, 1);
    world_say(world, WC_API_EV_READY, 2, 1, 2);
    world_fetched(world, 1, 2, 99);
    CHECK_STR(world->did, "cancel k1#2 w2 s2");
    CHECK_EQ(stats(world)->fetch_failed[WC_FETCH_CHECKSUM], 1);
}

/* Messages about the hedge from anybody but its worker are stale. */
TEST(only_its_worker_speaks_for_a_hedge)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 1, 1, 100);
    world_tick(world, 200);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 2);
    world_say(world, WC_API_EV_ACCEPTED, 2, 1, 1);
    CHECK_EQ(stats(world)->stale, 2);
    CHECK_EQ(stats(world)->accepted, 0);
}

/* Without another worker, or only with such as failed the item, it goes on waiting. */
TEST(a_hedge_needs_another_worker)
{
    struct wc_api_limits limits = { .workers_max = 8, .items_max = 8, .hedge_after = 2 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

    world_up(world, 1);
    world_begin_expecting(world, 1, 1, 1, 1, 100);
    world_tick(world, 200);
    CHECK_STR(world->did, "");
    world_up(world, 2);
    world_tick(world, 399);
    CHECK_STR(world->did, "");
    world_tick(world, 400);
    CHECK_STR(world->did, "hedge k1#2 w2 s2");
}

/* Four, or a tenth of what is in flight: the others ask again. */
TEST(hedges_are_a_share_of_the_work)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 6, 1, 100);
    world_tick(world, 200);
    CHECK_EQ(stats(world)->hedges, 4);
    world_finish(world, 2, 1, 2);
    CHECK_EQ(stats(world)->hedges, 3);
    world_tick(world, 400);
    CHECK_STR(world->did, "hedge k5#2 w2 s2");
    world_begin_expecting(world, 2, 11, 32, 1, 0);
    world_begin_expecting(world, 3, 51, 18, 1, 0); /* 55 in flight */
    world_tick(world, 600);
    CHECK_STR(world->did, "hedge k6#2 w2 s2");
    CHECK_EQ(stats(world)->hedges, 5);
}

/* Both workers go silent in the tick in which the hedge is due: nobody is sent anything. */
TEST(a_hedge_is_not_sent_to_a_worker_lost_in_the_same_tick)
{
    QF_CLEANUP(world_freep) struct world *world = slow_world();

    world_begin_expecting(world, 1, 1, 1, 1, 1500);
    world_tick(world, 3000);
    CHECK_EQ(stats(world)->workers_alive, 0);
    CHECK_EQ(stats(world)->hedged, 0);
    CHECK_STR(world_item_text(world, 1), "pending #1");
}
