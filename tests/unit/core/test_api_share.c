/* test_api_share.c - a tenant's share of the workers: who waits, who goes next, and who does not care.
 */
#include "tests/lib/test.h"

#include "base/pure/macros.h"
#include "tests/lib/core/check.h"
#include "tests/lib/core/world.h"

static const struct wc_tenant_id a = { 1 }, b = { 2 };

static uint32_t kept(const struct world *world)
{
    CHECK_MSG(!core_check_api(world->wc), "%s", core_check_api(world->wc));
    return wc_api_stats(world->wc)->items_kept;
}

/* Two of five at once, in the order in which they came, over all queries of the tenant. */
TEST(items_beyond_the_share_of_their_tenant_wait)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin_share(world, 1, 1, 4, a, 2);
    CHECK_STR(world->did, "assign k1#1 w1 s1; assign k2#1 w1 s1");
    world_begin_share(world, 2, 5, 1, a, 2);
    CHECK_STR(world->did, "");
    CHECK_EQ(kept(world), 3);
    /* More workers would not help: they are not among what is queued. */
    CHECK_EQ(wc_api_queue(world->wc, 0).queued, 2);
    world_finish(world, 1, 1, 1);
    CHECK_STR(world->did, "ack k1#1 w1 s1; committed k1#1; assign k3#1 w1 s1");
    world_finish(world, 1, 2, 1);
    world_finish(world, 1, 3, 1);
    CHECK_STR(world_item_text(world, 5), "assigned w1 #1");
    CHECK_EQ(kept(world), 0);
    CHECK_EQ(wc_api_stats(world->wc)->kept, 3);
}

/* Another tenant does not wait for them. */
TEST(a_share_concerns_its_own_tenant_alone)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin_share(world, 1, 1, 3, a, 1);
    world_begin_share(world, 2, 4, 2, b, 0);
    CHECK_STR(world->did, "assign k4#1 w1 s1; assign k5#1 w1 s1");
    CHECK_EQ(kept(world), 2);
}

/* What is canceled makes room, whether it was with a worker or kept. */
TEST(a_canceled_query_makes_room_in_its_share)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin_share(world, 1, 1, 2, a, 1);
    world_begin_share(world, 2, 3, 2, a, 1);
    CHECK_EQ(kept(world), 3);
    world_cancel(world, 1);
    CHECK_STR(world->did, "cancel k1#1 w1 s1; ended q1 canceled; assign k3#1 w1 s1");
    CHECK_EQ(kept(world), 1);
    world_cancel(world, 2);
    CHECK_EQ(kept(world), 0);
}

/* The item of a lost worker waits for a worker, not for its share; nobody waits for it. */
TEST(items_without_a_worker_take_no_share)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_begin_share(world, 1, 1, 3, a, 1);
    CHECK_EQ(kept(world), 0);
    world_up(world, 1);
    CHECK_EQ(kept(world), 2);
    world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
    CHECK_EQ(kept(world), 0);
    CHECK_EQ(wc_api_stats(world->wc)->items_pending, 3);
}

/* While an item that failed waits for its delay, its tenant's next one has its place. */
TEST(a_delayed_item_leaves_its_share_to_the_next)
{
    struct wc_api_limits limits = {
        .workers_max = 2, .queries_max = 2, .items_max = 4, .retry_delay_ms = 100
    };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

    world_up(world, 1);
    world_begin_share(world, 1, 1, 2, a, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_failed(world, 1, 1, 1, QF_EIO, true);
    CHECK_STR(world_item_text(world, 2), "assigned w1 #1");
    CHECK_EQ(kept(world), 0);
    world_tick(world, 100);
    CHECK_EQ(kept(world), 1); /* now it is the other one's turn to wait */
    world_finish(world, 1, 2, 1);
    CHECK_STR(world_item_text(world, 1), "assigned w1 #2");
}

/* What the latest query says counts: more is sent at once, less is left to shrink. */
TEST(the_share_of_a_tenant_may_change)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin_share(world, 1, 1, 4, a, 1);
    world_begin_share(world, 2, 5, 1, a, 3);
    CHECK_EQ(kept(world), 2);
    CHECK_EQ(wc_api_stats(world->wc)->items_assigned, 3);
    world_begin_share(world, 3, 6, 1, a, 1);
    CHECK_EQ(kept(world), 3);
    world_finish(world, 1, 1, 1);
    CHECK_EQ(kept(world), 3); /* two are still with workers */
    world_begin_share(world, 4, 7, 1, a, 0);
    CHECK_EQ(kept(world), 0);
}

/* An older attempt's bytes finish an item that is kept. */
TEST(a_late_download_ends_a_kept_item)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin_share(world, 1, 1, 1, a, 2);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_say(world, WC_API_EV_READY, 1, 1, 1);
    world_begin_share(world, 2, 2, 1, a, 2);
    world_begin_share(world, 3, 3, 1, a, 1);
    world_failed(world, 1, 1, 1, QF_ENOTFOUND, true); /* expired; its download goes on */
    CHECK_STR(world_item_text(world, 1), "pending #1");
    CHECK_EQ(kept(world), 2);
    world_fetched(world, 1, 1, 1);
    CHECK_STR(world->did, "committed k1#1; ended q1 ok");
    CHECK_EQ(kept(world), 1);
}
