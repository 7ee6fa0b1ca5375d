/* metrics.c - metrics registry and text exposition. */
#include "base/sys/metrics.h"

#include <assert.h>
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"

#define METRICS_MAX 256

const double QF_LATENCY_BOUNDS[] = { 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                     0.025,  0.05,    0.1,    0.25,  0.5,    1,     2.5,
                                     5,      10,      30,     60,    0 };

enum kind { COUNTER, GAUGE, HISTOGRAM };

struct qf_metric {
    enum kind kind;
    const char *name, *help, *label;
    const char *const *values;
    const double *bounds;
    size_t cell_count; /* values of the label, or buckets + Inf */
    _Atomic uint64_t sum_bits;
    _Atomic uint64_t cells[]; /* bits of doubles; plain counts in a histogram */
};

struct qf_metrics {
    struct qf_metric *items[METRICS_MAX];
    size_t count;
    int64_t start_ms;
};

struct qf_metrics *qf_metrics_new(void)
{
    struct qf_metrics *metrics = qf_xcalloc(1, sizeof(*metrics));

    metrics->start_ms = qf_clock_wall_ms();
    return metrics;
}

struct qf_metrics *qf_metrics_free(struct qf_metrics *metrics)
{
    if (!metrics)
        return NULL;
    for (size_t i = 0; i < metrics->count; i++)
        free(metrics->items[i]);
    free(metrics);
    return NULL;
}

static struct qf_metric *add(struct qf_metrics *metrics, const struct qf_metric *metric,
                             size_t cells)
{
    struct qf_metric *copy = qf_xcalloc(1, sizeof(*copy) + cells * sizeof(copy->cells[0]));

    assert(metrics->count < METRICS_MAX);
    copy->kind = metric->kind;
    copy->name = metric->name;
    copy->help = metric->help;
    copy->label = metric->label;
    copy->values = metric->values;
    copy->bounds = metric->bounds;
    copy->cell_count = cells;
    metrics->items[metrics->count++] = copy;
    return copy;
}

static size_t count_values(const char *const *values)
{
    size_t count = 0;

    if (!values)
        return 1;
    while (values[count])
        count++;
    return count;
}

struct qf_metric *qf_metrics_counter(struct qf_metrics *metrics, const char *name, const char *help,
                                     const char *label, const char *const *values)
{
    return add(metrics,
               &(struct qf_metric){
                   .kind = COUNTER, .name = name, .help = help, .label = label, .values = values },
               count_values(values));
}

struct qf_metric *qf_metrics_gauge(struct qf_metrics *metrics, const char *name, const char *help,
                                   const char *label, const char *const *values)
{
    return add(metrics,
               &(struct qf_metric){
                   .kind = GAUGE, .name = name, .help = help, .label = label, .values = values },
               count_values(values));
}

struct qf_metric *qf_metrics_histogram(struct qf_metrics *metrics, const char *name,
                                       const char *help, const double *bounds)
{
    size_t count = 0;

    if (!bounds)
        bounds = QF_LATENCY_BOUNDS;
    while (bounds[count] > 0)
        count++;
    return add(
        metrics,
        &(struct qf_metric){ .kind = HISTOGRAM, .name = name, .help = help, .bounds = bounds },
        count + 1);
}

static void add_double(_Atomic uint64_t *cell, double amount)
{
    uint64_t old = atomic_load_explicit(cell, memory_order_relaxed);
    uint64_t new;

    do {
        new = qf_double_bits(qf_double_from_bits(old) + amount);
    } while (!atomic_compare_exchange_weak_explicit(cell, &old, new, memory_order_relaxed,
                                                    memory_order_relaxed));
}

void qf_metric_add(struct qf_metric *metric, size_t value_index, double amount)
{
    assert(value_index < metric->cell_count);
    add_double(&metric->cells[value_index], amount);
}

void qf_metric_set(struct qf_metric *metric, size_t value_index, double value)
{
    assert(value_index < metric->cell_count);
    atomic_store_explicit(&metric->cells[value_index], qf_double_bits(value), memory_order_relaxed);
}

void qf_metric_observe(struct qf_metric *metric, double value)
{
    size_t bucket = 0;

    assert(metric->kind == HISTOGRAM);
    while (bucket + 1 < metric->cell_count && value > metric->bounds[bucket])
        bucket++;
    atomic_fetch_add_explicit(&metric->cells[bucket], 1, memory_order_relaxed);
    add_double(&metric->sum_bits, value);
}

double qf_metric_get(const struct qf_metric *metric, size_t value_index)
{
    uint64_t cell = atomic_load_explicit(&metric->cells[value_index], memory_order_relaxed);

    return metric->kind == HISTOGRAM ? (double)cell : qf_double_from_bits(cell);
}

static void print_value(struct qf_strbuf *buf, double value)
{
    char text[QF_DOUBLE_TEXT_MAX];

    qf_strbuf_add(buf, text, qf_double_g(value, text));
    qf_strbuf_putc(buf, '\n');
}

static void print_histogram(const struct qf_metric *metric, struct qf_strbuf *buf)
{
    double total = 0;

    for (size_t i = 0; i < metric->cell_count; i++) {
        char bound[QF_DOUBLE_TEXT_MAX] = "+Inf";

        total += qf_metric_get(metric, i);
        if (i + 1 < metric->cell_count)
            (void)qf_double_g(metric->bounds[i], bound);
        qf_strbuf_printf(buf, "%s_bucket{le=\"%s\"} ", metric->name, bound);
        print_value(buf, total);
    }
    qf_strbuf_printf(buf, "%s_sum ", metric->name);
    print_value(buf,
                qf_double_from_bits(atomic_load_explicit(&metric->sum_bits, memory_order_relaxed)));
    qf_strbuf_printf(buf, "%s_count ", metric->name);
    print_value(buf, total);
}

static void print_metric(const struct qf_metric *metric, struct qf_strbuf *buf)
{
    static const char *const kinds[] = { "counter", "gauge", "histogram" };

    qf_strbuf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
                     kinds[metric->kind]);
    if (metric->kind == HISTOGRAM) {
        print_histogram(metric, buf);
        return;
    }
    for (size_t i = 0; i < metric->cell_count; i++) {
        qf_strbuf_puts(buf, metric->name);
        if (metric->values)
            qf_strbuf_printf(buf, "{%s=\"%s\"}", metric->label, metric->values[i]);
        qf_strbuf_putc(buf, ' ');
        print_value(buf, qf_metric_get(metric, i));
    }
}

static double count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    double count = 0;

    if (!dir)
        return 0;
    while (readdir(dir))
        count++;
    (void)closedir(dir);
    return count - 3; /* ".", ".." and the directory itself */
}

static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long size = 0, resident = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%ld %ld", &size, &resident) != 2)
        resident = 0;
    (void)fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void print_process(const struct qf_metrics *metrics, struct qf_strbuf *buf)
{
    struct rusage usage = { 0 };
    const struct {
        const char *name, *kind, *help;
        double value;
    } rows[] = {
        { "process_cpu_seconds_total", "counter", "CPU time used.",
          getrusage(RUSAGE_SELF, &usage) == 0
              ? (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
              : 0 },
        { "process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes() },
        { "process_open_fds", "gauge", "Open file descriptors.", count_fds() },
        { "process_start_time_seconds", "gauge", "Unix time of the start.",
          (double)metrics->start_ms / 1000 },
    };

    for (size_t i = 0; i < QF_COUNT_OF(rows); i++) {
        qf_strbuf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n%s ", rows[i].name, rows[i].help,
                         rows[i].name, rows[i].kind, rows[i].name);
        print_value(buf, rows[i].value);
    }
    qf_strbuf_puts(buf, "# HELP promfabric_build_info What is running.\n"
                        "# TYPE promfabric_build_info gauge\n"
                        "promfabric_build_info{version=\"" PROMFABRIC_VERSION "\"} 1\n");
}

void qf_metrics_print(struct qf_metrics *metrics, struct qf_strbuf *buf)
{
    for (size_t i = 0; i < metrics->count; i++)
        print_metric(metrics->items[i], buf);
    print_process(metrics, buf);
}
