/* metrics.c - registers the worker's metrics. */
#include "queryworker/metrics.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "workcoord/types.h"

static const char *const session_ends[] = { "peer",     "lost",     "silent", "stuck",
                                            "protocol", "shutdown", NULL };
static const char *const download_results[] = { "ok", "failed", "canceled", NULL };
static const char *const artifact_states[] = { "unacked", "acked", NULL };
static const char *const eviction_reasons[] = { "cache", "acked", "expired", "unacked", NULL };
static const char *const background_ends[] = { "done", "failed", "stopped", "rejected", NULL };
static const char *const background_ways[] = { "read", "written", NULL };
static const char *const http_classes[] = { "1xx", "2xx", "3xx", "4xx", "5xx", NULL };
#define NAME(code, name) name,
static const char *const run_states[] = { WC_RUN_STATES(NAME) NULL };
static const char *const reject_reasons[] = { WC_REJECTS(NAME) NULL };
#undef NAME
static const char *const error_names[] = {
#define QF_ERROR(code, number, name, text, http, grpc, prom_type, retryable) name,
#include "base/pure/errors.def"
#undef QF_ERROR
    NULL,
};

struct qw_metrics *qw_metrics_new(void)
{
    struct qw_metrics *m = qf_xcalloc(1, sizeof(*m));
    struct qf_metrics *r = m->registry = qf_metrics_new();

#define QW_COUNTER(field, name, help) m->field = qf_metrics_counter(r, name, help, NULL, NULL);
#define QW_COUNTER_BY(field, name, help, label, values)                                            \
    m->field = qf_metrics_counter(r, name, help, label, values);
#define QW_GAUGE(field, name, help) m->field = qf_metrics_gauge(r, name, help, NULL, NULL);
#define QW_GAUGE_BY(field, name, help, label, values)                                              \
    m->field = qf_metrics_gauge(r, name, help, label, values);
#define QW_HISTOGRAM(field, name, help) m->field = qf_metrics_histogram(r, name, help, NULL);
#include "queryworker/metrics.def"
#undef QW_COUNTER
#undef QW_COUNTER_BY
#undef QW_GAUGE
#undef QW_GAUGE_BY
#undef QW_HISTOGRAM
    return m;
}

struct qw_metrics *qw_metrics_free(struct qw_metrics *metrics)
{
    if (!metrics)
        return NULL;
    (void)qf_metrics_free(metrics->registry);
    free(metrics);
    return NULL;
}

size_t qw_metrics_error_index(qf_rc rc)
{
    static const qf_rc codes[] = {
#define QF_ERROR(code, number, name, text, http, grpc, prom_type, retryable) code,
#include "base/pure/errors.def"
#undef QF_ERROR
    };

    for (size_t i = 0; i < QF_COUNT_OF(codes); i++)
        if (codes[i] == rc)
            return i;
    return qw_metrics_error_index(QF_EINTERNAL);
}
