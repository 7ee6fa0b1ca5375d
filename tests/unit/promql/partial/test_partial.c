/* test_partial.c - aggregations as objects: the table, and that the order of partials does not show. */
#include <math.h>
#include <string.h>

#include "base/pure/prng.h"
#include "promql/partial/cells.h"
#include "promql/partial/topk.h"
#include "tests/lib/test.h"

/* Every row names the object that says so itself, and every kind goes by one name. */
TEST(aggregations_and_kinds_are_found_by_name)
{
    CHECK(pq_aggregation_find(QF_STR("summ")) == NULL);
    CHECK(pq_leaf_kind_find(QF_STR("stddev")) == NULL);
    CHECK(pq_leaf_kind_find((struct qf_str){ 0 }) == NULL);
    CHECK(pq_leaf_kind_find(QF_STR("series")) == &pq_leaf_series);
    CHECK(pq_leaf_kind_find(QF_STR("samples")) == &pq_leaf_samples);
    for (size_t i = 0; i < PQ_AGG__COUNT; i++) {
        const struct pq_aggregation *agg = pq_aggregation_get((enum pq_agg)i);

        CHECK_EQ(agg->id, i);
        CHECK(pq_aggregation_find(qf_str_from(pq_agg_text(agg->id))) == agg);
        if (agg->kind)
            CHECK(pq_leaf_kind_find(qf_str_from(agg->kind->name)) == agg->kind);
    }
}

/* What an object of a shape must have, or leaves and merges would call nothing. */
TEST(objects_are_complete)
{
    for (size_t i = 0; i < PQ_AGG__COUNT; i++) {
        const struct pq_aggregation *agg = pq_aggregation_get((enum pq_agg)i);
        bool folds = agg->kind && agg->shape == PQ_AGG_FOLDS;
        bool merges = agg->kind && agg->shape != PQ_AGG_SELECTS;

        CHECK_EQ(agg->add != NULL, folds);
        CHECK_EQ(agg->merge != NULL, merges);
        CHECK_EQ(agg->value != NULL, merges);
        CHECK(!agg->kind ||
              (agg->kind->column_count >= 1 && agg->kind->column_count <= PQ_LEAF_COLUMNS_MAX));
        for (size_t c = 0; agg->kind && c < agg->kind->column_count; c++)
            CHECK(agg->kind->columns[c] != NULL);
    }
}

#define STEPS 3

/* Some values at three steps; none at the last one. */
static void add_series(struct pq_cells *cells, const struct pq_aggregation *agg, double value)
{
    double values[STEPS] = { value, -value, 0 };
    uint8_t present[STEPS] = { 1, value > 3, 0 };

    pq_cells_add(cells, agg, values, present, STEPS, NULL);
}

static void partial_at(const struct pq_cells *cells, const struct pq_aggregation *agg, size_t k,
                       double *ret)
{
    for (size_t c = 0; c < agg->kind->column_count; c++)
        ret[c] = cells->columns[c][k];
}

/* All at once, or in two parts that are merged either way: one value, to the last bit. */
TEST(partials_merge_to_what_all_values_give)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_prng prng = { 5 };

    for (size_t i = 0; i < PQ_AGG__COUNT; i++) {
        const struct pq_aggregation *agg = pq_aggregation_get((enum pq_agg)i);
        struct pq_cells all, parts[2];
        double a[PQ_LEAF_COLUMNS_MAX], b[PQ_LEAF_COLUMNS_MAX], other[PQ_LEAF_COLUMNS_MAX];

        if (!agg->add)
            continue;
        CHECK(pq_cells_init(&all, agg, arena, STEPS, NULL));
        CHECK(pq_cells_init(&parts[0], agg, arena, STEPS, NULL));
        CHECK(pq_cells_init(&parts[1], agg, arena, STEPS, NULL));
        for (int n = 0; n < 100; n++) {
            double value = qf_prng_unit(&prng) * (n % 5 ? 10 : 1e15);

            add_series(&all, agg, value);
            add_series(&parts[n % 3 == 0], agg, value);
        }
        CHECK_EQ(all.present[0] + 2 * all.present[1] + 4 * all.present[2], 3);
        for (size_t k = 0; k < 2; k++) {
            partial_at(&parts[0], agg, k, a);
            partial_at(&parts[1], agg, k, b);
            partial_at(&parts[1], agg, k, other);
            agg->merge(other, a);
            agg->merge(a, b);
            CHECK_BITS(agg->value(a), pq_cells_value(&all, agg, k));
            CHECK_BITS(agg->value(other), pq_cells_value(&all, agg, k));
        }
    }
}

#define MANY_STEPS 65

/* Values about 2^@scale of many sizes, equal ones, and such as are no finite numbers. */
static double any_value(struct qf_prng *prng, int scale)
{
    static const double odd[] = { NAN,     INFINITY, -INFINITY, -0.0,  0,
                                  1.7e308, -1.7e308, 1e-310,    3e-160 };

    if (qf_prng_chance(prng, 0.02))
        return odd[qf_prng_below(prng, QF_COUNT_OF(odd))];
    if (qf_prng_chance(prng, 0.1))
        return ldexp(7, scale);
    return ldexp(qf_prng_unit(prng) - 0.5, scale + (int)qf_prng_below(prng, 80) - 40);
}

/* The columns of each step, all bits of them. */
static void check_same_cells(const struct pq_aggregation *agg, const struct pq_cells *a,
                             const struct pq_cells *b)
{
    for (size_t k = 0; k < MANY_STEPS; k++) {
        CHECK_EQ(a->present[k], b->present[k]);
        for (size_t c = 0; c < agg->kind->column_count; c++)
            CHECK_BITS(a->columns[c][k], b->columns[c][k]);
    }
}

/* Whether steps are added many at once, or each by itself: the same numbers are shipped. */
TEST(steps_that_are_added_at_once_equal_single_ones)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    /* Those of which squares are too small or too large for a double, or all but. */
    static const int scales[] = { 0, -480, -520, -1000, 500, 970 };

    for (size_t i = 0; i < PQ_AGG__COUNT * 240; i++) {
        const struct pq_aggregation *agg = pq_aggregation_get((enum pq_agg)(i % PQ_AGG__COUNT));
        struct qf_prng prng = { i };
        int scale = scales[qf_prng_below(&prng, QF_COUNT_OF(scales))];
        double absent = qf_prng_chance(&prng, 0.5) ? 0 : 0.1;
        struct pq_cells cells, single;

        if (!agg->add)
            continue;
        CHECK(pq_cells_init(&cells, agg, arena, MANY_STEPS, NULL));
        CHECK(pq_cells_init(&single, agg, arena, MANY_STEPS, NULL));
        for (size_t n = 0; n < 12; n++) {
            double values[MANY_STEPS];
            uint8_t present[MANY_STEPS];

            for (size_t k = 0; k < MANY_STEPS; k++) {
                present[k] = !qf_prng_chance(&prng, absent);
                values[k] = present[k] ? any_value(&prng, scale) : 0;
            }
            pq_cells_add(&cells, agg, values, present, MANY_STEPS, NULL);
            for (size_t k = 0; k < MANY_STEPS; k++) {
                struct pq_cells one = single;

                one.present += k;
                for (size_t c = 0; c < agg->kind->column_count; c++)
                    one.columns[c] += k;
                pq_cells_add(&one, agg, values + k, present + k, 1, NULL);
            }
        }
        check_same_cells(agg, &cells, &single);
        qf_arena_reset(arena);
    }
}

/* A cleared cell is as good as new. */
TEST(cells_can_be_used_again)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_cells cells;

    CHECK(pq_cells_init(&cells, &pq_aggregation_max, arena, STEPS, NULL));
    add_series(&cells, &pq_aggregation_max, 9);
    pq_cells_clear(&cells, &pq_aggregation_max, STEPS);
    CHECK_EQ(cells.present[0], 0);
    add_series(&cells, &pq_aggregation_max, 4);
    CHECK_BITS(pq_cells_value(&cells, &pq_aggregation_max, 0), 4.0);
}

#define VALUES(...)                                                                                \
    (const double[]){ __VA_ARGS__ }, sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)

/* The best @k of @values are the series @want, in that order. */
static void check_best(const struct pq_aggregation *agg, size_t k, const double *values,
                       size_t count, const uint32_t *want)
{
    struct pq_topk_item items[10];
    struct pq_topk topk = { .prefers = agg->prefers, .k = k, .items = items };

    for (uint32_t i = 0; i < count; i++)
        (void)pq_topk_offer(&topk, values[i], i);
    pq_topk_sort(&topk);
    CHECK_EQ(topk.count, QF_MIN(k, count));
    for (size_t i = 0; i < topk.count; i++)
        CHECK_EQ(topk.items[i].id, want[i]);
}

/* The best first, NaN behind all numbers. */
TEST(selections_prefer_what_prometheus_prefers)
{
    check_best(&pq_aggregation_topk, 4, VALUES(2, NAN, 7, 2, -1), (const uint32_t[]){ 2, 0, 3, 4 });
    check_best(&pq_aggregation_bottomk, 4, VALUES(2, NAN, 7, 2, -1),
               (const uint32_t[]){ 4, 0, 3, 2 });
}

/* As Prometheus 3.5 was seen to answer: values that are gone decide, too. */
TEST(of_equal_values_those_are_kept_that_prometheus_keeps)
{
    check_best(&pq_aggregation_topk, 3, VALUES(7, 7, 7, 7, 7), (const uint32_t[]){ 0, 1, 2 });
    check_best(&pq_aggregation_topk, 2, VALUES(0, 2, 0, 2, 0), (const uint32_t[]){ 3, 1 });
    check_best(&pq_aggregation_topk, 9, VALUES(NAN, 2, 4, NAN, 8, 1, NAN, 5, 7),
               (const uint32_t[]){ 4, 8, 7, 2, 1, 5, 3, 0, 6 });
}

/* limitk takes the first ones and lists them as its heap has them. */
TEST(the_first_ones_are_listed_in_the_order_of_the_heap)
{
    check_best(&pq_aggregation_limitk, 4, VALUES(2, NAN, 7, 2, -1),
               (const uint32_t[]){ 1, 0, 2, 3 });
    check_best(&pq_aggregation_limitk, 9, VALUES(2, 2, 1, 3, 1, 3),
               (const uint32_t[]){ 2, 4, 0, 3, 1, 5 });
}

#define OFFERS 60

/* A few different values, so that most are equal to others, and NaN among them. */
static void draw_values(struct qf_prng *prng, double *values)
{
    uint64_t different = 2 + qf_prng_below(prng, 9);

    for (size_t i = 0; i < OFFERS; i++) {
        uint64_t drawn = qf_prng_below(prng, different);

        values[i] = drawn ? (double)drawn : NAN;
    }
}

/* Offer what is of @shard, or of any if @shard_of is NULL, and still marked; what is not taken loses
 * its mark. */
static void offer_marked(struct pq_topk *topk, const double *values, const uint32_t *shard_of,
                         uint32_t shard, uint8_t *marked)
{
    topk->count = 0;
    for (uint32_t i = 0; i < OFFERS; i++)
        if (marked[i] && (!shard_of || shard_of[i] == shard))
            marked[i] = pq_topk_offer(topk, values[i], i);
}

/* However series are spread, what their shards took makes the heap that all values make: the same
 * series at the same places. The best k of each shard do not, which is seen as well. */
TEST(what_shards_took_is_all_that_the_choice_hangs_on)
{
    struct qf_prng prng = { 3 };
    struct pq_topk_item kept[8], want[8];
    uint32_t shard_of[OFFERS];
    double values[OFFERS];
    size_t different = 0;

    for (int round = 0; round < 3000; round++) {
        uint8_t all[OFFERS], taken[OFFERS], best[OFFERS] = { 0 };
        uint32_t shards = 1 + (uint32_t)qf_prng_below(&prng, 5);
        struct pq_topk topk = { .prefers = round % 2 ? PQ_PREFER_LARGEST : PQ_PREFER_SMALLEST,
                                .k = 1 + qf_prng_below(&prng, 8),
                                .items = kept };

        draw_values(&prng, values);
        memset(all, 1, sizeof(all));
        memset(taken, 1, sizeof(taken));
        for (size_t i = 0; i < OFFERS; i++)
            shard_of[i] = (uint32_t)qf_prng_below(&prng, shards);
        offer_marked(&topk, values, NULL, 0, all);
        memcpy(want, kept, sizeof(kept));
        for (uint32_t shard = 0; shard < shards; shard++) {
            offer_marked(&topk, values, shard_of, shard, taken);
            for (size_t i = 0; i < topk.count; i++)
                best[kept[i].id] = 1;
        }
        offer_marked(&topk, values, NULL, 0, taken);
        for (size_t i = 0; i < topk.count; i++)
            CHECK_EQ(kept[i].id, want[i].id);
        offer_marked(&topk, values, NULL, 0, best);
        for (size_t i = 0; i < topk.count; i++)
            different += kept[i].id != want[i].id;
    }
    CHECK(different > 100);
}
