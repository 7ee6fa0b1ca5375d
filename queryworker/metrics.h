/* metrics.h - the worker's metrics by name; metrics.def has them all. */
#ifndef QUERYWORKER_METRICS_H
#define QUERYWORKER_METRICS_H

#include "base/pure/err.h"
#include "base/sys/metrics.h"

enum qw_session_end {
    QW_SESSION_END_PEER,
    QW_SESSION_END_LOST,
    QW_SESSION_END_SILENT,
    QW_SESSION_END_STUCK,
    QW_SESSION_END_PROTOCOL,
    QW_SESSION_END_SHUTDOWN
};
enum qw_download_result { QW_DOWNLOAD_OK, QW_DOWNLOAD_FAILED, QW_DOWNLOAD_CANCELED };
enum qw_artifact_state { QW_ARTIFACT_UNACKED, QW_ARTIFACT_ACKED };
enum qw_eviction { QW_EVICT_CACHE, QW_EVICT_ACKED, QW_EVICT_EXPIRED, QW_EVICT_UNACKED };

enum qw_background_end {
    QW_BACKGROUND_DONE,
    QW_BACKGROUND_FAILED,
    QW_BACKGROUND_STOPPED,
    QW_BACKGROUND_REJECTED
};
enum qw_background_way { QW_BACKGROUND_READ, QW_BACKGROUND_WRITTEN };

struct qw_metrics {
    struct qf_metrics *registry;
#define QW_COUNTER(field, name, help) struct qf_metric *field;
#define QW_COUNTER_BY(field, name, help, label, values) struct qf_metric *field;
#define QW_GAUGE(field, name, help) struct qf_metric *field;
#define QW_GAUGE_BY(field, name, help, label, values) struct qf_metric *field;
#define QW_HISTOGRAM(field, name, help) struct qf_metric *field;
#include "queryworker/metrics.def"
#undef QW_COUNTER
#undef QW_COUNTER_BY
#undef QW_GAUGE
#undef QW_GAUGE_BY
#undef QW_HISTOGRAM
};

struct qw_metrics *qw_metrics_new(void);
struct qw_metrics *qw_metrics_free(struct qw_metrics *metrics); /* Accepts NULL, returns NULL. */

/* The label index of an error code in works_failed. */
size_t qw_metrics_error_index(qf_rc rc);

#endif
