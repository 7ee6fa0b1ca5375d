/* timers.c - a binary heap of due times in which every slot knows its place, so it can be moved. */
#include "table.h"

void wc_timers_carve(struct wc_timers *timers, struct wc_carver *carver, uint32_t capacity)
{
    timers->heap = wc_carve(carver, capacity, sizeof(*timers->heap));
    timers->pos = wc_carve(carver, capacity, sizeof(*timers->pos));
    timers->due = wc_carve(carver, capacity, sizeof(*timers->due));
}

static bool before(const struct wc_timers *timers, uint32_t a, uint32_t b)
{
    if (timers->due[a] != timers->due[b])
        return timers->due[a] < timers->due[b];
    return a < b;
}

static void place(struct wc_timers *timers, uint32_t at, uint32_t slot)
{
    timers->heap[at] = slot;
    timers->pos[slot] = at + 1;
}

static void sift_up(struct wc_timers *timers, uint32_t at, uint32_t slot)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;

        if (!before(timers, slot, timers->heap[parent]))
            break;
        place(timers, at, timers->heap[parent]);
        at = parent;
    }
    place(timers, at, slot);
}

static void sift_down(struct wc_timers *timers, uint32_t at, uint32_t slot)
{
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= timers->count)
            break;
        if (child + 1 < timers->count &&
            before(timers, timers->heap[child + 1], timers->heap[child]))
            child++;
        if (!before(timers, timers->heap[child], slot))
            break;
        place(timers, at, timers->heap[child]);
        at = child;
    }
    place(timers, at, slot);
}

void wc_timers_set(struct wc_timers *timers, uint32_t slot, qf_time_ms due)
{
    wc_timers_clear(timers, slot);
    timers->due[slot] = due;
    sift_up(timers, timers->count++, slot);
}

void wc_timers_clear(struct wc_timers *timers, uint32_t slot)
{
    uint32_t at = timers->pos[slot], last;

    if (!at--)
        return;
    timers->pos[slot] = 0;
    last = timers->heap[--timers->count];
    if (last == slot)
        return;
    /* The last one takes the empty place, then moves whichever way it must. */
    sift_down(timers, at, last);
    sift_up(timers, timers->pos[last] - 1, last);
}

uint32_t wc_timers_due(const struct wc_timers *timers, qf_time_ms now)
{
    return timers->count && wc_timers_next(timers) <= now ? timers->heap[0] : WC_NONE;
}

qf_time_ms wc_timers_next(const struct wc_timers *timers)
{
    return timers->count ? timers->due[timers->heap[0]] : QF_TIME_NEVER;
}

qf_time_ms wc_time_add(qf_time_ms a, qf_time_ms b)
{
    qf_time_ms sum;

    return __builtin_add_overflow(a, b, &sum) ? QF_TIME_NEVER : sum;
}
