/* test_api_owners.c - items go to the workers that keep their data, as long as one of these is there. */
#include "tests/lib/test.h"

#include "tests/lib/core/check.h"
#include "tests/lib/core/world.h"

enum { W1 = 1 << 1, W2 = 1 << 2, W3 = 1 << 3, W4 = 1 << 4 };

static const struct wc_api_stats *stats(struct world *world)
{
    CHECK_MSG(!core_check_api(world->wc), "%s", core_check_api(world->wc));
    return wc_api_stats(world->wc);
}

/* Workers 1 to 4 are up. */
static struct world *four_workers(void)
{
    struct world *world = world_new(NULL);

    for (uint64_t w = 1; w <= 4; w++)
        world_up(world, w);
    return world;
}

/* Worker 1 has the best score of all, and keeps nothing. */
TEST(an_owner_comes_before_any_other_worker)
{
    QF_CLEANUP(world_freep) struct world *world = four_workers();

    world_begin_owned(world, 1, 1, 1, 1, W3);
    CHECK_STR(world->did, "assign k1#1 w3 s3");
    CHECK(world->effects.items[0].owner);
    CHECK_EQ(stats(world)->owner_hits, 1);
    CHECK_EQ(stats(world)->affinity_hits, 1);
}

/* The score decides between owners, so that every API chooses the same, and shards spread over them. */
TEST(of_two_owners_the_score_decides)
{
    QF_CLEANUP(world_freep) struct world *world = four_workers();

    world_begin_owned(world, 1, 1, 1, 2, W2 | W4);
    CHECK_STR(world->did, "assign k1#1 w2 s2");
    world_begin_owned(world, 2, 2, 1, 4, W2 | W4);
    CHECK_STR(world->did, "assign k2#1 w4 s4");
    CHECK_EQ(stats(world)->owner_hits, 2);
}

TEST(a_lost_owner_is_followed_by_the_next_one)
{
    QF_CLEANUP(world_freep) struct world *world = four_workers();

    world_begin_owned(world, 1, 1, 1, 2, W2 | W4);
    world_peer(world, WC_API_EV_DISCONNECTED, 2, 2);
    CHECK_STR(world->did, "lost w2 s2; assign k1#2 w4 s4");
    CHECK_EQ(stats(world)->owner_hits, 2);
    CHECK_EQ(stats(world)->affinity_misses, 1); /* it is not the first choice of all known */
}

TEST(with_no_owner_alive_any_worker_runs_it)
{
    QF_CLEANUP(world_freep) struct world *world = four_workers();

    world_peer(world, WC_API_EV_DISCONNECTED, 2, 2);
    world_status(world, 4, 4, false, true); /* it drains */
    world_begin_owned(world, 1, 1, 1, 1, W2 | W4);
    CHECK_STR(world->did, "assign k1#1 w1 s1");
    CHECK(!world->effects.items[0].owner);
    CHECK_EQ(stats(world)->owner_misses, 1);
    CHECK_EQ(stats(world)->owner_hits, 0);
}

/* Nodes of the ring that this API knows no worker for. */
TEST(owners_that_are_no_workers_are_nobody)
{
    QF_CLEANUP(world_freep) struct world *world = four_workers();

    world_begin_owned(world, 1, 1, 1, 3, 1 << 9 | 1 << 10);
    CHECK_STR(world->did, "assign k1#1 w3 s3");
    CHECK_EQ(stats(world)->owner_misses, 1);
    CHECK_EQ(stats(world)->affinity_hits, 1);
}

/* A damaged disk, say: the other owner, then those that have to read from elsewhere, then whoever failed longest ago. */
TEST(an_item_that_failed_on_its_owners_goes_to_others)
{
    QF_CLEANUP(world_freep) struct world *world = four_workers();
    uint64_t last;

    world_begin_owned(world, 1, 1, 1, 2, W2 | W4);
    world_say(world, WC_API_EV_ACCEPTED, 2, 1, 1);
    world_failed(world, 2, 1, 1, QF_EIO, true);
    CHECK_STR(world->did, "assign k1#2 w4 s4");
    world_say(world, WC_API_EV_ACCEPTED, 4, 1, 2);
    world_failed(world, 4, 1, 2, QF_EIO, true);
    last = world->effects.items[0].worker.v;
    CHECK(last == 1 || last == 3);
    world_say(world, WC_API_EV_ACCEPTED, last, 1, 3);
    world_failed(world, last, 1, 3, QF_EIO, true);
    CHECK_EQ(world->effects.items[0].worker.v, 4 - last);
    world_say(world, WC_API_EV_ACCEPTED, 4 - last, 1, 4);
    world_failed(world, 4 - last, 1, 4, QF_EIO, true);
    CHECK_STR(world->did, "assign k1#5 w2 s2");
    CHECK_EQ(stats(world)->owner_hits, 3);
    CHECK_EQ(stats(world)->owner_misses, 2);
}

TEST(a_hedge_goes_to_another_owner)
{
    struct wc_api_limits limits = { .workers_max = 8, .items_max = 4, .hedge_after = 2 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN, .query = { 1 } };
    struct wc_api_item_spec item = { { 1 }, { 1 }, core_affinity_to(1, WORLD_WORKERS), 1000 };

    for (uint64_t w = 1; w <= 4; w++)
        world_up(world, w);
    core_own(&item, W2 | W3);
    event.begin.items = &item;
    event.begin.count = 1;
    world_step(world, &event);
    CHECK_EQ(world->effects.items[0].worker.v & ~UINT64_C(1), 2); /* 2 or 3 */
    world_tick(world, 2000);
    CHECK_EQ(world->effects.items[world->effects.count - 1].type, WC_API_DO_HEDGE);
    CHECK(world->effects.items[world->effects.count - 1].owner);
    CHECK_EQ(stats(world)->owner_hits, 2);
}

/* Without owners nothing is counted, and the scores alone decide. */
TEST(an_item_without_owners_is_assigned_by_scores)
{
    QF_CLEANUP(world_freep) struct world *world = four_workers();

    for (uint64_t w = 1; w <= 4; w++) {
        world_begin(world, w, w, 1, w);
        CHECK_EQ(world->effects.items[0].worker.v, w);
        CHECK(!world->effects.items[0].owner);
    }
    CHECK_EQ(stats(world)->owner_hits + stats(world)->owner_misses, 0);
}

TEST(no_more_owners_count_than_there_is_room_for)
{
    QF_CLEANUP(world_freep) struct world *world = four_workers();
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN, .query = { 1 } };
    struct wc_api_item_spec item = { { 1 }, { 1 }, core_affinity_to(1, WORLD_WORKERS) };

    core_own(&item, W2);
    for (uint64_t i = 1; i < WC_OWNERS_MAX; i++)
        item.owners[i] = i; /* of nobody */
    item.owner_count = UINT32_MAX;
    event.begin.items = &item;
    event.begin.count = 1;
    world_step(world, &event);
    CHECK_STR(world->did, "assign k1#1 w2 s2");
}

/* A worker is lost and comes back: what it owns is its own again, and nothing else moves. */
TEST(an_owner_that_is_back_gets_new_items_again)
{
    QF_CLEANUP(world_freep) struct world *world = four_workers();

    world_peer(world, WC_API_EV_DISCONNECTED, 2, 2);
    world_begin_owned(world, 1, 1, 1, 2, W2 | W4);
    CHECK_STR(world->did, "assign k1#1 w4 s4");
    world_peer(world, WC_API_EV_CONNECTED, 2, 12);
    world_status(world, 2, 12, true, false);
    world_begin_owned(world, 2, 2, 1, 2, W2 | W4);
    CHECK_STR(world->did, "assign k2#1 w2 s12");
}
