/* test_merge_sorted.c - shards become one, and results that no leaf can have are refused. */
#include "promql/leaf.h"
#include "promql/merge/merge_sorted.h"
#include "promql/partial/partial.h"
#include "promql/testing/engine.h"
#include "tests/lib/test.h"

#define STEPS 3

static struct pq_stage instant = { .kind = PQ_STAGE_INSTANT,
                                   .grid = { 1000, 1000, STEPS },
                                   .range_ms = 1000 };

static const struct qf_label label_a[] = { { QF_STR_INIT("l"), QF_STR_INIT("a") } };
static const struct qf_label label_b[] = { { QF_STR_INIT("l"), QF_STR_INIT("b") } };
static const struct qf_label label_c[] = { { QF_STR_INIT("l"), QF_STR_INIT("c") } };

static struct qf_labels a_b[] = { { label_a, 1 }, { label_b, 1 } };
static struct qf_labels b_c[] = { { label_b, 1 }, { label_c, 1 } };
static struct qf_labels b_a[] = { { label_b, 1 }, { label_a, 1 } };

/* @agg NULL: series. */
static struct pq_leaf make_leaf(const struct pq_aggregation *agg)
{
    return (struct pq_leaf){
        .kind = agg ? agg->kind : &pq_leaf_series, .stages = &instant, .stage_count = 1, .agg = agg
    };
}

struct fixture {
    struct qf_arena *arena;
    struct pq_merge *merge;
    struct qf_err err;
};

static qf_rc merge_two(struct fixture *f, const struct pq_leaf *leaf, struct pq_leaf_result *first,
                       struct pq_leaf_result *second)
{
    struct pq_leaf_reader *readers[] = { pq_leaf_result_reader(f->arena, first),
                                         pq_leaf_result_reader(f->arena, second), NULL };
    qf_rc rc = pq_merge_new(f->arena, leaf, readers, 3, &f->merge, &f->err);

    if (rc == QF_OK)
        pq_merge_share(f->merge);
    return rc;
}

/* Series are one sorted table; values lie where their series and step are. */
TEST(rows_of_all_shards_find_their_place)
{
    struct fixture f = { .arena = qf_arena_new(SIZE_MAX) };
    struct pq_leaf leaf = make_leaf(NULL);
    struct pq_leaf_result first = {
        .kind = &pq_leaf_series,
        .series = a_b,
        .series_count = 2,
        .rows = { .count = 3,
                  .ts = (int64_t[]){ 1000, 1000, 3000 },
                  .series = (uint32_t[]){ 0, 1, 0 },
                  .columns = { (double[]){ 1, 2, 3 } } },
    };
    struct qf_labels only_c[] = { { label_c, 1 } };
    struct pq_leaf_result second = {
        .kind = &pq_leaf_series,
        .series = only_c,
        .series_count = 1,
        .rows = { .count = 1,
                  .ts = (int64_t[]){ 2000 },
                  .series = (uint32_t[]){ 0 },
                  .columns = { (double[]){ 9 } } },
    };
    double values[3 * STEPS];
    uint64_t present[3];
    struct pq_merge_block block = { .values = values, .present = present };
    size_t count;

    CHECK_OK(merge_two(&f, &leaf, &first, &second), &f.err);
    (void)pq_merge_series(f.merge, &count);
    CHECK_EQ(count, 3);
    CHECK_OK(pq_merge_next(f.merge, 0, &block, &f.err), &f.err);
    CHECK_EQ(block.steps, STEPS);
    CHECK_EQ(present[0], 5);
    CHECK_EQ(present[1], 1);
    CHECK_EQ(present[2], 2);
    CHECK_BITS(values[0], 1.0);
    CHECK_BITS(values[2], 3.0);
    CHECK_BITS(values[STEPS], 2.0);
    CHECK_BITS(values[2 * STEPS + 1], 9.0);
    CHECK_EQ(pq_merge_rows(f.merge), 4);
    (void)qf_arena_free(f.arena);
}

TEST(partials_of_a_group_are_merged)
{
    struct fixture f = { .arena = qf_arena_new(SIZE_MAX) };
    struct pq_leaf leaf = make_leaf(&pq_aggregation_sum);
    struct pq_leaf_result first = {
        .kind = pq_aggregation_sum.kind,
        .series = a_b,
        .series_count = 2,
        .rows = { .count = 2,
                  .ts = (int64_t[]){ 1000, 1000 },
                  .series = (uint32_t[]){ 0, 1 },
                  .columns = { (double[]){ 1e100, 2 }, (double[]){ 0.5, 0 }, (double[]){ 0, 0 } } },
    };
    struct pq_leaf_result second = {
        .kind = pq_aggregation_sum.kind,
        .series = b_c,
        .series_count = 2,
        .rows = { .count = 2,
                  .ts = (int64_t[]){ 1000, 1000 },
                  .series = (uint32_t[]){ 0, 1 },
                  .columns = { (double[]){ 40, 7 }, (double[]){ 0, 0 }, (double[]){ 0, 0 } } },
    };
    double values[3 * STEPS];
    uint64_t present[3];
    struct pq_merge_block block = { .values = values, .present = present };

    CHECK_OK(merge_two(&f, &leaf, &first, &second), &f.err);
    CHECK_OK(pq_merge_next(f.merge, 0, &block, &f.err), &f.err);
    CHECK_BITS(values[0], 1e100);
    CHECK_BITS(values[STEPS], 42.0);
    CHECK_BITS(values[2 * STEPS], 7.0);
    (void)qf_arena_free(f.arena);
}

static void check_corrupt(struct pq_leaf_result *bad)
{
    struct fixture f = { .arena = qf_arena_new(SIZE_MAX) };
    struct pq_leaf leaf = make_leaf(NULL);
    struct pq_leaf_result empty = { .kind = &pq_leaf_series };
    double values[3 * STEPS];
    uint64_t present[3];
    struct pq_merge_block block = { .values = values, .present = present };
    qf_rc rc = merge_two(&f, &leaf, bad, &empty);

    if (rc == QF_OK)
        rc = pq_merge_next(f.merge, 0, &block, &f.err);
    CHECK_EQ(rc, QF_ECORRUPT);
    (void)qf_arena_free(f.arena);
}

/* A row beside the grid, before or behind it, or of a series that is not in the table. */
TEST(rows_that_the_leaf_cannot_have_are_refused)
{
    static const int64_t times[] = { 1001, 0, 4000, 1000 };

    for (size_t i = 0; i < QF_COUNT_OF(times); i++) {
        struct pq_leaf_result bad = {
            .kind = &pq_leaf_series,
            .series = a_b,
            .series_count = 2,
            .rows = { .count = 1,
                      .ts = &times[i],
                      .series = (uint32_t[]){ times[i] == 1000 ? 2 : 0 },
                      .columns = { (double[]){ 1 } } },
        };

        check_corrupt(&bad);
    }
}

TEST(unsorted_series_and_other_kinds_are_refused)
{
    struct pq_leaf_result unsorted = { .kind = &pq_leaf_series, .series = b_a, .series_count = 2 };
    struct pq_leaf_result other = { .kind = pq_aggregation_max.kind,
                                    .series = a_b,
                                    .series_count = 2 };

    check_corrupt(&unsorted);
    check_corrupt(&other);
}
