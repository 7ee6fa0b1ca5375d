/* order.c - orders by value, and by the natural order of label values. */
#include "promql/func/order.h"

#include <math.h>
#include <stdlib.h>

#include "promql/func/kernels.h"

/* NaN comes last both ways. */
static int by_value(const struct pq_order_item *a, const struct pq_order_item *b, bool descending)
{
    if (isnan(a->value) && isnan(b->value))
        return a->place > b->place ? -1 : 1;
    if (isnan(a->value) || isnan(b->value))
        return isnan(a->value) - isnan(b->value);
    if (a->value == b->value)
        return 0;
    return (a->value < b->value) != descending ? -1 : 1;
}

int pq_order_by_value(const struct pq_order_item *a, const struct pq_order_item *b)
{
    return by_value(a, b, false);
}

int pq_order_by_value_desc(const struct pq_order_item *a, const struct pq_order_item *b)
{
    return by_value(a, b, true);
}

int pq_order_by_label(const struct pq_order_item *a, const struct pq_order_item *b)
{
    for (size_t i = 0; i < a->order->name_count; i++) {
        struct qf_str name = a->order->names[i];
        struct qf_str x = qf_labels_get(a->labels, name), y = qf_labels_get(b->labels, name);
        int order = qf_str_eq(x, y) ? 0 : pq_label_natural_cmp(x, y);

        if (order)
            return order;
    }
    return qf_labels_cmp(a->labels, b->labels);
}

int pq_order_by_label_desc(const struct pq_order_item *a, const struct pq_order_item *b)
{
    return pq_order_by_label(b, a);
}

static int compare(const void *a, const void *b)
{
    const struct pq_order_item *x = a, *y = b;
    int order = x->order->compare(x, y);

    if (order == 0)
        order = (x->place > y->place) - (x->place < y->place);
    return order;
}

void pq_order_items(struct pq_order_item *items, size_t count)
{
    qsort(items, count, sizeof(*items), compare);
}
