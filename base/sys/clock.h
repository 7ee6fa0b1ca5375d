/* clock.h - the two clocks, in milliseconds and nanoseconds. */
#ifndef BASE_SYS_CLOCK_H
#define BASE_SYS_CLOCK_H

#include <stdint.h>

#include "base/pure/duration.h"

qf_time_ms qf_clock_wall_ms(void); /* Unix time */
qf_time_ms qf_clock_mono_ms(void); /* for timeouts and core events; never goes back */
int64_t qf_clock_mono_ns(void);    /* for measuring */

#endif
