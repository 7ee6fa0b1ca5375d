/* test_rendezvous.c - balance, minimal movement, exclusion and fixed vectors of the hashing. */
#include "tests/lib/test.h"

#include <stdio.h>

#include "workcoord/rendezvous.h"

enum { WORKERS = 10, KEYS = 1000000, MOVE_KEYS = 100000 };

static void name_workers(uint64_t *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[32];
        int len = snprintf(name, sizeof(name), "worker-%zu", i);

        keys[i] = wc_worker_key((struct qf_str){ name, (size_t)len });
    }
}

/* Ten workers share a million keys evenly: the busiest has at most 2 % more than the mean. */
TEST(a_million_keys_balance_over_ten_workers)
{
    uint64_t workers[WORKERS];
    uint32_t load[WORKERS] = { 0 }, most = 0;

    name_workers(workers, WORKERS);
    for (uint64_t key = 0; key < KEYS; key++)
        load[wc_rendezvous_pick(wc_affinity_key(QF_STR("default"), key), workers, WORKERS)]++;
    for (int i = 0; i < WORKERS; i++)
        most = QF_MAX(most, load[i]);
    printf("max/mean = %.4f\n", (double)most * WORKERS / KEYS);
    CHECK((double)most * WORKERS <= 1.02 * KEYS);
}

/* Small sequential affinity keys, unhashed, balance as well. */
TEST(raw_sequential_keys_balance_too)
{
    uint64_t workers[WORKERS];
    uint32_t load[WORKERS] = { 0 };

    name_workers(workers, WORKERS);
    for (uint64_t key = 0; key < KEYS / 5; key++)
        load[wc_rendezvous_pick(key, workers, WORKERS)]++;
    for (int i = 0; i < WORKERS; i++)
        CHECK((double)load[i] * WORKERS <= 1.03 * KEYS / 5);
}

/* Taking away any worker moves exactly the keys it held, and leaves every other where it was. */
TEST(removing_a_worker_moves_only_its_own_keys)
{
    uint64_t all[WORKERS], rest[WORKERS - 1];

    name_workers(all, WORKERS);
    for (size_t gone = 0; gone < WORKERS; gone++) {
        uint32_t moved = 0;

        for (size_t i = 0; i < WORKERS - 1; i++)
            rest[i] = all[i < gone ? i : i + 1];
        for (uint64_t key = 0; key < MOVE_KEYS / 5; key++) {
            size_t before = wc_rendezvous_pick(key, all, WORKERS);
            size_t after = wc_rendezvous_pick(key, rest, WORKERS - 1);

            if (before == gone)
                moved++;
            else
                CHECK(rest[after] == all[before]);
        }
        CHECK(moved > MOVE_KEYS / 5 / WORKERS * 9 / 10);
        CHECK(moved < MOVE_KEYS / 5 / WORKERS * 11 / 10);
    }
}

/* A new worker takes about 1/n of the keys, and no key moves between the old ones. */
TEST(adding_a_worker_takes_its_share_and_no_other_key_moves)
{
    uint64_t all[WORKERS];
    uint32_t moved = 0;

    name_workers(all, WORKERS);
    for (uint64_t key = 0; key < MOVE_KEYS; key++) {
        size_t before = wc_rendezvous_pick(key, all, WORKERS - 1);
        size_t after = wc_rendezvous_pick(key, all, WORKERS);

        if (before != after) {
            CHECK_EQ(after, WORKERS - 1);
            moved++;
        }
    }
    CHECK(moved > MOVE_KEYS / WORKERS * 95 / 100);
    CHECK(moved < MOVE_KEYS / WORKERS * 105 / 100);
}

/* The answer is a property of the set of workers, not of the order they are listed in. */
TEST(the_order_of_the_list_does_not_matter)
{
    uint64_t all[WORKERS], reversed[WORKERS];

    name_workers(all, WORKERS);
    for (size_t i = 0; i < WORKERS; i++)
        reversed[i] = all[WORKERS - 1 - i];
    for (uint64_t key = 0; key < 10000; key++)
        CHECK(all[wc_rendezvous_pick(key, all, WORKERS)] ==
              reversed[wc_rendezvous_pick(key, reversed, WORKERS)]);
}

/* Nobody to choose from is said so; twins go to the first. */
TEST(no_worker_and_equal_workers_are_defined)
{
    uint64_t twins[] = { 7, 7 };

    CHECK(wc_rendezvous_pick(1, NULL, 0) == SIZE_MAX);
    CHECK_EQ(wc_rendezvous_pick(1, twins, 2), 0);
    CHECK_EQ(wc_rendezvous_pick(1, twins, 1), 0);
}

/* Every machine computes these numbers: a mixed fleet agrees on where work belongs. */
TEST(fixed_vectors_hold_on_every_machine)
{
    uint64_t workers[WORKERS];
    static const size_t want[] = { 0, 9, 0, 0, 8, 0, 0, 7, 2, 0, 4, 4 };

    CHECK(wc_worker_key(QF_STR("")) == UINT64_C(0x2d06800538d394c2)); /* XXH3's published value */
    CHECK(wc_worker_key(QF_STR("worker-0")) == UINT64_C(0x2ccc843865a190bd));
    CHECK(wc_affinity_key(QF_STR("default"), 3) == UINT64_C(0x77ce40d1ef20dec8));
    CHECK(wc_affinity_key(QF_STR(""), 0) == UINT64_C(0xf0a390d5a40e58df));
    CHECK(wc_rendezvous_score(1, 2) == UINT64_C(0x07ee86c281446bef));
    CHECK(wc_rendezvous_score(2, 1) == UINT64_C(0xfb54cb6322be3888));
    name_workers(workers, WORKERS);
    for (uint64_t key = 0; key < QF_COUNT_OF(want); key++)
        CHECK_EQ(wc_rendezvous_pick(key, workers, WORKERS), want[key]);
}
