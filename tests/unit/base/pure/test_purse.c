/* test_purse.c - budgets that several owners draw on. */
#include "base/pure/purse.h"

#include "tests/lib/test.h"

TEST(what_is_taken_from_a_purse_is_taken_from_its_parent)
{
    struct qf_purse all = { .limit = 100 };
    struct qf_purse one = { .limit = 80, .parent = &all }, two = { .limit = 80, .parent = &all };

    CHECK(qf_purse_take(&one, 70));
    CHECK_EQ(qf_purse_used(&all), 70);
    CHECK(!qf_purse_take(&one, 11)); /* its own limit */
    CHECK(!qf_purse_empty_ancestor(&one));
    CHECK(!qf_purse_take(&two, 31)); /* the others' */
    CHECK(qf_purse_empty_ancestor(&two) == &all);
    CHECK_EQ(qf_purse_left(&one), 10);
    CHECK_EQ(qf_purse_left(NULL), SIZE_MAX);
    qf_purse_blame(&one);
    CHECK(!qf_purse_empty_ancestor(&one)); /* it has least itself */
    CHECK_EQ(qf_purse_used(&two), 0);
    CHECK(qf_purse_take(&two, 30));
    qf_purse_give(&one, 70);
    CHECK_EQ(qf_purse_used(&all), 30);
    CHECK(!qf_purse_take(&two, SIZE_MAX));
    qf_purse_give(&two, 30);
    CHECK_EQ(qf_purse_used(&all), 0);
}

TEST(an_arena_pays_from_its_purse_and_gives_all_back)
{
    struct qf_purse purse = { .limit = 100000 };
    struct qf_arena *arena = qf_arena_new_from(&purse);
    size_t first;

    CHECK_EQ(qf_purse_used(&purse), 0);
    CHECK(qf_arena_alloc(arena, 10));
    first = qf_purse_used(&purse);
    CHECK(first >= 10 && first == qf_arena_used(arena));
    for (int i = 0; i < 20; i++)
        CHECK(qf_arena_alloc(arena, 2000));
    CHECK_EQ(qf_purse_used(&purse), qf_arena_used(arena));
    CHECK(!qf_arena_alloc(arena, 100000));
    CHECK(qf_arena_failed(arena));
    qf_arena_reset(arena);
    CHECK_EQ(qf_purse_used(&purse), first);
    /* The last bytes are given out exactly: no chunk of the usual size would fit. */
    CHECK(qf_arena_alloc(arena, 90000));
    arena = qf_arena_free(arena);
    CHECK_EQ(qf_purse_used(&purse), 0);
}

/* What lies outside of an arena counts like what is in it, until reset or free. */
TEST(what_is_charged_to_an_arena_is_paid_and_given_back)
{
    struct qf_purse purse = { .limit = 10000 };
    struct qf_arena *arena = qf_arena_new_from(&purse);

    CHECK(qf_arena_charge(arena, 6000));
    CHECK_EQ(qf_purse_used(&purse), 6000);
    CHECK(!qf_arena_charge(arena, 6000));
    CHECK(qf_arena_failed(arena));
    CHECK_EQ(qf_arena_used(arena), 6000);
    CHECK(qf_arena_alloc(arena, 8000) == NULL);
    qf_arena_reset(arena);
    CHECK_EQ(qf_purse_used(&purse), 0);
    CHECK(qf_arena_alloc(arena, 8000) != NULL);
    arena = qf_arena_free(arena);
    CHECK_EQ(qf_purse_used(&purse), 0);
}

TEST(a_charge_counts_against_the_budget)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(10000);

    CHECK(qf_arena_charge(arena, 9000));
    CHECK(qf_arena_alloc(arena, 2000) == NULL);
    CHECK(!qf_arena_charge(arena, SIZE_MAX));
}

/* What is taken for an arena within another comes back once. */
TEST(an_arena_within_another_draws_on_the_same_purse)
{
    struct qf_purse purse = { .limit = 100000 };
    struct qf_arena *arena = qf_arena_new_from(&purse);
    struct qf_arena *within = qf_arena_new_within(arena);

    CHECK(qf_arena_alloc(within, 60000) != NULL);
    CHECK(qf_purse_used(&purse) > 60000);
    CHECK_EQ(qf_purse_used(&purse), qf_arena_used(arena));
    CHECK(qf_arena_alloc(arena, 60000) == NULL);
    CHECK(qf_arena_alloc(within, 6000) != NULL);
    arena = qf_arena_free(arena);
    CHECK_EQ(qf_purse_used(&purse), 0);
}
