/* test_values.c - native histograms on their way through leaves, merge and nodes: who holds them
 * and for how long. */
#include "promql/parse.h"
#include "tests/lib/promql/memory_series.h"
#include "tests/lib/test.h"

#define SERIES(name, gap)                                                                          \
    QF_CLEANUP(memory_series_freep) struct memory_series *name = memory_series_new(gap)

#define HISTOGRAM                                                                                  \
    "{{schema:0 sum:5 count:4 buckets:[1 2 1]}}+{{schema:0 sum:5 count:4 buckets:[1 2 1]}}"

static qf_rc run(struct memory_series *series, struct qf_arena *arena, const char *query,
                 const struct pq_query_params *params, struct pq_result *ret_result,
                 struct qf_err *err)
{
    struct pq_engine engine = memory_series_engine(series, 2);
    struct pq_parse_options options = { .experimental_functions = true };
    struct pq_expr *expr;

    CHECK_OK(pq_parse(arena, qf_str_from(query), &options, &expr, err), err);
    return pq_engine_run(&engine, arena, expr, qf_str_from(query), params, ret_result, err);
}

/* The bytes an evaluation of @steps steps holds at its end. */
static size_t memory_of(struct memory_series *series, const char *query, int64_t steps)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_query_params params = { .end_ms = (steps - 1) * 1000, .step_ms = 1000 };
    struct pq_result result;
    struct qf_err err = { 0 };

    CHECK_OK(run(series, arena, query, &params, &result, &err), &err);
    CHECK(result.series_count > 0);
    CHECK_EQ(result.series[0].count, steps);
    CHECK(result.series[0].histograms != NULL);
    return result.stats.memory_bytes;
}

/* What a block needs is given back before the next one: no matter how many there are. */
TEST(memory_for_histograms_does_not_grow_with_steps)
{
    static const char *const queries[] = {
        "h",
        "h == h",
        "h or m",
        "h and h",
        "limitk(9,h)",
        "h @ 1 or h @ 2",
        "(h or m) and h",
        "label_replace(h, \"b\", \"1\", \"\", \"\") or h",
    };
    SERIES(series, 1000);

    memory_series_add(series, "h{a=\"1\"} " HISTOGRAM "x7000");
    memory_series_add(series, "h{a=\"2\"} " HISTOGRAM "x7000");
    memory_series_add(series, "m{a=\"3\"} 1+1x7000");
    for (size_t i = 0; i < QF_COUNT_OF(queries); i++)
        CHECK_EQ(memory_of(series, queries[i], 64 * 100), memory_of(series, queries[i], 64 * 3));
}

/* Blocks that two nodes read are there for as long as one of them looks at their histograms. */
TEST(histograms_of_a_shared_leaf_stay_for_all_its_readers)
{
    struct pq_query_params params = { .end_ms = 199 * 1000, .step_ms = 1000 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf want = QF_STRBUF_INIT;
    SERIES(series, 1000);

    memory_series_add(series, "h{a=\"1\"} " HISTOGRAM "x199");
    qf_strbuf_puts(&want, "h{a=\"1\"}");
    for (int k = 0; k < 200; k++)
        qf_strbuf_printf(&want, " {count %d sum %d}@%d", 4 * (k + 1), 5 * (k + 1), k * 1000);
    qf_strbuf_putc(&want, '\n');
    CHECK_STR(memory_series_query(series, 3, "h == h", &params), qf_strbuf_cstr(&want));
    CHECK_STR(memory_series_query(series, 3, "(h or h) == (h and h)", &params),
              qf_strbuf_cstr(&want));
}

/* A sample that several steps look at, and a float between histograms. */
TEST(floats_and_histograms_share_a_series)
{
    struct pq_query_params params = { .end_ms = 4000, .step_ms = 1000 };
    SERIES(series, 2000);

    memory_series_add(series, "h 1 {{sum:5 count:4}} 2");
    CHECK_STR(memory_series_query(series, 2, "h", &params),
              "h 1@0 1@1000 {count 4 sum 5}@2000 {count 4 sum 5}@3000 2@4000\n");
    CHECK_STR(memory_series_query(series, 2, "h > 0", &params),
              "h 1@0 1@1000 2@4000\n"
              "PromQL info: incompatible sample types encountered for binary operator \">\": "
              "histogram > float (1:1)\n");
    /* None is left, so that nothing has to be computed with one. */
    CHECK_STR(memory_series_query(series, 2, "sum(h > 1)", &params),
              "{} 2@4000\n"
              "PromQL info: incompatible sample types encountered for binary operator \">\": "
              "histogram > float (1:5)\n");
    CHECK_STR(memory_series_query(series, 2, "sum((h or h) > 1)", &params),
              "{} 2@4000\n"
              "PromQL info: incompatible sample types encountered for binary operator \">\": "
              "histogram > float (1:5)\n");
}

/* Whatever a node failed with first is what the query fails with, histograms or not. */
TEST(histograms_do_not_change_how_a_node_failed)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_query_params params = { .end_ms = 9000, .step_ms = 1000, .series_max = 2 };
    const char *query = "count_values(\"v\", h or m)";
    struct qf_err err = { 0 };
    struct pq_result result;
    SERIES(series, 1000);

    memory_series_add(series, "h{a=\"1\"} {{sum:5 count:4}}x9");
    memory_series_add(series, "m{a=\"2\"} 1+1x9");
    CHECK_EQ(run(series, arena, query, &params, &result, &err), QF_ELIMIT);
    CHECK_STR(err.msg, "the query has more than 2 series");
    params.series_max = 0;
    err = (struct qf_err){ 0 };
    CHECK_OK(run(series, arena, query, &params, &result, &err), &err);
}

/* As partials from any number of shards, and above the leaves: the same sums. */
TEST(histograms_are_added_up_where_they_are)
{
    static const size_t shards[] = { 1, 2, 3, 8 };
    struct pq_query_params at = { .start_ms = 0, .end_ms = 0 };
    SERIES(series, 1000);

    memory_series_add(series, "h{a=\"1\",g=\"h\"} {{schema:0 sum:5 count:4 buckets:[1 2 1]}}");
    memory_series_add(series, "h{a=\"2\",g=\"h\"} {{schema:1 sum:7 count:2 buckets:[1 0 1]}}");
    memory_series_add(series, "h{a=\"3\",g=\"h\"} {{schema:0 sum:1 count:1 buckets:[1]}}");
    memory_series_add(series, "h{a=\"4\",g=\"m\"} {{schema:0 sum:1 count:1 buckets:[1]}}");
    memory_series_add(series, "h{a=\"5\",g=\"m\"} 4");
    for (size_t i = 0; i < QF_COUNT_OF(shards); i++) {
        CHECK_STR(memory_series_query(series, shards[i], "sum by (g) (h)", &at),
                  "{g=\"h\"} {count 7 sum 13}\n"
                  "PromQL warning: encountered a mix of histograms and floats for aggregation "
                  "(1:13)\n");
        CHECK_STR(memory_series_query(series, shards[i], "avg by (g) (h{g=\"h\"} or h)", &at),
                  "{g=\"h\"} {count 2.3333333333333335 sum 4.333333333333333}\n"
                  "PromQL warning: encountered a mix of histograms and floats for aggregation "
                  "(1:13)\n");
        CHECK_STR(memory_series_query(series, shards[i], "count(h)", &at), "{} 5\n");
    }
}
