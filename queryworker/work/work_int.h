/* work_int.h - the coordinator's own state, shared by its files.
 *
 *     coordinator.c   the loop: mailbox, signals, timers
 *     events.c        the queue of events; one step of the state machine at a time
 *     effects.c       what a step asks for: messages to APIs, and calls of the next two
 *     sessions.c      streams: what APIs say
 *     runs.c          runs: from acceptance to the end of the task
 *     artifacts.c     what runs leave behind, until it is dropped
 *     jobs.c          background jobs, which have a machine of their own (workcoord/lane_worker.h)
 *
 * Which state a run is in, and what happens next, is decided by the state machine alone
 * (workcoord/worker.h). Whatever happens is posted as an event; qw_co_run() steps the queue to its
 * end. Performing an effect never steps: what it leads to is posted like anything else, and so is
 * stepped after the effects before it. */
#ifndef QUERYWORKER_WORK_WORK_INT_H
#define QUERYWORKER_WORK_WORK_INT_H

#include "base/pure/vec.h"
#include "queryworker/work/assignment.h"
#include "queryworker/work/coordinator.h"
#include "queryworker/work/executor.h"
#include "queryworker/work/job_task.h"
#include "queryworker/work/table.h"

struct qw_session {
    struct qw_node node; /* by session number */
    bool greeted;        /* Hello came */
    char api_id[PB_ID_BYTES_MAX + 1];
};

/* What happened, for the state machine. */
struct qw_event {
    struct wc_worker_event core;
    struct qw_assignment *assignment; /* of an ASSIGN: goes with the event unless a run takes it */
};

struct qw_run;
struct qw_run_list { /* oldest first */
    struct qw_run *first, *last;
    size_t count;
};

/* What the daemon has of a run, from ACCEPT to FORGET. */
struct qw_run {
    struct qw_node node;              /* by run id */
    struct qw_assignment *assignment; /* until its segments are released */
    struct qw_hold *hold;             /* from LOAD to RELEASE */
    struct qw_task *task;             /* from EXECUTE until it is back */
    int64_t received_ns, started_ns, stop_ns, launched_ns, ready_ns; /* 0: not yet */

    uint64_t session, work;
    uint32_t attempt, leaf;
    char query_id[PB_ID_BYTES_MAX + 1];
    char traceparent[56]; /* or "" */

    struct qf_err err; /* what its task or its downloads said */
    bool told;         /* the API heard how it ended */

    /* The artifact that this run wrote. */
    struct qw_run_list *list; /* the one it is on; NULL: there is no artifact */
    struct qw_run *next, *prev;
    struct qw_run *token_next; /* chain of co->tokens */
    struct qw_token token;
    struct pb_ready ready; /* strings point into this struct */
    char checksum[38];
    char *url;
    bool fetched;   /* requested at least once */
    bool in_memory; /* it takes no disk */
};

struct qw_coordinator {
    struct qw_coordinator_options options;
    struct qw_server *server;
    struct qw_cache *cache;
    struct pb_disk disk; /* as it was at the last beat */
    char *worker_id, *base_url;
    struct wc_worker *wc;
    struct qw_metrics *m;

    struct qw_table runs, sessions;
    struct qw_run *tokens[QW_TABLE_BUCKETS]; /* runs with an artifact, by its token */
    struct qw_run_list unacked, acked;       /* the same, by age */
    uint64_t spool_bytes, memory_bytes;      /* artifacts that are files, and those that are not */

    /* Events not yet stepped. Empty between two messages of the mailbox; while one is handled every
     * run and session adds a few at most, so the tables' bounds are this queue's too. */
    QF_VEC(struct qw_event) events;
    size_t events_done; /* so many of them are stepped */
    bool stepping;

    struct wc_lane_worker *lane;                 /* background jobs */
    struct qw_job_task *jobs[WC_LANE_SLOTS_MAX]; /* that run, by slot */
    struct qw_gate gate;

    qf_time_ms beat_at; /* next heartbeat */
    bool draining, done;
};

/* events.c */
/* Put @event at the end of the queue. Any time, also while an effect is performed. */
void qw_co_post(struct qw_coordinator *co, struct wc_worker_event event);
void qw_co_post_assign(struct qw_coordinator *co, struct wc_worker_event event,
                       struct qw_assignment *assignment); /* which is taken */
/* Step all that is queued, and what that leads to. Never while an effect is performed. */
void qw_co_run(struct qw_coordinator *co);
/* Step a new session's @event, the only kind that the machine can refuse. Returns why it did. */
qf_rc qw_co_open_session(struct qw_coordinator *co, struct wc_worker_event event);

/* effects.c */
/* @cause: the event that was stepped; @effect is one of what it led to. */
void qw_co_perform(struct qw_coordinator *co, const struct wc_worker_effect *effect,
                   struct qw_event *cause);

/* sessions.c */
void qw_co_beat(struct qw_coordinator *co);
void qw_co_forget_session(struct qw_coordinator *co, uint64_t session);

/* runs.c: one function for each effect that is about a run */
struct qw_run *qw_run_find(struct qw_coordinator *co, uint64_t id);
void qw_run_accept(struct qw_coordinator *co, uint64_t session, uint64_t id,
                   struct qw_assignment *assignment); /* which is taken */
void qw_run_load(struct qw_coordinator *co, struct qw_run *run);
void qw_run_execute(struct qw_coordinator *co, struct qw_run *run);
void qw_run_stop(struct qw_run *run);
void qw_run_release(struct qw_coordinator *co, struct qw_run *run);
void qw_run_forget(struct qw_coordinator *co, struct qw_run *run);
/* and what comes back */
void qw_run_downloads_back(struct qw_coordinator *co);
void qw_run_task_back(struct qw_coordinator *co, struct qw_task *task);

/* artifacts.c */
/* The task of @run wrote an artifact: publish it, count it. */
void qw_artifact_keep(struct qw_coordinator *co, struct qw_run *run, const struct qw_task *task);
void qw_artifact_acked(struct qw_coordinator *co, struct qw_run *run);
void qw_artifact_drop(struct qw_coordinator *co, struct qw_run *run); /* if there is one */
void qw_artifact_fetched(struct qw_coordinator *co, struct qw_fetch *fetch);
/* The disk is full, whatever the figures say: let go of something. */
void qw_co_free_some_disk(struct qw_coordinator *co);
/* Keep the disk within its watermarks. */
void qw_co_look_after_disk(struct qw_coordinator *co);
struct qw_budget_usage qw_co_usage(const struct qw_coordinator *co);

/* jobs.c */
void qw_jobs_assign(struct qw_coordinator *co, uint64_t session, struct qf_arena *arena,
                    const struct pb_job *job); /* @arena is taken */
void qw_jobs_cancel(struct qw_coordinator *co, uint64_t session,
                    const struct pb_job_cancel *cancel);
void qw_jobs_lost(struct qw_coordinator *co, uint64_t session);
/* Give back what runs, take nothing any more. */
void qw_jobs_drain(struct qw_coordinator *co);
void qw_jobs_back(struct qw_coordinator *co, struct qw_job_task *task);
bool qw_jobs_idle(const struct qw_coordinator *co);
/* Tell APIs how far their jobs are. */
void qw_jobs_beat(struct qw_coordinator *co);
/* Jobs stand aside while queries have every slot, or may go on. */
void qw_jobs_gate(struct qw_coordinator *co);
void qw_jobs_metrics(struct qw_coordinator *co);

/* Log fields every line about a work carries. */
#define QW_KV_RUN(run)                                                                             \
    QF_KV_STR("query_id", (run)->query_id), QF_KV_U64("leaf_id", (run)->leaf),                     \
        QF_KV_U64("work_id", (run)->work), QF_KV_U64("attempt", (run)->attempt),                   \
        QF_KV_STR("traceparent", (run)->traceparent)

#endif
