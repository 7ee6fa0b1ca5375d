/* test_clock.c - clocks and documents. */
#include <string.h>

#include "base/pure/prng.h"
#include "ring/core/clock.h"
#include "tests/lib/test.h"

static struct rg_clock clock_of(uint64_t a, uint64_t b)
{
    struct rg_clock clock = { 0 };

    if (a)
        rg_clock_see(&clock, 1, a);
    if (b)
        rg_clock_see(&clock, 2, b);
    return clock;
}

static enum rg_order compare(uint64_t a1, uint64_t a2, uint64_t b1, uint64_t b2)
{
    struct rg_clock a = clock_of(a1, a2), b = clock_of(b1, b2);

    return rg_clock_compare(&a, &b);
}

TEST(clocks_are_the_same_causal_or_concurrent)
{
    CHECK_EQ(compare(0, 0, 0, 0), RG_SAME);
    CHECK_EQ(compare(1, 2, 1, 2), RG_SAME);
    CHECK_EQ(compare(0, 0, 1, 0), RG_BEFORE);
    CHECK_EQ(compare(1, 2, 1, 3), RG_BEFORE);
    CHECK_EQ(compare(2, 2, 1, 0), RG_AFTER);
    CHECK_EQ(compare(1, 0, 0, 1), RG_CONCURRENT);
    CHECK_EQ(compare(2, 1, 1, 2), RG_CONCURRENT);
}

TEST(a_write_of_someone_who_read_replaces_what_was_read)
{
    struct rg_document document = { 0 };
    struct rg_value first = rg_document_write(&document, 1, 1, 100, 11), second;

    CHECK(rg_document_add(&document, &first));
    second = rg_document_write(&document, 2, 1, 50 /* its clock is behind */, 22);
    CHECK(second.time_ms > first.time_ms);
    CHECK(rg_document_add(&document, &second));
    CHECK_EQ(document.count, 1);
    CHECK_EQ(document.values[0].content, 22);
    CHECK(!rg_document_add(&document, &first));
    CHECK_EQ(document.values[0].content, 22);
}

TEST(of_concurrent_writes_the_last_wins_and_the_other_is_kept)
{
    struct rg_document nothing = { 0 }, document = { 0 };
    struct rg_value early = rg_document_write(&nothing, 1, 1, 100, 11);
    struct rg_value late = rg_document_write(&nothing, 2, 1, 101, 22);
    struct rg_value both;

    rg_document_add(&document, &late);
    rg_document_add(&document, &early);
    CHECK_EQ(document.count, 2);
    CHECK_EQ(document.values[0].content, 22);
    CHECK_EQ(document.values[1].content, 11);
    both = rg_document_write(&document, 1, 2, 0, 33);
    rg_document_add(&document, &both);
    CHECK_EQ(document.count, 1);
    CHECK_EQ(document.values[0].content, 33);
}

TEST(a_clock_that_is_full_forgets_and_the_later_write_still_wins)
{
    struct rg_document document = { 0 };

    for (uint64_t i = 1; i <= RG_CLOCK_MAX * 3; i++) {
        struct rg_value value = rg_document_write(&document, i, i, 100 - (int64_t)i, i);

        CHECK(rg_document_add(&document, &value));
        CHECK_EQ(document.values[0].content, i);
        CHECK(document.values[0].clock.count <= RG_CLOCK_MAX);
    }
}

/* Replicas that hear of the same writes in different orders, some of them twice, end alike; some writes say the same as others, at
 * the same time. */
TEST(documents_converge_in_whatever_order_values_come)
{
    struct qf_prng prng = { 7 };

    for (int round = 0; round < 500; round++) {
        struct rg_document replicas[3] = { 0 };
        struct rg_value values[6];

        for (uint64_t i = 0; i < 6; i++) {
            struct rg_document *seen = &replicas[qf_prng_below(&prng, 3)];

            values[i] = rg_document_write(seen, 1 + qf_prng_below(&prng, 3), i + 1,
                                          (int64_t)qf_prng_below(&prng, 4), i % 2);
            rg_document_add(&replicas[qf_prng_below(&prng, 3)], &values[i]);
        }
        for (int i = 0; i < 40; i++)
            rg_document_add(&replicas[i % 3], &values[qf_prng_below(&prng, 6)]);
        for (int r = 0; r < 3; r++)
            for (int i = 0; i < 6; i++)
                rg_document_add(&replicas[r], &values[i]);
        CHECK(memcmp(&replicas[0], &replicas[1], sizeof(replicas[0])) == 0);
        CHECK(memcmp(&replicas[1], &replicas[2], sizeof(replicas[0])) == 0);
        CHECK(!rg_document_join(&replicas[0], &replicas[2]));
    }
}
