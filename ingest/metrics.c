/* metrics.c - registration of the ingest role's metrics. */
#include "ingest/metrics.h"

static const char *const in_status_classes[] = { "2xx", "4xx", "5xx", NULL };
static const char *const in_protocols[] = {
    "remote_write_1", "remote_write_2", "text", "openmetrics", "otlp", "otlp_json", "influx", NULL
};
static const char *const in_write_limits[] = {
#define QF_LIMIT(id, name, unit)
#define QF_WRITE_LIMIT(id, name, unit) name,
#define QF_SETTING(id, name, unit)
#include "base/pure/limits.def"
#undef QF_SETTING
#undef QF_WRITE_LIMIT
#undef QF_LIMIT
    NULL,
};
static const char *const in_sample_kinds[] = { "float", "histogram", NULL };
static const char *const in_range_states[] = { "open", "closed", "sealed", NULL };
static const char *const in_handoff_whys[] = { "cap",     "age",          "damage",
                                               "removed", "not_an_owner", NULL };
static const char *const in_document_outcomes[] = { "ok",      "repeated",      "not_found",
                                                    "refused", "level_not_met", "failed",
                                                    NULL };
static const char *const in_seal_hows[] = { "put", "present", NULL };

void in_metrics_init(struct in_metrics *metrics)
{
    struct qf_metrics *r = metrics->registry = qf_metrics_new();

#define IN_COUNTER(field, name, help)                                                              \
    metrics->field = qf_metrics_counter(r, name, help, NULL, NULL);
#define IN_COUNTER_BY(field, name, help, label, values)                                            \
    metrics->field = qf_metrics_counter(r, name, help, label, values);
#define IN_GAUGE(field, name, help) metrics->field = qf_metrics_gauge(r, name, help, NULL, NULL);
#define IN_GAUGE_BY(field, name, help, label, values)                                              \
    metrics->field = qf_metrics_gauge(r, name, help, label, values);
#define IN_HISTOGRAM(field, name, help) metrics->field = qf_metrics_histogram(r, name, help, NULL);
#include "ingest/metrics.def"
}

void in_metrics_done(struct in_metrics *metrics)
{
    metrics->registry = qf_metrics_free(metrics->registry);
}
