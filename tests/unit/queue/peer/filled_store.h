/* filled_store.h - a store with records and a snapshot, on a simulated disk. */
#ifndef TESTS_UNIT_QUEUE_PEER_FILLED_STORE_H
#define TESTS_UNIT_QUEUE_PEER_FILLED_STORE_H

#include "queue/log/store.h"
#include "tests/lib/queue/sim_disk.h"

struct filled_store {
    struct sim_disk *disk;
    struct ql_store store;
};

/* @records records "record N" at indexes 1.., and a snapshot at @snapshot. */
void filled_store_start(struct filled_store *filled, uint64_t records, uint64_t snapshot);
void filled_store_stop(struct filled_store *filled);

#endif
