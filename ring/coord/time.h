/* time.h - what time it is for the ring: never earlier than its last entry, and it goes on whatever clocks do.
 *
 * Entries carry the time of whoever proposed them, and their times do not go back. If that was a node whose clock is a day
 * ahead, the clocks of all others are behind the ring for a day; they count from its last entry on meanwhile, so that
 * grace periods end and what is waited for comes. A clock that is set back while a node leads stops nothing either. */
#ifndef RING_COORD_TIME_H
#define RING_COORD_TIME_H

#include "ring/core/ring.h"

/* Of one thread. Begins as zeros. */
struct rg_time {
    int64_t ring_ms; /* time of the last entry as of mono_ms */
    int64_t mono_ms; /* when that was seen first; 0: nothing was */
};

/* The wall clock's time, or that of @ring's last entry and what has passed since it was seen here, whichever is later. */
int64_t rg_time_now(struct rg_time *time, const struct rg_ring *ring);
/* The same from the clocks that are given. */
int64_t rg_time_of(struct rg_time *time, int64_t ring_ms, int64_t wall_ms, int64_t mono_ms);

#endif
