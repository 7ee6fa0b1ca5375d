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
    CHECK(!qf_purse_parent_empty(&one));
    CHECK(!qf_purse_take(&two, 31)); /* the others' */
    CHECK(qf_purse_parent_empty(&two));
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
