/* test_costs.c - what leaves cost is remembered, within bounds. */
#include "queryapi/query/costs.h"
#include "tests/lib/test.h"

TEST(less_counts_at_once_and_more_little_by_little)
{
    struct qa_costs *costs = qa_costs_new();
    uint64_t key = UINT64_C(0x123456789abcdef0), us = 0;

    CHECK(!qa_costs_find(costs, key, &us));
    qa_costs_learn(costs, key, 4000);
    CHECK(qa_costs_find(costs, key, &us));
    CHECK_EQ(us, 4000);
    qa_costs_learn(costs, key, 1000);
    CHECK(qa_costs_find(costs, key, &us));
    CHECK_EQ(us, 1000);
    qa_costs_learn(costs, key, 100000); /* a busy moment */
    CHECK(qa_costs_find(costs, key, &us));
    CHECK_EQ(us, 1300);
    for (int i = 0; i < 100; i++)
        qa_costs_learn(costs, key, UINT64_MAX);
    CHECK(qa_costs_find(costs, key, &us));
    CHECK(us > 16000000 && us < (1 << 24));
    qa_costs_learn(costs, key, 0);
    CHECK(qa_costs_find(costs, key, &us));
    CHECK_EQ(us, 0);
    costs = qa_costs_free(costs);
}

TEST(keys_do_not_answer_for_each_other)
{
    struct qa_costs *costs = qa_costs_new();
    uint64_t us;

    qa_costs_learn(costs, UINT64_C(1) << 40, 7);
    CHECK(!qa_costs_find(costs, UINT64_C(2) << 40, &us)); /* the same slot */
    qa_costs_learn(costs, UINT64_C(2) << 40, 9);
    CHECK(!qa_costs_find(costs, UINT64_C(1) << 40, &us)); /* the newer one has it */
    CHECK(qa_costs_find(costs, UINT64_C(2) << 40, &us));
    CHECK_EQ(us, 9);
    costs = qa_costs_free(costs);
}
