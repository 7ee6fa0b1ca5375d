/* up_ring.h - the storage nodes of promfabric up: its workers keep the segments themselves. */
#ifndef CLI_UP_RING_H
#define CLI_UP_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/up_ingest.h"

struct up_keeper {
    const char *name, *http; /* on the ring; HOST:PORT */
};

/* Have @keepers be the nodes of a ring of @copies, as they may be since an earlier start: true once they are. Asks @first; waits
 * a second at most for each answer. */
bool up_ring_found(const struct up_node *first, const struct up_keeper *keepers, size_t count,
                   uint64_t copies);

/* The ports that keepers had with the last start, for nodes are known by their URLs: reads up to @count of them from
 * @folder/ports; those that are not there are 0. */
void up_ring_read_ports(const char *folder, int *ports, size_t count);
/* False: they cannot be written. */
bool up_ring_write_ports(const char *folder, const int *ports, size_t count);

#endif
