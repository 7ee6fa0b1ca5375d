/* metrics.h - the figures of the API role; metrics.def is the list. */
#ifndef QUERYAPI_METRICS_H
#define QUERYAPI_METRICS_H

#include "base/sys/metrics.h"

struct qa_metrics {
    struct qf_metrics *registry;
#define QA_COUNTER(field, name, help) struct qf_metric *field;
#define QA_COUNTER_BY(field, name, help, label, values) struct qf_metric *field;
#define QA_GAUGE(field, name, help) struct qf_metric *field;
#define QA_GAUGE_BY(field, name, help, label, values) struct qf_metric *field;
#define QA_HISTOGRAM(field, name, help) struct qf_metric *field;
#include "queryapi/metrics.def"
#undef QA_COUNTER
#undef QA_COUNTER_BY
#undef QA_GAUGE
#undef QA_GAUGE_BY
#undef QA_HISTOGRAM
};

void qa_metrics_init(struct qa_metrics *metrics);
void qa_metrics_done(struct qa_metrics *metrics);

/* The index of an error in the label of queries_total: 0 is success. */
size_t qa_metrics_error_index(int rc);

#endif
