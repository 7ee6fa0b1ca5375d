/* bench_promql.c - what PromQL costs over samples that are already in memory, on one core.
 *
 * usage: bench_promql [--series N] [--steps N] [--shards N] [--only TEXT]
 *
 * Without arguments: 1,000 and 10,000 series, 1,000 steps of 15 s over counters scraped every 15 s.
 * Prints, per query, nanoseconds per input sample and per output point, and input samples per
 * second, all in processor time of one core. Planning, leaf, merge and evaluation are in the time;
 * parsing is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "promql/engine.h"
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

struct data {
    struct qf_labels *requests, *limits; /* per series */
    double *values;                      /* series behind each other */
    int64_t *ts;
    size_t series, samples, shards;
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

static void make_data(struct data *data, struct qf_arena *arena, size_t series, size_t steps)
{
    struct qf_prng prng = { 7 };

    data->series = series;
    data->samples = steps + WINDOW_MS / SCRAPE_MS + 60;
    data->ts = qf_xcalloc(data->samples, sizeof(*data->ts));
    data->values = qf_xcalloc(data->samples * series, sizeof(*data->values));
    data->requests = QF_ARENA_ARRAY(arena, struct qf_labels, series);
    data->limits = QF_ARENA_ARRAY(arena, struct qf_labels, series);
    for (size_t i = 0; i < data->samples; i++)
        data->ts[i] = (int64_t)i * SCRAPE_MS;
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

static int run(const struct data *data, const char *query, size_t steps)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_engine engine = { .shard_count = data->shards,
                                .open = open_source,
                                .ctx = (void *)(uintptr_t)data };
    struct pq_query_params params = { .step_ms = SCRAPE_MS };
    struct pq_parse_options options = { 0 };
    struct pq_result result;
    struct pq_node *expr;
    struct qf_err err = { 0 };
    double start, ns;

    params.start_ms = (int64_t)(data->samples - steps) * SCRAPE_MS;
    params.end_ms = params.start_ms + (int64_t)(steps - 1) * SCRAPE_MS;
    if (pq_parse(arena, qf_str_from(query), &options, &expr, &err) != QF_OK) {
        fprintf(stderr, "bench_promql: %s: %s\n", query, err.msg);
        return 1;
    }
    start = now_ns();
    if (pq_engine_run(&engine, arena, expr, qf_str_from(query), &params, &result, &err) != QF_OK) {
        fprintf(stderr, "bench_promql: %s: %s\n", query, err.msg);
        return 1;
    }
    ns = now_ns() - start;
    printf("%7zu series %5zu steps  %8.2f ns/sample %9.2f ns/point %8.1f M samples/s  %s\n",
           data->series, steps, ns / (double)result.stats.samples_read,
           ns / (double)QF_MAX(result.stats.points, (uint64_t)1),
           (double)result.stats.samples_read / ns * 1e3, query);
    return 0;
}

static int run_size(size_t series, size_t steps, size_t shards, const char *only)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct data data = { .shards = shards };
    int failed = 0;

    make_data(&data, arena, series, steps);
    for (size_t i = 0; i < QF_COUNT_OF(queries); i++)
        if (!only || strstr(queries[i], only))
            failed |= run(&data, queries[i], steps);
    free(data.ts);
    free(data.values);
    return failed;
}

int main(int argc, char **argv)
{
    uint64_t series = 0, steps = 1000, shards = 1;
    const char *only = NULL;

    for (int i = 1; i + 1 < argc; i += 2) {
        struct qf_str value = qf_str_from(argv[i + 1]);
        bool ok = true;

        if (!strcmp(argv[i], "--series"))
            ok = qf_parse_u64(value, &series);
        else if (!strcmp(argv[i], "--steps"))
            ok = qf_parse_u64(value, &steps) && steps > 0;
        else if (!strcmp(argv[i], "--shards"))
            ok = qf_parse_u64(value, &shards) && shards > 0;
        else if (!strcmp(argv[i], "--only"))
            only = argv[i + 1];
        else
            ok = false;
        if (!ok) {
            fprintf(stderr, "bench_promql: bad argument %s %s\n", argv[i], argv[i + 1]);
            return 2;
        }
    }
    if (series)
        return run_size(series, steps, shards, only);
    return run_size(1000, steps, shards, only) | run_size(10000, steps, shards, only);
}
