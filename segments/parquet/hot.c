/* hot.c - what scans read of segments, kept in memory for the scans that come after.
 *
 * Two lists, newest first: parts that were read once and parts that were asked for again. The lock is
 * held for a few instructions, never while something is read or freed (decision 0038). */
#include "segments/parquet/hot.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/thread.h"
#include "segments/parquet/seg_int.h"

struct list {
    struct sg_part *newest, *oldest;
    uint64_t bytes;
};

struct sg_hot {
    struct qf_lock *lock;
    uint64_t bytes_max;
    struct list once, again;
    struct sg_hot_stats stats;
};

struct sg_hot *sg_hot_new(uint64_t bytes_max)
{
    struct sg_hot *hot = qf_xcalloc(1, sizeof(*hot));

    hot->lock = qf_lock_new();
    hot->bytes_max = bytes_max;
    return hot;
}

struct sg_hot *sg_hot_free(struct sg_hot *hot)
{
    if (!hot)
        return NULL;
    assert(!hot->once.newest);
    assert(!hot->again.newest);
    (void)qf_lock_free(hot->lock);
    free(hot);
    return NULL;
}

void sg_hot_join(struct sg_hot *hot, struct sg_reader *reader)
{
    if (!hot || reader->hot)
        return;
    reader->hot = hot;
    reader->parts =
        QF_ARENA_ARRAY(reader->arena, struct sg_part *, (reader->group_count + 1) * SG_PART__COUNT);
}

struct sg_hot_stats sg_hot_stats(struct sg_hot *hot)
{
    struct sg_hot_stats stats;

    qf_lock_take(hot->lock);
    stats = hot->stats;
    qf_lock_drop(hot->lock);
    return stats;
}

/* -- Lists, with the lock taken --------------------------------------------------------------- */

static struct list *list_of(struct sg_hot *hot, const struct sg_part *part)
{
    return part->again ? &hot->again : &hot->once;
}

static void link_part(struct sg_hot *hot, struct sg_part *part)
{
    struct list *list = list_of(hot, part);

    part->older = list->newest;
    part->newer = NULL;
    *(list->newest ? &list->newest->newer : &list->oldest) = part;
    list->newest = part;
    list->bytes += part->memory;
}

static void unlink_part(struct sg_hot *hot, struct sg_part *part)
{
    struct list *list = list_of(hot, part);

    *(part->newer ? &part->newer->older : &list->newest) = part->older;
    *(part->older ? &part->older->newer : &list->oldest) = part->newer;
    part->newer = part->older = NULL;
    list->bytes -= part->memory;
}

/* Take a part out; it goes to the list of those to let go when the lock is dropped. */
static void drop_part(struct sg_hot *hot, struct sg_part *part, struct sg_part **dropped)
{
    unlink_part(hot, part);
    *part->slot = NULL;
    hot->stats.bytes -= part->memory;
    hot->stats.parts--;
    part->newer = *dropped;
    *dropped = part;
}

static void let_go(struct sg_part *dropped)
{
    while (dropped) {
        struct sg_part *next = dropped->newer;

        sg_part_release(dropped);
        dropped = next;
    }
}

/* What was asked for again takes at most four fifths; the rest of it must be asked for once more. */
static void demote(struct sg_hot *hot)
{
    while (hot->again.bytes > hot->bytes_max / 5 * 4) {
        struct sg_part *part = hot->again.oldest;

        unlink_part(hot, part);
        part->again = false;
        link_part(hot, part);
    }
}

static void touch(struct sg_hot *hot, struct sg_part *part)
{
    unlink_part(hot, part);
    part->again = true;
    link_part(hot, part);
    demote(hot);
}

/* -- For scans -------------------------------------------------------------------------------- */

void sg_part_release(struct sg_part *part)
{
    if (!part || atomic_fetch_sub_explicit(&part->refs, 1, memory_order_acq_rel) != 1)
        return;
    sg_series_done(&part->series);
    (void)colfile_numbers_free(part->numbers);
    free(part);
}

struct sg_part *sg_hot_find(const struct sg_reader *reader, size_t group, enum sg_part_kind kind)
{
    struct sg_hot *hot = reader->hot;
    struct sg_part *part;

    if (!hot)
        return NULL;
    qf_lock_take(hot->lock);
    part = reader->parts[group * SG_PART__COUNT + kind];
    if (part) {
        atomic_fetch_add_explicit(&part->refs, 1, memory_order_relaxed);
        touch(hot, part);
        hot->stats.hits++;
    } else {
        hot->stats.misses++;
    }
    qf_lock_drop(hot->lock);
    return part;
}

void sg_hot_keep(const struct sg_reader *reader, size_t group, enum sg_part_kind kind,
                 struct sg_part *part)
{
    struct sg_hot *hot = reader->hot;
    struct sg_part *dropped = NULL, **slot;

    if (!hot || part->memory > hot->bytes_max / 8)
        return;
    slot = &reader->parts[group * SG_PART__COUNT + kind];
    qf_lock_take(hot->lock);
    if (!*slot) {
        while (hot->stats.bytes + part->memory > hot->bytes_max) {
            drop_part(hot, hot->once.oldest ? hot->once.oldest : hot->again.oldest, &dropped);
            hot->stats.evicted++;
        }
        atomic_fetch_add_explicit(&part->refs, 1, memory_order_relaxed);
        *slot = part;
        part->slot = slot;
        link_part(hot, part);
        hot->stats.bytes += part->memory;
        hot->stats.parts++;
    }
    qf_lock_drop(hot->lock);
    let_go(dropped);
}

void sg_hot_leave(const struct sg_reader *reader)
{
    struct sg_hot *hot = reader->hot;
    struct sg_part *dropped = NULL;

    if (!hot)
        return;
    qf_lock_take(hot->lock);
    for (size_t i = 0; i < reader->group_count * SG_PART__COUNT; i++)
        if (reader->parts[i])
            drop_part(hot, reader->parts[i], &dropped);
    qf_lock_drop(hot->lock);
    let_go(dropped);
}
