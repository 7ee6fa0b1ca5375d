/* census.h - how many files there are, of which span, and which should be gone: gauges. */
#ifndef QUERYAPI_RETAIN_CENSUS_H
#define QUERYAPI_RETAIN_CENSUS_H

#include "queryapi/metrics.h"
#include "queryapi/tenant/tenants.h"
#include "segments/catalog/catalog.h"

/* Spans by which files are counted: up to 15 minutes (as they are written live), 2 hours, a day, more. */
#define QA_CENSUS_SPANS 4
size_t qa_census_span(int64_t min_ts, int64_t max_ts);

/* Set the gauges to what the newest snapshot says; nothing before the first. */
void qa_census(struct sg_catalog *catalog, struct qa_tenants *tenants, int64_t slack_ms,
               struct qa_metrics *metrics);

#endif
