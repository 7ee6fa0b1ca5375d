/* retainer.h - files go whose samples are behind their tenant's retention.
 *
 * Queries do not look behind a tenant's retention (query/plan.c), so no answer depends on when a file
 * goes. The retainer removes whole segments whose last sample is behind it by the slack as well, and
 * only once the retentions have been what they are for as long as the slack. So the slack covers
 * queries that began earlier, clocks of other machines, files of limits that reach another API
 * later, and is the time to notice a retention that was set by mistake.
 *
 * One API at a time does this, by a lease in the store (segments/store/lease.h); two do no harm.
 * Times are the earlier of this machine's clock and the store's; if they differ by more than the
 * slack, nothing goes.
 *
 * Whoever has the lease also sweeps what writers left that died (segments/write/sweep.h), once a day.
 *
 * Every API tells in its metrics what there is in the store and what should have gone, by its own
 * catalogue. */
#ifndef QUERYAPI_RETAIN_RETAINER_H
#define QUERYAPI_RETAIN_RETAINER_H

#include <stdint.h>

#include "queryapi/metrics.h"
#include "queryapi/tenant/tenants.h"
#include "segments/catalog/catalog.h"

struct qa_retainer;

/* All pointers are borrowed. */
struct qa_retainer_options {
    struct sg_store *store;
    struct sg_catalog *catalog;
    struct qa_tenants *tenants;
    struct qa_metrics *metrics;
    const char *api_id;
    int64_t slack_ms; /* at least as long as any query takes */
    int64_t
        settings_age_ms; /* nothing goes by settings of tenants that are older (qa_tenants_age_ms()) */
};

/* How long after @slack_ms begins the next look: a quarter of it, 1 s to 10 min. */
int64_t qa_retainer_interval_ms(int64_t slack_ms);

/* NULL: there is no thread to be had. */
struct qa_retainer *qa_retainer_new(const struct qa_retainer_options *options);
/* Ends what is under way. Accepts NULL, returns NULL. */
struct qa_retainer *qa_retainer_free(struct qa_retainer *retainer);

#endif
