/* test_budget.c - watermarks, floor and order of eviction. */
#include <stdio.h>
#include <string.h>

#include "queryworker/budget/budget.h"
#include "tests/lib/test.h"

/* Things of ten bytes each, by kind; what was evicted is spelled out. */
struct disk {
    int things[4];
    char order[64];
};

static uint64_t evict(void *ctx, enum qw_eviction kind)
{
    struct disk *disk = ctx;
    size_t len = strlen(disk->order);

    if (disk->things[kind] == 0)
        return 0;
    disk->things[kind]--;
    disk->order[len] = "caeu"[kind];
    disk->order[len + 1] = '\0';
    return 10;
}

static const struct qw_budget_limits limits = {
    .limit_bytes = 100, .floor_bytes = 30, .high_percent = 90, .low_percent = 70
};

static struct qw_budget_usage usage_of(const struct disk *disk)
{
    return (struct qw_budget_usage){
        .cache_bytes = 10 * (uint64_t)disk->things[QW_EVICT_CACHE],
        .spool_bytes =
            10 * (uint64_t)(disk->things[QW_EVICT_ACKED] + disk->things[QW_EVICT_EXPIRED] +
                            disk->things[QW_EVICT_UNACKED]),
        .disk_free_bytes = 1000,
    };
}

static void check(struct disk disk, enum qw_budget_user user, uint64_t need, bool fits,
                  const char *order)
{
    bool got = qw_budget_make_room(&limits, usage_of(&disk), user, need, evict, &disk);

    CHECK_STR(disk.order, order);
    CHECK_EQ(got, fits);
}

TEST(below_the_high_watermark_nothing_goes)
{
    check((struct disk){ { 5, 1, 0, 2 }, "" }, QW_BUDGET_SPOOL, 10, true, "");
    check((struct disk){ { 5, 1, 0, 2 }, "" }, QW_BUDGET_CACHE, 10, true, "");
}

/* Cached segments first, then acknowledged, expired, and unacknowledged artifacts. */
TEST(above_it_things_go_in_the_specified_order_down_to_the_low_one)
{
    check((struct disk){ { 4, 2, 2, 2 }, "" }, QW_BUDGET_SPOOL, 0, true, "ccc");
    check((struct disk){ { 1, 3, 3, 3 }, "" }, QW_BUDGET_SPOOL, 0, true, "caa");
    check((struct disk){ { 0, 1, 2, 7 }, "" }, QW_BUDGET_SPOOL, 0, true, "aee");
    check((struct disk){ { 0, 0, 0, 10 }, "" }, QW_BUDGET_SPOOL, 0, true, "u");
    check((struct disk){ { 1, 1, 1, 8 }, "" }, QW_BUDGET_SPOOL, 20, true, "caeu");
}

/* The run an unacknowledged artifact belongs to would have to be repeated: not for a cache. */
TEST(a_download_never_costs_an_unacknowledged_artifact)
{
    check((struct disk){ { 2, 0, 0, 6 }, "" }, QW_BUDGET_CACHE, 50, false, "cc");
}

TEST(cached_segments_leave_the_floor_to_artifacts)
{
    check((struct disk){ { 6, 0, 0, 0 }, "" }, QW_BUDGET_CACHE, 10, true, "");
    check((struct disk){ { 7, 0, 0, 0 }, "" }, QW_BUDGET_CACHE, 10, true, "c");
    check((struct disk){ { 0, 0, 0, 0 }, "" }, QW_BUDGET_CACHE, 71, false, "");
    check((struct disk){ { 6, 0, 0, 3 }, "" }, QW_BUDGET_SPOOL, 10, true, "ccc");
}

/* A floor meant for a larger disk must not leave the cache with nothing. */
TEST(the_floor_is_at_most_half_the_limit)
{
    struct qw_budget_limits small = limits;
    struct disk disk = { { 0, 0, 0, 0 }, "" };

    small.floor_bytes = 1000;
    CHECK(qw_budget_make_room(&small, usage_of(&disk), QW_BUDGET_CACHE, 50, evict, &disk));
    CHECK(!qw_budget_make_room(&small, usage_of(&disk), QW_BUDGET_CACHE, 51, evict, &disk));
}

/* And nothing goes in vain. */
TEST(a_need_over_the_limit_does_not_fit)
{
    check((struct disk){ { 1, 1, 0, 1 }, "" }, QW_BUDGET_SPOOL, 101, false, "");
}

/* The disk may have less than was configured: what is really there counts. */
TEST(a_disk_that_others_fill_shrinks_the_budget)
{
    struct disk disk = { { 4, 0, 0, 1 }, "" };
    struct qw_budget_usage usage = usage_of(&disk);

    usage.disk_free_bytes = 2;
    CHECK_EQ(qw_budget_limit(&limits, &usage), 52);
    CHECK(qw_budget_make_room(&limits, usage, QW_BUDGET_SPOOL, 0, evict, &disk));
    CHECK_STR(disk.order, "cc");
}

/* Sizes come from a peer: one that wraps round is no small one, and nothing goes for its sake. */
TEST(a_size_that_wraps_round_does_not_fit)
{
    struct disk disk = { .things = { [QW_EVICT_CACHE] = 3, [QW_EVICT_ACKED] = 2 } };

    check(disk, QW_BUDGET_CACHE, UINT64_MAX, false, "");
    check(disk, QW_BUDGET_CACHE, UINT64_MAX - 49, false, "");
    check(disk, QW_BUDGET_SPOOL, UINT64_MAX - 10, false, "");
    check(disk, QW_BUDGET_CACHE, 101, false, "");
}
