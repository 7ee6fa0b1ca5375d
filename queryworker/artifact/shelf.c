/* shelf.c - small artifacts kept in memory, each under its token. */
#include "queryworker/artifact/shelf.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/thread.h"

#define BUCKETS 4096u

struct qw_shelf_item {
    struct qw_shelf_item *next;
    atomic_int refs;
    struct qf_str token, bytes; /* both owned */
};

struct qw_shelf {
    struct qf_lock *lock;
    uint64_t bytes_max, bytes;
    struct qw_shelf_item *buckets[BUCKETS];
};

struct qw_shelf *qw_shelf_new(uint64_t bytes_max)
{
    struct qw_shelf *shelf = qf_xcalloc(1, sizeof(*shelf));

    shelf->lock = qf_lock_new();
    shelf->bytes_max = bytes_max;
    return shelf;
}

void qw_shelf_drop(struct qw_shelf_item *item)
{
    if (!item || atomic_fetch_sub(&item->refs, 1) != 1)
        return;
    free((char *)(uintptr_t)item->token.data);
    free((char *)(uintptr_t)item->bytes.data);
    free(item);
}

struct qw_shelf *qw_shelf_free(struct qw_shelf *shelf)
{
    if (!shelf)
        return NULL;
    for (size_t i = 0; i < BUCKETS; i++) {
        while (shelf->buckets[i]) {
            struct qw_shelf_item *item = shelf->buckets[i];

            shelf->buckets[i] = item->next;
            qw_shelf_drop(item);
        }
    }
    (void)qf_lock_free(shelf->lock);
    free(shelf);
    return NULL;
}

/* Where @token is linked, or would be. Under the lock. */
static struct qw_shelf_item **link_of(struct qw_shelf *shelf, struct qf_str token)
{
    struct qw_shelf_item **link = &shelf->buckets[qf_hash_bytes(token) % BUCKETS];

    while (*link && !qf_str_eq((*link)->token, token))
        link = &(*link)->next;
    return link;
}

bool qw_shelf_put(struct qw_shelf *shelf, struct qf_str token, struct qf_str bytes)
{
    struct qw_shelf_item *item, **link;
    bool room;

    item = qf_xcalloc(1, sizeof(*item));
    atomic_init(&item->refs, 1);
    item->token = (struct qf_str){ qf_xmemdup0(token.data, token.len), token.len };
    qf_lock_take(shelf->lock);
    room = shelf->bytes + bytes.len <= shelf->bytes_max;
    if (room) {
        link = link_of(shelf, token);
        assert(!*link); /* tokens are random */
        item->bytes = bytes;
        *link = item;
        shelf->bytes += bytes.len;
    }
    qf_lock_drop(shelf->lock);
    if (!room)
        qw_shelf_drop(item);
    return room;
}

struct qw_shelf_item *qw_shelf_get(struct qw_shelf *shelf, struct qf_str token)
{
    struct qw_shelf_item *item;

    qf_lock_take(shelf->lock);
    item = *link_of(shelf, token);
    if (item)
        (void)atomic_fetch_add(&item->refs, 1);
    qf_lock_drop(shelf->lock);
    return item;
}

struct qf_str qw_shelf_bytes(const struct qw_shelf_item *item)
{
    return item->bytes;
}

bool qw_shelf_remove(struct qw_shelf *shelf, struct qf_str token)
{
    struct qw_shelf_item **link, *item;

    qf_lock_take(shelf->lock);
    link = link_of(shelf, token);
    item = *link;
    if (item) {
        *link = item->next;
        shelf->bytes -= item->bytes.len;
    }
    qf_lock_drop(shelf->lock);
    qw_shelf_drop(item);
    return item != NULL;
}

bool qw_shelf_crowded(struct qw_shelf *shelf)
{
    bool crowded;

    qf_lock_take(shelf->lock);
    crowded = shelf->bytes > shelf->bytes_max / 16;
    qf_lock_drop(shelf->lock);
    return crowded;
}
