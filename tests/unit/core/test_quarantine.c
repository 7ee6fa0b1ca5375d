/* test_quarantine.c - data that has cost workers: every cell of the table in quarantine.h. */
#include "workcoord/quarantine.h"

#include <string.h>

#include "base/pure/macros.h"
#include "tests/lib/core/world.h"
#include "tests/lib/test.h"

static struct wc_quarantine *small(void)
{
    return wc_quarantine_new(
        &(struct wc_quarantine_limits){ .entries_max = 3, .deaths_max = 2, .time_ms = 100 });
}

static enum wc_suspicion find(const struct wc_quarantine *q, uint64_t key, qf_time_ms now)
{
    return wc_quarantine_find(q, key, now).suspicion;
}

TEST(two_deaths_without_a_good_end_between_them_are_quarantine)
{
    struct wc_quarantine *q = small();
    struct wc_quarantine_entry entry;

    CHECK_EQ(find(q, 7, 0), WC_CLEAN);
    CHECK_EQ(wc_quarantine_blame(q, 7, 1, 0).suspicion, WC_SUSPECT);
    CHECK_EQ(wc_quarantine_blame(q, 7, 1, 5).suspicion,
             WC_SUSPECT); /* the same death, told again */
    CHECK_EQ(find(q, 7, 5), WC_SUSPECT);
    wc_quarantine_clear(q, 7);
    CHECK_EQ(find(q, 7, 5), WC_CLEAN);
    CHECK_EQ(wc_quarantine_count(q), 0);
    CHECK_EQ(wc_quarantine_blame(q, 7, 2, 10).suspicion, WC_SUSPECT);
    entry = wc_quarantine_blame(q, 7, 3, 20);
    CHECK_EQ(entry.suspicion, WC_QUARANTINED);
    CHECK_EQ(entry.deaths, 2);
    CHECK_EQ(entry.death, 3);
    CHECK_EQ(entry.until, 120);
    CHECK_EQ(wc_quarantine_held(q, 20), 1);
    wc_quarantine_clear(q, 7); /* by a run that was under way */
    CHECK_EQ(find(q, 7, 20), WC_QUARANTINED);
    CHECK_EQ(wc_quarantine_blame(q, 7, 4, 50).until, 150);
    (void)wc_quarantine_free(q);
}

TEST(quarantine_ends_by_time_or_when_it_is_lifted)
{
    struct wc_quarantine *q = small();

    (void)wc_quarantine_blame(q, 7, 1, 0);
    CHECK_EQ(wc_quarantine_blame(q, 7, 2, 0).suspicion, WC_QUARANTINED);
    CHECK_EQ(find(q, 7, 99), WC_QUARANTINED);
    CHECK_EQ(find(q, 7, 100), WC_CLEAN);
    CHECK_EQ(wc_quarantine_held(q, 100), 0);
    CHECK_EQ(wc_quarantine_blame(q, 7, 3, 100).suspicion, WC_SUSPECT);
    CHECK(wc_quarantine_lift(q, 7));
    CHECK(!wc_quarantine_lift(q, 7));
    wc_quarantine_clear(q, 7); /* not there: nothing to do */
    CHECK_EQ(find(q, 7, 100), WC_CLEAN);
    (void)wc_quarantine_free(q);
}

TEST(a_full_table_forgets_suspects_before_what_is_held)
{
    struct wc_quarantine *q = small();

    (void)wc_quarantine_blame(q, 1, 1, 0);
    (void)wc_quarantine_blame(q, 1, 2, 0);
    (void)wc_quarantine_blame(q, 2, 3, 10);
    (void)wc_quarantine_blame(q, 3, 3, 5);
    (void)wc_quarantine_blame(q, 4, 4, 20);
    CHECK_EQ(wc_quarantine_count(q), 3);
    CHECK_EQ(find(q, 1, 20), WC_QUARANTINED);
    CHECK_EQ(find(q, 2, 20), WC_SUSPECT);
    CHECK_EQ(find(q, 3, 20), WC_CLEAN);
    CHECK_EQ(find(q, 4, 20), WC_SUSPECT);
    (void)wc_quarantine_blame(q, 2, 5, 30);
    (void)wc_quarantine_blame(q, 4, 5, 40);
    (void)wc_quarantine_blame(q, 5, 6, 50); /* all are held: the one that is over first */
    CHECK_EQ(find(q, 1, 50), WC_CLEAN);
    CHECK_EQ(wc_quarantine_held(q, 50), 2);
    for (uint32_t slot = 0, held = 0; slot < 3; slot++) {
        struct wc_quarantine_entry entry = wc_quarantine_at(q, slot, 50);

        held += entry.suspicion == WC_QUARANTINED;
        CHECK_EQ(entry.slot, slot);
        CHECK(slot < 2 || held == 2);
    }
    (void)wc_quarantine_free(q);
}

TEST(limits_have_defaults)
{
    struct wc_quarantine *q = wc_quarantine_new(&(struct wc_quarantine_limits){ 0 });

    CHECK_EQ(wc_quarantine_held(q, 0), 0);
    for (uint64_t key = 0; key < 5000; key++)
        (void)wc_quarantine_blame(q, key, 1, 0);
    CHECK_EQ(wc_quarantine_count(q), 4096);
    CHECK_EQ(wc_quarantine_blame(q, 4999, 2, 0).until, 600000);
    (void)wc_quarantine_free(q);
}

TEST(a_table_that_does_not_fit_is_refused)
{
    CHECK(!wc_quarantine_new(&(struct wc_quarantine_limits){ .entries_max = UINT32_MAX - 100000 }));
}

/* --- what an item costs, in the core --- */

static void die(struct world *world, uint64_t worker, uint64_t session)
{
    struct wc_api_event event = {
        .type = WC_API_EV_DISCONNECTED, .worker = { worker }, .session = { session }, .died = true
    };

    world_step(world, &event);
}

static struct world *three_workers(void)
{
    struct wc_api_limits limits = { .workers_max = 4, .items_max = 4, .hedge_after = 2 };
    struct world *world = world_new(&limits);

    for (uint64_t w = 1; w <= 3; w++)
        world_up(world, w);
    return world;
}

static uint32_t deaths(const struct world *world, uint64_t work)
{
    struct wc_api_item_view view;

    return wc_api_item(world->wc, (struct wc_work_id){ work }, &view) ? view.deaths : 99;
}

static uint64_t worker_of(const struct world *world, uint64_t work)
{
    struct wc_api_item_view view;

    return wc_api_item(world->wc, (struct wc_work_id){ work }, &view) ? view.worker.v : 0;
}

/* The third worker does not get it. */
TEST(an_item_that_cost_two_workers_ends_its_query)
{
    QF_CLEANUP(world_freep) struct world *world = three_workers();
    uint64_t second;

    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    die(world, 1, 1);
    second = worker_of(world, 1);
    CHECK(second == 2 || second == 3);
    CHECK_EQ(deaths(world, 1), 1);
    world_say(world, WC_API_EV_ACCEPTED, second, 1, 2);
    die(world, second, second);
    CHECK_STR(world->did, second == 2 ? "lost w2 s2; blamed k1#2 w2 s2; ended q1 quarantined k1"
                                      : "lost w3 s3; blamed k1#2 w3 s3; ended q1 quarantined k1");
    CHECK_EQ(wc_api_stats(world->wc)->blamed, 2);
}

/* What other queries' workers died of has one chance. */
TEST(a_suspect_has_one_chance)
{
    QF_CLEANUP(world_freep) struct world *world = three_workers();
    struct wc_api_item_spec item = { .work = { 1 }, .leaf = { 1 }, .deaths = 1 };
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN,
                                  .query = { 1 },
                                  .begin = { .items = &item, .count = 1 } };
    uint64_t worker;

    world_step(world, &event);
    worker = worker_of(world, 1);
    world_say(world, WC_API_EV_ACCEPTED, worker, 1, 1);
    die(world, worker, worker);
    CHECK_EQ(worker_of(world, 1), 0);
    CHECK_EQ(wc_api_stats(world->wc)->queries_failed, 1);
}

/* Not begun, done, drained, silent, or ended by us: nobody died of it. */
TEST(only_what_was_running_is_blamed)
{
    QF_CLEANUP(world_freep) struct world *world = three_workers();

    world_begin(world, 1, 1, 1, 1);
    die(world, 1, 1); /* not accepted yet */
    CHECK_EQ(deaths(world, 1), 0);
    world_say(world, WC_API_EV_ACCEPTED, worker_of(world, 1), 1, 2);
    world_say(world, WC_API_EV_READY, worker_of(world, 1), 1, 2);
    die(world, worker_of(world, 1), worker_of(world, 1)); /* it was done */
    CHECK_EQ(deaths(world, 1), 0);
    world_say(world, WC_API_EV_ACCEPTED, worker_of(world, 1), 1, 3);
    world_status(world, worker_of(world, 1), worker_of(world, 1), false, true);
    die(world, worker_of(world, 1), worker_of(world, 1)); /* it drained */
    CHECK_EQ(deaths(world, 1), 0);
    CHECK_EQ(wc_api_stats(world->wc)->blamed, 0);
}

TEST(a_good_run_clears_an_item)
{
    QF_CLEANUP(world_freep) struct world *world = three_workers();

    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    die(world, 1, 1);
    CHECK_EQ(deaths(world, 1), 1);
    world_say(world, WC_API_EV_ACCEPTED, worker_of(world, 1), 1, 2);
    world_say(world, WC_API_EV_READY, worker_of(world, 1), 1, 2);
    CHECK_EQ(deaths(world, 1), 0);
}

/* Two at once: the item's own worker and that of its hedge. */
TEST(a_hedge_that_costs_the_second_worker_ends_the_query)
{
    QF_CLEANUP(world_freep) struct world *world = three_workers();
    struct wc_api_item_view view;

    world_begin_expecting(world, 1, 1, 1, 1, 100);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_tick(world, 200);
    CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
    CHECK_EQ(view.hedge.state, WC_HEDGE_ASSIGNED);
    die(world, view.hedge.worker.v, view.hedge.worker.v); /* it had not begun */
    CHECK_EQ(deaths(world, 1), 0);
    world_begin_expecting(world, 2, 2, 1, 1, 100);
    world_say(world, WC_API_EV_ACCEPTED, 1, 2, 1);
    world_tick(world, 400);
    CHECK(wc_api_item(world->wc, (struct wc_work_id){ 2 }, &view));
    CHECK_EQ(view.hedge.state, WC_HEDGE_ASSIGNED);
    world_say(world, WC_API_EV_ACCEPTED, view.hedge.worker.v, 2, 2);
    die(world, view.hedge.worker.v, view.hedge.worker.v);
    CHECK_EQ(deaths(world, 2), 1);
    CHECK_EQ(worker_of(world, 2), 1); /* its own worker goes on */
    die(world, 1, 1);
    CHECK_EQ(worker_of(world, 2), 0);
}

/* The second death is the hedge's: its own worker is told to stop. */
TEST(a_suspect_is_taken_from_its_worker_when_the_hedge_dies)
{
    QF_CLEANUP(world_freep) struct world *world = three_workers();
    struct wc_api_item_spec item = { .work = { 1 }, .leaf = { 1 }, .deaths = 1, .expect_ms = 100 };
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN,
                                  .query = { 1 },
                                  .begin = { .items = &item, .count = 1 } };
    struct wc_api_item_view view;

    world_step(world, &event);
    world_say(world, WC_API_EV_ACCEPTED, worker_of(world, 1), 1, 1);
    world_tick(world, 200);
    CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
    world_say(world, WC_API_EV_ACCEPTED, view.hedge.worker.v, 1, 2);
    die(world, view.hedge.worker.v, view.hedge.worker.v);
    CHECK_EQ(worker_of(world, 1), 0);
    CHECK(strstr(world->did, "cancel k1#1"));
    CHECK(strstr(world->did, "ended q1 quarantined k1"));
}
