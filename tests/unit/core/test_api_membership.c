/* test_api_membership.c - workers come, change, fall silent, come back and go. */
#include "tests/lib/test.h"

#include "api_int.h"
#include "tests/lib/core/check.h"
#include "tests/lib/core/world.h"

static struct wc_api_worker_view worker(struct world *world, uint64_t w)
{
    struct wc_api_worker_view view = { .state = WC_PEER__COUNT };

    (void)wc_api_worker(world->wc, (struct wc_worker_id){ w }, &view);
    return view;
}

/* Discovery leads to a dial, a stream and a status make a worker available. */
TEST(a_worker_registers_and_becomes_available)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_peer(world, WC_API_EV_DISCOVERED, 1, 0);
    CHECK_STR(world->did, "dial w1");
    world_peer(world, WC_API_EV_CONNECTED, 1, 5);
    CHECK(!worker(world, 1).available);
    world_status(world, 1, 5, true, false);
    CHECK(worker(world, 1).available);
    CHECK_EQ(wc_api_stats(world->wc)->workers_available, 1);
    CHECK(worker(world, 1).worker_key == core_worker_key(1));
}

/* Not accepting or draining takes it out of rotation, and back. */
TEST(status_changes_take_a_worker_out_of_rotation_and_back)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_status(world, 1, 1, false, false);
    CHECK(!worker(world, 1).available);
    world_begin(world, 1, 1, 1, 1);
    CHECK_STR(world_item_text(world, 1), "pending #0");
    world_status(world, 1, 1, true, true);
    CHECK(!worker(world, 1).available);
    CHECK_EQ(wc_api_stats(world->wc)->workers_draining, 1);
    world_status(world, 1, 1, true, true); /* said twice, counted once */
    CHECK_EQ(wc_api_stats(world->wc)->workers_draining, 1);
    world_status(world, 1, 1, true, false);
    CHECK_STR(world->did, "assign k1#1 w1 s1");
}

/* A lost stream reassigns at once; the worker is dialed again after a delay with jitter. */
TEST(a_lost_stream_reassigns_and_redials)
{
    struct wc_api_limits limits = { .workers_max = 4, .dial_min_ms = 100, .dial_max_ms = 1000 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

    world_up(world, 1);
    world_up(world, 2);
    world_begin(world, 1, 1, 1, 1);
    world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
    CHECK_STR(world->did, "lost w1 s1; assign k1#2 w2 s2");
    CHECK_EQ(worker(world, 1).state, WC_PEER_DOWN);
    CHECK(wc_api_deadline(world->wc) >= 50);
    CHECK(wc_api_deadline(world->wc) <= 100);
}

/* The delay doubles up to its limit; jitter stays in the upper half and depends on the event. */
TEST(the_redial_delay_doubles_with_jitter_up_to_its_limit)
{
    struct wc_api_limits limits = { .workers_max = 4, .dial_min_ms = 100, .dial_max_ms = 10000 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);
    qf_time_ms full = 100;
    bool differs = false;

    world_peer(world, WC_API_EV_DISCOVERED, 1, 0);
    for (int i = 0; i < 40; i++) {
        qf_time_ms delay;

        world->random = (uint64_t)i * 77;
        world_peer(world, WC_API_EV_DISCONNECTED, 1, 0);
        delay = wc_api_deadline(world->wc) - world->now;
        CHECK(delay >= full / 2);
        CHECK(delay <= full);
        differs = differs || (full == 10000 && delay != 10000);
        full = QF_MIN(full * 2, 10000);
        world_tick(world, wc_api_deadline(world->wc));
        CHECK_STR(world->did, "dial w1");
    }
    CHECK(differs);
    CHECK_EQ(worker(world, 1).dials_failed, 40);
    world_peer(world, WC_API_EV_CONNECTED, 1, 1);
    world_status(world, 1, 1, true, false);
    CHECK_EQ(worker(world, 1).dials_failed, 0);
}

/* Three heartbeats without a word: lost. Any message counts as a word. */
TEST(a_worker_silent_for_three_heartbeats_is_lost)
{
    struct wc_api_limits limits = { .workers_max = 4, .dial_min_ms = 100, .dial_max_ms = 1000 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

    world_up(world, 1);
    world_tick(world, 1000);
    CHECK_STR(world->did, "heartbeat w1 s1");
    world->now = 1030;
    world_peer(world, WC_API_EV_HEARTBEAT, 1, 1);
    CHECK_EQ(worker(world, 1).rtt_ms, 0);
    world_tick(world, 2000);
    world_tick(world, 3000); /* the timer comes, sees the word of 1030, and waits on */
    CHECK_STR(world->did, "heartbeat w1 s1");
    world_tick(world, 4029);
    CHECK_EQ(worker(world, 1).state, WC_PEER_ALIVE);
    world_tick(world, 4030);
    CHECK_STR(world->did, "hangup w1 s1; lost w1 s1");
    CHECK_EQ(wc_api_stats(world->wc)->workers_silent, 1);
    CHECK_EQ(wc_api_stats(world->wc)->workers_alive, 0);
}

/* The round trip is our time now minus our time in the echo, never negative. */
TEST(the_round_trip_of_a_heartbeat_is_measured)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);
    struct wc_api_event event = { .type = WC_API_EV_HEARTBEAT, .worker = { 1 }, .session = { 1 } };

    world_up(world, 1);
    CHECK_EQ(worker(world, 1).rtt_ms, -1);
    world->now = 50;
    event.sent_at = 43;
    world_step(world, &event);
    CHECK_EQ(worker(world, 1).rtt_ms, 7);
    event.sent_at = 99;
    world_step(world, &event);
    CHECK_EQ(worker(world, 1).rtt_ms, 0);
}

/* The same identity under a new session; what the old session says is stale. */
TEST(a_worker_reconnects_as_the_same_identity_with_a_new_session)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin(world, 1, 1, 1, 1);
    world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
    world_peer(world, WC_API_EV_CONNECTED, 1, 2);
    world_status(world, 1, 2, true, false);
    CHECK_STR(world->did, "assign k1#2 w1 s2");
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1); /* on the dead session 1 */
    CHECK_STR(world_item_text(world, 1), "assigned w1 #2");
    CHECK_EQ(wc_api_stats(world->wc)->stale, 1);
}

/* What a dead session says of the worker is not believed, and does not keep the new one alive. */
TEST(a_dead_session_can_neither_drain_nor_keep_alive_a_worker)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
    world_peer(world, WC_API_EV_CONNECTED, 1, 2);
    world_status(world, 1, 2, true, false);
    world->now = 500;
    world_status(world, 1, 1, false, true);
    world_peer(world, WC_API_EV_HEARTBEAT, 1, 1);
    CHECK(worker(world, 1).available);
    CHECK_EQ(worker(world, 1).heard_at, 0);
    CHECK_EQ(wc_api_stats(world->wc)->stale, 2);
}

/* A second stream to a connected worker replaces the first, whose work is dead. */
TEST(a_second_stream_replaces_the_first)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_peer(world, WC_API_EV_CONNECTED, 1, 2);
    CHECK_STR(world->did, "hangup w1 s1; lost w1 s1");
    CHECK_STR(world_item_text(world, 1), "pending #1");
    world_peer(world, WC_API_EV_CONNECTED, 1, 3);
    CHECK_STR(world->did, "hangup w1 s2; lost w1 s2");
    world_peer(world, WC_API_EV_CONNECTED, 1, 3); /* said twice */
    world_peer(world, WC_API_EV_CONNECTED, 1, 0); /* not a session */
    CHECK_STR(world->did, "");
    CHECK_EQ(worker(world, 1).session.v, 3);
}

/* Removal: out of rotation at once, unstarted work moves, accepted work finishes, then it is gone.
 */
TEST(a_removed_worker_finishes_what_it_accepted_and_is_forgotten)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_up(world, 2);
    world_begin(world, 1, 1, 2, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_peer(world, WC_API_EV_REMOVED, 1, 0);
    CHECK_STR(world->did, "cancel k2#1 w1 s1; assign k2#2 w2 s2");
    CHECK(worker(world, 1).leaving);
    world_say(world, WC_API_EV_READY, 1, 1, 1);
    world_fetched(world, 1, 1, 1);
    CHECK_STR(world->did, "ack k1#1 w1 s1; committed k1#1; hangup w1 s1; lost w1 s1");
    CHECK_EQ(worker(world, 1).state, WC_PEER__COUNT);
    CHECK_EQ(wc_api_stats(world->wc)->workers, 1);
}

/* Found again before it was gone: it stays. */
TEST(a_worker_discovered_again_while_leaving_stays)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_peer(world, WC_API_EV_REMOVED, 1, 0);
    world_peer(world, WC_API_EV_REMOVED, 1, 0);
    CHECK(!worker(world, 1).available);
    world_peer(world, WC_API_EV_DISCOVERED, 1, 0);
    CHECK(worker(world, 1).available);
    CHECK(!worker(world, 1).leaving);
}

/* A leaving worker that loses its stream is not dialed again. */
TEST(a_leaving_worker_that_is_lost_is_forgotten)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_peer(world, WC_API_EV_REMOVED, 1, 0);
    world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
    CHECK_EQ(wc_api_stats(world->wc)->workers, 0);
    CHECK_EQ(wc_api_stats(world->wc)->items_pending, 1);
    world_peer(world, WC_API_EV_CONNECTED, 1, 4); /* a dial that was under way */
    CHECK_STR(world->did, "hangup w1 s4");
}

/* A busy leaving worker stays while an idle one beside it goes. */
TEST(only_idle_leaving_workers_are_let_go)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_up(world, 2);
    world_up(world, 3);
    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_peer(world, WC_API_EV_REMOVED, 1, 0);
    world_peer(world, WC_API_EV_REMOVED, 2, 0);
    CHECK_STR(world->did, "hangup w2 s2; lost w2 s2");
    CHECK_EQ(wc_api_stats(world->wc)->workers, 2);
}

/* The table of workers is full: an error, and nothing has changed. */
TEST(a_full_table_of_workers_refuses_and_changes_nothing)
{
    struct wc_api_limits limits = { .workers_max = 1, .items_max = 4, .queries_max = 2 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);
    struct wc_api_worker_view views[2];

    world_up(world, 1);
    world_peer(world, WC_API_EV_DISCOVERED, 2, 0);
    CHECK_EQ(world->rc, QF_ELIMIT);
    CHECK_EQ(world->effects.count, 0);
    CHECK_EQ(wc_api_workers(world->wc, views, 2), 1);
    CHECK_EQ(views[0].worker.v, 1);
    CHECK_EQ(wc_api_workers(world->wc, views, 0), 1);
    world_peer(world, WC_API_EV_DISCOVERED, 1, 0);
    CHECK_EQ(world->rc, QF_OK);
}

/* Heartbeats stop when there is nobody to send them to, and begin again. */
TEST(heartbeats_go_to_every_open_stream_and_to_nobody_else)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_peer(world, WC_API_EV_DISCOVERED, 2, 0);
    world_up(world, 3);
    world_tick(world, 1000);
    CHECK_STR(world->did, "heartbeat w1 s1; heartbeat w3 s3");
    world_peer(world, WC_API_EV_REMOVED, 1, 0);
    world_peer(world, WC_API_EV_REMOVED, 3, 0);
    world_tick(world, 2000);
    CHECK_STR(world->did, "");
    CHECK(wc_api_deadline(world->wc) == QF_TIME_NEVER);
    world_up(world, 1);
    CHECK_EQ(wc_api_deadline(world->wc), 3000);
}

/* A key of 0 would look like "not known yet"; it works all the same. */
TEST(a_worker_whose_key_is_zero_gets_work)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);
    struct wc_api_event status = { .type = WC_API_EV_STATUS, .worker = { 1 }, .session = { 1 } };

    world_up(world, 1);
    status.status.accepting = true;
    world_step(world, &status);
    world_begin(world, 1, 1, 1, 1);
    CHECK_STR(world->did, "assign k1#1 w1 s1");
}

/* A restarted pod under a new address while the old address is still listed: the live one works. */
TEST(two_endpoints_with_one_identity_do_not_confuse_assignment)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);
    struct wc_api_event status = { .type = WC_API_EV_STATUS, .worker = { 2 }, .session = { 2 } };

    world_up(world, 1);
    world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
    world_peer(world, WC_API_EV_DISCOVERED, 2, 0);
    world_peer(world, WC_API_EV_CONNECTED, 2, 2);
    status.status.worker_key = core_worker_key(1);
    status.status.accepting = true;
    world_step(world, &status);
    world_begin(world, 1, 1, 1, 1);
    CHECK_STR(world->did, "assign k1#1 w2 s2");
    CHECK_EQ(wc_api_stats(world->wc)->affinity_hits, 1);
}
