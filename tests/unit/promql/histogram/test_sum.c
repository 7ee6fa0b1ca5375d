/* test_sum.c - native histograms added up, taken away and scaled. */
#include <float.h>
#include <math.h>

#include "promql/histogram/arith.h"
#include "promql/histogram/total.h"
#include "tests/lib/test.h"
#include "tests/unit/promql/histogram/literals.h"

#define ARENA(name) QF_CLEANUP(qf_arena_freep) struct qf_arena *name = qf_arena_new(SIZE_MAX)

static const struct pq_histogram *add(struct qf_arena *arena, const struct pq_histogram *a,
                                      const struct pq_histogram *b)
{
    struct pq_histogram_joined joined;

    CHECK(pq_histogram_add(arena, a, b, &joined));
    return joined.histogram;
}

static const struct pq_histogram *sub(struct qf_arena *arena, const struct pq_histogram *a,
                                      const struct pq_histogram *b)
{
    struct pq_histogram_joined joined;

    CHECK(pq_histogram_sub(arena, a, b, &joined));
    return joined.histogram;
}

TEST(buckets_are_added_one_by_one)
{
    ARENA(arena);

    CHECK_SAME(add(arena,
                   literal(arena, "{{schema:0 count:12 sum:5 z_bucket:2 z_bucket_w:0.001 "
                                  "buckets:[1 2 0 1] n_buckets:[3 3]}}"),
                   literal(arena, "{{schema:0 count:7 sum:1.5 z_bucket:1 z_bucket_w:0.001 "
                                  "offset:-1 buckets:[1 1 1 1] n_offset:1 n_buckets:[2]}}")),
               literal(arena, "{{schema:0 count:19 sum:6.5 z_bucket:3 z_bucket_w:0.001 "
                              "offset:-1 buckets:[1 2 3 1 1] n_buckets:[3 5]}}"));
}

/* (1,2] and (2,4] of schema 0 are (1,4] of schema -1; bucket 0 is a quarter of ... (1/4,1]. */
TEST(the_coarser_schema_is_left)
{
    ARENA(arena);
    const struct pq_histogram *fine =
        literal(arena, "{{schema:0 count:10 sum:1 offset:-1 buckets:[1 2 3 4]}}");
    const struct pq_histogram *coarse = literal(arena, "{{schema:-1 count:5 sum:1 buckets:[5]}}");
    const struct pq_histogram *want = literal(arena, "{{schema:-1 count:15 sum:2 buckets:[8 7]}}");

    CHECK_SAME(add(arena, fine, coarse), want);
    CHECK_SAME(add(arena, coarse, fine), want);
}

/* The threshold 0.75 lies inside (0.5,1], which has something in it: it becomes 1. */
TEST(a_populated_bucket_widens_the_zero_bucket_that_would_cut_it)
{
    ARENA(arena);
    const struct pq_histogram *narrow = literal(
        arena, "{{schema:0 count:10 sum:1 z_bucket:1 z_bucket_w:0.1 offset:-1 buckets:[2 3 4]}}");
    const struct pq_histogram *wide =
        literal(arena, "{{schema:0 count:5 sum:1 z_bucket:5 z_bucket_w:0.75}}");

    CHECK_SAME(add(arena, narrow, wide),
               literal(arena, "{{schema:0 count:15 sum:2 z_bucket:11 z_bucket_w:1 offset:1 "
                              "buckets:[4]}}"));
    CHECK_SAME(add(arena, wide, narrow), add(arena, narrow, wide));
}

/* Widening for the negative bucket (-2,-1] reaches into the positive (1,2] as well. */
TEST(both_sides_widen_the_zero_bucket_for_each_other)
{
    ARENA(arena);

    CHECK_SAME(add(arena,
                   literal(arena, "{{schema:0 count:6 sum:0 offset:1 buckets:[1 2] n_offset:1 "
                                  "n_buckets:[3]}}"),
                   literal(arena, "{{schema:0 count:1 sum:0 z_bucket:1 z_bucket_w:1.5}}")),
               literal(arena, "{{schema:0 count:7 sum:0 z_bucket:5 z_bucket_w:2 offset:2 "
                              "buckets:[2]}}"));
}

TEST(an_empty_bucket_does_not_widen_the_zero_bucket)
{
    ARENA(arena);

    CHECK_SAME(add(arena, literal(arena, "{{schema:0 count:2 sum:0 offset:0 buckets:[0 2]}}"),
                   literal(arena, "{{schema:0 count:1 sum:0 z_bucket:1 z_bucket_w:0.75}}")),
               literal(arena, "{{schema:0 count:3 sum:0 z_bucket:1 z_bucket_w:0.75 offset:1 "
                              "buckets:[2]}}"));
}

TEST(custom_bounds_that_both_have_are_left)
{
    ARENA(arena);
    const struct pq_histogram *a =
        literal(arena, "{{schema:-53 count:15 sum:3 custom_values:[2 4 6] buckets:[1 2 5 7]}}");
    const struct pq_histogram *b =
        literal(arena, "{{schema:-53 count:10 sum:4 custom_values:[1 2 5 6] buckets:[1 2 3 4]}}");
    struct pq_histogram_joined joined;

    CHECK(pq_histogram_add(arena, a, b, &joined));
    CHECK(joined.reconciled);
    CHECK_SAME(
        joined.histogram,
        literal(arena, "{{schema:-53 count:25 sum:7 custom_values:[2 6] buckets:[4 14 7]}}"));
    CHECK(pq_histogram_add(arena, a, a, &joined));
    CHECK(!joined.reconciled);
}

TEST(exponential_and_custom_buckets_do_not_mix)
{
    ARENA(arena);
    struct pq_histogram_joined joined;

    CHECK(pq_histogram_add(arena, literal(arena, "{{count:1 buckets:[1]}}"),
                           literal(arena, "{{schema:-53 count:1 custom_values:[1] buckets:[1]}}"),
                           &joined));
    CHECK(joined.mixed);
    CHECK(!joined.histogram);
}

TEST(hints_gauge_wins_equal_ones_stay_and_a_difference_says_nothing)
{
    const unsigned unknown = 1u << PQ_RESET_UNKNOWN, yes = 1u << PQ_RESET_YES,
                   no = 1u << PQ_RESET_NO, gauge = 1u << PQ_RESET_GAUGE;

    CHECK_EQ(pq_hints_combined(yes | no | gauge), PQ_RESET_GAUGE);
    CHECK_EQ(pq_hints_combined(yes), PQ_RESET_YES);
    CHECK_EQ(pq_hints_combined(no), PQ_RESET_NO);
    CHECK_EQ(pq_hints_combined(no | unknown), PQ_RESET_UNKNOWN);
    CHECK_EQ(pq_hints_combined(no | yes), PQ_RESET_UNKNOWN);
    CHECK(pq_hints_conflict(no | yes | gauge));
    CHECK(!pq_hints_conflict(no | unknown));
}

TEST(a_difference_is_a_gauge)
{
    ARENA(arena);
    const struct pq_histogram *h = literal(arena, "{{count:3 sum:1 buckets:[1 2]}}");

    CHECK_EQ(sub(arena, h, h)->reset_hint, PQ_RESET_GAUGE);
    CHECK_EQ(sub(arena, h, h)->positive_bucket_count, 0);
    CHECK_EQ(pq_histogram_mul(arena, h, -2)->reset_hint, PQ_RESET_GAUGE);
    CHECK_EQ(pq_histogram_mul(arena, h, 2)->reset_hint, PQ_RESET_UNKNOWN);
}

TEST(scaling_leaves_bounds_alone)
{
    ARENA(arena);
    const struct pq_histogram *h =
        literal(arena, "{{schema:-53 count:6 sum:9 custom_values:[1 2] buckets:[3 0 3]}}");

    CHECK_SAME(pq_histogram_div(arena, h, 3),
               literal(arena, "{{schema:-53 count:2 sum:3 custom_values:[1 2] buckets:[1 0 1]}}"));
    CHECK_SAME(pq_histogram_mul(arena, h, 0),
               literal(arena, "{{schema:-53 count:0 sum:0 custom_values:[1 2]}}"));
}

TEST(a_division_by_zero_leaves_no_buckets)
{
    ARENA(arena);
    const struct pq_histogram *h = pq_histogram_div(
        arena, literal(arena, "{{count:3 sum:-1 z_bucket:1 z_bucket_w:0.1 buckets:[2]}}"), 0);

    CHECK_BITS(h->count, (double)INFINITY);
    CHECK_BITS(h->sum, -(double)INFINITY);
    CHECK_BITS(h->zero_count, (double)INFINITY);
    CHECK_EQ(h->positive_bucket_count, 0);
}

/* What was added can be taken away again, if the buckets were the same. */
TEST(adding_and_subtracting_undo_each_other)
{
    struct qf_prng prng = { 1 };

    for (int i = 0; i < 500; i++) {
        ARENA(arena);
        const struct pq_histogram *a = any_exponential(arena, &prng);
        struct pq_histogram b = *any_exponential(arena, &prng);

        b.schema = a->schema;
        b.zero_threshold = a->zero_threshold;
        CHECK_SAME(sub(arena, add(arena, a, &b), &b), a);
    }
}

TEST(addition_does_not_care_for_the_order_of_two)
{
    struct qf_prng prng = { 2 };

    for (int i = 0; i < 500; i++) {
        ARENA(arena);
        const struct pq_histogram *a = any_exponential(arena, &prng);
        const struct pq_histogram *b = any_exponential(arena, &prng);
        const struct pq_histogram *c = any_custom(arena, &prng), *d = any_custom(arena, &prng);

        CHECK_SAME(add(arena, a, b), add(arena, b, a));
        CHECK_SAME(add(arena, c, d), add(arena, d, c));
    }
}

/* Nothing is lost or counted twice, whatever is joined. */
TEST(the_buckets_of_a_sum_hold_its_count)
{
    struct qf_prng prng = { 3 };

    for (int i = 0; i < 1000; i++) {
        ARENA(arena);
        const struct pq_histogram *sum =
            i % 2 ? add(arena, any_exponential(arena, &prng), any_exponential(arena, &prng))
                  : add(arena, any_custom(arena, &prng), any_custom(arena, &prng));
        struct pq_interval_walk walk = pq_intervals_begin(sum);
        struct pq_interval b;
        double total = 0;

        while (pq_intervals_next(&walk, &b))
            total += b.count;
        CHECK_BITS(total, sum->count);
    }
}

/* Reducing in one step or in two is the same. */
TEST(schemas_are_reduced_step_by_step_or_at_once)
{
    struct qf_prng prng = { 4 };

    for (int i = 0; i < 300; i++) {
        ARENA(arena);
        struct pq_histogram h = *any_exponential(arena, &prng), empty = { .schema = -4 };
        struct pq_histogram between = { .schema = -1 };

        h.schema = 3;
        h.zero_threshold = 0;
        CHECK_SAME(add(arena, add(arena, &h, &between), &empty), add(arena, &h, &empty));
    }
}

static const struct pq_histogram *total_of(struct qf_arena *arena, enum pq_hsum_mode mode,
                                           const struct pq_histogram **items, size_t count,
                                           size_t shards)
{
    struct pq_histogram_total all;
    bool reconciled;

    pq_htotal_init(&all, arena, mode);
    for (size_t s = 0; s < shards; s++) {
        struct pq_histogram_total part;
        struct pq_haddend *addends;
        size_t addend_count;

        pq_htotal_init(&part, arena, mode);
        for (size_t i = s; i < count; i += shards)
            CHECK(pq_htotal_add(&part, items[i]));
        CHECK(pq_htotal_addends(&part, &addends, &addend_count));
        for (size_t i = 0; i < addend_count; i++)
            CHECK(pq_htotal_add_addend(&all, &addends[i]));
    }
    return pq_htotal_value(&all, arena, &reconciled);
}

/* Counts with fractions, of very different sizes: every order of additions rounds differently. */
TEST(a_total_does_not_depend_on_how_it_was_split_up)
{
    struct qf_prng prng = { 5 };

    for (int round = 0; round < 200; round++) {
        ARENA(arena);
        const struct pq_histogram *items[40];
        bool custom = round % 2;

        for (size_t i = 0; i < 40; i++)
            items[i] = pq_histogram_mul(
                arena, custom ? any_custom(arena, &prng) : any_exponential(arena, &prng),
                pow(10, (double)qf_prng_below(&prng, 40) - 20));
        for (int mode = PQ_HSUM_EXACT; mode <= PQ_HSUM_MEAN; mode++) {
            const struct pq_histogram *one = total_of(arena, (enum pq_hsum_mode)mode, items, 40, 1);

            for (size_t shards = 2; shards <= 8; shards++)
                CHECK_SAME(total_of(arena, (enum pq_hsum_mode)mode, items, 40, shards), one);
        }
    }
}

TEST(large_numbers_that_cancel_out_leave_the_small_ones)
{
    ARENA(arena);
    const struct pq_histogram *items[] = { literal(arena, "{{count:1 sum:5.5}}"),
                                           literal(arena, "{{count:2 sum:1e100}}"),
                                           literal(arena, "{{count:3 sum:1}}"),
                                           literal(arena, "{{count:4 sum:-1e100}}") };

    for (size_t shards = 1; shards <= 4; shards++)
        CHECK_SAME(total_of(arena, PQ_HSUM_EXACT, items, 4, shards),
                   literal(arena, "{{count:10 sum:6.5}}"));
}

TEST(an_average_of_large_numbers_does_not_overflow_and_keeps_the_small_ones)
{
    ARENA(arena);
    struct pq_histogram large = { .count = DBL_MAX, .sum = 5.5 },
                        small = { .count = 0, .sum = 2.5 };
    const struct pq_histogram *items[] = { &large, &large, &small, &small };

    for (size_t shards = 1; shards <= 4; shards++) {
        const struct pq_histogram *mean = total_of(arena, PQ_HSUM_MEAN, items, 4, shards);

        CHECK_BITS(mean->count, DBL_MAX / 2);
        CHECK_BITS(mean->sum, 4.0);
    }
    CHECK_BITS(total_of(arena, PQ_HSUM_EXACT, items, 4, 1)->count, (double)INFINITY);
}

TEST(a_spent_budget_is_said_and_nothing_else)
{
    ARENA(big);
    struct qf_prng prng = { 6 };
    const struct pq_histogram *a = any_exponential(big, &prng), *b = any_custom(big, &prng);

    for (size_t budget = 0; budget < 64; budget += 8) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(budget);
        struct pq_histogram_joined joined;

        CHECK(!pq_histogram_add(arena, a, a, &joined));
        CHECK(!pq_histogram_mul(arena, b, 2));
    }
}
