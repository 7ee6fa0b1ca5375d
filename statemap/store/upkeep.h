/* upkeep.h - condensation and retention of one environment; core/keep.h says what they let go of. */
#ifndef STATEMAP_STORE_UPKEEP_H
#define STATEMAP_STORE_UPKEEP_H

#include "statemap/core/keep.h"
#include "statemap/store/env.h"

/* A pass lets go of no more, so that its list has a bound: then there is more to do. */
#define SM_DROPS_MAX (UINT64_C(1) << 20)

struct sm_upkeep {
    uint64_t examined; /* rows */
    uint64_t dropped;
    bool more;
};

/* One pass, all of it or nothing. QF_ENOSPC: the map is full, nothing changed. */
QF_MUST_CHECK qf_rc sm_upkeep(struct sm_env *env, struct sm_cutoffs cutoffs,
                              struct sm_upkeep *ret_upkeep, struct qf_err *err);

#endif
