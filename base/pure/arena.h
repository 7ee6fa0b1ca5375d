/* arena.h - memory that is freed all at once, under a byte budget.
 *
 * A query owns one arena; an evaluation step owns a scratch arena that it resets. The arena is the
 * one allocator that can fail: over its budget it returns NULL, and stays failed
 * (`qf_arena_failed`) so that a builder may check once at the end. Not thread-safe. */
#ifndef BASE_PURE_ARENA_H
#define BASE_PURE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/macros.h"
#include "base/pure/slice.h"

struct qf_arena;

/* @budget: bytes of chunks the arena may hold; SIZE_MAX for no limit. Never NULL. */
struct qf_arena *qf_arena_new(size_t budget);

/* An arena of its own that is paid from what @arena may still hold: scratch memory that is reset
 * many times in the life of @arena. It is freed when @arena is reset or freed, never before, and
 * counts as used by it. NULL if the budget is spent. */
struct qf_arena *qf_arena_new_within(struct qf_arena *arena);

/* Run the deferred calls, last first, and free everything. @arena may be NULL. Returns NULL. */
struct qf_arena *qf_arena_free(struct qf_arena *arena);
void qf_arena_freep(struct qf_arena **arena);

/* Forget all allocations but keep the first chunk for reuse; runs the deferred calls. */
void qf_arena_reset(struct qf_arena *arena);

/* Memory aligned for any type; contents undefined. NULL if the budget is spent. */
void *qf_arena_alloc(struct qf_arena *arena, size_t size);
/* Zeroed array; an overflow of count * size is a spent budget. */
void *qf_arena_calloc(struct qf_arena *arena, size_t count, size_t size);
/* Copies; the bytes are followed by a NUL. NULL data on failure. */
struct qf_str qf_arena_str(struct qf_arena *arena, struct qf_str s);
char *qf_arena_cstr(struct qf_arena *arena, struct qf_str s);
char *qf_arena_printf(struct qf_arena *arena, const char *fmt, ...) QF_PRINTF(2, 3);

/* Grow an array from @old_count to @new_count elements, in place if it was the last allocation. */
void *qf_arena_grow(struct qf_arena *arena, void *ptr, size_t old_count, size_t new_count,
                    size_t size);

/* Call fn(arg) when the arena is reset or freed. False if the budget is spent: nothing is kept. */
QF_MUST_CHECK bool qf_arena_defer(struct qf_arena *arena, void (*fn)(void *arg), void *arg);

/* Count @bytes that lie outside of the arena but live as long as what is in it: what a library
 * allocates, for instance. Given back when the arena is reset or freed. False if the budget is
 * spent: nothing is counted, and the arena has failed. */
QF_MUST_CHECK bool qf_arena_charge(struct qf_arena *arena, size_t bytes);

bool qf_arena_failed(const struct qf_arena *arena);
/* Bytes of chunks and of what was charged. */
size_t qf_arena_used(const struct qf_arena *arena);

#define QF_ARENA_NEW(arena, type) ((type *)qf_arena_calloc((arena), 1, sizeof(type)))
#define QF_ARENA_ARRAY(arena, type, count) ((type *)qf_arena_calloc((arena), (count), sizeof(type)))

#endif
