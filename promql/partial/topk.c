/* topk.c - a bounded heap with the worst kept value on top. */
#include "promql/partial/topk.h"

#include <math.h>

static bool better(enum pq_preference prefers, struct pq_topk_item a, struct pq_topk_item b)
{
    if (prefers == PQ_PREFER_FIRST)
        return a.id < b.id;
    if (isnan(a.value) != isnan(b.value))
        return isnan(b.value);
    if (a.value != b.value && !isnan(a.value))
        return (a.value > b.value) == (prefers == PQ_PREFER_LARGEST);
    return a.id < b.id;
}

static void sift_down(const struct pq_topk *topk, size_t i, size_t count)
{
    struct pq_topk_item *items = topk->items, moving = items[i];

    for (size_t child = 2 * i + 1; child < count; child = 2 * i + 1) {
        if (child + 1 < count && better(topk->prefers, items[child], items[child + 1]))
            child++;
        if (!better(topk->prefers, moving, items[child]))
            break;
        items[i] = items[child];
        i = child;
    }
    items[i] = moving;
}

void pq_topk_offer(struct pq_topk *topk, double value, uint32_t id)
{
    struct pq_topk_item item = { value, id };
    size_t i = topk->count;

    if (topk->count == topk->k) {
        if (topk->k == 0 || !better(topk->prefers, item, topk->items[0]))
            return;
        topk->items[0] = item;
        sift_down(topk, 0, topk->count);
        return;
    }
    topk->count++;
    while (i > 0 && better(topk->prefers, topk->items[(i - 1) / 2], item)) {
        topk->items[i] = topk->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    topk->items[i] = item;
}

void pq_topk_sort(struct pq_topk *topk)
{
    for (size_t end = topk->count; end > 1; end--) {
        struct pq_topk_item worst = topk->items[0];

        topk->items[0] = topk->items[end - 1];
        topk->items[end - 1] = worst;
        sift_down(topk, 0, end - 1);
    }
}
