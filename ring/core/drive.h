/* drive.h - what the leader of `meta` does about the ring: which slots begin to move, what is streamed, verified, cleaned.
 * Pure.
 *
 * Feed one event, perform the effects it returns. All of it is the memory of one leader: a new one begins with
 * RG_DRIVE_LEAD and goes on where the ring, which is in the log, says. Everything may be late, lost or doubled: what does
 * not come is asked for again, what comes too late is ignored by its epoch. Not thread-safe; the ring is borrowed and not
 * altered.
 *
 *   a move of (slot, new owner):
 *       epoch told --majority of the old owners knows it--> STREAM --STREAMED--> every partition has adopted it
 *       --> VERIFY --VERIFIED--> HELD proposed
 *
 * Streaming begins only when a majority of the old owners has acknowledged the slot's epoch, and takes the union of the
 * documents of exactly these (!): they take no write of an earlier epoch any more, so what had a quorum is among them.
 * Verifying begins only when every partition has adopted the epoch (!). What is not held after all is streamed again;
 * failures of newcomers are counted in the ring, which rolls an addition back after RG_FAILURES_MAX.
 *
 * Slots with more heat come first. While `paused` no stream begins; what is under way goes on. At most `streams` at a time, `node_streams` of them to one node: others wait. */
#ifndef RING_CORE_DRIVE_H
#define RING_CORE_DRIVE_H

#include "ring/core/ring.h"

enum {
    RG_JOBS_MAX = 256,          /* moves of (slot, node) at a time */
    RG_DRIVE_EFFECTS_MAX = 512, /* of one step; what does not fit comes with the next */
    RG_PARTITIONS_MAX = 1024,
};

/* Rules switched off, for the simulator. */
enum rg_drive_unsafe {
    RG_DRIVE_UNSAFE_NO_ACK = 1 << 0,     /* streaming begins whoever knows the epoch */
    RG_DRIVE_UNSAFE_ONE_SOURCE = 1 << 1, /* documents are taken from one old owner */
    RG_DRIVE_UNSAFE_NOT_ADOPTED = 1 << 2 /* verifying begins whatever partitions have adopted */
};

struct rg_drive_options {
    uint32_t partitions;   /* 1 to RG_PARTITIONS_MAX */
    uint32_t streams;      /* at a time; 0: 64, at most RG_JOBS_MAX */
    uint32_t node_streams; /* to one node; 0: 8 */
    int64_t retry_ms;      /* 0: 5 s; between two tries */
    int64_t
        timeout_ms; /* 0: 10 min; then a stream or a verification that was not heard of has failed */
    int64_t
        dead_ms; /* 0: never; a node that is down so long is removed, if the copies can be kept */
    const uint64_t *heat; /* of each slot, or NULL. Borrowed */
    bool paused;          /* may be altered between two steps, as may `heat` */
    uint64_t unsafe;      /* enum rg_drive_unsafe */
};

enum rg_drive_event_kind {
    RG_DRIVE_LEAD,     /* this node leads from now on: forget everything */
    RG_DRIVE_TICK,     /* time passed, or the ring has applied something */
    RG_DRIVE_STATUS,   /* node, up, incarnation */
    RG_DRIVE_ACKED,    /* node knows epoch and refuses what is older */
    RG_DRIVE_ADOPTED,  /* partition has adopted epoch */
    RG_DRIVE_STREAMED, /* slot, node, epoch; ok, blobs, bytes */
    RG_DRIVE_VERIFIED, /* slot, node, epoch of the job; ok, incarnation, listed: the least epoch that the
                          manifests were in when they were listed */
    RG_DRIVE_CLEANED /* slot, node, epoch */
};

struct rg_drive_event {
    enum rg_drive_event_kind kind;
    int64_t now_ms;
    uint8_t node;
    bool up, ok;
    uint32_t slot, partition;
    uint64_t epoch, incarnation, listed;
    uint64_t blobs, bytes;
};

enum rg_drive_effect_kind {
    RG_DRIVE_PROPOSE, /* entry, to meta */
    RG_DRIVE_ADOPT,   /* partition: let it adopt epoch, the ring's; then ADOPTED */
    RG_DRIVE_TELL,    /* node: tell it the ring's epoch; then ACKED */
    RG_DRIVE_STREAM, /* slot, node: fetch named blobs it lacks from whoever has them, and documents from all of sources */
    RG_DRIVE_VERIFY, /* slot, node: list the manifests, then ask the node for every name */
    RG_DRIVE_CLEAN /* slot, node: drop what it holds of the slot, unless it knows a later epoch of it */
};

struct rg_drive_effect {
    enum rg_drive_effect_kind kind;
    uint32_t slot, partition;
    uint8_t node;
    uint64_t epoch;
    rg_nodes sources;
    struct rg_entry entry;
};

enum rg_job_stage {
    RG_JOB_FREE,
    RG_JOB_WAITS,
    RG_JOB_STREAMS,
    RG_JOB_STREAMED,
    RG_JOB_VERIFIES,
    RG_JOB_HELD,
    RG_JOB_RESTS
};

struct rg_job {
    enum rg_job_stage stage;
    uint8_t node;
    uint32_t slot;
    uint64_t epoch;
    int64_t since_ms;
    uint64_t blobs, bytes;
};

struct rg_driver {
    struct rg_drive_options options;
    struct rg_job jobs[RG_JOBS_MAX];
    int64_t change_ms[RG_CHANGES_MAX]; /* when something was proposed about it */
    struct {
        bool known, up;
        uint64_t incarnation, acked;
        int64_t proposed_ms, told_ms;
    } nodes[RG_NODES_MAX];
    struct {
        uint64_t adopted;
        int64_t asked_ms;
    } partitions[RG_PARTITIONS_MAX];
    int64_t clean_ms; /* when cleanups were looked at */
    size_t effect_count;
    struct rg_drive_effect effects[RG_DRIVE_EFFECTS_MAX + 1]; /* the last one is never performed */
};

void rg_driver_init(struct rg_driver *driver, const struct rg_drive_options *options);
/* Take @event and look what is to be done. Effects are in @driver until the next step. */
void rg_drive(struct rg_driver *driver, const struct rg_ring *ring,
              const struct rg_drive_event *event);

#endif
