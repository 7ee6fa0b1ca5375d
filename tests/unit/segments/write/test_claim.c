/* test_claim.c - generations of imports, whatever clocks say. */
#include "segments/write/claim.h"

#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"

#define NOW_MS INT64_C(1700000000000)
#define HOUR_US (UINT64_C(3600) * 1000000)

static struct sg_store *store_at(int64_t now_ms, bool plain)
{
    struct memory_store *memory = memory_store_new();

    memory_store_clock(memory, now_ms);
    if (plain)
        memory_store_plain(memory);
    return memory_store_base(memory);
}

static struct sg_claim *claim(struct sg_store *store, uint64_t generation)
{
    struct sg_claim *made;
    struct qf_err err = { 0 };

    CHECK_OK(sg_claim_new(store, QF_STR("t"), generation, NULL, &made, &err), &err);
    CHECK(sg_claim_generation(made) % 1000 >= 500); /* one of an import */
    return made;
}

static uint64_t import(struct sg_store *store, uint64_t clock_us)
{
    struct sg_claim *made = claim(store, clock_us);
    uint64_t generation = sg_claim_generation(made);

    (void)sg_claim_end(made);
    return generation;
}

/* Of samples that several imports have those of the last one count, also if its clock is behind: behind what a compactor has
 * settled, or behind another import. */
TEST(an_import_is_above_those_before_it_whatever_its_clock_says)
{
    for (int plain = 0; plain < 2; plain++) {
        struct sg_store *store = store_at(NOW_MS, plain);
        uint64_t now = (uint64_t)NOW_MS * 1000, below, last = 0;
        struct qf_err err = { 0 };

        CHECK_OK(sg_claim_settle(store, QF_STR("t"), now, 0, NULL, &below, &err), &err);
        for (int i = 0; i < 30; i++) {
            uint64_t next = import(store, now - HOUR_US * (uint64_t)(i % 3));

            CHECK(next > last && next >= now);
            last = next;
        }
        CHECK(last < now + 30 * 1000); /* and not far */
        (void)sg_store_free(store);
    }
}

TEST(imports_at_the_same_time_share_no_generation)
{
    struct sg_store *store = store_at(NOW_MS, false);
    struct sg_claim *claims[5];

    for (size_t i = 0; i < 5; i++) {
        claims[i] = claim(store, (uint64_t)NOW_MS * 1000);
        for (size_t j = 0; j < i; j++)
            CHECK(sg_claim_generation(claims[i]) > sg_claim_generation(claims[j]));
    }
    for (size_t i = 0; i < 5; i++)
        claims[i] = sg_claim_end(claims[i]);
    (void)sg_store_free(store);
}

/* Its generations would be those of all later imports, and compaction would wait until it is that late. */
TEST(a_clock_that_is_ahead_of_the_stores_does_not_count)
{
    struct sg_store *store = store_at(NOW_MS, false);
    uint64_t now = (uint64_t)NOW_MS * 1000;

    CHECK(import(store, now + 1000 * HOUR_US) < now + 1000);
    CHECK(import(store, now + 30 * 1000000) >= now + 30 * 1000000); /* seconds are no fault */
    (void)sg_store_free(store);
}
