/* sim.h - several API cores and many worker cores on one virtual clock and a hostile network.
 *
 * Everything random comes from the seed: delays, broken and half-open streams, duplicated messages,
 * crashes and restarts of either side, drains, slow workers, failing runs, failed or damaged
 * downloads, evictions. After every step the core that moved is checked (tests/lib/core/check.h),
 * and the world: nothing committed twice or with foreign bytes, a query ends once, and ok only if
 * it is whole. When the faults stop every query must end and every worker must end up empty. */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_options {
    uint64_t seed;
    uint64_t events;      /* core steps before the faults stop */
    bool trace;           /* print every step */
    bool check;           /* invariants after every step */
    uint32_t apis_max;    /* 0: 3 */
    bool exactly;         /* there are as many as may be */
    uint32_t workers_max; /* 0: 12 */
};

struct sim_result {
    const char *failure; /* NULL: all invariants held and every query ended */
    uint64_t steps;
    uint64_t queries, queries_ok, queries_failed, refused, replanned;
    uint64_t hedged, hedges_won;
    uint64_t assigned, reassigned, late, duplicates, illegal, stale;
    uint64_t owner_hits, owner_misses;
    uint64_t lost, crashes, drains, breaks, half_open, repeated, evicted;
    int64_t ended_ms; /* virtual time */
};

struct sim_result sim_run(const struct sim_options *options);

#endif
