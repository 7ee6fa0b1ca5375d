/* test_metrics.c - text exposition. */
#include "base/sys/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "tests/lib/test.h"

/* Counters, labelled gauges and histograms print as Prometheus's text format wants them. */
TEST(metrics_print_in_text_format)
{
    static const char *const reasons[] = { "timeout", "limit", NULL };
    static const double bounds[] = { 0.1, 1, 0 };
    struct qf_metrics *metrics = qf_metrics_new();
    struct qf_metric *errors =
        qf_metrics_counter(metrics, "x_errors_total", "Errors.", "reason", reasons);
    struct qf_metric *depth = qf_metrics_gauge(metrics, "x_depth", "Depth.", NULL, NULL);
    struct qf_metric *wait = qf_metrics_histogram(metrics, "x_wait_seconds", "Waits.", bounds);
    struct qf_strbuf buf = QF_STRBUF_INIT;
    const char *want = "# HELP x_errors_total Errors.\n# TYPE x_errors_total counter\n"
                       "x_errors_total{reason=\"timeout\"} 0\nx_errors_total{reason=\"limit\"} 2\n"
                       "# HELP x_depth Depth.\n# TYPE x_depth gauge\nx_depth 7\n"
                       "# HELP x_wait_seconds Waits.\n# TYPE x_wait_seconds histogram\n"
                       "x_wait_seconds_bucket{le=\"0.1\"} 2\nx_wait_seconds_bucket{le=\"1\"} 3\n"
                       "x_wait_seconds_bucket{le=\"+Inf\"} 4\nx_wait_seconds_sum 9.65\n"
                       "x_wait_seconds_count 4\n";

    qf_metric_add(errors, 1, 2);
    qf_metric_set(depth, 0, 7);
    qf_metric_observe(wait, 0.05);
    qf_metric_observe(wait, 0.1);
    qf_metric_observe(wait, 0.5);
    qf_metric_observe(wait, 9);
    qf_metrics_print(metrics, &buf);
    CHECK(strncmp(buf.data, want, strlen(want)) == 0);
    CHECK(strstr(buf.data, "process_resident_memory_bytes ") != NULL);
    CHECK(strstr(buf.data, "promfabric_build_info{version=\"") != NULL);
    qf_strbuf_done(&buf);
    (void)qf_metrics_free(metrics);
}
