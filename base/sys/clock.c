/* clock.c - the two clocks. */
#include "base/sys/clock.h"

#include <time.h>

static struct timespec read_clock(clockid_t id)
{
    struct timespec now = { 0 };

    (void)clock_gettime(id, &now);
    return now;
}

qf_time_ms qf_clock_wall_ms(void)
{
    struct timespec now = read_clock(CLOCK_REALTIME);

    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

qf_time_ms qf_clock_mono_ms(void)
{
    return qf_clock_mono_ns() / 1000000;
}

int64_t qf_clock_mono_ns(void)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC);

    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
