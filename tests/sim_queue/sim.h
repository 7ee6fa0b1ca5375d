/* sim.h - a queue's nodes on one virtual clock, a hostile network and disks that lose what was not
 * synced; the linked queue/core over the linked queue/log.
 *
 * Everything random comes from the seed: messages lost, late, doubled and reordered, partitions (also
 * one-way), crashes before and after any write or sync, with and without loss of power, all nodes at
 * once, wiped nodes, flipped bits, failing syncs, clocks that run at other speeds and jump, growth,
 * shrinking and handing over. Never more than a minority of voters is lost for good.
 *
 * After every step: equal logs and states up to what is applied, one leader per term, each node has
 * every record it counts for; and what clients were told is a history that a queue could have
 * (history.h). When the faults stop the queue must work again, with all that was acknowledged. */
#ifndef TESTS_SIM_QUEUE_SIM_H
#define TESTS_SIM_QUEUE_SIM_H

#include <stdbool.h>
#include <stdint.h>

/* Rules that the nodes' shell keeps, switched off; those of queue/core and queue/log have their own. */
enum sim_unsafe {
    SIM_UNSAFE_EARLY_PERSISTED = 1 << 0,  /* entries are reported as stored before the sync */
    SIM_UNSAFE_SAME_INCARNATION = 1 << 1, /* a wiped node comes back under its old id */
    SIM_UNSAFE_BARE_SNAPSHOT = 1 << 2,    /* a snapshot comes without the records it keeps */
    SIM_UNSAFE_SHOW_REPLACED = 1 << 3,    /* what waits for room does not hide what it replaces */
    SIM_UNSAFE_UNCHAINED = 1 << 4,        /* a refused record leaves those that stand on it */
    SIM_UNSAFE_ROUND_OUTLIVES_TERM = 1
                                     << 5 /* what was gathered in one term is offered in another */
};

struct sim_options {
    uint64_t seed;
    uint64_t events; /* until the faults stop */
    uint32_t nodes;  /* 1 to 5 at the start; 0: as the seed says 1, 3 or 5 */
    bool trace;
    /* Each by itself, so that seeds without them stay. */
    bool full_disks; /* disks are full for a while */
    bool together;   /* up to eight records are offered at once */
    bool late_saves; /* snapshots are durable only a while after they were taken */
    bool chains;     /* applications offer records that stand on each other */
    uint64_t core_unsafe, log_unsafe, sim_unsafe;
};

struct sim_result {
    const char *failure; /* NULL: all is well */
    uint64_t events, steps;
    uint64_t messages, lost, doubled;
    uint64_t crashes, power_losses, wipes, flips, failed_syncs, jumps;
    uint64_t elections, changes, snapshots, installs, restarts;
    uint64_t offers, acked, refused, unknown, reads, consumed;
    uint64_t applied;                  /* entries, once each */
    uint64_t together, together_acked; /* offered beside a client's own record */
    uint64_t fills, held;              /* disks that were full; entries that had to wait for room */
    uint64_t links, links_acked, links_refused; /* records of applications */
};

struct sim_result sim_run(const struct sim_options *options);

#endif
