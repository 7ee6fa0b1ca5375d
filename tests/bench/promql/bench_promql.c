/* bench_promql.c - what PromQL costs over samples that are already in memory, on one core.
 *
 * usage: bench_promql [--series N] [--steps N] [--per-step N] [--jitter MS] [--shards N]
 *                     [--runs N] [--only TEXT] [--functions WINDOW]
 *
 * Without arguments: 1,000 and 10,000 series, 1,000 steps, over counters scraped every 15 s; steps
 * of 15 s (1 sample per step) and of 60 s (4 samples per step). --jitter moves every scrape by up
 * to that much. Prints, per query, nanoseconds per input sample and per output point, and input
 * samples per second, all in processor time of one core: the best of --runs (3). Planning, leaf,
 * merge and evaluation are in the time; parsing is not. --functions: the sum of each range function over
 * windows of this length ("5m") instead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "promql/testing/engine.h"
#include "promql/parse.h"

#define SCRAPE_MS 15000
#define WINDOW_MS 300000

static const char *const queries[] = {
    "rate(http_requests_total[5m])",
    "sum by (job) (rate(http_requests_total[5m]))",
    "histogram_quantile(0.9, sum by (le, job) (rate(http_requests_total[5m])))",
    "topk(5, rate(http_requests_total[5m]))",
    "http_requests_total * on (job, instance, le) http_limit_total",
    "sum by (job) (http_requests_total)",
    "avg_over_time(http_requests_total[5m])",
    "max_over_time(rate(http_requests_total[5m])[10m:1m])",
};

/* What comes in front of the selector of each range function, and behind its window. */
static const struct call {
    const char *before, *behind;
} calls[] = {
    { "rate(", ")" },
    { "increase(", ")" },
    { "delta(", ")" },
    { "irate(", ")" },
    { "idelta(", ")" },
    { "changes(", ")" },
    { "resets(", ")" },
    { "deriv(", ")" },
    { "predict_linear(", ", 3600)" },
    { "count_over_time(", ")" },
    { "last_over_time(", ")" },
    { "first_over_time(", ")" },
    { "present_over_time(", ")" },
    { "sum_over_time(", ")" },
    { "avg_over_time(", ")" },
    { "min_over_time(", ")" },
    { "max_over_time(", ")" },
    { "stddev_over_time(", ")" },
    { "stdvar_over_time(", ")" },
    { "quantile_over_time(0.9, ", ")" },
    { "mad_over_time(", ")" },
    { "double_exponential_smoothing(", ", 0.5, 0.5)" },
};

struct data {
    struct qf_labels *requests, *limits; /* per series */
    double *values;                      /* series behind each other */
    int64_t *ts;
    size_t series, samples, shards;
};

/* What is measured. */
struct setup {
    uint64_t series, steps, per_step, jitter_ms, shards,
        runs; /* series, per_step 0: all there are */
    const char *only;
    const char *window; /* of --functions; NULL: the queries */
};

struct source {
    struct pq_source source;
    const struct data *data;
    const struct qf_labels *labels;
    size_t next, step, first, count;
};

static qf_rc source_next(struct pq_source *source, struct pq_series *ret_series, bool *ret_more,
                         struct qf_err *err)
{
    struct source *self = (struct source *)source;

    (void)err;
    *ret_more = self->next < self->data->series;
    if (!*ret_more)
        return QF_OK;
    *ret_series = (struct pq_series){
        .labels = self->labels[self->next],
        .ts = self->data->ts + self->first,
        .values = self->data->values + self->next * self->data->samples + self->first,
        .count = self->count,
    };
    self->next += self->step;
    return QF_OK;
}

static void source_close(struct pq_source *source)
{
    free(source);
}

static qf_rc open_source(void *ctx, size_t shard, const struct pq_select *select,
                         struct pq_source **ret_source, struct qf_err *err)
{
    const struct data *data = ctx;
    struct source *self = qf_xcalloc(1, sizeof(*self));

    (void)err;
    self->source = (struct pq_source){ source_next, source_close };
    self->data = data;
    self->labels =
        qf_str_is(select->matchers[0].value, "http_limit_total") ? data->limits : data->requests;
    self->next = shard;
    self->step = data->shards;
    while (self->first < data->samples && data->ts[self->first] < select->min_ts)
        self->first++;
    while (self->first + self->count < data->samples &&
           data->ts[self->first + self->count] <= select->max_ts)
        self->count++;
    *ret_source = &self->source;
    return QF_OK;
}

static struct qf_label label(struct qf_arena *arena, const char *name, const char *fmt, size_t n)
{
    char text[64];

    (void)snprintf(text, sizeof(text), fmt, n);
    return (struct qf_label){ qf_str_from(name), qf_arena_str(arena, qf_str_from(text)) };
}

static struct qf_labels make_labels(struct qf_arena *arena, const char *name, size_t i)
{
    static const char *const bounds[] = { "+Inf", "0.1", "0.5", "1", "5" };
    struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, 4);

    items[0] = (struct qf_label){ QF_STR(QF_METRIC_NAME), qf_str_from(name) };
    items[1] = label(arena, "instance", "instance-%06zu", i / 5);
    items[2] = label(arena, "job", "job-%02zu", i / 5 % 20);
    items[3] = (struct qf_label){ QF_STR("le"), qf_str_from(bounds[i % 5]) };
    return qf_labels_normalize(items, 4);
}

static void make_data(struct data *data, struct qf_arena *arena, const struct setup *setup)
{
    struct qf_prng prng = { 7 };
    size_t series = setup->series;

    data->series = series;
    data->samples = setup->steps * setup->per_step + WINDOW_MS / SCRAPE_MS + 60;
    data->shards = setup->shards;
    data->ts = qf_xcalloc(data->samples, sizeof(*data->ts));
    data->values = qf_xcalloc(data->samples * series, sizeof(*data->values));
    data->requests = QF_ARENA_ARRAY(arena, struct qf_labels, series);
    data->limits = QF_ARENA_ARRAY(arena, struct qf_labels, series);
    for (size_t i = 0; i < data->samples; i++)
        data->ts[i] =
            (int64_t)i * SCRAPE_MS + (int64_t)(qf_prng_next(&prng) % (setup->jitter_ms + 1));
    for (size_t s = 0; s < series; s++) {
        double value = 0;

        data->requests[s] = make_labels(arena, "http_requests_total", s);
        data->limits[s] = make_labels(arena, "http_limit_total", s);
        for (size_t i = 0; i < data->samples; i++) {
            value += (double)(qf_prng_next(&prng) % 1000);
            if (qf_prng_next(&prng) % 1000 == 0)
                value = 0; /* a restart now and then */
            data->values[s * data->samples + i] = value;
        }
    }
}

static double now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Processor time of one run; < 0: it failed. */
static double run_once(const struct data *data, const char *query,
                       const struct pq_query_params *params, struct pq_eval_stats *ret_stats)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_engine engine = { .shard_count = data->shards,
                                .open = open_source,
                                .ctx = (void *)(uintptr_t)data };
    struct pq_parse_options options = { .experimental_functions = true };
    struct pq_result result;
    struct pq_expr *expr;
    struct qf_err err = { 0 };
    qf_rc rc = pq_parse(arena, qf_str_from(query), &options, &expr, &err);
    double start = now_ns(), ns;

    if (rc == QF_OK)
        rc = pq_engine_run(&engine, arena, expr, qf_str_from(query), params, &result, &err);
    ns = now_ns() - start;
    if (rc != QF_OK) {
        fprintf(stderr, "bench_promql: %s: %s\n", query, err.msg);
        return -1;
    }
    *ret_stats = result.stats;
    return ns;
}

static int run(const struct data *data, const struct setup *setup, const char *query)
{
    struct pq_query_params params = { .step_ms = SCRAPE_MS * (int64_t)setup->per_step };
    struct pq_eval_stats stats = { 0 };
    double best = 0;

    params.end_ms = (int64_t)(data->samples - 1) * SCRAPE_MS;
    params.start_ms = params.end_ms - (int64_t)(setup->steps - 1) * params.step_ms;
    for (uint64_t i = 0; i < setup->runs; i++) {
        double ns = run_once(data, query, &params, &stats);

        if (ns < 0)
            return 1;
        best = i == 0 || ns < best ? ns : best;
    }
    printf("%7zu series %5llu steps %2llu/step  %7.2f ns/sample %9.2f ns/point %7.1f M samples/s  "
           "%s\n",
           data->series, (unsigned long long)setup->steps, (unsigned long long)setup->per_step,
           best / (double)stats.samples_read, best / (double)QF_MAX(stats.points, (uint64_t)1),
           (double)stats.samples_read / best * 1e3, query);
    (void)fflush(stdout);
    return 0;
}

static int run_size(const struct setup *setup)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct data data = { 0 };
    int failed = 0;

    make_data(&data, arena, setup);
    for (size_t i = 0; setup->window && i < QF_COUNT_OF(calls); i++) {
        const char *query = qf_arena_printf(arena, "sum(%shttp_requests_total[%s]%s)",
                                            calls[i].before, setup->window, calls[i].behind);

        if (!setup->only || strstr(query, setup->only))
            failed |= run(&data, setup, query);
    }
    for (size_t i = 0; !setup->window && i < QF_COUNT_OF(queries); i++)
        if (!setup->only || strstr(queries[i], setup->only))
            failed |= run(&data, setup, queries[i]);
    free(data.ts);
    free(data.values);
    return failed;
}

static int run_all(struct setup setup)
{
    static const uint64_t sizes[] = { 1000, 10000 }, per_step[] = { 1, 4 };
    uint64_t series = setup.series, density = setup.per_step;
    int failed = 0;

    for (size_t i = 0; i < QF_COUNT_OF(sizes); i++)
        for (size_t j = 0; j < QF_COUNT_OF(per_step); j++) {
            if ((series && i > 0) || (density && j > 0))
                continue;
            setup.series = series ? series : sizes[i];
            setup.per_step = density ? density : per_step[j];
            failed |= run_size(&setup);
        }
    return failed;
}

int main(int argc, char **argv)
{
    struct setup setup = { .steps = 1000, .shards = 1, .runs = 3 };

    for (int i = 1; i < argc; i += 2) {
        struct qf_str value = qf_str_from(i + 1 < argc ? argv[i + 1] : "");
        bool ok = i + 1 < argc;

        if (!strcmp(argv[i], "--series"))
            ok = ok && qf_parse_u64(value, &setup.series) && setup.series > 0;
        else if (!strcmp(argv[i], "--steps"))
            ok = ok && qf_parse_u64(value, &setup.steps) && setup.steps > 0;
        else if (!strcmp(argv[i], "--per-step"))
            ok = ok && qf_parse_u64(value, &setup.per_step) && setup.per_step > 0;
        else if (!strcmp(argv[i], "--jitter"))
            ok = ok && qf_parse_u64(value, &setup.jitter_ms) && setup.jitter_ms < SCRAPE_MS;
        else if (!strcmp(argv[i], "--shards"))
            ok = ok && qf_parse_u64(value, &setup.shards) && setup.shards > 0;
        else if (!strcmp(argv[i], "--runs"))
            ok = ok && qf_parse_u64(value, &setup.runs) && setup.runs > 0;
        else if (!strcmp(argv[i], "--only"))
            setup.only = argv[i + 1];
        else if (!strcmp(argv[i], "--functions"))
            setup.window = argv[i + 1];
        else
            ok = false;
        if (!ok) {
            fprintf(stderr, "bench_promql: bad argument %s %s\n", argv[i], value.data);
            return 2;
        }
    }
    return run_all(setup);
}
