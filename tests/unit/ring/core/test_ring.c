/* test_ring.c - nodes come and go, slots move, and what is refused. */
#include "tests/unit/ring/core/ring_help.h"

#define RING QF_CLEANUP(ring_freep) struct rg_ring *

static uint64_t add_fourth(struct rg_ring *ring)
{
    CHECK_EQ(add(ring, "n3", ""), RG_APPLIED);
    return ring->applied;
}

TEST(a_ring_is_founded_once_with_enough_nodes)
{
    RING ring = rg_ring_new(8);
    struct rg_entry entry = { .kind = RG_FOUND, .copies = 3 };

    CHECK_EQ(add(ring, "n0", ""), RG_APPLIED);
    CHECK_EQ(add(ring, "n1", ""), RG_APPLIED);
    CHECK_EQ(add(ring, "n1", ""), RG_EXISTS);
    CHECK_EQ(do_entry(ring, entry), RG_TOO_FEW);
    CHECK_EQ(add(ring, "n2", ""), RG_APPLIED);
    CHECK_EQ(do_entry(ring, entry), RG_APPLIED);
    CHECK_EQ(do_entry(ring, entry), RG_EARLY);
    CHECK_EQ(ring->epoch, 1);
    CHECK_EQ(rg_node_state(ring, 2), RG_NODE_NORMAL);
    CHECK_EQ(rg_owners_set(&ring->slots[5].owners), 7);
}

TEST(an_added_node_bootstraps_until_all_its_slots_are_held)
{
    RING ring = found(16, 3, 3);
    uint64_t change = add_fourth(ring);

    CHECK_EQ(rg_node_state(ring, 3), RG_NODE_BOOTSTRAPPING);
    CHECK(rg_ring_left(ring, rg_ring_change(ring, change)) > 0);
    finish(ring, change);
    CHECK_EQ(rg_node_state(ring, 3), RG_NODE_NORMAL);
    CHECK_EQ(rg_ring_change(ring, change)->state, RG_COMPLETED);
    for (uint32_t i = 0; i < 16; i++)
        CHECK_EQ(ring->slots[i].members, 15);
}

TEST(while_a_slot_moves_puts_need_old_and_new_majorities)
{
    RING ring = found(16, 3, 3);
    const struct rg_slot *slot;
    rg_nodes left, stay;

    (void)begin_all(ring, add_fourth(ring));
    slot = &ring->slots[moving(ring)];
    left = rg_owners_set(&slot->owners) & ~rg_owners_set(&slot->to);
    stay = rg_owners_set(&slot->owners) & rg_owners_set(&slot->to);
    CHECK_EQ(rg_slot_newcomers(slot), 8);
    CHECK(rg_slot_quorum(ring, slot, stay));
    /* One of those that stay: with the one that leaves a majority of the old owners, with the newcomer of the new. */
    CHECK(!rg_slot_quorum(ring, slot, (stay & -stay) | left));
    CHECK(!rg_slot_quorum(ring, slot, (stay & -stay) | 8));
    CHECK(rg_slot_quorum(ring, slot, (stay & -stay) | left | 8));
}

TEST(owners_count_whether_they_are_up_or_not)
{
    RING ring = found(4, 3, 3);

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_DOWN, .node = 0 }), RG_APPLIED);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_DOWN, .node = 1 }), RG_APPLIED);
    CHECK(!rg_slot_quorum(ring, &ring->slots[0], RG_NODE(2)));
    CHECK_EQ(rg_ring_health(ring, 0, 1).no_quorum, 4);
}

TEST(old_owners_are_left_when_newcomers_and_a_majority_hold_everything)
{
    RING ring = found(16, 3, 3);
    uint32_t at;
    rg_nodes stay;
    uint64_t epoch;

    (void)begin_all(ring, add_fourth(ring));
    at = moving(ring);
    stay = rg_owners_set(&ring->slots[at].owners) & rg_owners_set(&ring->slots[at].to);
    epoch = ring->epoch;
    CHECK_EQ(held_by(ring, at, 3), RG_APPLIED);
    CHECK(ring->slots[at].change); /* the newcomer alone is no majority */
    CHECK_EQ(held_by(ring, at, (uint8_t)__builtin_ctzll(stay)), RG_APPLIED);
    CHECK_EQ(ring->slots[at].change, 0);
    CHECK_EQ(ring->epoch, epoch + 1);
    CHECK_EQ(ring->slots[at].epoch, epoch + 1);
    CHECK(ring->slots[at].stale);
}

TEST(held_counts_only_behind_the_epoch_and_with_the_disk_that_is_there)
{
    RING ring = found(16, 3, 3);
    struct rg_entry entry = { .kind = RG_HELD, .node = 3, .incarnation = 100 };
    uint32_t at;

    (void)begin_all(ring, add_fourth(ring));
    at = moving(ring);
    entry.slots = rg_slot_set_of(at);
    entry.epoch = ring->slots[at].epoch - 1;
    CHECK_EQ(do_entry(ring, entry), RG_OTHER_EPOCH);
    entry.epoch++;
    entry.incarnation = 99;
    CHECK_EQ(do_entry(ring, entry), RG_OTHER_DISK);
    entry.incarnation = 100;
    CHECK_EQ(do_entry(ring, entry), RG_APPLIED);
    CHECK_EQ(do_entry(ring, entry), RG_NOTHING);
    /* Its disk was replaced: what it said is void. */
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_UP, .node = 3, .incarnation = 101 }),
             RG_APPLIED);
    CHECK_EQ(ring->slots[at].held, 0);
}

TEST(a_slot_is_in_one_move_at_a_time)
{
    RING ring = found(16, 3, 3);
    uint64_t first = add_fourth(ring), second;
    struct rg_slot_set ready;

    (void)begin_all(ring, first);
    CHECK_EQ(add(ring, "n4", ""), RG_APPLIED);
    second = ring->applied;
    CHECK(rg_ring_ready(ring, rg_ring_change(ring, second), &ready) ==
          (rg_ring_health(ring, 0, 1).moving < 16));
    (void)begin_all(ring, second);
    for (uint32_t i = 0; i < 16; i++)
        CHECK(rg_nodes_count(rg_slot_newcomers(&ring->slots[i])) <= 1);
    CHECK(rg_ring_left(ring, rg_ring_change(ring, second)) > 0);
    for (int i = 0; i < 3; i++) {
        finish(ring, first);
        finish(ring, second);
    }
    CHECK_EQ(rg_node_state(ring, 3), RG_NODE_NORMAL);
    CHECK_EQ(rg_node_state(ring, 4), RG_NODE_NORMAL);
}

TEST(changes_of_one_node_lock_each_other_out_and_others_not)
{
    RING ring = found(16, 5, 3);

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 1 }), RG_APPLIED);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 1 }), RG_LOCKED);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 2 }), RG_APPLIED);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 3 }), RG_TOO_FEW);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_FACTOR, .copies = 2 }), RG_APPLIED);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_FACTOR, .copies = 1 }), RG_LOCKED);
}

TEST(a_leaving_node_is_written_until_its_data_is_away)
{
    RING ring = found(16, 4, 3);
    uint64_t change;

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 2 }), RG_APPLIED);
    change = ring->applied;
    CHECK_EQ(rg_node_state(ring, 2), RG_NODE_LEAVING);
    (void)begin_all(ring, change);
    CHECK(rg_slot_everyone(&ring->slots[moving(ring)]) & RG_NODE(2));
    finish(ring, change);
    CHECK_EQ(rg_node_state(ring, 2), RG_NODE_REMOVED);
    for (uint32_t i = 0; i < 16; i++)
        CHECK(!(rg_slot_everyone(&ring->slots[i]) & RG_NODE(2)));
}

TEST(a_canceled_addition_goes_back_slot_by_slot)
{
    RING ring = found(16, 3, 3);
    uint64_t change = add_fourth(ring), epoch;
    uint32_t settled;

    (void)begin_all(ring, change);
    settled = moving(ring);
    hold(ring, settled);
    epoch = ring->epoch;
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_CANCEL,
                                               .change = change,
                                               .reason = QF_STR("disk full") }),
             RG_APPLIED);
    CHECK_EQ(ring->epoch, epoch + 1);
    CHECK_EQ(rg_ring_health(ring, 0, 1).moving, 0);
    CHECK_EQ(rg_ring_change(ring, change)->state, RG_ROLLING_BACK);
    CHECK(rg_slot_everyone(&ring->slots[settled]) & 8); /* what was settled needs a move back */
    finish(ring, change);
    CHECK_EQ(rg_ring_change(ring, change)->state, RG_ROLLED_BACK);
    CHECK_STR(rg_ring_change(ring, change)->reason, "disk full");
    CHECK_EQ(rg_node_state(ring, 3), RG_NODE_REMOVED);
    CHECK_EQ(rg_owners_set(&ring->slots[settled].owners), 7);
}

TEST(an_addition_that_fails_too_often_is_rolled_back_unless_others_rely_on_it)
{
    RING ring = found(16, 3, 3);
    uint64_t change = add_fourth(ring);
    struct rg_entry failed = { .kind = RG_FAILED, .change = change, .reason = QF_STR("no space") };

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 0 }), RG_APPLIED);
    for (int i = 0; i < RG_FAILURES_MAX; i++)
        CHECK_EQ(do_entry(ring, failed), RG_APPLIED);
    CHECK_EQ(rg_ring_change(ring, change)->state, RG_RUNNING);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_CANCEL, .change = change + 1 }),
             RG_APPLIED);
    CHECK_EQ(rg_node_state(ring, 0), RG_NODE_NORMAL);
    CHECK_EQ(do_entry(ring, failed), RG_APPLIED);
    CHECK_EQ(rg_ring_change(ring, change)->state, RG_ROLLED_BACK);
}

TEST(another_number_of_copies_is_a_change)
{
    RING ring = found(16, 5, 3);
    uint64_t change;

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_FACTOR, .copies = 6 }), RG_TOO_FEW);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_FACTOR, .copies = 5 }), RG_APPLIED);
    change = ring->applied;
    (void)begin_all(ring, change);
    CHECK_EQ(ring->slots[0].owners.count, 3);
    CHECK_EQ(ring->slots[0].to.count, 5);
    finish(ring, change);
    CHECK_EQ(ring->slots[0].owners.count, 5);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 0 }), RG_TOO_FEW);
}

TEST(a_node_that_stays_away_is_counted_as_dead)
{
    RING ring = found(16, 5, 3);
    struct rg_health health;

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_DOWN, .node = 4, .time_ms = 1000 }),
             RG_APPLIED);
    CHECK_EQ(rg_node_state(ring, 4), RG_NODE_DOWN);
    health = rg_ring_health(ring, 1999, 1000);
    CHECK(health.down > 0);
    CHECK_EQ(health.dead, 0);
    CHECK_EQ(health.no_quorum, 0);
    health = rg_ring_health(ring, 2000, 1000);
    CHECK_EQ(health.dead, health.down);
    CHECK_EQ(health.dead_nodes, RG_NODE(4));
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_UP, .node = 4, .incarnation = 100 }),
             RG_APPLIED);
    CHECK_EQ(rg_node_state(ring, 4), RG_NODE_NORMAL);
}

TEST(slots_altered_since_an_epoch_are_named)
{
    RING ring = found(16, 3, 3);
    struct rg_slot_set set;
    uint32_t at;

    (void)begin_all(ring, add_fourth(ring));
    at = moving(ring);
    hold(ring, at);
    rg_ring_altered(ring, ring->epoch - 1, &set);
    CHECK(rg_slot_set_has(&set, at));
    CHECK_EQ(rg_slot_set_next(&set, at + 1), RG_SLOTS);
    CHECK_EQ(rg_slot_set_next(&set, 0), at);
}

TEST(a_node_may_answer_at_another_url)
{
    RING ring = found(8, 3, 3);
    struct rg_entry up = {
        .kind = RG_UP, .node = 1, .incarnation = 100, .url = QF_STR("http://b:1")
    };
    char long_url[RG_URL_MAX + 1];

    CHECK_EQ(do_entry(ring, up), RG_APPLIED);
    CHECK_STR(ring->nodes[1].url, "http://b:1");
    CHECK_EQ(do_entry(ring, up), RG_NOTHING);
    up.url = QF_STR("");
    CHECK_EQ(do_entry(ring, up), RG_NOTHING);
    CHECK_STR(ring->nodes[1].url, "http://b:1");
    up.url = QF_STR("http:/");
    CHECK_EQ(do_entry(ring, up), RG_APPLIED);
    CHECK_STR(ring->nodes[1].url, "http:/");
    memset(long_url, 'u', sizeof(long_url));
    up.url = (struct qf_str){ long_url, sizeof(long_url) };
    CHECK_EQ(do_entry(ring, up), RG_BAD);
}
