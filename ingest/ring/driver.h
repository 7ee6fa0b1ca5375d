/* driver.h - migrations of storage nodes, driven while this node leads `meta`: ring/coord/lead.h with its hands at keepers
 * (HTTP, ring/wire/keeper.h) and at the partitions of this cluster. Any thread. */
#ifndef INGEST_RING_DRIVER_H
#define INGEST_RING_DRIVER_H

#include "queue/node/node.h"
#include "ring/coord/lead.h"

struct in_driver_options {
    const char *key_file; /* a line with the key that keepers ask for; NULL: none */
    const char *ca_file;  /* who signs their certificates; NULL: the system's authorities */
    const char *cert_file, *cert_key_file; /* shown to them; NULL: none */
    struct rg_hours hours;                 /* bytes a second that come to new owners */
    int64_t dead_ms; /* a node that is down for so long is replaced; 0: never */
};

struct in_driver;

/* NULL and @err: the key or the certificate cannot be read. */
struct in_driver *in_driver_new(const struct in_driver_options *options, struct rg_board *board,
                                struct qf_err *err);
/* Begin with @node, which is asked from here on. QF_EUNAVAILABLE: no threads. */
QF_MUST_CHECK qf_rc in_driver_start(struct in_driver *driver, struct qn_node *node,
                                    struct qf_err *err);
/* This node leads `meta` in @term; 0: not any more. */
void in_driver_lead(struct in_driver *driver, uint64_t term);
/* Nothing is asked of keepers and of the node any more; what was is still heard of. Accepts NULL. */
void in_driver_halt(struct in_driver *driver);
/* After the node has ended. Accepts NULL, returns NULL. */
struct in_driver *in_driver_free(struct in_driver *driver);
/* What it has done since it began, and does now; 0 when it is halted. */
struct in_driver_counts {
    uint64_t blobs, bytes, failed, cleaned, moves, open, unwritable;
};
void in_driver_figures(struct in_driver *driver, struct in_driver_counts *ret_counts);

#endif
