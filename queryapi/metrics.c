/* metrics.c - registration of the API's metrics. */
#include "queryapi/metrics.h"

#include "base/pure/err.h"
#include "base/pure/macros.h"

static const char *const qa_outcomes[] = {
    "ok",
#define QF_ERROR(code, number, name, text, http, grpc, prom_type, retryable) name,
#include "base/pure/errors.def"
#undef QF_ERROR
    NULL,
};
static const int outcome_codes[] = {
    QF_OK,
#define QF_ERROR(code, number, name, text, http, grpc, prom_type, retryable) code,
#include "base/pure/errors.def"
#undef QF_ERROR
};
static const char *const qa_query_states[] = { "queued", "planning", "working", "answering", NULL };
static const char *const qa_worker_states[] = { "accepting", "waiting", "draining", "down", NULL };
static const char *const qa_hedges[] = { "started", "won", "lost", NULL };
static const char *const qa_fresh_outcomes[] = { "ok", "below_floor", "failed", NULL };
static const char *const qa_affinity[] = { "hit", "miss", NULL };
static const char *const qa_placed[] = { "owner", "other", "all_shards", NULL };
static const char *const qa_shards[] = { "one", "all", NULL };
static const char *const qa_fetch_errors[] = { "io", "checksum", "expired", "spool", NULL };
static const char *const qa_tenant_limits[] = {
#define QF_LIMIT(id, name, unit) name,
#define QF_WRITE_LIMIT(id, name, unit)
#define QF_SETTING(id, name, unit)
#include "base/pure/limits.def"
#undef QF_SETTING
#undef QF_WRITE_LIMIT
#undef QF_LIMIT
    NULL,
};
static const char *const qa_audit_results[] = { "written", "lost", NULL };
static const char *const qa_spans[] = { "15m", "2h", "1d", "more", NULL };
static const char *const qa_retention_outcomes[] = { "done", "busy", "clocks", "failed", NULL };
static const char *const qa_compaction_outcomes[] = { "done", "busy", "no_workers", "failed",
                                                      NULL };
static const char *const qa_compaction_jobs[] = { "done", "vanished", "damaged", "failed", NULL };
static const char *const qa_compaction_ways[] = { "in", "out", NULL };
static const char *const qa_status_classes[] = { "2xx", "4xx", "5xx", NULL };

void qa_metrics_init(struct qa_metrics *metrics)
{
    struct qf_metrics *r = metrics->registry = qf_metrics_new();

#define QA_COUNTER(field, name, help)                                                              \
    metrics->field = qf_metrics_counter(r, name, help, NULL, NULL);
#define QA_COUNTER_BY(field, name, help, label, values)                                            \
    metrics->field = qf_metrics_counter(r, name, help, label, values);
#define QA_GAUGE(field, name, help) metrics->field = qf_metrics_gauge(r, name, help, NULL, NULL);
#define QA_GAUGE_BY(field, name, help, label, values)                                              \
    metrics->field = qf_metrics_gauge(r, name, help, label, values);
#define QA_HISTOGRAM(field, name, help) metrics->field = qf_metrics_histogram(r, name, help, NULL);
#include "queryapi/metrics.def"
}

void qa_metrics_done(struct qa_metrics *metrics)
{
    metrics->registry = qf_metrics_free(metrics->registry);
}

size_t qa_metrics_error_index(int rc)
{
    for (size_t i = 0; i < QF_COUNT_OF(outcome_codes); i++)
        if (outcome_codes[i] == rc)
            return i;
    return qa_metrics_error_index(QF_EINTERNAL);
}
