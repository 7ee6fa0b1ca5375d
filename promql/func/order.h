/* order.h - the orders that sort(), sort_by_label() and the like ask for. */
#ifndef PROMQL_FUNC_ORDER_H
#define PROMQL_FUNC_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/pure/labels.h"

struct pq_order_item;

/* Negative: @a comes first. Items that are equal to it stay in their places, but for NaNs, which change
 * theirs around, as Prometheus's sort of up to 12 does: how it arranges more is its own. */
typedef int pq_order_fn(const struct pq_order_item *a, const struct pq_order_item *b);

/* One call: what decides, and the label names it was given. */
struct pq_order {
    pq_order_fn *compare;
    const struct qf_str *names;
    size_t name_count;
};

struct pq_order_item {
    const struct pq_order *order;
    struct qf_labels labels;
    double value;
    uint32_t id;
    uint32_t place; /* before it is sorted */
};

/* Sort @items, which share one order, into a total one. */
void pq_order_items(struct pq_order_item *items, size_t count);

#endif
