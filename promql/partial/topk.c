/* topk.c - a bounded heap with the worst kept value on top. */
#include "promql/partial/topk.h"

#include <math.h>
#include <stdlib.h>

#include "base/pure/alloc.h"

/* @a goes before @b: up in the heap. */
static bool worse(enum pq_preference prefers, double a, double b)
{
    if (isnan(a))
        return true;
    return prefers == PQ_PREFER_SMALLEST ? a > b : a < b;
}

static void swap(struct pq_topk_item *items, size_t a, size_t b)
{
    struct pq_topk_item kept = items[a];

    items[a] = items[b];
    items[b] = kept;
}

static void sift_down(const struct pq_topk *topk)
{
    struct pq_topk_item *items = topk->items;
    size_t i = 0;

    for (size_t child = 1; child < topk->count; child = 2 * i + 1) {
        if (child + 1 < topk->count &&
            worse(topk->prefers, items[child + 1].value, items[child].value))
            child++;
        if (!worse(topk->prefers, items[child].value, items[i].value))
            break;
        swap(items, i, child);
        i = child;
    }
}

/* Is it strictly better than the worst one? */
static bool replaces(const struct pq_topk *topk, double value)
{
    double worst = topk->items[0].value;

    if (topk->prefers == PQ_PREFER_FIRST || isnan(value))
        return false;
    return isnan(worst) || worse(topk->prefers, worst, value);
}

bool pq_topk_offer(struct pq_topk *topk, double value, uint32_t id)
{
    size_t i = topk->count;

    if (topk->k == 0)
        return false;
    if (topk->count == topk->k) {
        if (!replaces(topk, value))
            return false;
        topk->items[0] = (struct pq_topk_item){ value, id };
        sift_down(topk);
        return true;
    }
    topk->items[topk->count++] = (struct pq_topk_item){ value, id };
    for (; i > 0 && worse(topk->prefers, value, topk->items[(i - 1) / 2].value); i = (i - 1) / 2)
        swap(topk->items, i, (i - 1) / 2);
    return true;
}

struct placed {
    struct pq_topk_item item;
    bool largest;
    size_t place;
};

static int best_first(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    double v = x->item.value, w = y->item.value;
    int by_place = x->place < y->place ? -1 : 1;

    if (isnan(v) || isnan(w))
        return isnan(v) && isnan(w) ? -by_place : isnan(v) - isnan(w);
    if (v == w)
        return by_place;
    return (v > w) == x->largest ? -1 : 1;
}

void pq_topk_sort(struct pq_topk *topk)
{
    struct placed *placed;

    if (topk->count < 2 || topk->prefers == PQ_PREFER_FIRST)
        return;
    placed = qf_xcalloc(topk->count, sizeof(*placed));
    for (size_t i = 0; i < topk->count; i++)
        placed[i] = (struct placed){ topk->items[i], topk->prefers == PQ_PREFER_LARGEST, i };
    qsort(placed, topk->count, sizeof(*placed), best_first);
    for (size_t i = 0; i < topk->count; i++)
        topk->items[i] = placed[i].item;
    free(placed);
}
