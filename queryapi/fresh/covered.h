/* covered.h - which sealed segments the catalogue is known to have, per tenant and partition.
 *
 * An ingest node tells of segments that were sealed after what its caller covers. The index that is
 * covered belongs to one log: of a queue of another id, or of another cluster, nothing is covered.
 * With the index goes the floor that was told with it: samples before it are in covered segments, so
 * that a query that is wholly below needs nobody's word.
 *
 * An index is one of a log with all tenants, and a listing shows all of them: what a listing for one
 * tenant covers is covered for every other one, too, so that of many tenants only the first query lists
 * the store.
 *
 * Bounded: of the tenants asked for longest ago only that is covered any more. One thread owns it. */
#ifndef QUERYAPI_FRESH_COVERED_H
#define QUERYAPI_FRESH_COVERED_H

#include "base/pure/strbuf.h"
#include "queryapi/fresh/status.h"

#define QA_COVERED_TENANTS_MAX 1024

struct qa_covered;

struct qa_covered *qa_covered_new(void);
struct qa_covered *qa_covered_free(struct qa_covered *covered); /* Accepts NULL, returns NULL. */

/* The body of a question for the heads that concern @tenant in [@min_ts, @max_ts]. */
void qa_covered_ask(struct qa_covered *covered, struct qf_str tenant, int64_t min_ts,
                    int64_t max_ts, struct qf_strbuf *ret_body);
/* The catalogue has all segments of @tenant that @status tells of or that are older. */
void qa_covered_now(struct qa_covered *covered, struct qf_str tenant,
                    const struct qa_status *status);
/* The store was listed as a whole after @status was told: the same for all tenants. */
void qa_covered_listed(struct qa_covered *covered, const struct qa_status *status);
/* Are all samples of @tenant up to @max_ts in segments that are covered? */
bool qa_covered_below(struct qa_covered *covered, struct qf_str tenant, int64_t max_ts);

#endif
