/* demo.c - the demo data set. */
#include "segments/demo/demo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/map.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "base/pure/vec.h"

enum kind {
    KIND_REQUESTS,
    KIND_BUCKET,
    KIND_SUM,
    KIND_COUNT,
    KIND_CPU,
    KIND_MEMORY,
    KIND_TEMPERATURE,
    KIND_LOAD,
    KIND_QUEUE,
    KIND_PROGRESS,
    KIND_UP,
};

struct series {
    struct qf_labels labels;
    enum kind kind;
    size_t instance;
    size_t bucket;  /* KIND_BUCKET */
    uint64_t seed;  /* of its values; shared by the series of one histogram */
    double rate;    /* per second */
    size_t ordinal; /* KIND_PROGRESS: which run */
};

struct sg_demo {
    struct sg_demo_options options;
    struct qf_arena *arena;
    QF_VEC(struct series) series;
};

static const double bounds[] = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10 };
/* As Prometheus 3 stores them. */
static const char *const bound_texts[] = { "0.005", "0.01", "0.025", "0.05", "0.1",  "0.25",
                                           "0.5",   "1.0",  "2.5",   "5.0",  "10.0", "+Inf" };
#define BUCKETS (QF_COUNT_OF(bounds) + 1) /* and +Inf */

static const char *const jobs[] = { "shop", "search" };
/* Whose they are, and the machines and the runs below them. */
static const char *const teams[][3] = { { "shop", "storefront", "#shop-oncall" },
                                        { "search", "discovery", "#search-oncall" },
                                        { "node", "platform", "#platform-oncall" },
                                        { "batch", "platform", "#platform-oncall" } };
static const char *const paths[] = { "/", "/api/cart", "/api/items" };
static const char *const codes[] = { "200", "404", "500" };
static const char *const modes[] = { "idle", "iowait", "system", "user" };

static struct qf_labels labels_of(struct sg_demo *demo, const char *const *pairs)
{
    struct qf_label items[8];
    struct qf_labels copy;
    size_t count = 0;

    for (; pairs[2 * count]; count++)
        items[count] =
            (struct qf_label){ qf_str_from(pairs[2 * count]), qf_str_from(pairs[2 * count + 1]) };
    if (!qf_labels_copy(demo->arena, qf_labels_normalize(items, count), &copy))
        abort(); /* the arena has no limit */
    return copy;
}

static void add(struct sg_demo *demo, struct series series, const char *const *pairs)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    series.labels = labels_of(demo, pairs);
    if (!series.seed) {
        qf_labels_encode(&buf, series.labels);
        series.seed = qf_hash_bytes(qf_strbuf_view(&buf)) ^ demo->options.seed;
    }
    QF_VEC_PUSH(&demo->series, series);
}

static void add_histogram(struct sg_demo *demo, size_t instance, const char *job, const char *host,
                          const char *path, double rate)
{
    struct series s = { .instance = instance,
                        .rate = rate,
                        .seed = demo->options.seed ^
                                (instance * 977 + (uint64_t)path[1] * 131 + strlen(path) + 1) };

    for (s.bucket = 0; s.bucket < BUCKETS; s.bucket++) {
        s.kind = KIND_BUCKET;
        add(demo, s,
            (const char *const[]){ "__name__", "http_request_duration_seconds_bucket", "job", job,
                                   "instance", host, "path", path, "le", bound_texts[s.bucket],
                                   NULL });
    }
    s.kind = KIND_SUM;
    add(demo, s,
        (const char *const[]){ "__name__", "http_request_duration_seconds_sum", "job", job,
                               "instance", host, "path", path, NULL });
    s.kind = KIND_COUNT;
    add(demo, s,
        (const char *const[]){ "__name__", "http_request_duration_seconds_count", "job", job,
                               "instance", host, "path", path, NULL });
}

static void add_service(struct sg_demo *demo, size_t i)
{
    char host[32];
    const char *job = jobs[i % QF_COUNT_OF(jobs)];
    static const double code_rate[] = { 20, 0.5, 0.05 };

    (void)snprintf(host, sizeof(host), "%s-%zu:8080", job, i / QF_COUNT_OF(jobs));
    for (size_t p = 0; p < QF_COUNT_OF(paths); p++) {
        for (size_t c = 0; c < QF_COUNT_OF(codes); c++)
            for (size_t m = 0; m < 2; m++)
                add(demo,
                    (struct series){ .kind = KIND_REQUESTS,
                                     .instance = i,
                                     .rate = code_rate[c] / (double)((p + 1) * (2 * m + 1)) },
                    (const char *const[]){ "__name__", "http_requests_total", "job", job,
                                           "instance", host, "path", paths[p], "code", codes[c],
                                           "method", m ? "POST" : "GET", NULL });
        add_histogram(demo, i, job, host, paths[p], 26 / (double)(p + 1));
    }
    add(demo, (struct series){ .kind = KIND_LOAD, .instance = i, .rate = 0.4 },
        (const char *const[]){ "__name__", "process_load", "job", job, "instance", host, NULL });
    add(demo, (struct series){ .kind = KIND_QUEUE, .instance = i },
        (const char *const[]){ "__name__", "queue_depth", "job", job, "instance", host, NULL });
    add(demo, (struct series){ .kind = KIND_UP, .instance = i },
        (const char *const[]){ "__name__", "up", "job", job, "instance", host, NULL });
}

static void add_machine(struct sg_demo *demo, size_t i)
{
    static const double mode_rate[] = { 0.7, 0.02, 0.08, 0.2 };
    char host[32], number[32];

    (void)snprintf(host, sizeof(host), "node-%zu:9100", i);
    for (size_t cpu = 0; cpu < 2; cpu++)
        for (size_t m = 0; m < QF_COUNT_OF(modes); m++) {
            (void)snprintf(number, sizeof(number), "%zu", cpu);
            add(demo,
                (struct series){ .kind = KIND_CPU, .instance = 1000 + i, .rate = mode_rate[m] },
                (const char *const[]){ "__name__", "node_cpu_seconds_total", "job", "node",
                                       "instance", host, "cpu", number, "mode", modes[m], NULL });
        }
    add(demo, (struct series){ .kind = KIND_MEMORY, .instance = 1000 + i },
        (const char *const[]){ "__name__", "node_memory_available_bytes", "job", "node", "instance",
                               host, NULL });
    for (size_t sensor = 0; sensor < 4; sensor++) {
        (void)snprintf(number, sizeof(number), "core%zu", sensor);
        add(demo,
            (struct series){
                .kind = KIND_TEMPERATURE, .instance = 1000 + i, .rate = 40 + (double)sensor },
            (const char *const[]){ "__name__", "node_temperature_celsius", "job", "node",
                                   "instance", host, "sensor", number, NULL });
    }
    add(demo, (struct series){ .kind = KIND_UP, .instance = 1000 + i },
        (const char *const[]){ "__name__", "up", "job", "node", "instance", host, NULL });
    for (size_t run = 0; run < 4; run++) {
        (void)snprintf(number, sizeof(number), "run-%zu-%zu", i, run);
        add(demo, (struct series){ .kind = KIND_PROGRESS, .instance = 1000 + i, .ordinal = run },
            (const char *const[]){ "__name__", "batch_progress_ratio", "job", "batch", "run",
                                   number, NULL });
    }
}

static int by_labels(const void *a, const void *b)
{
    return qf_labels_cmp(((const struct series *)a)->labels, ((const struct series *)b)->labels);
}

struct sg_demo *sg_demo_new(const struct sg_demo_options *options)
{
    struct sg_demo *demo = qf_xcalloc(1, sizeof(*demo));

    demo->options = *options;
    demo->arena = qf_arena_new(SIZE_MAX);
    for (size_t i = 0; i < options->instances; i++) {
        add_service(demo, i);
        add_machine(demo, i);
    }
    if (demo->series.count)
        qsort(demo->series.items, demo->series.count, sizeof(struct series), by_labels);
    return demo;
}

struct sg_demo *sg_demo_free(struct sg_demo *demo)
{
    if (!demo)
        return NULL;
    (void)qf_arena_free(demo->arena);
    QF_VEC_DONE(&demo->series);
    free(demo);
    return NULL;
}

size_t sg_demo_series_count(const struct sg_demo *demo)
{
    return demo->series.count;
}

struct qf_labels sg_demo_labels(const struct sg_demo *demo, size_t series)
{
    return demo->series.items[series].labels;
}

size_t sg_demo_samples_max(const struct sg_demo *demo)
{
    const struct sg_demo_options *o = &demo->options;

    return o->end > o->start ? (size_t)((o->end - o->start) / o->step) + 1 : 1;
}

/* Steps of a series: where it begins and ends, and its phase within the step. */
struct life {
    size_t first, end; /* indexes of steps */
    bool stale;        /* it ends with a stale marker at `end` */
    int64_t phase;
};

static struct life life_of(const struct sg_demo *demo, const struct series *series, size_t steps)
{
    struct qf_prng prng = { demo->options.seed * 31 + series->instance };
    struct life life = { .end = steps };

    life.phase = (int64_t)qf_prng_below(&prng, (uint64_t)demo->options.step);
    if (series->kind != KIND_PROGRESS)
        return life;
    /* Runs follow one another, a third of the time each, with some pause. */
    life.first = steps * series->ordinal / 4 + steps / 40;
    life.end = life.first + steps / 6;
    life.stale = life.end < steps;
    if (!life.stale)
        life.end = steps;
    return life;
}

/* When the instance restarts: the first steps of its second and further lives. About one restart
 * in eight hours, and one instance in three restarts in the middle, so that short ranges show one
 * as well. */
static bool restarts(const struct sg_demo *demo, const struct series *series, size_t step,
                     size_t steps)
{
    uint64_t period = (uint64_t)(8 * 3600000 / demo->options.step) + 1;
    uint64_t phase = qf_prng_next(&(struct qf_prng){ series->instance + demo->options.seed });

    if (step == 0)
        return false;
    if (series->instance % 3 == 0 && step == steps / 2)
        return true;
    return (step + phase) % period == 0;
}

/* Roughly Poisson: a draw around @mean that is a whole number. */
static double draw_count(struct qf_prng *prng, double mean)
{
    double spread =
        sqrt(mean) * (qf_prng_unit(prng) + qf_prng_unit(prng) + qf_prng_unit(prng) - 1.5) * 2;
    double drawn = floor(mean + spread + qf_prng_unit(prng));

    return drawn > 0 ? drawn : 0;
}

/* Load follows the day: lowest at 3 in the morning. */
static double time_of_day(int64_t ts)
{
    double day = (double)qf_floor_mod(ts, 86400000) / 86400000;

    return 1 + 0.5 * sin((day - 0.375) * 2 * 3.14159265358979323846);
}

struct state {
    struct qf_prng prng;
    double value, hidden;
};

static double next_histogram(struct state *state, const struct series *series, double seconds,
                             double load)
{
    static const double share[BUCKETS] = { 0.12, 0.2,  0.25, 0.18,  0.1,   0.07,
                                           0.04, 0.02, 0.01, 0.006, 0.003, 0.001 };
    double counted = 0, summed = 0;

    for (size_t b = 0; b < BUCKETS; b++) {
        double drawn = draw_count(&state->prng, series->rate * seconds * load * share[b]);
        double low = b ? bounds[b - 1] : 0;
        double middle = b < QF_COUNT_OF(bounds) ? (low + bounds[b]) / 2 : 15;

        if (series->kind != KIND_BUCKET || b <= series->bucket)
            counted += drawn;
        summed += drawn * middle * (0.9 + 0.2 * qf_prng_unit(&state->prng));
    }
    return series->kind == KIND_SUM ? summed : counted;
}

/* The value at the next step. */
static double next_value(struct state *state, const struct series *series, double seconds,
                         int64_t ts)
{
    double load = time_of_day(ts), noise = qf_prng_unit(&state->prng);

    switch (series->kind) {
    case KIND_REQUESTS:
        return state->value += draw_count(&state->prng, series->rate * seconds * load);
    case KIND_BUCKET:
    case KIND_COUNT:
    case KIND_SUM:
        return state->value += next_histogram(state, series, seconds, load);
    case KIND_CPU: /* the kernel counts in ticks of 10 ms */
        state->hidden += floor(series->rate * seconds * (0.5 + noise) * 100);
        return state->value = state->hidden / 100;
    case KIND_MEMORY:
        state->hidden += floor((noise - 0.5) * 2000);
        return state->value = (2097152 + state->hidden) * 4096;
    case KIND_TEMPERATURE:
        state->hidden = 0.95 * state->hidden + (noise - 0.5) * 4;
        return state->value = floor((series->rate + 10 * load + state->hidden) * 10) / 10;
    case KIND_LOAD:
        state->hidden = 0.9 * state->hidden + 0.1 * noise;
        return state->value = series->rate * load + state->hidden;
    case KIND_QUEUE:
        return state->value = floor(noise * noise * noise * 40 * load);
    case KIND_PROGRESS:
        return state->value += 0; /* filled in by the caller, who knows its life */
    case KIND_UP:
        return state->value = noise < 0.002 ? 0 : 1;
    }
    return 0;
}

static bool is_counter(enum kind kind)
{
    return kind <= KIND_CPU;
}

static int64_t time_of(const struct sg_demo *demo, const struct life *life, size_t step)
{
    return demo->options.start + (int64_t)step * demo->options.step + life->phase;
}

static double step_on(const struct sg_demo *demo, const struct series *series, struct state *state,
                      size_t step, int64_t at)
{
    size_t steps = sg_demo_samples_max(demo) - 1;

    if (is_counter(series->kind) && restarts(demo, series, step, steps))
        state->value = state->hidden = 0;
    return next_value(state, series, (double)demo->options.step / 1000, at);
}

size_t sg_demo_samples(const struct sg_demo *demo, size_t index, int64_t *ts, double *values)
{
    const struct series *series = &demo->series.items[index];
    size_t steps = sg_demo_samples_max(demo) - 1, count = 0;
    struct life life = life_of(demo, series, steps);
    struct state state = { .prng = { series->seed } };

    for (size_t step = 0; step < steps; step++) {
        int64_t at = time_of(demo, &life, step);
        double value;

        if (step < life.first || step > life.end || at >= demo->options.end)
            continue;
        value = step_on(demo, series, &state, step, at);
        if (series->kind == KIND_PROGRESS)
            value = (double)(step - life.first) / (double)(life.end - life.first);
        if (life.stale && step == life.end)
            value = qf_double_from_bits(QF_STALE_NAN_BITS);
        ts[count] = at;
        values[count++] = value;
    }
    return count;
}

/* --- from the end on --- */

struct progress {
    struct state state;
    struct life life;
    size_t step; /* the next one */
};

struct sg_demo_live {
    const struct sg_demo *demo;
    struct progress *series;
};

struct sg_demo_live *sg_demo_live_new(const struct sg_demo *demo)
{
    struct sg_demo_live *live = qf_xcalloc(1, sizeof(*live));
    size_t steps = sg_demo_samples_max(demo) - 1;

    live->demo = demo;
    live->series = qf_xcalloc(demo->series.count + 1, sizeof(*live->series));
    for (size_t i = 0; i < demo->series.count; i++) {
        const struct series *series = &demo->series.items[i];
        struct progress *p = &live->series[i];

        p->state.prng.state = series->seed;
        p->life = life_of(demo, series, steps);
        for (; p->step < steps && time_of(demo, &p->life, p->step) < demo->options.end; p->step++)
            (void)step_on(demo, series, &p->state, p->step, time_of(demo, &p->life, p->step));
    }
    return live;
}

struct sg_demo_live *sg_demo_live_free(struct sg_demo_live *live)
{
    if (!live)
        return NULL;
    free(live->series);
    free(live);
    return NULL;
}

bool sg_demo_live_next(struct sg_demo_live *live, size_t index, int64_t now, int64_t *ret_ts,
                       double *ret_value)
{
    const struct series *series = &live->demo->series.items[index];
    struct progress *p = &live->series[index];
    int64_t at = time_of(live->demo, &p->life, p->step);

    if (series->kind == KIND_PROGRESS || at > now)
        return false;
    *ret_ts = at;
    *ret_value = step_on(live->demo, series, &p->state, p->step++, at);
    return true;
}

void sg_demo_map_rows(struct qf_strbuf *rows)
{
    for (size_t i = 0; i < QF_COUNT_OF(teams); i++)
        qf_strbuf_printf(rows,
                         "{\"key\":\"%s\",\"value\":{\"job\":\"%s\",\"team\":\"%s\","
                         "\"pager\":\"%s\"}}\n",
                         teams[i][0], teams[i][0], teams[i][1], teams[i][2]);
}
