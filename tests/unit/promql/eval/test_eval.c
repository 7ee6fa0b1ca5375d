/* test_eval.c - the pipeline in one process: what scripts with the settings of the conformance
 * runner do not reach. */
#include "base/pure/prng.h"
#include "promql/parse.h"
#include "tests/lib/promql/memory_series.h"
#include "tests/lib/test.h"

#define SERIES(name, gap)                                                                          \
    QF_CLEANUP(memory_series_freep) struct memory_series *name = memory_series_new(gap)

static const struct pq_query_params minutes = { .start_ms = 0, .end_ms = 600000, .step_ms = 60000 };

static void check_same_for_all_shards(struct memory_series *series, const char *query,
                                      const struct pq_query_params *params, const char *want)
{
    static const size_t shards[] = { 1, 2, 3, 8, 64 };

    for (size_t i = 0; i < QF_COUNT_OF(shards); i++)
        CHECK_STR(memory_series_query(series, shards[i], query, params), want);
}

/* The server's default: names go at once, so grouping by name sees none. */
TEST(names_are_dropped_at_once_unless_delayed)
{
    struct pq_query_params at = { .start_ms = 60000, .end_ms = 60000 };
    SERIES(series, 60000);

    memory_series_add(series, "a_total{x=\"1\"} 0 60");
    memory_series_add(series, "b_total{x=\"2\"} 0 120");
    check_same_for_all_shards(series, "sum by (__name__) (abs({x=~\".+\"}))", &at, "{} 180\n");
    at.delayed_name_removal = true;
    check_same_for_all_shards(series,
                              "label_replace(abs({x=\"1\"}), \"n\", \"$1\", \"__name__\", "
                              "\"(.*)\")",
                              &at, "{n=\"a_total\", x=\"1\"} 60\n");
}

TEST(series_that_differ_by_name_alone_collide_once_it_is_dropped)
{
    struct pq_query_params at = { .start_ms = 0, .end_ms = 0 };
    SERIES(series, 60000);

    memory_series_add(series, "a{x=\"1\"} 1");
    memory_series_add(series, "b{x=\"1\"} 2");
    check_same_for_all_shards(series, "abs({x=\"1\"})", &at,
                              "error: vector cannot contain metrics with the same labelset\n");
    /* Inside a leaf's own aggregation too. */
    check_same_for_all_shards(series, "sum(abs({x=\"1\"}))", &at,
                              "error: vector cannot contain metrics with the same labelset\n");
    /* Even if only one of them gets through a filter. */
    check_same_for_all_shards(series, "abs({x=\"1\"}) > 1", &at,
                              "error: vector cannot contain metrics with the same labelset\n");
    check_same_for_all_shards(series, "sum(abs({x=\"1\"}) > 1)", &at,
                              "error: vector cannot contain metrics with the same labelset\n");
    /* Even if the aggregation has no use for one of them. */
    memory_series_add(series, "c{y=\"1\"} 1");
    memory_series_add(series, "d{y=\"1\"} {{schema:0 sum:2 count:2 buckets:[2]}}");
    check_same_for_all_shards(series, "max(last_over_time({y=\"1\"}[5m]) * 2)", &at,
                              "error: vector cannot contain metrics with the same labelset\n");
    /* absent_over_time() asks whether there is any series, whatever its name. */
    check_same_for_all_shards(series, "absent_over_time({x=\"1\"}[5m])", &at, "");
    check_same_for_all_shards(series, "absent_over_time((a or on (__name__) b)[5m:1m])", &at, "");
    check_same_for_all_shards(series, "absent_over_time({x=\"2\"}[5m])", &at, "{x=\"2\"} 1\n");
    at.delayed_name_removal = true;
    check_same_for_all_shards(series, "sum(abs({x=\"1\"}))", &at, "{} 3\n");
}

/* Blocks are 64 steps: results must not show the seams. */
TEST(long_ranges_cross_blocks_without_a_seam)
{
    struct pq_query_params params = { .start_ms = 0, .end_ms = 199 * 1000, .step_ms = 1000 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf want = QF_STRBUF_INIT;
    SERIES(series, 1000);

    memory_series_add(series, "m 0+1x199");
    qf_strbuf_puts(&want, "{}");
    for (int k = 0; k < 200; k++) {
        int window = k < 3 ? k + 1 : 3, sum = 0;

        for (int i = 0; i < window; i++)
            sum += 2 * (k - i);
        qf_strbuf_printf(&want, " %d@%d", sum, k * 1000);
    }
    qf_strbuf_putc(&want, '\n');
    check_same_for_all_shards(series, "sum_over_time((m + m)[3s:1s])", &params,
                              qf_strbuf_cstr(&want));
}

/* One leaf, read at two paces: by the operator and by a subquery next to it. */
TEST(a_shared_leaf_serves_all_its_readers)
{
    struct pq_query_params params = { .start_ms = 0, .end_ms = 2000, .step_ms = 1000 };
    SERIES(series, 1000);

    memory_series_add(series, "m{a=\"1\"} 1 2 3");
    memory_series_add(series, "m{a=\"2\"} 10 20 30");
    check_same_for_all_shards(series, "m - m + m", &params,
                              "{a=\"1\"} 1@0 2@1000 3@2000\n{a=\"2\"} 10@0 20@1000 30@2000\n");
}

TEST(partials_of_all_kinds_merge_to_the_same_answer)
{
    struct pq_query_params at = { .start_ms = 0, .end_ms = 0 };
    SERIES(series, 1000);
    char line[100];

    for (int i = 0; i < 40; i++) {
        (void)snprintf(line, sizeof(line), "m{i=\"%02d\",g=\"%d\"} %d", i, i % 2, i);
        memory_series_add(series, line);
    }
    check_same_for_all_shards(series, "sum by (g) (m)", &at, "{g=\"0\"} 380\n{g=\"1\"} 400\n");
    check_same_for_all_shards(series, "avg by (g) (m)", &at, "{g=\"0\"} 19\n{g=\"1\"} 20\n");
    check_same_for_all_shards(series, "count without (i) (m)", &at, "{g=\"0\"} 20\n{g=\"1\"} 20\n");
    check_same_for_all_shards(series, "min(m)", &at, "{} 0\n");
    check_same_for_all_shards(series, "max(m)", &at, "{} 39\n");
    check_same_for_all_shards(series, "group(m)", &at, "{} 1\n");
    check_same_for_all_shards(series, "stdvar(m)", &at, "{} 133.25\n");
    check_same_for_all_shards(series, "topk(2, m)", &at,
                              "m{g=\"1\", i=\"39\"} 39\nm{g=\"0\", i=\"38\"} 38\n");
    check_same_for_all_shards(series, "bottomk by (g) (1, m)", &at,
                              "m{g=\"0\", i=\"00\"} 0\nm{g=\"1\", i=\"01\"} 1\n");
    check_same_for_all_shards(series, "limitk(2, m)", &at,
                              "m{g=\"0\", i=\"00\"} 0\nm{g=\"0\", i=\"02\"} 2\n");
    check_same_for_all_shards(series, "count_values without (i, g) (\"g\", m)", &at, "{} 40\n");
    check_same_for_all_shards(series, "count_values by (g) (\"v\", m > bool 37)", &at,
                              "{g=\"0\", v=\"0\"} 19\n{g=\"0\", v=\"1\"} 1\n"
                              "{g=\"1\", v=\"0\"} 19\n{g=\"1\", v=\"1\"} 1\n");
}

/* Twenty series n that end where twenty series m with the same labels begin, twenty of m besides; few
 * different values. */
static void add_equal_values(struct memory_series *series)
{
    static const char *const values[] = { " 1", " 2", " 2", " NaN" };
    struct qf_prng prng = { 23 };

    for (int i = 0; i < 60; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf line = QF_STRBUF_INIT;
        int label = i % 3 == 1 ? i - 1 : i;

        qf_strbuf_printf(&line, "%s{i=\"%02d\",g=\"%d\"}", i % 3 ? "m" : "n", label, label % 2);
        for (int k = 0; k < 11; k++) {
            bool gone = i % 3 == 0 && k >= 5, yet_to_come = i % 3 == 1 && k < 5;

            qf_strbuf_puts(&line, gone && k == 5        ? " stale"
                                  : gone || yet_to_come ? " _"
                                                        : values[qf_prng_below(&prng, 4)]);
        }
        memory_series_add(series, qf_strbuf_cstr(&line));
    }
    memory_series_add(series, "h{i=\"1\",g=\"1\"} {{schema:0 count:4 sum:8 buckets:[1 2 1]}}x9");
}

/* The same choice among equal values, and the same words, as if one node had seen all series. */
TEST(choices_of_shards_are_those_of_all_series)
{
    const char *const queries[] = { "topk(3, m)",
                                    "bottomk(4, m)",
                                    "topk by (g) (2, m)",
                                    "topk(5, -m)",
                                    "topk(7, -{i=~\".+\"})",
                                    "limitk(7, -{__name__=~\"m|n\"})",
                                    "bottomk by (g) (3, {i=~\".+\"})" };
    const struct pq_query_params whole = { .end_ms = 600000, .step_ms = 60000 };
    const struct pq_query_params at = { .start_ms = 600000, .end_ms = 600000 };
    SERIES(series, 60000);

    add_equal_values(series);
    for (size_t i = 0; i < 2 * QF_COUNT_OF(queries); i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf want = QF_STRBUF_INIT;
        struct pq_query_params params = i % 2 ? whole : at;

        params.no_pushdown = true;
        qf_strbuf_puts(&want, memory_series_query(series, 1, queries[i / 2], &params));
        CHECK(want.len > 50);
        params.no_pushdown = false;
        check_same_for_all_shards(series, queries[i / 2], &params, qf_strbuf_cstr(&want));
    }
}

/* Sums that overflow on one shard and not on another still have a mean. */
TEST(averages_survive_overflow_on_any_shard)
{
    struct pq_query_params at = { .start_ms = 0, .end_ms = 0 };
    SERIES(series, 1000);

    memory_series_add(series, "m{i=\"1\"} 1.5e308");
    memory_series_add(series, "m{i=\"2\"} 1.5e308");
    memory_series_add(series, "m{i=\"3\"} -1.5e308");
    memory_series_add(series, "m{i=\"4\"} 1.5e308");
    check_same_for_all_shards(series, "avg(m) / 1e308", &at, "{} 0.75\n");
}

/* To the last bit, also where large numbers cancel out. */
TEST(aggregates_do_not_depend_on_the_number_of_shards)
{
    static const char *const aggregations[] = { "sum", "avg", "stddev", "stdvar" };
    struct qf_prng prng = { 11 };
    SERIES(series, 1000);
    char line[100], query[40], want[400];

    for (int i = 0; i < 200; i++) {
        double value = qf_prng_unit(&prng) * (i % 5 == 0 ? 1e16 : 10) - (i % 3 == 0 ? 1e15 : 3);

        (void)snprintf(line, sizeof(line), "m{i=\"%d\",g=\"%d\"} %.17g", i, i % 7, value);
        memory_series_add(series, line);
    }
    for (size_t i = 0; i < QF_COUNT_OF(aggregations); i++) {
        (void)snprintf(query, sizeof(query), "%s by (g) (m)", aggregations[i]);
        (void)snprintf(want, sizeof(want), "%s", memory_series_query(series, 1, query, NULL));
        CHECK_EQ(strlen(want) > 100, 1);
        check_same_for_all_shards(series, query, NULL, want);
    }
}

TEST(the_limit_on_samples_has_prometheus_words)
{
    struct pq_query_params params = minutes;
    SERIES(series, 60000);

    memory_series_add(series, "m 0+1x10");
    params.samples_max = 10;
    check_same_for_all_shards(
        series, "m", &params,
        "error: query processing would load too many samples into memory in query execution\n");
    check_same_for_all_shards(
        series, "sum(m)", &params,
        "error: query processing would load too many samples into memory in query execution\n");
    params.samples_max = 11;
    params.end_ms = 60000;
    check_same_for_all_shards(series, "m", &params, "m 0@0 1@60000\n");
}

/* What one shard may have, many together may have as well, and not more. */
TEST(the_limit_on_samples_does_not_know_of_shards)
{
    const char *const queries[] = { "sum(m)", "count(rate(m[2m]))", "sum(sum_over_time(m[2m:1m]))",
                                    "topk(1, m)" };
    const char *const error =
        "error: query processing would load too many samples into memory in query execution\n";
    struct pq_query_params params = minutes;
    SERIES(series, 60000);
    char line[40];

    for (int i = 0; i < 20; i++) {
        (void)snprintf(line, sizeof(line), "m{i=\"%d\"} 0+1x10", i);
        memory_series_add(series, line);
    }
    params.start_ms = 120000;
    params.end_ms = 300000;
    for (size_t i = 0; i < QF_COUNT_OF(queries); i++) {
        char want[400];
        uint64_t most = 0;

        /* The least limit that is enough for one shard. */
        do {
            params.samples_max = ++most;
            (void)snprintf(want, sizeof(want), "%s",
                           memory_series_query(series, 1, queries[i], &params));
        } while (strcmp(want, error) == 0);
        CHECK(most >= 20 * 4);
        check_same_for_all_shards(series, queries[i], &params, want);
        params.samples_max = most - 1;
        check_same_for_all_shards(series, queries[i], &params, error);
    }
}

TEST(a_range_query_of_a_scalar_is_a_matrix)
{
    struct pq_query_params params = { .start_ms = 0, .end_ms = 2000, .step_ms = 1000 };
    SERIES(series, 1000);

    check_same_for_all_shards(series, "time() * 2", &params, "{} 0@0 2@1000 4@2000\n");
    check_same_for_all_shards(series, "1", NULL, "scalar 1\n");
    check_same_for_all_shards(series, "\"x\"", NULL, "string x\n");
}

TEST(notes_carry_positions_and_are_said_once)
{
    struct pq_query_params at = { .start_ms = 60000, .end_ms = 60000 };
    SERIES(series, 60000);

    memory_series_add(series, "gauge{a=\"1\"} 1 2");
    memory_series_add(series, "gauge{a=\"2\"} 1 2");
    check_same_for_all_shards(
        series, "count(rate(gauge[5m]))", &at,
        "{} 2\nPromQL info: metric might not be a counter, name does not end in "
        "_total/_sum/_count/_bucket: \"gauge\" (1:12)\n");
}

TEST(matching_errors_name_the_series)
{
    struct pq_query_params at = { 0 };
    SERIES(series, 1000);

    memory_series_add(series, "a{x=\"1\"} 1");
    memory_series_add(series, "b{x=\"1\",y=\"1\"} 1");
    memory_series_add(series, "b{x=\"1\",y=\"2\"} 1");
    check_same_for_all_shards(
        series, "b + on (x) a", &at,
        "error: multiple matches for labels: many-to-one matching must be explicit "
        "(group_left/group_right)\n");
    check_same_for_all_shards(
        series, "b * on (x) group_left b", &at,
        "error: found duplicate series for the match group {x=\"1\"} on the right hand-side of the "
        "operation: [{__name__=\"b\", x=\"1\", y=\"1\"}, {__name__=\"b\", x=\"1\", y=\"2\"}];"
        "many-to-many matching not allowed: matching labels must be unique on one side\n");
    check_same_for_all_shards(series, "b * on (x) group_left (z) a", &at,
                              "{x=\"1\", y=\"1\"} 1\n{x=\"1\", y=\"2\"} 1\n");
}

static struct pq_plan *make_plan(struct qf_arena *arena, const char *query,
                                 const struct pq_query_params *params)
{
    struct pq_parse_options options = { 0 };
    struct pq_expr *expr;
    struct pq_plan *plan;
    struct qf_err err = { 0 };

    CHECK_OK(pq_parse(arena, qf_str_from(query), &options, &expr, &err), &err);
    CHECK_OK(pq_plan_new(arena, expr, qf_str_from(query), params, &plan, &err), &err);
    return plan;
}

TEST(cancellation_ends_an_evaluation)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(pq_eval_freep) struct pq_eval *eval = NULL;
    atomic_bool canceled = false;
    struct pq_eval_options options = { .canceled = &canceled };
    struct pq_eval_batch batch;
    struct qf_err err = { 0 };

    CHECK_OK(pq_eval_new(make_plan(arena, "vector(1)", &minutes), NULL, 1, &options, &eval, &err),
             &err);
    canceled = true;
    CHECK_EQ(pq_eval_next(eval, &batch, &err), QF_ECANCELED);
}

TEST(batches_come_in_order_and_end_with_an_empty_one)
{
    struct pq_query_params params = { .start_ms = 0, .end_ms = 99, .step_ms = 1 };
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(pq_eval_freep) struct pq_eval *eval = NULL;
    struct pq_eval_batch batch;
    struct qf_err err = { 0 };

    CHECK_OK(pq_eval_new(make_plan(arena, "vector(time())", &params), NULL, 1, NULL, &eval, &err),
             &err);
    CHECK_OK(pq_eval_next(eval, &batch, &err), &err);
    CHECK_EQ(batch.steps, 64);
    CHECK_EQ(batch.start_ms, 0);
    CHECK_OK(pq_eval_next(eval, &batch, &err), &err);
    CHECK_EQ(batch.steps, 36);
    CHECK_EQ(batch.start_ms, 64);
    CHECK_EQ(batch.series_count, 1);
    CHECK_OK(pq_eval_next(eval, &batch, &err), &err);
    CHECK_EQ(batch.steps, 0);
    CHECK_EQ(pq_eval_stats(eval).points, 100);
}

static int64_t ticking_ns(void)
{
    static int64_t now;

    return now += 10;
}

/* In the order of the plan's tree: the sum, its vectors, their times. Each look at the clock takes 10 ns
 * here, so what a node spends by itself is known. */
TEST(figures_of_nodes_come_in_the_order_of_the_plan)
{
    struct pq_query_params params = { .start_ms = 0, .end_ms = 99, .step_ms = 1 };
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(pq_eval_freep) struct pq_eval *eval = NULL;
    struct pq_eval_options options = { .clock_ns = ticking_ns };
    struct pq_node_figures figures[8] = { 0 };
    struct pq_eval_batch batch;
    struct qf_err err = { 0 };

    CHECK_OK(pq_eval_new(make_plan(arena, "vector(time()) + vector(time())", &params), NULL, 1,
                         &options, &eval, &err),
             &err);
    do
        CHECK_OK(pq_eval_next(eval, &batch, &err), &err);
    while (batch.steps);
    CHECK_EQ(pq_eval_figures(eval, figures, 8), 5);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(figures[i].blocks, 2);
        CHECK(figures[i].self_ns > 0);
    }
    CHECK_EQ(figures[0].series, 1);
    CHECK_EQ(figures[2].self_ns, 2 * 10); /* time(): no look at the clock within its own */
    CHECK_EQ(pq_eval_figures(eval, figures, 2), 5);
}

TEST(an_evaluation_keeps_to_its_memory)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(pq_eval_freep) struct pq_eval *eval = NULL;
    struct pq_eval_options options = { .memory_bytes_max = 2000 };
    struct qf_err err = { 0 };

    CHECK_EQ(pq_eval_new(make_plan(arena, "vector(1) + vector(2) + vector(3)", &minutes), NULL, 1,
                         &options, &eval, &err),
             QF_ELIMIT);
}
