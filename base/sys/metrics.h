/* metrics.h - counters, gauges and histograms with Prometheus text exposition.
 *
 * Metrics are registered once, at start-up, and live as long as their registry. Updates are relaxed
 * atomics and may come from any thread. A label takes its values from a fixed list given at
 * registration, so the number of series is bounded by construction. */
#ifndef BASE_SYS_METRICS_H
#define BASE_SYS_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/pure/strbuf.h"

struct qf_metrics;
struct qf_metric;

struct qf_metrics *qf_metrics_new(void);
struct qf_metrics *qf_metrics_free(struct qf_metrics *metrics);

/* @name follows Prometheus's rules (base units, _total for counters); @help is one sentence.
 * @label and @values may be NULL; @values is NULL-terminated; updates then name an index into it.
 */
struct qf_metric *qf_metrics_counter(struct qf_metrics *metrics, const char *name, const char *help,
                                     const char *label, const char *const *values);
struct qf_metric *qf_metrics_gauge(struct qf_metrics *metrics, const char *name, const char *help,
                                   const char *label, const char *const *values);
/* @bounds ascending, ended by a 0; NULL: QF_LATENCY_BOUNDS. +Inf is added. */
struct qf_metric *qf_metrics_histogram(struct qf_metrics *metrics, const char *name,
                                       const char *help, const double *bounds);
/* 100 us to 60 s, for latencies in seconds. */
extern const double QF_LATENCY_BOUNDS[];

void qf_metric_add(struct qf_metric *metric, size_t value_index, double amount);
static inline void qf_metric_inc(struct qf_metric *metric)
{
    qf_metric_add(metric, 0, 1);
}
void qf_metric_set(struct qf_metric *metric, size_t value_index, double value);
void qf_metric_observe(struct qf_metric *metric, double value);

double qf_metric_get(const struct qf_metric *metric, size_t value_index);

/* All metrics in registration order, text format 0.0.4, plus process_* figures of this process and
 * promfabric_build_info. */
void qf_metrics_print(struct qf_metrics *metrics, struct qf_strbuf *buf);

#endif
