/* lead_int.h - one piece of work of the leader's hands, and what is heard of it. */
#ifndef RING_COORD_LEAD_INT_H
#define RING_COORD_LEAD_INT_H

#include "base/sys/mailbox.h"
#include "base/sys/pool.h"
#include "base/sys/thread.h"
#include "ring/coord/lead.h"
#include "ring/coord/time.h"

/* A ring that several threads read; goes with the last of them. */
struct rg_view {
    atomic_uint users;
    struct rg_ring *ring;
};
struct rg_view *rg_view_use(struct rg_view *view);
void rg_view_drop(struct rg_view *view); /* Accepts NULL. */

enum rg_task_kind {
    RG_TASK_LOOK,
    RG_TASK_TELL,
    RG_TASK_ADOPT,
    RG_TASK_STREAM,
    RG_TASK_VERIFY,
    RG_TASK_CLEAN,
    RG_TASK_LEAD,      /* no work: this node leads in term */
    RG_TASK_CONFIRMED, /* no work: the ring is at least `epoch`'s number of entries far */
    RG_TASK_STOP
};

/* What is to be done; when it was, what came of it. */
struct rg_task {
    enum rg_task_kind kind;
    struct rg_lead *lead;
    struct rg_view *view;
    uint64_t term, epoch;
    uint32_t slot, partition;
    uint8_t node;
    rg_nodes sources;
    bool ok;
    struct rg_looked looked;
    uint64_t *heat; /* LOOK: where it goes, owned; NULL: it is not asked for, or was not learned */
    uint64_t blobs, bytes, listed;
};

/* What streams may bring: one budget for all threads. */
struct rg_pace {
    struct qf_lock *lock;
    int64_t free_ms; /* when the next piece may begin */
};

struct rg_lead {
    struct rg_lead_options options;
    struct rg_lead_figures figures;
    struct qf_mailbox *box;
    struct qf_pool *quick, *slow;
    struct qf_thread *thread;
    struct rg_pace pace;
    atomic_bool stopping;
    /* Of the thread. */
    struct rg_driver *driver;
    struct rg_view *view; /* NULL: the ring is not known yet */
    uint64_t term;        /* 0: this node does not lead */
    uint64_t applied, confirmed;
    struct rg_time time;
    rg_nodes to_tell;
    int64_t confirm_ms; /* when it was asked for */
    struct {
        bool busy;
        int missed;
        int64_t due_ms, pause_ms, failed_ms, heat_ms; /* heat is asked for */
        uint64_t incarnation;
    } nodes[RG_NODES_MAX];
    uint64_t node_heat[RG_NODES_MAX][RG_SLOTS], heat[RG_SLOTS]; /* as heard last; of all nodes */
};

/* hands.c: on a pool's thread; then the task is sent to the lead's mailbox. */
void rg_task_run(void *task);
void rg_task_free(void *task);

#endif
