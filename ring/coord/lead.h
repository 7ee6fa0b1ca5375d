/* lead.h - what the leader of `meta` does about the ring, done: the driver (ring/core/drive.h) with hands.
 *
 * A thread owns the driver, two pools have the hands: a quick one for looking at nodes and telling them epochs, another one for
 * streams, verifications and cleanups, which take long. All of it is this leader's memory: whoever leads next
 * goes on where the ring says, and what is still heard of an earlier term counts for nothing.
 *
 *   status     Each node is looked at every second. One that did not answer three times is DOWN: nothing else is asked of it
 *              (its circuit is open), and it is looked at less and less often, every 10 s at last, until it answers
 *   told       Epochs are told only once `meta` confirmed what they are (!). A disk that was not told any is not up yet
 *   failures   Of the streams to a node that fail within 10 s one counts: five make the ring roll an addition back
 *   streams    In pieces of 64 names, with a pause behind each if the hour's rate says so; none begins in an hour that is off.
 *              Slots that are read most come first: nodes are asked for that each minute */
#ifndef RING_COORD_LEAD_H
#define RING_COORD_LEAD_H

#include <stdatomic.h>

#include "ring/coord/board.h"
#include "ring/coord/hands.h"
#include "ring/core/drive.h"
#include "ring/core/hours.h"

enum { RG_LOOKS_MISSED = 3, RG_PIECE_NAMES = 64 };

struct rg_lead_options {
    const struct rg_hands *hands; /* borrowed */
    struct rg_board *board;       /* borrowed */
    /* Begin to write @entry; what comes of it is seen in the ring. */
    void (*propose)(void *ctx, const struct rg_entry *entry);
    /* Find out how far `meta` is for sure: rg_lead_confirmed() with the ring's `applied`, sooner or later, or never. */
    void (*confirm)(void *ctx, uint64_t term);
    uint32_t (*partitions)(void *ctx); /* 0: none that adopt epochs */
    void *ctx;
    uint32_t streams, node_streams; /* as of struct rg_drive_options */
    int64_t retry_ms, timeout_ms, dead_ms;
    int64_t look_ms;       /* 0: 1 s */
    int64_t fail_ms;       /* 0: 10 s; failed streams to a node within it are one failure */
    int64_t heat_ms;       /* 0: 1 min */
    struct rg_hours hours; /* bytes a second that streams bring to new owners */
};

/* Read by anyone. */
struct rg_lead_figures {
    atomic_uint_fast64_t streams, streams_failed; /* ended */
    atomic_uint_fast64_t blobs, bytes;            /* streamed */
    atomic_uint_fast64_t verified, cleaned, told;
    atomic_uint_fast64_t running;    /* moves, now */
    atomic_uint_fast64_t open;       /* circuits of nodes, now */
    atomic_uint_fast64_t unwritable; /* slots whose nodes with closed circuits are no quorum, now */
};

struct rg_lead;

/* NULL and @err: no threads. */
struct rg_lead *rg_lead_new(const struct rg_lead_options *options, struct qf_err *err);
/* Waits for the hands. Accepts NULL, returns NULL. */
struct rg_lead *rg_lead_free(struct rg_lead *lead);
/* This node leads in @term; 0: not any more. Any thread. */
void rg_lead_set(struct rg_lead *lead, uint64_t term);
/* Everything up to @applied of the ring was confirmed in @term. Any thread. */
void rg_lead_confirmed(struct rg_lead *lead, uint64_t term, uint64_t applied);
struct rg_lead_figures *rg_lead_figures(struct rg_lead *lead);

#endif
