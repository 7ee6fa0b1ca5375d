/* test_clean.c - each check of a cleanup refuses alone. */
#include "tests/unit/ring/core/ring_help.h"

#define RING QF_CLEANUP(ring_freep) struct rg_ring *

struct left {
    uint64_t change;
    uint32_t slot;
    uint8_t node;
};

/* A node is added, and one slot has left an old owner behind. */
static struct left leave(struct rg_ring *ring)
{
    struct left left;

    CHECK_EQ(add(ring, "n3", ""), RG_APPLIED);
    left.change = ring->applied;
    (void)begin_all(ring, left.change);
    left.slot = moving(ring);
    hold(ring, left.slot);
    left.node = (uint8_t)__builtin_ctzll(ring->slots[left.slot].stale);
    return left;
}

static struct rg_entry clean(const struct left *left, int64_t time_ms)
{
    return (struct rg_entry){ .kind = RG_CLEAN,
                              .node = left->node,
                              .time_ms = time_ms,
                              .slots = rg_slot_set_of(left->slot) };
}

/* All owners say, at @time_ms, that they hold everything. */
static void confirm(struct rg_ring *ring, uint32_t slot, int64_t time_ms)
{
    for (uint8_t n = 0; n < 8; n++)
        if (rg_owners_set(&ring->slots[slot].owners) & RG_NODE(n))
            (void)do_entry(ring, (struct rg_entry){ .kind = RG_HELD,
                                                    .node = n,
                                                    .incarnation = 100,
                                                    .epoch = ring->epoch,
                                                    .time_ms = time_ms,
                                                    .slots = rg_slot_set_of(slot) });
}

TEST(cleanup_waits_for_the_end_of_the_change)
{
    RING ring = found(16, 3, 3);
    struct left left = leave(ring);

    CHECK_EQ(do_entry(ring, clean(&left, 1000 * HOUR_MS)), RG_EARLY);
}

TEST(cleanup_waits_for_its_grace_period)
{
    RING ring = found(16, 3, 3);
    struct left left = leave(ring);

    ring->time_ms = HOUR_MS;
    finish(ring, left.change);
    confirm(ring, left.slot, 24 * HOUR_MS);
    CHECK_EQ(ring->slots[left.slot].held, 0); /* it is not asked yet */
    CHECK_EQ(do_entry(ring, clean(&left, 25 * HOUR_MS - 1)), RG_EARLY);
    CHECK_EQ(do_entry(ring, clean(&left, 25 * HOUR_MS)), RG_NOT_HELD);
}

TEST(cleanup_waits_for_a_quorum_that_holds_everything)
{
    RING ring = found(16, 3, 3);
    struct left left = leave(ring);
    struct rg_entry entry = clean(&left, 100 * HOUR_MS);

    finish(ring, left.change);
    CHECK_EQ(do_entry(ring, entry), RG_NOT_HELD);
    confirm(ring, left.slot, 100 * HOUR_MS);
    CHECK_EQ(do_entry(ring, entry), RG_APPLIED);
    CHECK_EQ(do_entry(ring, entry), RG_NOTHING);
}

TEST(cleanup_waits_while_the_slot_moves_again)
{
    RING ring = found(16, 3, 3);
    struct left left = leave(ring);
    uint32_t other;

    finish(ring, left.change);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 3 }), RG_APPLIED);
    (void)begin_all(ring, ring->applied);
    other = moving(ring);
    CHECK_EQ(rg_clean_check(ring, other, 3, 1000 * HOUR_MS), RG_IS_OWNER);
    ring->slots[other].stale |= RG_NODE(9); /* somebody who was there before */
    CHECK_EQ(rg_clean_check(ring, other, 9, 1000 * HOUR_MS), RG_MOVING);
}

TEST(an_owner_is_never_cleaned_not_even_by_force)
{
    RING ring = found(16, 3, 3);
    struct left left = leave(ring);
    struct rg_entry entry = clean(&left, 0);

    entry.node = 3;
    entry.forced = true;
    entry.reason = QF_STR("because");
    CHECK_EQ(do_entry(ring, entry), RG_IS_OWNER);
}

TEST(force_needs_a_reason)
{
    RING ring = found(16, 3, 3);
    struct left left = leave(ring);
    struct rg_entry entry = clean(&left, 0);

    entry.forced = true;
    CHECK_EQ(do_entry(ring, entry), RG_NO_REASON);
    entry.reason = QF_STR("the node is to be sold");
    CHECK_EQ(do_entry(ring, entry), RG_APPLIED);
    CHECK_EQ(ring->slots[left.slot].cleaning, RG_NODE(left.node));
}

TEST(the_record_of_a_change_goes_when_everything_is_cleaned)
{
    RING ring = found(16, 3, 3);
    struct left left = leave(ring);
    struct rg_entry forget = { .kind = RG_FORGET, .change = left.change, .time_ms = 99 * HOUR_MS };

    finish(ring, left.change);
    CHECK_EQ(do_entry(ring, forget), RG_EARLY);
    for (uint32_t i = 0; i < 16; i++)
        while (ring->slots[i].stale) {
            struct left one = { left.change, i, (uint8_t)__builtin_ctzll(ring->slots[i].stale) };
            struct rg_entry done = {
                .kind = RG_CLEANED, .node = one.node, .epoch = 1, .slots = rg_slot_set_of(i)
            };

            confirm(ring, i, 99 * HOUR_MS);
            CHECK_EQ(do_entry(ring, clean(&one, 99 * HOUR_MS)), RG_APPLIED);
            CHECK_EQ(do_entry(ring, done), RG_OTHER_EPOCH);
            done.epoch = ring->slots[i].epoch;
            CHECK_EQ(do_entry(ring, done), RG_APPLIED);
        }
    CHECK_EQ(do_entry(ring, forget), RG_APPLIED);
    CHECK(!rg_ring_change(ring, left.change));
}

TEST(the_number_of_a_removed_node_is_free_when_its_record_goes)
{
    RING ring = found(16, 4, 3);
    uint64_t change;

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 1 }), RG_APPLIED);
    change = ring->applied;
    finish(ring, change);
    CHECK_EQ(add(ring, "n1", ""), RG_EXISTS);
    CHECK_EQ(
        do_entry(ring,
                 (struct rg_entry){ .kind = RG_FORGET, .change = change, .time_ms = 99 * HOUR_MS }),
        RG_APPLIED);
    CHECK_EQ(add(ring, "n1", ""), RG_APPLIED);
    CHECK_EQ(rg_ring_node(ring, QF_STR("n1")), 1);
}

TEST(who_comes_back_as_an_owner_is_not_cleaned)
{
    RING ring = found(16, 3, 3);
    struct left left = leave(ring);
    struct rg_entry entry;

    finish(ring, left.change);
    confirm(ring, left.slot, 100 * HOUR_MS);
    entry = clean(&left, 100 * HOUR_MS);
    CHECK_EQ(do_entry(ring, entry), RG_APPLIED);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 3 }), RG_APPLIED);
    (void)begin_all(ring, ring->applied);
    CHECK(rg_slot_newcomers(&ring->slots[left.slot]) & RG_NODE(left.node));
    CHECK_EQ(ring->slots[left.slot].stale, 0);
    CHECK_EQ(ring->slots[left.slot].cleaning, 0);
}
