/* test_native_memory.c - what a leaf over 10,000 series of native histograms takes.
 *
 * What a work may take is its arena's budget. An aggregation takes what its groups take, however many
 * series there are; what does not fit is an error that says so. */
#include <stdio.h>

#include "promql/leaf/leaf_int.h"
#include "promql/parse.h"
#include "promql/plan.h"
#include "tests/lib/test.h"

enum { SERIES = 10000, BUCKETS = 160, SAMPLES = 16, GROUPS = 10, STEPS = 6 };
#define SCRAPE_MS 60000
#define MIB ((size_t)1 << 20)

/* The same counters with other labels, again and again. */
struct many_series {
    struct pq_source source;
    struct qf_label labels[3];
    char group[8], number[8];
    int64_t ts[SAMPLES];
    double values[SAMPLES], counts[SAMPLES][BUCKETS];
    struct pq_histogram histograms[SAMPLES];
    const struct pq_histogram *pointers[SAMPLES];
    struct pq_span span;
    size_t at;
};

static qf_rc many_next(struct pq_source *source, struct pq_series *ret_series, bool *ret_more,
                       struct qf_err *err)
{
    struct many_series *self = (struct many_series *)source;

    (void)err;
    *ret_more = self->at < SERIES;
    if (!*ret_more)
        return QF_OK;
    (void)snprintf(self->group, sizeof(self->group), "%zu", self->at / (SERIES / GROUPS));
    (void)snprintf(self->number, sizeof(self->number), "%05zu", self->at++);
    self->labels[1].value = qf_str_from(self->group);
    self->labels[2].value = qf_str_from(self->number);
    *ret_series = (struct pq_series){ .labels = { self->labels, 3 },
                                      .ts = self->ts,
                                      .values = self->values,
                                      .histograms = self->pointers,
                                      .count = SAMPLES };
    return QF_OK;
}

static void many_init(struct many_series *many)
{
    *many = (struct many_series){
        .source = { many_next, NULL },
        .labels = { { QF_STR(QF_METRIC_NAME), QF_STR("h") },
                    { QF_STR("group"), QF_STR("") },
                    { QF_STR("number"), QF_STR("") } },
        .span = { -80, BUCKETS },
    };
    for (size_t i = 0; i < SAMPLES; i++) {
        many->ts[i] = (int64_t)(i + 1) * SCRAPE_MS;
        for (size_t b = 0; b < BUCKETS; b++)
            many->counts[i][b] = (double)(i * (b + 1));
        many->histograms[i] = (struct pq_histogram){ .reset_hint = PQ_RESET_NO,
                                                     .schema = 4,
                                                     .count = (double)(i * BUCKETS * 80),
                                                     .positive_spans = &many->span,
                                                     .positive_span_count = 1,
                                                     .positive_buckets = many->counts[i],
                                                     .positive_bucket_count = BUCKETS };
        many->pointers[i] = &many->histograms[i];
    }
}

/* Run the one leaf of @query, on steps that end with the samples, within @budget bytes. */
static qf_rc run(const char *query, int64_t step_ms, size_t budget, size_t *ret_series,
                 size_t *ret_used, struct qf_err *err)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *plans = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(budget);
    struct pq_parse_options options = { 0 };
    struct pq_query_params params = { .start_ms = SAMPLES * SCRAPE_MS - (STEPS - 1) * step_ms,
                                      .end_ms = SAMPLES * SCRAPE_MS,
                                      .step_ms = step_ms };
    struct pq_leaf_result result = { 0 };
    static struct many_series many;
    struct pq_expr *expr;
    struct pq_plan *plan;
    qf_rc rc;

    many_init(&many);
    CHECK_OK(pq_parse(plans, qf_str_from(query), &options, &expr, err), err);
    CHECK_OK(pq_plan_new(plans, expr, qf_str_from(query), &params, &plan, err), err);
    CHECK_EQ(plan->leaf_count, 1);
    rc = pq_leaf_run(plan->leaves[0], &many.source, NULL, NULL, arena, &result, err);
    *ret_series = result.series_count;
    *ret_used = qf_arena_used(arena);
    return rc;
}

/* 200 MB of buckets are read; the sums of ten groups are a few hundred kilobytes. */
TEST(sums_of_histograms_take_what_their_groups_take)
{
    size_t series, used;
    struct qf_err err = { 0 };

    CHECK_OK(run("sum by (group) (rate(h[5m]))", SCRAPE_MS, 4 * MIB, &series, &used, &err), &err);
    CHECK_EQ(series, GROUPS);
    CHECK_OK(run("avg(rate(h[5m]))", SCRAPE_MS, 2 * MIB, &series, &used, &err), &err);
    CHECK_EQ(series, 1);
    CHECK_OK(run("count by (group) (h)", SCRAPE_MS, 2 * MIB, &series, &used, &err), &err);
    CHECK_EQ(series, GROUPS);
}

/* Six steps within a minute see two samples of each series: two are kept, not six. */
TEST(a_sample_is_kept_once_for_all_steps)
{
    size_t series, used;
    struct qf_err err = { 0 };

    CHECK_OK(run("h", SCRAPE_MS / STEPS, 100 * MIB, &series, &used, &err), &err);
    CHECK_EQ(series, SERIES);
    CHECK_MSG(used < (size_t)SERIES * BUCKETS * sizeof(double) * 3, "%zu bytes", used);
}

/* 10,000 histograms of each of six steps do not fit into 64 MiB: that is what is said. */
TEST(what_does_not_fit_is_said)
{
    size_t series, used;
    struct qf_err err = { 0 };

    CHECK_EQ(run("rate(h[5m])", SCRAPE_MS, 64 * MIB, &series, &used, &err), QF_ELIMIT);
    CHECK_STR(err.msg, "the leaf needs more memory than its limit");
    CHECK_MSG(used <= 64 * MIB, "%zu bytes", used);
    err = (struct qf_err){ 0 };
    CHECK_EQ(run("sum by (number) (rate(h[5m]))", SCRAPE_MS, 64 * MIB, &series, &used, &err),
             QF_ELIMIT);
    CHECK_STR(err.msg, "the leaf needs more memory than its limit");
}
