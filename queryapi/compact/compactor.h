/* compactor.h - many small segments become few, as background work of the fabric.
 *
 * A thread of the API does passes over the store (segments/compact/pass.h): it settles, lists, plans and deletes. The jobs of a
 * plan go to workers (dispatch/jobs.h), as many at once as these have slots for. Answers do not change, at no moment.
 *
 * One API at a time does this, by a lease in the store (segments/store/lease.h); two do no harm. If it dies, another goes
 * on when the lease is over, and what its workers had begun is begun anew.
 *
 * Tenants of which nothing can be merged, by the catalogue, and of which nothing waits to be deleted are left out. Without a
 * worker that takes jobs nothing is done, unless jobs that wait shall bring one (`wakes`).
 *
 * Every API that is asked to tells in its metrics how far behind the store is, by its own catalogue. */
#ifndef QUERYAPI_COMPACT_COMPACTOR_H
#define QUERYAPI_COMPACT_COMPACTOR_H

#include <stdint.h>

#include "queryapi/dispatch/coordinator.h"
#include "queryapi/metrics.h"
#include "segments/catalog/catalog.h"
#include "segments/compact/agree.h"

struct qa_compactor;

struct qa_compactor_options {
    /* Borrowed. */
    struct sg_store *store;
    struct sg_catalog *catalog;
    struct qa_coord *coord;
    struct qa_metrics *metrics;
    const char *api_id;
    const struct sg_agree *agree; /* asks ingest nodes what is sealed; NULL: there are none */
    const char *temp_dir;         /* for outputs that are read back before their inputs go */

    int64_t interval_ms; /* from the end of a pass to the next */
    int64_t settle_ms, grace_ms;
    uint64_t file_bytes, memory_bytes;
    bool wakes; /* plan also while no worker takes jobs: those that wait are counted as work */
};

/* NULL: there is no thread to be had. */
struct qa_compactor *qa_compactor_new(const struct qa_compactor_options *options);
/* Ends what is under way. Accepts NULL, returns NULL. */
struct qa_compactor *qa_compactor_free(struct qa_compactor *compactor);

#endif
