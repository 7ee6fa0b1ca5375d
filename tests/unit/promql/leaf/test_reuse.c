/* test_reuse.c - steps that were answered before are what a run of the whole leaf answers. */
#include <string.h>

#include "base/pure/prng.h"
#include "promql/leaf_reuse.h"
#include "promql/parse.h"
#include "promql/plan.h"
#include "tests/lib/promql/memory_series.h"
#include "tests/lib/test.h"

#define GAP_MS 15000
#define SAMPLES 240

static const char *const queries[] = {
    "m",
    "m > 20",
    "abs(m) * 2",
    "sum by (g) (m)",
    "avg(m)",
    "count_values(\"v\", floor(m / 25))",
    "topk(2, m)",
    "stddev by (g) (m)",
    "timestamp(m)",
    "rate(m_total[5m])",
    "sum by (g) (rate(m_total[5m] offset 2m))",
    "increase(m_total[90s])",
    "irate(m_total[2m])",
    "sum_over_time(m[10m])",
    "avg_over_time(m[7m])",
    "stddev_over_time(m[5m])",
    "quantile_over_time(0.9, m[10m])",
    "mad_over_time(m[5m])",
    "max_over_time(m[5m])",
    "last_over_time(m[5m])",
    "changes(m[10m])",
    "resets(m_total[10m])",
    "deriv(m[5m])",
    "predict_linear(m[5m], 600)",
    "double_exponential_smoothing(m[5m], 0.5, 0.5)",
    "present_over_time(m[1m])",
    "max without (i) (rate({__name__=~\"m_t.*\"}[5m]))",
};

/* Some begin late, some end early, all have holes, stale markers and NaN. */
static void add_series(struct memory_series *series, struct qf_prng *prng, bool counter, int i)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf line = QF_STRBUF_INIT;
    uint64_t begin = qf_prng_below(prng, 3) ? 0 : qf_prng_below(prng, SAMPLES);
    uint64_t end = qf_prng_below(prng, 3) ? SAMPLES : qf_prng_below(prng, SAMPLES);
    double total = 0;

    qf_strbuf_printf(&line, "%s{i=\"%02d\",g=\"%d\"}", counter ? "m_total" : "m", i, i % 3);
    for (uint64_t k = 0; k < SAMPLES; k++) {
        uint64_t luck = qf_prng_below(prng, 40);

        total = luck == 0 ? 0 : total + qf_prng_unit(prng) * 10;
        if (k < begin || k >= end || luck < 4)
            qf_strbuf_puts(&line, " _");
        else if (luck == 4)
            qf_strbuf_puts(&line, counter ? " stale" : " NaN");
        else if (luck == 5)
            qf_strbuf_puts(&line, " stale");
        else
            qf_strbuf_printf(&line, " %.17g", counter ? total : qf_prng_unit(prng) * 100);
    }
    memory_series_add(series, qf_strbuf_cstr(&line));
}

static struct pq_leaf *leaf_of(struct qf_arena *arena, const char *query, int64_t start,
                               uint64_t steps, int64_t step_ms)
{
    struct pq_parse_options options = { .experimental_functions = true };
    struct pq_query_params params = { .start_ms = start,
                                      .end_ms = start + (int64_t)(steps - 1) * step_ms,
                                      .step_ms = step_ms };
    struct pq_expr *expr;
    struct pq_plan *plan;
    struct qf_err err = { 0 };

    CHECK_OK(pq_parse(arena, qf_str_from(query), &options, &expr, &err), &err);
    CHECK_OK(pq_plan_new(arena, expr, qf_str_from(query), &params, &plan, &err), &err);
    CHECK_EQ(plan->leaf_count, 1);
    return plan->leaves[0];
}

static struct pq_leaf_result run(struct memory_series *series, struct qf_arena *arena,
                                 const struct pq_leaf *leaf)
{
    struct pq_engine engine = memory_series_engine(series, 1);
    struct pq_leaf_limits limits = { .points_by_step = true };
    struct pq_leaf_result result;
    struct pq_source *source;
    struct qf_err err = { 0 };

    CHECK_OK(engine.open(engine.ctx, 0, &leaf->select, &source, &err), &err);
    CHECK_OK(pq_leaf_run(leaf, source, &limits, NULL, arena, &result, &err), &err);
    source->close(source);
    return result;
}

static void check_equal(const struct pq_leaf_result *a, const struct pq_leaf_result *b)
{
    CHECK_EQ(a->series_count, b->series_count);
    for (size_t i = 0; i < a->series_count; i++)
        CHECK_EQ(qf_labels_cmp(a->series[i], b->series[i]), 0);
    CHECK_EQ(a->rows.count, b->rows.count);
    CHECK_EQ(a->points, b->points);
    if (a->rows.count == 0)
        return;
    CHECK_EQ(memcmp(a->rows.ts, b->rows.ts, a->rows.count * sizeof(int64_t)), 0);
    CHECK_EQ(memcmp(a->rows.series, b->rows.series, a->rows.count * sizeof(uint32_t)), 0);
    for (size_t c = 0; c < a->kind->column_count; c++)
        CHECK_EQ(memcmp(a->rows.columns[c], b->rows.columns[c], a->rows.count * sizeof(double)), 0);
}

/* Ranges that move on, each result joined with the one before and kept in its place: nothing adds up. */
static void check_refreshes(struct memory_series *series, struct qf_prng *prng, const char *query)
{
    int64_t step_ms = (int64_t)(1 + qf_prng_below(prng, 8)) * 7500, start = 300000;
    struct pq_past *past = NULL, *next;
    size_t used = 0;

    for (int refresh = 0; refresh < 6; refresh++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        uint64_t steps = 10 + qf_prng_below(prng, 30), skip;
        struct pq_leaf *leaf = leaf_of(arena, query, start, steps, step_ms), *rest;
        struct pq_leaf_result whole = run(series, arena, leaf), fresh = { 0 }, joined = whole;
        struct qf_err err = { 0 };

        CHECK(pq_leaf_reusable(leaf));
        skip = past ? qf_prng_below(prng, pq_past_steps(past, leaf) + 1) : 0;
        if (skip && skip < steps) {
            CHECK_OK(pq_leaf_rest(arena, leaf, skip, &rest, &err), &err);
            fresh = run(series, arena, rest);
        }
        if (skip)
            CHECK_OK(pq_past_join(arena, leaf, past, skip, &fresh, 0, &joined, &err), &err);
        check_equal(&whole, &joined);
        used += skip;
        next = pq_past_new(leaf, &joined, 1 << 20); /* borrows from the one before */
        CHECK(next);
        (void)pq_past_free(past);
        past = next;
        start += (int64_t)qf_prng_below(prng, 6) * step_ms;
    }
    CHECK(used > 0);
    past = pq_past_free(past);
}

TEST(a_result_joined_with_the_past_is_the_result_of_a_whole_run)
{
    struct qf_prng prng = { 17 };

    for (int round = 0; round < 3; round++) {
        QF_CLEANUP(memory_series_freep) struct memory_series *series = memory_series_new(GAP_MS);

        for (int i = 0; i < 9; i++)
            add_series(series, &prng, i % 2, i);
        for (size_t i = 0; i < QF_COUNT_OF(queries); i++)
            check_refreshes(series, &prng, queries[i]);
    }
}

static bool same_key(const char *a, int64_t a_start, const char *b, int64_t b_start)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf x = QF_STRBUF_INIT, y = QF_STRBUF_INIT;

    pq_leaf_reuse_key(leaf_of(arena, a, a_start, 20, 60000), &x);
    pq_leaf_reuse_key(leaf_of(arena, b, b_start, 33, 60000), &y);
    return qf_str_eq(qf_strbuf_view(&x), qf_strbuf_view(&y));
}

TEST(leaves_that_begin_elsewhere_on_one_grid_have_one_key)
{
    CHECK(same_key("rate(m[5m])", 600000, "rate(m[5m])", 1260000));
    CHECK(same_key("sum(m)", 600000, "0 + sum(m)", 1260000)); /* another place in the query */
    CHECK(!same_key("rate(m[5m])", 600000, "rate(m[5m])", 1260001));
    CHECK(!same_key("rate(m[5m])", 600000, "rate(m[6m])", 600000));
    CHECK(!same_key("rate(m[5m])", 600000, "increase(m[5m])", 600000));
    CHECK(!same_key("sum by (a) (m)", 600000, "sum by (b) (m)", 600000));
    CHECK(!same_key("m", 600000, "m offset 1m", 600000));
}

TEST(what_takes_more_care_is_not_used_again)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);

    CHECK(!pq_leaf_reusable(leaf_of(arena, "max_over_time(m[10m:1m])", 0, 20, 60000)));
    CHECK(!pq_leaf_reusable(
        leaf_of(arena, "quantile_over_time(scalar(vector(1)), m[10m])", 0, 20, 60000)));
}

/* Samples behind a tenant's retention do not exist: what was seen of them before is not used, and what a
 * rest would read of them is not read. */
TEST(a_leaf_that_is_cut_is_not_used_again)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    const char *const texts[] = { "m", "rate(m[5m])", "sum(m offset 1m)" };

    for (size_t i = 0; i < QF_COUNT_OF(texts); i++) {
        struct pq_leaf *leaf = leaf_of(arena, texts[i], 600000, 20, 60000);

        CHECK(pq_leaf_reusable(leaf));
        leaf->select.min_ts++;
        CHECK(!pq_leaf_reusable(leaf));
    }
}

/* Notes and histograms are due to steps nobody knows; and there is a bound. */
TEST(results_that_cannot_be_kept_are_not)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(memory_series_freep) struct memory_series *series = memory_series_new(GAP_MS);
    struct pq_leaf *leaf;
    struct pq_leaf_result result;
    struct pq_past *past;

    memory_series_add(series, "m 1+1x100");
    memory_series_add(series, "h {{schema:0 count:4 sum:8 buckets:[1 2 1]}}x100");
    leaf = leaf_of(arena, "rate(m[5m])", 600000, 10, 60000); /* might not be a counter */
    result = run(series, arena, leaf);
    CHECK_EQ(result.notes.count, 1);
    CHECK(!pq_past_new(leaf, &result, 1 << 20));
    leaf = leaf_of(arena, "h", 600000, 10, 60000);
    result = run(series, arena, leaf);
    CHECK(!pq_past_new(leaf, &result, 1 << 20));
    leaf = leaf_of(arena, "m", 600000, 10, 60000);
    result = run(series, arena, leaf);
    CHECK(!pq_past_new(leaf, &result, 100));
    past = pq_past_new(leaf, &result, 1 << 20);
    CHECK(past);
    CHECK(pq_past_bytes(past) >= 10 * (sizeof(int64_t) + sizeof(uint32_t) + sizeof(double)));
    past = pq_past_free(past);
}

/* As many points as there are; one less is the error of a whole run. */
TEST(the_limit_on_samples_counts_what_was_kept)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(memory_series_freep) struct memory_series *series = memory_series_new(GAP_MS);
    struct pq_leaf_result result, none = { 0 }, joined;
    struct qf_err err = { 0 };
    struct pq_leaf *leaf;
    struct pq_past *past;

    memory_series_add(series, "m{i=\"1\"} 1+1x100");
    memory_series_add(series, "m{i=\"2\"} 1+1x100");
    leaf = leaf_of(arena, "sum(m)", 600000, 10, 60000);
    result = run(series, arena, leaf);
    CHECK_EQ(result.points, 20);
    past = pq_past_new(leaf, &result, 1 << 20);
    CHECK_OK(pq_past_join(arena, leaf, past, 10, &none, 20, &joined, &err), &err);
    CHECK_EQ(joined.points, 20);
    CHECK_EQ(pq_past_join(arena, leaf, past, 10, &none, 19, &joined, &err), QF_ELIMIT);
    CHECK_STR(err.msg, PQ_TOO_MANY_SAMPLES);
    past = pq_past_free(past);
}
