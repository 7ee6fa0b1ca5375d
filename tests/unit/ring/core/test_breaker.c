/* test_breaker.c - whoever does not answer is left alone, for longer and longer, and asked again. */
#include "ring/core/breaker.h"

#include "tests/lib/test.h"

/* So many misses at @now_ms; true: the last one opened it. */
static bool miss(struct rg_breaker *breaker, int times, int64_t now_ms)
{
    bool changed = false;

    while (times--)
        changed = rg_breaker_hear(breaker, false, now_ms);
    return changed;
}

TEST(misses_in_a_row_open_it_and_an_answer_closes_it)
{
    struct rg_breaker breaker = { 0 };

    CHECK(!miss(&breaker, RG_BREAKER_MISSES - 1, 0));
    CHECK(!rg_breaker_hear(&breaker, true, 0));
    CHECK(!miss(&breaker, RG_BREAKER_MISSES - 1, 0));
    CHECK(!rg_breaker_open(&breaker, 0));
    CHECK(miss(&breaker, 1, 0));
    CHECK(rg_breaker_open(&breaker, 0));
    CHECK(rg_breaker_open(&breaker, RG_BREAKER_FIRST_MS - 1));
    CHECK(!rg_breaker_open(&breaker, RG_BREAKER_FIRST_MS));
    CHECK(rg_breaker_hear(&breaker, true, RG_BREAKER_FIRST_MS));
    CHECK(!rg_breaker_open(&breaker, RG_BREAKER_FIRST_MS));
    CHECK(!miss(&breaker, 1, RG_BREAKER_FIRST_MS));
}

TEST(each_try_in_vain_opens_it_for_twice_as_long_up_to_a_bound)
{
    struct rg_breaker breaker = { 0 };
    int64_t now_ms = 0, expected_ms = RG_BREAKER_FIRST_MS;

    CHECK(miss(&breaker, RG_BREAKER_MISSES, now_ms));
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(breaker.until_ms, now_ms + expected_ms);
        CHECK(!miss(&breaker, 5, now_ms)); /* of those that were asked before */
        now_ms = breaker.until_ms;
        CHECK(!miss(&breaker, 1, now_ms)); /* it was open before, too */
        expected_ms = QF_MIN(2 * expected_ms, (int64_t)RG_BREAKER_MOST_MS);
    }
}
