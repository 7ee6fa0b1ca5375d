/* quota.h - what tenants may send to the partitions that one node leads, and what they have there. Pure.
 *
 * Limits are of the cluster as a whole. The leader of a partition decides; a node that leads L of N
 * partitions gives out L/N of each limit, whichever of its partitions it is used in. So all nodes together
 * give out no more than the limit, without asking each other.
 *
 *     rates    a bucket that fills with time and holds two seconds: a request takes what it needs, or waits.
 *              One larger than the bucket passes when it is full, and empties it for longer
 *     series   active ones: counted when they come, until they were idle for a while (intake.h), and by
 *              metric, so that whoever has too many hears which metrics they are
 *
 * One thread owns a quota; intakes of the same thread share it. */
#ifndef INGEST_CORE_QUOTA_H
#define INGEST_CORE_QUOTA_H

#include "base/pure/limits.h"
#include "base/pure/strbuf.h"
#include "ingest/core/metric_counts.h"

/* Tells what @tenant may have now; only limits of writing are looked at. */
typedef struct qf_limits in_quota_limits_fn(void *ctx, struct qf_str tenant);

struct in_quota;
struct in_usage; /* of one tenant; as long as the quota */

struct in_quota *in_quota_new(in_quota_limits_fn *limits, void *ctx);
struct in_quota *in_quota_free(struct in_quota *quota); /* Accepts NULL, returns NULL. */

/* This node leads @led of @partitions. */
void in_quota_share(struct in_quota *quota, uint32_t led, uint32_t partitions);
/* Limits may be others now: they are asked for again. */
void in_quota_renew(struct in_quota *quota);

/* Of @tenant, made if need be; how many there are is the caller's bound. */
struct in_usage *in_quota_usage(struct in_quota *quota, struct qf_str tenant);

/* Take @samples and @bytes at @mono_ms out of the tenant's rates: both, or nothing. False: *@ret_limit
 * says which has too little, *@ret_wait_ms when it will have enough. */
bool in_usage_spend(struct in_usage *usage, uint64_t samples, uint64_t bytes, int64_t mono_ms,
                    enum qf_limit *ret_limit, int64_t *ret_wait_ms);

/* One more active series of @metric: returns the number to say when it goes. Only if there is room. */
bool in_usage_has_room(struct in_usage *usage);
uint32_t in_usage_add(struct in_usage *usage, struct qf_str metric);
void in_usage_remove(struct in_usage *usage, uint32_t number);
uint64_t in_usage_series(const struct in_usage *usage);

/* Why there is no room, with the ten metrics that have most series: one line, at most @bytes_max. */
void in_usage_explain(struct in_usage *usage, size_t bytes_max, struct qf_strbuf *buf);

#endif
