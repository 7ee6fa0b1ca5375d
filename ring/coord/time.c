/* time.c - the later of two clocks. */
#include "ring/coord/time.h"

#include "base/sys/clock.h"

int64_t rg_time_of(struct rg_time *time, int64_t ring_ms, int64_t wall_ms, int64_t mono_ms)
{
    int64_t passed_ms;

    if (!time->mono_ms || ring_ms != time->ring_ms)
        *time = (struct rg_time){ .ring_ms = ring_ms, .mono_ms = mono_ms };
    passed_ms = ring_ms + (mono_ms - time->mono_ms);
    return wall_ms > passed_ms ? wall_ms : passed_ms;
}

int64_t rg_time_now(struct rg_time *time, const struct rg_ring *ring)
{
    return rg_time_of(time, ring->time_ms, qf_clock_wall_ms(), qf_clock_mono_ms());
}
