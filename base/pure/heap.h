/* heap.h - binary heap of fixed-size elements in an array the caller owns.
 *
 *     struct qf_heap heap = { .items = slots, .item_size = sizeof(slots[0]), .capacity = 64,
 *                             .before = starts_earlier };
 *
 * The element for which `before` holds against all others is on top. Ties keep no order: make the
 * comparison total where order matters. No allocation. */
#ifndef BASE_PURE_HEAP_H
#define BASE_PURE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct qf_heap {
    void *items;
    size_t item_size; /* at most QF_HEAP_ITEM_MAX */
    size_t count;
    size_t capacity;
    bool (*before)(const void *a, const void *b, void *ctx);
    void *ctx;
};

#define QF_HEAP_ITEM_MAX 128

bool qf_heap_push(struct qf_heap *heap, const void *item); /* False if it is full. */
const void *qf_heap_top(const struct qf_heap *heap);       /* NULL if it is empty. */
void qf_heap_pop(struct qf_heap *heap);
/* The top changed in place: move it to where it belongs. */
void qf_heap_top_changed(struct qf_heap *heap);

#endif
