/* test_cancel.c - a leaf that nobody wants any more ends soon, however much one series asks of it.
 *
 * Time is no measure on a busy machine; work is. Loops report the values they visit to a poll,
 * which looks at the cancel flag every PQ_POLL_WORK of them. So two things are to be shown: that
 * the looks are as many as the work demands, and that nothing is done after a look that found the
 * flag set. */
#include <stdlib.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "promql/leaf/leaf_int.h"
#include "promql/parse.h"
#include "promql/plan.h"
#include "tests/lib/test.h"

#define SCRAPE_MS 1000

/* One series, scraped every second. */
struct one_series {
    struct pq_source source;
    struct pq_series series;
    bool done;
};

static qf_rc one_next(struct pq_source *source, struct pq_series *ret_series, bool *ret_more,
                      struct qf_err *err)
{
    struct one_series *self = (struct one_series *)source;

    (void)err;
    *ret_more = !self->done;
    *ret_series = self->series;
    self->done = true;
    return QF_OK;
}

/* Counts looks, sets the flag at one of them and measures the processor time between two. */
struct watch {
    atomic_bool canceled;
    size_t looks, cancel_at; /* 0: never */
    double last_ms, longest_ms;
};

static double cpu_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void watch_look(void *ctx)
{
    struct watch *watch = ctx;
    double now = cpu_ms();

    if (watch->looks++ > 0 && now - watch->last_ms > watch->longest_ms)
        watch->longest_ms = now - watch->last_ms;
    watch->last_ms = now;
    if (watch->looks == watch->cancel_at)
        atomic_store(&watch->canceled, true);
}

/* A query whose one leaf is run over one series. */
struct heavy {
    const char *query;
    size_t samples, steps;
    size_t visits; /* at least that many values have to be looked at */
};

static qf_rc run(const struct heavy *heavy, struct watch *watch)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_parse_options options = { .experimental_functions = true,
                                        .extended_range_selectors = true };
    int64_t end = (int64_t)heavy->samples * SCRAPE_MS;
    struct pq_query_params params = { .start_ms = end - ((int64_t)heavy->steps - 1) * SCRAPE_MS,
                                      .end_ms = end,
                                      .step_ms = heavy->steps > 1 ? SCRAPE_MS : 0 };
    struct pq_poll poll = { .canceled = &watch->canceled, .look = watch_look, .ctx = watch };
    struct one_series one = { .source = { one_next, NULL } };
    struct qf_label name = { QF_STR(QF_METRIC_NAME), QF_STR("x") };
    int64_t *ts = qf_xcalloc(heavy->samples, sizeof(*ts));
    double *values = qf_xcalloc(heavy->samples, sizeof(*values));
    struct pq_leaf_result result;
    struct pq_expr *expr;
    struct pq_plan *plan;
    struct qf_err err = { 0 };
    qf_rc rc;

    for (size_t i = 0; i < heavy->samples; i++) {
        ts[i] = (int64_t)(i + 1) * SCRAPE_MS;
        values[i] = (double)(i * 7919 % 10007);
    }
    one.series = (struct pq_series){
        .labels = { &name, 1 }, .ts = ts, .values = values, .count = heavy->samples
    };
    CHECK_OK(pq_parse(arena, qf_str_from(heavy->query), &options, &expr, &err), &err);
    CHECK_OK(pq_plan_new(arena, expr, qf_str_from(heavy->query), &params, &plan, &err), &err);
    CHECK_EQ(plan->leaf_count, 1);
    rc = pq_leaf_run_polled(plan->leaves[0], &one.source, NULL, &poll, arena, &result, &err);
    free(ts);
    free(values);
    return rc;
}

/* Windows of 50,000 samples, ten of them; grids of 200,000 steps. */
#define WINDOW "50000"
#define VISITS ((size_t)10 * 50000)
static const struct heavy heavies[] = {
    { "sum_over_time(x[" WINDOW "s])", 60000, 10, VISITS },
    { "avg_over_time(x[" WINDOW "s])", 60000, 10, VISITS },
    { "stddev_over_time(x[" WINDOW "s])", 60000, 10, VISITS },
    { "stdvar_over_time(x[" WINDOW "s])", 60000, 10, VISITS },
    { "quantile_over_time(0.5, x[" WINDOW "s])", 60000, 10, VISITS }, /* sorted once, then moved */
    { "mad_over_time(x[" WINDOW "s])", 60000, 10, VISITS },           /* the same */
    { "ts_of_min_over_time(x[" WINDOW "s])", 60000, 10, VISITS },
    { "ts_of_max_over_time(x[" WINDOW "s])", 60000, 10, VISITS },
    { "deriv(x[" WINDOW "s])", 60000, 10, VISITS },
    { "predict_linear(x[" WINDOW "s], 60)", 60000, 10, VISITS },
    { "double_exponential_smoothing(x[" WINDOW "s], 0.5, 0.5)", 60000, 10, VISITS },
    { "rate(x[" WINDOW "s] anchored)", 60000, 10, VISITS },
    { "increase(x[" WINDOW "s] smoothed)", 60000, 10, VISITS },
    { "changes(x[" WINDOW "s] anchored)", 60000, 10, VISITS },
    { "rate(x[300s])", 200000, 200000, 200000 },
    { "delta(x[300s])", 200000, 200000, 200000 },
    { "min_over_time(x[300s])", 200000, 200000, 400000 },
    { "changes(x[300s])", 200000, 200000, 400000 },
    { "count_over_time(x[300s])", 200000, 200000, 200000 },
    { "x", 200000, 200000, 400000 },
    { "ln(x)", 200000, 200000, 600000 },
    { "x > 5", 200000, 200000, 600000 },
    { "sum(x)", 200000, 200000, 1000000 },
    { "avg by (a) (x)", 200000, 200000, 1400000 },
    { "topk(1, x)", 200000, 200000, 600000 },
    { "count_values(\"v\", x)", 20000, 20000, 200000 },
    { "x[200000s]", 200000, 1, 2000000 },
    { "max_over_time(sum_over_time(x[10s])[100000s:1s])", 120000, 1, 1000000 },
};

/* Whatever a leaf does with its values, it looks at the flag at least once in PQ_POLL_WORK. */
TEST(looks_at_the_flag_are_as_many_as_the_work)
{
    for (size_t i = 0; i < QF_COUNT_OF(heavies); i++) {
        struct watch watch = { 0 };

        CHECK_EQ(run(&heavies[i], &watch), QF_OK);
        CHECK_MSG(watch.looks + 2 >= heavies[i].visits / PQ_POLL_WORK,
                  "%s: %zu looks for at least %zu visits", heavies[i].query, watch.looks,
                  heavies[i].visits);
    }
}

/* The flag is set at a look, early, in the middle and late: that look is the last. */
TEST(nothing_is_done_after_the_look_that_found_the_flag_set)
{
    for (size_t i = 0; i < QF_COUNT_OF(heavies); i++) {
        struct watch whole = { 0 };

        CHECK_EQ(run(&heavies[i], &whole), QF_OK);
        for (size_t part = 0; part <= 4; part += 2) {
            struct watch watch = { .cancel_at = 1 + (whole.looks - 1) * part / 4 };

            CHECK_EQ(run(&heavies[i], &watch), QF_ECANCELED);
            CHECK_MSG(watch.looks == watch.cancel_at, "%s: %zu looks, canceled at look %zu",
                      heavies[i].query, watch.looks, watch.cancel_at);
        }
    }
}

/* And those PQ_POLL_WORK values are little: far less than 50 ms of processor time. What the machine
 * takes for itself may count as such, so one that seems long is run again. */
TEST(two_looks_are_not_far_apart)
{
    double longest = 0;

    for (size_t i = 0; i < QF_COUNT_OF(heavies); i++) {
        struct watch watch = { .longest_ms = 50 };

        for (int tries = 0; tries < 3 && watch.longest_ms >= 50; tries++) {
            watch = (struct watch){ 0 };
            CHECK_EQ(run(&heavies[i], &watch), QF_OK);
        }
        longest = QF_MAX(longest, watch.longest_ms);
        CHECK_MSG(watch.longest_ms < 50, "%s: %.1f ms between two looks", heavies[i].query,
                  watch.longest_ms);
    }
    printf("longest way between two looks: %.2f ms\n", longest);
}
