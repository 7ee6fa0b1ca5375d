/* test_time.c - the ring's time goes on. */
#include "ring/coord/time.h"

#include "tests/lib/test.h"

TEST(a_clock_that_is_right_is_the_time)
{
    struct rg_time time = { 0 };

    CHECK_EQ(rg_time_of(&time, 900, 1000, 50), 1000);
    CHECK_EQ(rg_time_of(&time, 1000, 1010, 60), 1010);
}

TEST(behind_the_ring_it_counts_from_its_last_entry_on)
{
    struct rg_time time = { 0 };

    CHECK_EQ(rg_time_of(&time, 90000, 1000, 50), 90000);
    CHECK_EQ(rg_time_of(&time, 90000, 1010, 60), 90010);
    CHECK_EQ(rg_time_of(&time, 90010, 1015, 65), 90010); /* an entry with that time */
    CHECK_EQ(rg_time_of(&time, 90010, 1115, 165), 90110);
    CHECK_EQ(rg_time_of(&time, 90010, 95000, 166), 95000);
}

TEST(a_clock_that_is_set_back_does_not_stop_it)
{
    struct rg_time time = { 0 };

    CHECK_EQ(rg_time_of(&time, 7000, 7000, 10), 7000);
    CHECK_EQ(rg_time_of(&time, 7000, 7100, 110), 7100);
    CHECK_EQ(rg_time_of(&time, 7000, 3, 120), 7110);
}
