/* metrics.h - the ingest role's metrics by name; metrics.def has them all. */
#ifndef INGEST_METRICS_H
#define INGEST_METRICS_H

#include "base/sys/metrics.h"

struct in_metrics {
    struct qf_metrics *registry;
#define IN_COUNTER(field, name, help) struct qf_metric *field;
#define IN_COUNTER_BY(field, name, help, label, values) struct qf_metric *field;
#define IN_GAUGE(field, name, help) struct qf_metric *field;
#define IN_GAUGE_BY(field, name, help, label, values) struct qf_metric *field;
#define IN_HISTOGRAM(field, name, help) struct qf_metric *field;
#include "ingest/metrics.def"
#undef IN_COUNTER
#undef IN_COUNTER_BY
#undef IN_GAUGE
#undef IN_GAUGE_BY
#undef IN_HISTOGRAM
};

void in_metrics_init(struct in_metrics *metrics);
void in_metrics_done(struct in_metrics *metrics);

#endif
