/* test_drive.c - what a leader does about a ring, and when. */
#include "ring/core/drive.h"
#include "tests/unit/ring/core/ring_help.h"

#define RING QF_CLEANUP(ring_freep) struct rg_ring *

static struct rg_driver driver;

static void lead(const struct rg_ring *ring, struct rg_drive_options options)
{
    options.partitions = options.partitions ? options.partitions : 2;
    rg_driver_init(&driver, &options);
    for (uint8_t n = 0; n < 8; n++)
        if (ring->nodes[n].state != RG_NODE_NONE)
            rg_drive(&driver, ring,
                     &(struct rg_drive_event){
                         .kind = RG_DRIVE_STATUS, .node = n, .up = true, .incarnation = 100 });
}

static unsigned count(enum rg_drive_effect_kind kind)
{
    unsigned found = 0;

    for (size_t i = 0; i < driver.effect_count; i++)
        found += driver.effects[i].kind == kind;
    return found;
}

static void step(const struct rg_ring *ring, struct rg_drive_event event)
{
    rg_drive(&driver, ring, &event);
}

/* What a world without faults answers to @effect. */
static void answer(struct rg_ring *ring, const struct rg_drive_effect *effect, int64_t now_ms)
{
    struct rg_drive_event event = { .now_ms = now_ms,
                                    .node = effect->node,
                                    .slot = effect->slot,
                                    .partition = effect->partition,
                                    .epoch = effect->epoch,
                                    .ok = true,
                                    .incarnation = 100,
                                    .listed = ring->epoch,
                                    .blobs = 1,
                                    .bytes = 10 };

    switch (effect->kind) {
    case RG_DRIVE_PROPOSE:
        (void)rg_ring_apply(ring, ring->applied + 1, &effect->entry);
        return;
    case RG_DRIVE_ADOPT:
        event.kind = RG_DRIVE_ADOPTED;
        break;
    case RG_DRIVE_TELL:
        event.kind = RG_DRIVE_ACKED;
        break;
    case RG_DRIVE_STREAM:
        event.kind = RG_DRIVE_STREAMED;
        break;
    case RG_DRIVE_VERIFY:
        event.kind = RG_DRIVE_VERIFIED;
        break;
    case RG_DRIVE_CLEAN:
        event.kind = RG_DRIVE_CLEANED;
        break;
    }
    rg_drive(&driver, ring, &event);
}

/* Answer everything, except what @not says, for @ticks ticks of a minute each. */
static void run(struct rg_ring *ring, int ticks, unsigned not_kinds)
{
    static struct rg_drive_effect todo[4096];
    size_t todo_count = 0;

    for (int t = 0; t < ticks; t++) {
        int64_t now = ring->time_ms + 60000;

        step(ring, (struct rg_drive_event){ .kind = RG_DRIVE_TICK, .now_ms = now });
        todo_count = 0;
        for (size_t done = 0;; done++) {
            for (size_t i = 0; i < driver.effect_count && todo_count < 4096; i++)
                if (!(not_kinds >> driver.effects[i].kind & 1))
                    todo[todo_count++] = driver.effects[i];
            driver.effect_count = 0;
            if (done == todo_count)
                break;
            answer(ring, &todo[done], now);
        }
        ring->time_ms = now;
    }
}

TEST(an_addition_is_driven_to_its_end_and_cleaned_up)
{
    RING ring = found(16, 3, 3);
    uint64_t change;

    CHECK_EQ(add(ring, "n3", ""), RG_APPLIED);
    change = ring->applied;
    lead(ring, (struct rg_drive_options){ 0 });
    run(ring, 60, 0);
    CHECK_EQ(rg_node_state(ring, 3), RG_NODE_NORMAL);
    CHECK_EQ(rg_ring_change(ring, change)->state, RG_COMPLETED);
    CHECK(rg_ring_change(ring, change)->blobs > 0);
    CHECK(rg_ring_health(ring, 0, 1).stale > 0);
    ring->time_ms += 24 * HOUR_MS;
    run(ring, 20, 0);
    CHECK_EQ(rg_ring_health(ring, 0, 1).stale, 0);
    CHECK(!rg_ring_change(ring, change));
}

TEST(streams_wait_for_a_majority_of_old_owners_to_know_the_epoch)
{
    RING ring = found(1, 3, 3);
    struct rg_drive_event event = { .kind = RG_DRIVE_ACKED };

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_FACTOR, .copies = 2 }), RG_APPLIED);
    (void)begin_all(ring, ring->applied);
    lead(ring, (struct rg_drive_options){ 0 });
    event.epoch = ring->epoch;
    step(ring, event);
    CHECK_EQ(count(RG_DRIVE_STREAM), 0);
    event.node = 2;
    event.epoch = ring->epoch - 1;
    step(ring, event);
    CHECK_EQ(count(RG_DRIVE_STREAM), 0);
    event.epoch = ring->epoch;
    step(ring, event);
    CHECK_EQ(count(RG_DRIVE_STREAM), 2);
    CHECK_EQ(driver.effects[driver.effect_count - 1].sources,
             5); /* those that know it, no others */
}

TEST(verifying_waits_for_every_partition)
{
    RING ring = found(16, 3, 3);
    struct rg_drive_event event = { .kind = RG_DRIVE_ADOPTED };

    CHECK_EQ(add(ring, "n3", ""), RG_APPLIED);
    lead(ring, (struct rg_drive_options){ 0 });
    run(ring, 3, 1u << RG_DRIVE_ADOPT);
    CHECK_EQ(count(RG_DRIVE_VERIFY), 0);
    event.epoch = ring->epoch;
    event.now_ms = ring->time_ms;
    step(ring, event);
    CHECK_EQ(count(RG_DRIVE_VERIFY), 0);
    event.partition = 1;
    step(ring, event);
    CHECK(count(RG_DRIVE_VERIFY) > 0);
}

TEST(another_leader_goes_on_where_the_log_is)
{
    RING ring = found(64, 3, 3);
    uint32_t moving_before, settled = 0;

    CHECK_EQ(add(ring, "n3", ""), RG_APPLIED);
    lead(ring, (struct rg_drive_options){ .node_streams = 1, .streams = 4 });
    run(ring, 2, 0);
    step(ring, (struct rg_drive_event){ .kind = RG_DRIVE_LEAD, .now_ms = ring->time_ms });
    moving_before = rg_ring_health(ring, 0, 1).moving;
    CHECK(moving_before > 0);
    for (uint32_t i = 0; i < 64; i++)
        settled += ring->slots[i].epoch > 1 && !ring->slots[i].change;
    CHECK(settled > 0);
    lead(ring, (struct rg_drive_options){ 0 });
    run(ring, 30, 0);
    CHECK_EQ(rg_node_state(ring, 3), RG_NODE_NORMAL);
}

TEST(so_many_streams_at_a_time_and_no_more)
{
    RING ring = found(64, 3, 3);

    CHECK_EQ(add(ring, "n3", ""), RG_APPLIED);
    lead(ring, (struct rg_drive_options){ .node_streams = 2, .streams = 5 });
    for (int i = 0; i < 4; i++) {
        unsigned jobs = 0, its = 0;

        run(ring, 1, 1u << RG_DRIVE_STREAM);
        for (size_t j = 0; j < RG_JOBS_MAX; j++) {
            jobs += driver.jobs[j].stage != RG_JOB_FREE;
            its += driver.jobs[j].stage != RG_JOB_FREE && driver.jobs[j].node == 3;
        }
        CHECK(jobs <= 5);
        CHECK(its <= 2);
    }
}

TEST(hot_slots_come_first)
{
    RING ring = found(64, 3, 3);
    uint64_t heat[64] = { 0 };
    uint32_t hot;

    CHECK_EQ(add(ring, "n3", ""), RG_APPLIED);
    (void)begin_all(ring, ring->applied);
    for (hot = 63; !ring->slots[hot].change; hot--)
        ;
    heat[hot] = 1;
    lead(ring, (struct rg_drive_options){ .node_streams = 1, .heat = heat });
    for (size_t j = 0; j < RG_JOBS_MAX; j++)
        if (driver.jobs[j].stage != RG_JOB_FREE && driver.jobs[j].node == 3)
            CHECK_EQ(driver.jobs[j].slot, hot);
}

TEST(nothing_begins_to_be_streamed_while_it_is_paused)
{
    RING ring = found(16, 3, 3);

    CHECK_EQ(add(ring, "n3", ""), RG_APPLIED);
    lead(ring, (struct rg_drive_options){ .paused = true, .node_streams = 2 });
    run(ring, 20, 0);
    CHECK(rg_ring_health(ring, 0, 1).moving > 0);
    for (size_t j = 0; j < RG_JOBS_MAX; j++)
        CHECK(driver.jobs[j].stage == RG_JOB_FREE || driver.jobs[j].stage == RG_JOB_WAITS);
    driver.options.paused = false;
    run(ring, 1, 1u << RG_DRIVE_STREAM);
    driver.options.paused = true; /* these are under way, and end */
    for (size_t j = 0, streams = 0; j < RG_JOBS_MAX; j++) {
        struct rg_drive_effect effect = { .kind = RG_DRIVE_STREAM,
                                          .slot = driver.jobs[j].slot,
                                          .node = driver.jobs[j].node,
                                          .epoch = driver.jobs[j].epoch };

        if (driver.jobs[j].stage != RG_JOB_STREAMS)
            continue;
        CHECK(++streams <= 2 * 4); /* of each new owner */
        answer(ring, &effect, ring->time_ms);
        CHECK(driver.jobs[j].stage != RG_JOB_STREAMS);
    }
    driver.options.paused = false;
    run(ring, 40, 0);
    CHECK_EQ(rg_node_state(ring, 3), RG_NODE_NORMAL);
}

TEST(a_newcomer_that_always_fails_is_rolled_back)
{
    RING ring = found(16, 3, 3);
    uint64_t change;

    CHECK_EQ(add(ring, "n3", ""), RG_APPLIED);
    change = ring->applied;
    lead(ring, (struct rg_drive_options){ .timeout_ms = 1000 });
    run(ring, 40, 1u << RG_DRIVE_STREAM);
    CHECK_EQ(rg_ring_change(ring, change)->state, RG_ROLLED_BACK);
    CHECK_EQ(rg_node_state(ring, 3), RG_NODE_REMOVED);
}

TEST(the_dead_are_replaced_if_asked_for)
{
    RING ring = found(16, 4, 3);

    lead(ring, (struct rg_drive_options){ .dead_ms = HOUR_MS });
    step(ring, (struct rg_drive_event){ .kind = RG_DRIVE_STATUS, .node = 1, .incarnation = 100 });
    run(ring, 30, 0);
    CHECK_EQ(rg_node_state(ring, 1), RG_NODE_DOWN);
    run(ring, 90, 0);
    CHECK_EQ(rg_node_state(ring, 1), RG_NODE_REMOVED);
    CHECK_EQ(rg_ring_health(ring, ring->time_ms, HOUR_MS).dead, 0);
}
