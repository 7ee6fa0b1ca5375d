/* test_place.c - owners of slots: spread, stable, zones apart. */
#include <stdio.h>
#include <string.h>

#include "ring/core/place.h"
#include "tests/lib/test.h"

static struct rg_owners slots[RG_SLOTS], others[RG_SLOTS];
static char names[RG_NODES_MAX][16], zones[RG_NODES_MAX][16];

static size_t make_nodes(struct rg_place_node *nodes, size_t count, size_t zone_count)
{
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "keeper-%zu", i);
        (void)snprintf(zones[i], sizeof(zones[i]), "zone-%zu", zone_count ? i % zone_count : 0);
        nodes[i] = (struct rg_place_node){ (uint8_t)i, qf_str_from(names[i]), { 0 } };
        if (zone_count)
            nodes[i].zone = qf_str_from(zones[i]);
    }
    return count;
}

static void place(struct rg_place_node *nodes, size_t count, uint8_t copies, struct rg_owners *ret)
{
    struct qf_err err = { 0 };

    CHECK_OK(rg_place(nodes, count, copies, ret, &err), &err);
}

TEST(each_slot_has_as_many_different_owners_as_copies)
{
    struct rg_place_node nodes[5];

    place(nodes, make_nodes(nodes, 5, 0), 3, slots);
    for (int s = 0; s < RG_SLOTS; s++)
        CHECK_EQ(rg_nodes_count(rg_owners_set(&slots[s])), 3);
}

TEST(with_fewer_nodes_than_copies_all_of_them_own_everything)
{
    struct rg_place_node nodes[2];

    place(nodes, make_nodes(nodes, 2, 0), 3, slots);
    for (int s = 0; s < RG_SLOTS; s++)
        CHECK_EQ(rg_owners_set(&slots[s]), 3);
}

TEST(nodes_get_about_the_same_number_of_slots)
{
    struct rg_place_node nodes[8];
    int counts[8] = { 0 };

    place(nodes, make_nodes(nodes, 8, 0), 3, slots);
    for (int s = 0; s < RG_SLOTS; s++)
        for (int i = 0; i < 3; i++)
            counts[slots[s].nodes[i]]++;
    for (int n = 0; n < 8; n++)
        CHECK_MSG(counts[n] > 384 * 3 / 4 && counts[n] < 384 * 5 / 4, "node %d has %d slots", n,
                  counts[n]);
}

TEST(zones_come_first)
{
    struct rg_place_node nodes[9];

    place(nodes, make_nodes(nodes, 9, 3), 3, slots);
    for (int s = 0; s < RG_SLOTS; s++) {
        unsigned met = 0;

        for (int i = 0; i < 3; i++)
            met |= 1u << (slots[s].nodes[i] % 3);
        CHECK_EQ(met, 7);
    }
}

TEST(with_fewer_zones_than_copies_the_rest_is_filled_up)
{
    struct rg_place_node nodes[6];

    place(nodes, make_nodes(nodes, 6, 2), 3, slots);
    for (int s = 0; s < RG_SLOTS; s++) {
        CHECK_EQ(rg_nodes_count(rg_owners_set(&slots[s])), 3);
        CHECK(slots[s].nodes[0] % 2 != slots[s].nodes[1] % 2);
    }
}

/* Whatever zones there are: fewer copies are a prefix of more. */
TEST(owners_for_fewer_copies_are_a_prefix)
{
    struct rg_place_node nodes[7];

    for (size_t zone_count = 0; zone_count < 4; zone_count++) {
        place(nodes, make_nodes(nodes, 7, zone_count), 5, slots);
        for (uint8_t copies = 1; copies < 5; copies++) {
            place(nodes, 7, copies, others);
            for (int s = 0; s < RG_SLOTS; s++)
                CHECK(memcmp(slots[s].nodes, others[s].nodes, copies) == 0);
        }
    }
}

/* What moves need: one owner of a slot at most comes, and one goes. */
TEST(a_node_more_changes_one_owner_of_a_slot_at_most)
{
    struct rg_place_node nodes[7];
    int changed = 0;

    for (size_t zone_count = 0; zone_count < 5; zone_count++) {
        place(nodes, make_nodes(nodes, 6, zone_count), 3, slots);
        place(nodes, make_nodes(nodes, 7, zone_count), 3, others);
        for (int s = 0; s < RG_SLOTS; s++) {
            rg_nodes before = rg_owners_set(&slots[s]), after = rg_owners_set(&others[s]);

            CHECK((after & ~before) == 0 || (after & ~before) == RG_NODE(6));
            CHECK_EQ(rg_nodes_count(before & ~after), rg_nodes_count(after & ~before));
            changed += before != after;
        }
    }
    CHECK(changed > RG_SLOTS && changed < RG_SLOTS * 4);
}

TEST(the_order_in_which_nodes_are_given_does_not_matter)
{
    struct rg_place_node nodes[5], turned[5];

    make_nodes(nodes, 5, 2);
    for (int i = 0; i < 5; i++)
        turned[i] = nodes[4 - i];
    place(nodes, 5, 3, slots);
    place(turned, 5, 3, others);
    CHECK(memcmp(slots, others, sizeof(slots)) == 0);
}

TEST(nodes_that_cannot_be_are_refused)
{
    struct rg_place_node nodes[3];

    make_nodes(nodes, 3, 0);
    CHECK_EQ(rg_place(nodes, 0, 3, slots, NULL), QF_EINVAL);
    CHECK_EQ(rg_place(nodes, 3, 0, slots, NULL), QF_EINVAL);
    CHECK_EQ(rg_place(nodes, 3, RG_COPIES_MAX + 1, slots, NULL), QF_EINVAL);
    nodes[2].name = nodes[0].name;
    CHECK_EQ(rg_place(nodes, 3, 3, slots, NULL), QF_EINVAL);
    nodes[2].name = QF_STR("");
    CHECK_EQ(rg_place(nodes, 3, 3, slots, NULL), QF_EINVAL);
}

/* Positions are part of what is stored: they never change between releases. */
TEST(positions_are_for_ever)
{
    CHECK_EQ(rg_slot_of(QF_STR("acme"), 0, RG_PLACEMENTS), 124);
    CHECK_EQ(rg_slot_of(QF_STR("acme"), 1, RG_PLACEMENTS), 208);
    CHECK_EQ(rg_slot_of(QF_STR("acme"), 65, RG_PLACEMENTS), 208);
}

TEST(a_quorum_is_a_majority_of_the_owners_whatever_their_state)
{
    struct rg_owners owners = { 3, { 1, 4, 6 } };

    CHECK_EQ(rg_quorum(1), 1);
    CHECK_EQ(rg_quorum(2), 2);
    CHECK_EQ(rg_quorum(3), 2);
    CHECK_EQ(rg_quorum(4), 3);
    CHECK_EQ(rg_quorum(5), 3);
    CHECK(!rg_is_quorum(&owners, RG_NODE(1)));
    CHECK(!rg_is_quorum(&owners, RG_NODE(1) | RG_NODE(2) | RG_NODE(3)));
    CHECK(rg_is_quorum(&owners, RG_NODE(1) | RG_NODE(6)));
}
