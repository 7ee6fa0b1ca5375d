/* costs.h - how long workers scanned for leaves that were asked before.
 *
 * A leaf is normally one work item per shard, so that many workers share it. For a leaf that takes
 * a few milliseconds in all, the messages and artifacts of the items cost more than they save; the
 * planner makes one item of it. What a selector reads is not known before it was read, so the
 * planner remembers: dashboards and alerts ask the same again and again.
 *
 * A guess that is wrong makes a query slower, never another answer. A table of fixed size, a slot
 * per key, written without a lock: a newer entry takes the slot of an older one. */
#ifndef QUERYAPI_QUERY_COSTS_H
#define QUERYAPI_QUERY_COSTS_H

#include <stdbool.h>
#include <stdint.h>

struct qa_costs;

struct qa_costs *qa_costs_new(void);
struct qa_costs *qa_costs_free(struct qa_costs *costs); /* Accepts NULL, returns NULL. */

/* @key: a hash of what was asked. @scan_us: of all work items together. A busy worker takes longer
 * than the leaf needs, so a smaller figure counts at once and a larger one little by little. */
void qa_costs_learn(struct qa_costs *costs, uint64_t key, uint64_t scan_us);
/* False if it is not known. */
bool qa_costs_find(const struct qa_costs *costs, uint64_t key, uint64_t *ret_scan_us);

#endif
