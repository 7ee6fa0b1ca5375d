/* table.h - fixed tables that a step can use without allocating: lists, a hash index, timers.
 *
 * Everything is addressed by slot numbers, never by pointers, and lives in one block of memory that
 * the owner carves up once. */
#ifndef CORE_WORKCOORD_TABLE_H
#define CORE_WORKCOORD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/duration.h"

#define WC_NONE UINT32_MAX /* no slot */

/* Carving: with base NULL only the size is added up; then again with memory behind it. */
struct wc_carver {
    char *base;
    size_t used;
};
void *wc_carve(struct wc_carver *carver, size_t count, size_t size);

/* Doubly linked lists through an array of links; a slot is on at most one list per array. */
struct wc_link {
    uint32_t prev, next;
};
struct wc_list {
    uint32_t head, tail, count;
};
void wc_list_init(struct wc_list *list);
void wc_list_push(struct wc_list *list, struct wc_link *links, uint32_t slot);
void wc_list_remove(struct wc_list *list, struct wc_link *links, uint32_t slot);

/* The slots that are not in use, lowest first at the start. */
struct wc_pool {
    uint32_t *free;
    uint32_t count;
};
void wc_pool_carve(struct wc_pool *pool, struct wc_carver *carver, uint32_t capacity);
void wc_pool_fill(struct wc_pool *pool, uint32_t capacity);
uint32_t wc_pool_take(struct wc_pool *pool); /* There must be one. */
void wc_pool_give(struct wc_pool *pool, uint32_t slot);

/* Hash from a 64-bit key to slots. Equal keys may be put twice: walk them with next. */
struct wc_index {
    uint32_t *buckets, *next;
    uint64_t *keys;
    uint32_t mask;
};
void wc_index_carve(struct wc_index *index, struct wc_carver *carver, uint32_t capacity);
void wc_index_clear(struct wc_index *index);
uint32_t wc_index_first(const struct wc_index *index, uint64_t key);
uint32_t wc_index_next(const struct wc_index *index, uint32_t slot);
void wc_index_put(struct wc_index *index, uint64_t key, uint32_t slot);
void wc_index_remove(struct wc_index *index, uint32_t slot); /* It must be there. */

/* A key of an id and a few bits more. The factor is odd, so equal keys with equal bits have equal
 * ids: whoever finds a slot needs to compare the bits only. */
#define WC_KEY(id, bits) ((id)*UINT64_C(0x9e3779b97f4a7c15) + (bits))

/* One optional due time per slot, and the earliest of all. Equal times: lower slot first. */
struct wc_timers {
    uint32_t *heap, *pos; /* pos: 1 + place in heap, 0 = not set */
    qf_time_ms *due;
    uint32_t count;
};
void wc_timers_carve(struct wc_timers *timers, struct wc_carver *carver, uint32_t capacity);
void wc_timers_set(struct wc_timers *timers, uint32_t slot, qf_time_ms due); /* or move it */
void wc_timers_clear(struct wc_timers *timers, uint32_t slot);               /* if it is set */
/* The first slot due at @now, WC_NONE if none is. */
uint32_t wc_timers_due(const struct wc_timers *timers, qf_time_ms now);
qf_time_ms wc_timers_next(const struct wc_timers *timers);

/* a + b without overflow, for times near QF_TIME_NEVER. */
qf_time_ms wc_time_add(qf_time_ms a, qf_time_ms b);

#endif
