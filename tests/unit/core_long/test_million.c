/* test_million.c - a million queries leave nothing behind. */
#include "tests/lib/test.h"

#include "api_int.h"
#include "tests/lib/core/check.h"
#include "tests/lib/core/world.h"

enum { QUERIES = 1000000 };

/* One query that ends in one of the possible ways. */
static void run_query(struct world *world, uint64_t q)
{
    uint64_t k = q * 2;

    world_begin(world, q, k, 1, 1);
    switch (q % 6) {
    case 0:
        world_cancel(world, q);
        break;
    case 1:
        world_say(world, WC_API_EV_ACCEPTED, 1, k, 1);
        world_failed(world, 1, k, 1, QF_ECORRUPT, false);
        break;
    case 2:
        world_failed(world, 1, k, 1, QF_EIO, true);
        world_finish(world, 2, k, 2);
        break;
    case 3:
        world_say(world, WC_API_EV_ACCEPTED, 1, k, 1);
        world_say(world, WC_API_EV_READY, 1, k, 1);
        world_cancel(world, q);
        world_fetched(world, k, 1, k); /* late */
        break;
    default:
        world_finish(world, 1, k, 1);
        break;
    }
}

/* After each of a million queries the tables are as empty as before the first. Nothing is allocated
 * after creation, so this is all there is to grow. */
TEST(a_million_queries_leave_nothing_behind)
{
    struct wc_api_limits limits = { .workers_max = 4, .queries_max = 4, .items_max = 8 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);
    uint32_t timers;

    wc_api_trace(world->wc, NULL, NULL);
    world_up(world, 1);
    world_up(world, 2);
    timers = world->wc->timers.count;
    for (uint64_t q = 1; q <= QUERIES; q++) {
        run_query(world, q);
        CHECK_EQ(world->wc->item_pool.count, limits.items_max);
        CHECK_EQ(world->wc->query_pool.count, limits.queries_max);
        CHECK_EQ(world->wc->timers.count, timers);
        CHECK(wc_index_first(&world->wc->item_index, q * 2) == WC_NONE);
        CHECK(wc_index_first(&world->wc->query_index, q) == WC_NONE);
    }
    CHECK_MSG(!core_check_api(world->wc), "%s", core_check_api(world->wc));
    CHECK_EQ(wc_api_stats(world->wc)->queries_begun, QUERIES);
    CHECK_EQ(wc_api_stats(world->wc)->queries_ok + wc_api_stats(world->wc)->queries_failed +
                 wc_api_stats(world->wc)->queries_canceled,
             QUERIES);
}
