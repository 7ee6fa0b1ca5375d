/* census.c - how many files there are, of which span, and which should be gone. */
#include "queryapi/retain/census.h"

#include "base/sys/clock.h"

#define MINUTE_MS INT64_C(60000)

struct census {
    struct qa_tenants *tenants;
    int64_t now_ms, slack_ms;
    struct qf_str tenant; /* the last one seen, and what of it should be gone */
    int64_t before_ts;
    uint64_t segments[QA_CENSUS_SPANS], bytes[QA_CENSUS_SPANS];
    uint64_t behind;
    int64_t behind_ms; /* by how much, the one that is the most */
};

size_t qa_census_span(int64_t min_ts, int64_t max_ts)
{
    static const int64_t longest[QA_CENSUS_SPANS - 1] = { 15 * MINUTE_MS, 120 * MINUTE_MS,
                                                          1440 * MINUTE_MS };
    size_t span = 0;

    while (span < QA_CENSUS_SPANS - 1 && max_ts - min_ts > longest[span])
        span++;
    return span;
}

static void count(void *ctx, struct qf_str tenant, const struct sg_catalog_segment *segment)
{
    struct census *census = ctx;
    size_t span = qa_census_span(segment->min_ts, segment->max_ts);

    if (!census->tenant.data || !qf_str_eq(tenant, census->tenant)) {
        struct qf_limits limits = qa_tenants_limits(census->tenants, tenant);
        int64_t oldest = qf_limits_oldest(&limits, census->now_ms);

        census->tenant = tenant;
        census->before_ts = oldest == INT64_MIN ? INT64_MIN : oldest - census->slack_ms;
    }
    census->segments[span]++;
    census->bytes[span] += segment->size;
    if (segment->max_ts >= census->before_ts)
        return;
    census->behind++;
    census->behind_ms = QF_MAX(census->behind_ms, census->before_ts - segment->max_ts);
}

void qa_census(struct sg_catalog *catalog, struct qa_tenants *tenants, int64_t slack_ms,
               struct qa_metrics *metrics)
{
    QF_CLEANUP(sg_catalog_snapshot_dropp)
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(catalog);
    struct census census = { .tenants = tenants,
                             .now_ms = qf_clock_wall_ms(),
                             .slack_ms = slack_ms };

    if (!snapshot)
        return;
    sg_catalog_each(snapshot, count, &census);
    for (size_t i = 0; i < QA_CENSUS_SPANS; i++) {
        qf_metric_set(metrics->store_segments, i, (double)census.segments[i]);
        qf_metric_set(metrics->store_bytes, i, (double)census.bytes[i]);
    }
    qf_metric_set(metrics->retention_behind_segments, 0, (double)census.behind);
    qf_metric_set(metrics->retention_behind_seconds, 0, (double)census.behind_ms / 1000);
}
