/* budget.h - one disk budget for the spool and the segment cache.
 *
 * Pure arithmetic over what is used and free; how something is removed is the caller's. The limit
 * that counts is the configured one or what the disk really has, whichever is less. When a request
 * would take the sum over the high watermark, things are removed until it is at the low one, in the
 * specified order: cached segments, acknowledged artifacts, expired artifacts, and the oldest
 * unacknowledged artifacts last (their work has to be run again, so these only go down to the high
 * watermark, and only for the sake of another artifact).
 *
 * A floor of the budget is kept for artifacts: cached segments never take the last @floor bytes, or
 * the last half of the limit where that is less. */
#ifndef QUERYWORKER_BUDGET_BUDGET_H
#define QUERYWORKER_BUDGET_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "queryworker/metrics.h"

struct qw_budget_limits {
    uint64_t limit_bytes;
    uint64_t floor_bytes;
    unsigned high_percent, low_percent; /* of the limit; low <= high <= 100 */
};

struct qw_budget_usage {
    uint64_t cache_bytes, spool_bytes;
    uint64_t disk_free_bytes;
};

enum qw_budget_user { QW_BUDGET_CACHE, QW_BUDGET_SPOOL };

/* Remove one thing of a kind; returns its bytes. 0: there is none. */
typedef uint64_t qw_budget_evict_fn(void *ctx, enum qw_eviction kind);

/* What the disk allows: limit_bytes or used + free, whichever is less. */
uint64_t qw_budget_limit(const struct qw_budget_limits *limits,
                         const struct qw_budget_usage *usage);

/* Make room for @need more bytes of @user, 0 to look after the watermarks only. True if they fit
 * now. What can never fit costs nothing. */
bool qw_budget_make_room(const struct qw_budget_limits *limits, struct qw_budget_usage usage,
                         enum qw_budget_user user, uint64_t need, qw_budget_evict_fn *evict,
                         void *ctx);

#endif
