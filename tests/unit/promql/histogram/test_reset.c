/* test_reset.c - which histograms show that a counter was reset. */
#include "promql/histogram/reset.h"
#include "tests/lib/test.h"
#include "tests/unit/promql/histogram/literals.h"

static bool is_reset(const char *prev, const char *h)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);

    return pq_histogram_is_reset(literal(arena, h), literal(arena, prev));
}

TEST(a_hint_decides)
{
    CHECK(is_reset("{{count:1 buckets:[1]}}", "{{count:2 buckets:[2] counter_reset_hint:reset}}"));
    CHECK(!is_reset("{{count:2 buckets:[2]}}",
                    "{{count:1 buckets:[1] counter_reset_hint:not_reset}}"));
    CHECK(is_reset("{{count:2 buckets:[2]}}", "{{count:1 buckets:[1] counter_reset_hint:gauge}}"));
}

TEST(anything_that_went_down_is_a_reset)
{
    const char *prev = "{{count:9 z_bucket:2 z_bucket_w:0.1 offset:1 buckets:[1 2] n_buckets:[4]}}";

    CHECK(!is_reset(prev, prev));
    CHECK(!is_reset(prev, "{{count:12 z_bucket:2 z_bucket_w:0.1 offset:1 buckets:[1 2 3] "
                          "n_buckets:[4]}}"));
    CHECK(is_reset(prev, "{{count:8 z_bucket:2 z_bucket_w:0.1 offset:1 buckets:[1 2] "
                         "n_buckets:[4]}}"));
    CHECK(is_reset(prev, "{{count:9 z_bucket:1 z_bucket_w:0.1 offset:1 buckets:[2 2] "
                         "n_buckets:[4]}}"));
    CHECK(is_reset(prev, "{{count:9 z_bucket:2 z_bucket_w:0.1 offset:1 buckets:[2 1] "
                         "n_buckets:[4]}}"));
    CHECK(is_reset(prev, "{{count:9 z_bucket:2 z_bucket_w:0.1 offset:1 buckets:[2 5]}}"));
    CHECK(is_reset(prev, "{{count:9 z_bucket:5 z_bucket_w:0.1 offset:2 buckets:[2] "
                         "n_buckets:[4]}}"));
}

TEST(a_finer_schema_or_a_narrower_zero_bucket_is_a_reset)
{
    CHECK(is_reset("{{schema:0 count:1 buckets:[1]}}", "{{schema:1 count:9 buckets:[9]}}"));
    CHECK(is_reset("{{count:1 z_bucket:1 z_bucket_w:0.5}}",
                   "{{count:9 z_bucket:9 z_bucket_w:0.25}}"));
}

/* (1,2] and (2,4] become (1,4]: 5 of them before, so 4 now is less. */
TEST(a_coarser_schema_is_compared_in_its_own_buckets)
{
    CHECK(!is_reset("{{schema:0 count:5 offset:1 buckets:[2 3]}}",
                    "{{schema:-1 count:6 offset:1 buckets:[5 1]}}"));
    CHECK(is_reset("{{schema:0 count:5 offset:1 buckets:[2 3]}}",
                   "{{schema:-1 count:6 offset:1 buckets:[4 2]}}"));
}

/* A wider zero bucket takes (0.5,1] in, but may not cut it. */
TEST(a_wider_zero_bucket_is_compared_with_what_it_takes_in)
{
    const char *prev = "{{count:5 z_bucket:1 z_bucket_w:0.25 buckets:[2 2]}}";

    CHECK(!is_reset(prev, "{{count:5 z_bucket:3 z_bucket_w:1 offset:1 buckets:[2]}}"));
    CHECK(is_reset(prev, "{{count:5 z_bucket:2 z_bucket_w:1 offset:1 buckets:[3]}}"));
    CHECK(is_reset(prev, "{{count:5 z_bucket:3 z_bucket_w:0.75 offset:1 buckets:[2]}}"));
}

TEST(other_custom_bounds_are_compared_where_both_have_one)
{
    const char *prev = "{{schema:-53 count:15 custom_values:[2 4 6] buckets:[1 2 5 7]}}";

    CHECK(!is_reset(prev, "{{schema:-53 count:16 custom_values:[2 3 4 6] buckets:[1 1 1 5 8]}}"));
    CHECK(is_reset(prev, "{{schema:-53 count:15 custom_values:[2 3 4 6] buckets:[1 0 1 5 8]}}"));
    CHECK(!is_reset(prev, "{{schema:-53 count:15 custom_values:[6] buckets:[8 7]}}"));
    CHECK(is_reset(prev, "{{schema:-53 count:15 custom_values:[6] buckets:[9 6]}}"));
    CHECK(!is_reset(prev, "{{schema:-53 count:15 custom_values:[1 5] buckets:[0 0 15]}}"));
    CHECK(is_reset(prev, "{{count:15 buckets:[15]}}"));
}
