/* hours.h - how much migrations may move at which hour of the day (UTC). Pure. */
#ifndef RING_CORE_HOURS_H
#define RING_CORE_HOURS_H

#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"

enum { RG_HOURS = 24 };

struct rg_hours {
    uint64_t rate; /* bytes a second where nothing else is said; 0: no bound */
    struct rg_hour {
        bool said, off;
        uint64_t rate; /* said, not off */
    } of[RG_HOURS];
};

/* "RATE[,FROM-TO=RATE...]": a size as flags have them ("64MiB", "0B"), then hours 0 to 24 with another one, or `off`; TO is not
 * part of it, and FROM above TO goes over midnight. The last that names an hour counts. QF_EINVAL. */
QF_MUST_CHECK qf_rc rg_hours_parse(struct qf_str text, struct rg_hours *ret_hours,
                                   struct qf_err *err);
/* No slot's stream begins at @wall_ms. */
bool rg_hours_off(const struct rg_hours *hours, int64_t wall_ms);
/* Bytes a second at @wall_ms; 0: no bound. In hours that are off, for what is under way: as where nothing else is said. */
uint64_t rg_hours_rate(const struct rg_hours *hours, int64_t wall_ms);

#endif
