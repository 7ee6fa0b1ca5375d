/* heap.c - binary heap. */
#include "base/pure/heap.h"

#include <assert.h>
#include <string.h>

static char *at(const struct qf_heap *heap, size_t index)
{
    return (char *)heap->items + index * heap->item_size;
}

static bool before(const struct qf_heap *heap, size_t a, size_t b)
{
    return heap->before(at(heap, a), at(heap, b), heap->ctx);
}

static void swap(struct qf_heap *heap, size_t a, size_t b)
{
    char saved[QF_HEAP_ITEM_MAX];

    memcpy(saved, at(heap, a), heap->item_size);
    memcpy(at(heap, a), at(heap, b), heap->item_size);
    memcpy(at(heap, b), saved, heap->item_size);
}

bool qf_heap_push(struct qf_heap *heap, const void *item)
{
    size_t i = heap->count;

    assert(heap->item_size <= QF_HEAP_ITEM_MAX);
    if (heap->count == heap->capacity)
        return false;
    memcpy(at(heap, i), item, heap->item_size);
    heap->count++;
    for (; i > 0 && before(heap, i, (i - 1) / 2); i = (i - 1) / 2)
        swap(heap, i, (i - 1) / 2);
    return true;
}

const void *qf_heap_top(const struct qf_heap *heap)
{
    return heap->count ? heap->items : NULL;
}

void qf_heap_top_changed(struct qf_heap *heap)
{
    size_t i = 0;

    for (;;) {
        size_t best = i, left = 2 * i + 1, right = 2 * i + 2;

        if (left < heap->count && before(heap, left, best))
            best = left;
        if (right < heap->count && before(heap, right, best))
            best = right;
        if (best == i)
            return;
        swap(heap, i, best);
        i = best;
    }
}

void qf_heap_pop(struct qf_heap *heap)
{
    assert(heap->count > 0);
    heap->count--;
    if (heap->count == 0)
        return;
    memcpy(heap->items, at(heap, heap->count), heap->item_size);
    qf_heap_top_changed(heap);
}
