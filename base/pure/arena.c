/* arena.c - chunked bump allocation under a budget. */
#include "base/pure/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/purse.h"

/* First chunk small: most arenas hold one parsed query. Later ones double up to the maximum. */
#define CHUNK_BYTES_MIN ((size_t)4096)
#define CHUNK_BYTES_MAX ((size_t)1 << 20)

struct chunk {
    struct chunk *prev;
    size_t size; /* usable bytes in data */
    size_t used;
    alignas(max_align_t) char data[];
};

struct deferred {
    struct deferred *prev;
    void (*fn)(void *arg);
    void *arg;
};

struct qf_arena {
    struct chunk *chunk; /* newest first */
    struct deferred *deferred;
    struct qf_purse *purse; /* or NULL */
    struct qf_arena *payer; /* whose budget counts as well, or NULL */
    size_t budget;
    size_t held;    /* bytes of all chunks, and what was charged */
    size_t charged; /* bytes outside of the chunks */
    bool failed;
};

struct qf_arena *qf_arena_new(size_t budget)
{
    struct qf_arena *arena = qf_xcalloc(1, sizeof(*arena));

    arena->budget = budget;
    return arena;
}

struct qf_arena *qf_arena_new_from(struct qf_purse *purse)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);

    arena->purse = purse;
    return arena;
}

static void free_within(void *arena)
{
    (void)qf_arena_free(arena);
}

struct qf_arena *qf_arena_new_within(struct qf_arena *payer)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);

    arena->purse = payer->purse;
    arena->payer = payer;
    if (qf_arena_defer(payer, free_within, arena))
        return arena;
    return qf_arena_free(arena);
}

/* Bytes that the arena holds came or went. */
static void count_held(struct qf_arena *arena, size_t came, size_t went)
{
    for (; arena; arena = arena->payer)
        arena->held += came - went;
}

/* What the arena and all that pay for it may still hold. */
static size_t room_of(const struct qf_arena *arena)
{
    size_t room = arena->budget - arena->held;

    for (const struct qf_arena *payer = arena->payer; payer; payer = payer->payer)
        room = QF_MIN(room, payer->budget - payer->held);
    return room;
}

static void run_deferred(struct qf_arena *arena)
{
    while (arena->deferred) {
        struct deferred *d = arena->deferred;

        arena->deferred = d->prev;
        d->fn(d->arg);
    }
}

struct qf_arena *qf_arena_free(struct qf_arena *arena)
{
    if (!arena)
        return NULL;
    run_deferred(arena);
    for (struct chunk *c = arena->chunk, *prev; c; c = prev) {
        prev = c->prev;
        free(c);
    }
    if (arena->purse)
        qf_purse_give(arena->purse, arena->held);
    count_held(arena->payer, 0, arena->held);
    free(arena);
    return NULL;
}

void qf_arena_freep(struct qf_arena **arena)
{
    *arena = qf_arena_free(*arena);
}

/* Take @bytes off what the arena holds. */
static void give_back(struct qf_arena *arena, size_t bytes)
{
    count_held(arena, 0, bytes);
    if (arena->purse)
        qf_purse_give(arena->purse, bytes);
}

void qf_arena_reset(struct qf_arena *arena)
{
    run_deferred(arena);
    give_back(arena, arena->charged);
    arena->charged = 0;
    while (arena->chunk && arena->chunk->prev) {
        struct chunk *prev = arena->chunk->prev;

        give_back(arena, arena->chunk->size + sizeof(struct chunk));
        free(arena->chunk);
        arena->chunk = prev;
    }
    if (arena->chunk)
        arena->chunk->used = 0;
    arena->failed = false;
}

/* A chunk with room for @size bytes, if the purse pays for it. */
static struct chunk *buy_chunk(struct qf_arena *arena, size_t size)
{
    struct chunk *c;

    if (arena->purse && !qf_purse_take(arena->purse, sizeof(struct chunk) + size))
        return NULL;
    c = malloc(sizeof(struct chunk) + size);
    if (!c && arena->purse)
        qf_purse_give(arena->purse, sizeof(struct chunk) + size);
    return c;
}

static bool add_chunk(struct qf_arena *arena, size_t need)
{
    size_t size = arena->chunk ? QF_MIN(arena->chunk->size * 2, CHUNK_BYTES_MAX) : CHUNK_BYTES_MIN;
    size_t room = room_of(arena);
    struct chunk *c;

    if (size < need)
        size = need;
    if (room < sizeof(struct chunk) || size > room - sizeof(struct chunk))
        size = need; /* the last bytes of the budget are given out exactly */
    if (room < sizeof(struct chunk) || size > room - sizeof(struct chunk))
        return false;
    c = buy_chunk(arena, size);
    if (!c && size > need) {
        size = need; /* the last bytes of the purse, too */
        c = buy_chunk(arena, size);
    }
    if (!c)
        return false;
    *c = (struct chunk){ .prev = arena->chunk, .size = size };
    arena->chunk = c;
    count_held(arena, size + sizeof(struct chunk), 0);
    return true;
}

void *qf_arena_alloc(struct qf_arena *arena, size_t size)
{
    size_t need = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    void *ptr;

    if (need < size)
        goto fail;
    if (!arena->chunk || arena->chunk->size - arena->chunk->used < need) {
        if (!add_chunk(arena, need))
            goto fail;
    }
    ptr = arena->chunk->data + arena->chunk->used;
    arena->chunk->used += need;
    return ptr;
fail:
    arena->failed = true;
    return NULL;
}

void *qf_arena_calloc(struct qf_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    void *ptr;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        arena->failed = true;
        return NULL;
    }
    ptr = qf_arena_alloc(arena, bytes);
    if (ptr)
        memset(ptr, 0, bytes);
    return ptr;
}

char *qf_arena_cstr(struct qf_arena *arena, struct qf_str s)
{
    char *copy = s.len < SIZE_MAX ? qf_arena_alloc(arena, s.len + 1) : NULL;

    if (!copy)
        return NULL;
    if (s.len)
        memcpy(copy, s.data, s.len);
    copy[s.len] = '\0';
    return copy;
}

struct qf_str qf_arena_str(struct qf_arena *arena, struct qf_str s)
{
    const char *copy = qf_arena_cstr(arena, s);

    return (struct qf_str){ copy, copy ? s.len : 0 };
}

char *qf_arena_printf(struct qf_arena *arena, const char *fmt, ...)
{
    va_list args;
    char *text;
    int len;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0)
        return NULL;
    text = qf_arena_alloc(arena, (size_t)len + 1);
    if (!text)
        return NULL;
    va_start(args, fmt);
    (void)vsnprintf(text, (size_t)len + 1, fmt, args);
    va_end(args);
    return text;
}

void *qf_arena_grow(struct qf_arena *arena, void *ptr, size_t old_count, size_t new_count,
                    size_t size)
{
    const size_t align = alignof(max_align_t);
    struct chunk *c = arena->chunk;
    size_t bytes, old_bytes = old_count * size, old_room;
    void *grown;

    assert(new_count >= old_count);
    if (__builtin_mul_overflow(new_count, size, &bytes) || bytes > SIZE_MAX - align) {
        arena->failed = true;
        return NULL;
    }
    old_room = (old_bytes + align - 1) & ~(align - 1);
    if (ptr && c && (char *)ptr + old_room == c->data + c->used) {
        size_t extra = ((bytes + align - 1) & ~(align - 1)) - old_room;

        if (extra <= c->size - c->used) {
            c->used += extra;
            return ptr;
        }
    }
    grown = qf_arena_alloc(arena, bytes);
    if (grown && old_bytes)
        memcpy(grown, ptr, old_bytes);
    return grown;
}

bool qf_arena_defer(struct qf_arena *arena, void (*fn)(void *arg), void *arg)
{
    struct deferred *d = qf_arena_alloc(arena, sizeof(*d));

    if (!d)
        return false;
    *d = (struct deferred){ .prev = arena->deferred, .fn = fn, .arg = arg };
    arena->deferred = d;
    return true;
}

bool qf_arena_charge(struct qf_arena *arena, size_t bytes)
{
    if (bytes > room_of(arena) || (arena->purse && !qf_purse_take(arena->purse, bytes))) {
        arena->failed = true;
        return false;
    }
    count_held(arena, bytes, 0);
    arena->charged += bytes;
    return true;
}

bool qf_arena_failed(const struct qf_arena *arena)
{
    return arena->failed;
}

size_t qf_arena_used(const struct qf_arena *arena)
{
    return arena->held;
}
