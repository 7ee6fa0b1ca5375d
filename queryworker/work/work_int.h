/* work_int.h - the coordinator's own state, shared by its files.
 *
 *     coordinator.c   the loop: mailbox, signals, timers
 *     effects.c       one step of the state machine and what it asks for
 *     sessions.c      streams: what APIs say
 *     runs.c          works: from START to the artifact and its end
 *
 * A step's effects are borrowed from the state machine, so performing one must never step again:
 * whatever an effect leads to is put on a list, and qw_co_settle() goes on from there. */
#ifndef QUERYWORKER_WORK_WORK_INT_H
#define QUERYWORKER_WORK_WORK_INT_H

#include "base/pure/vec.h"
#include "queryworker/work/coordinator.h"
#include "queryworker/work/executor.h"
#include "queryworker/work/table.h"

struct qw_session {
    struct qw_node node; /* by session number */
    bool greeted;        /* Hello came */
    char api_id[PB_ID_BYTES_MAX + 1];
};

/*   QUEUED     accepted, the state machine has not started it
 *   STARTING   on co->starting
 *   WAITING    for downloads
 *   EXECUTING  its task is in the pool
 *   KEPT       its artifact is in the spool */
enum qw_run_phase { QW_RUN_QUEUED, QW_RUN_STARTING, QW_RUN_WAITING, QW_RUN_EXECUTING, QW_RUN_KEPT };

struct qw_run;
struct qw_run_list { /* oldest first */
    struct qw_run *first, *last;
    size_t count;
};

struct qw_run {
    struct qw_node node; /* by run id */
    enum qw_run_phase phase;
    struct qw_run_list *list; /* the one list it is on, or NULL */
    struct qw_run *next, *prev;

    struct qf_arena *arena; /* holds the assignment until the task is back */
    struct pb_assign assign;
    struct qw_hold *hold;
    struct qw_task *task;
    bool stopped;
    qf_time_ms deadline; /* QF_TIME_NEVER: none */
    int64_t received_ns, started_ns, stop_ns, launched_ns, ready_ns;

    uint64_t session, work;
    uint32_t attempt, leaf;
    char query_id[PB_ID_BYTES_MAX + 1];
    char traceparent[56]; /* or "" */

    struct qf_err err;     /* why it failed */
    struct pb_ready ready; /* strings point into this struct */
    struct qw_token token;
    char checksum[38];
    char *url;
    bool fetched;              /* requested at least once */
    bool in_memory;            /* its artifact takes no disk */
    struct qw_run *token_next; /* chain of co->tokens */
};

struct qw_coordinator {
    struct qw_coordinator_options options;
    struct qw_server *server;
    struct qw_cache *cache;
    char *worker_id, *base_url;
    struct wc_worker *wc;
    struct qw_metrics *m;

    struct qw_table runs, sessions;
    struct qw_run *tokens[QW_TABLE_BUCKETS]; /* kept runs by token */
    struct qw_run_list starting, active, unacked, acked;
    uint64_t spool_bytes, memory_bytes; /* artifacts that are files, and those that are not */
    QF_VEC(uint64_t) closed;            /* sessions whose end is still to be stepped */

    /* The assignment being stepped. */
    struct qf_arena *assign_arena;
    const struct pb_assign *assign;
    int64_t assign_ns;

    qf_time_ms beat_at; /* next heartbeat */
    bool draining, done;
};

/* effects.c */
/* Apply @event at the present time and perform its effects; the caller settles. */
qf_rc qw_co_step(struct qw_coordinator *co, struct wc_worker_event event);

/* sessions.c */
void qw_co_beat(struct qw_coordinator *co);
void qw_co_forget_session(struct qw_coordinator *co, uint64_t session);

/* runs.c */
void qw_run_accept(struct qw_coordinator *co, uint64_t session, uint64_t id);
struct qw_run *qw_run_find(struct qw_coordinator *co, uint64_t id);
void qw_run_start(struct qw_coordinator *co, uint64_t id); /* put it on the starting list */
void qw_run_stop(struct qw_coordinator *co, uint64_t id);
void qw_run_drop(struct qw_coordinator *co, uint64_t id); /* with its artifact */
void qw_run_acked(struct qw_coordinator *co, uint64_t id);
void qw_run_task_back(struct qw_coordinator *co, struct qw_task *task);
void qw_run_fetched(struct qw_coordinator *co, struct qw_fetch *fetch);
void qw_run_check_deadlines(struct qw_coordinator *co, qf_time_ms now);
qf_time_ms qw_run_deadline(const struct qw_coordinator *co);
/* Go on with what the last effects put on lists, until there is nothing left. */
void qw_co_settle(struct qw_coordinator *co);
/* Keep the disk within its watermarks. */
void qw_co_look_after_disk(struct qw_coordinator *co);
struct qw_budget_usage qw_co_usage(const struct qw_coordinator *co);
void qw_run_list_push(struct qw_run_list *list, struct qw_run *run);
void qw_run_list_remove(struct qw_run *run);

/* Log fields every line about a work carries. */
#define QW_KV_RUN(run)                                                                             \
    QF_KV_STR("query_id", (run)->query_id), QF_KV_U64("leaf_id", (run)->leaf),                     \
        QF_KV_U64("work_id", (run)->work), QF_KV_U64("attempt", (run)->attempt),                   \
        QF_KV_STR("traceparent", (run)->traceparent)

#endif
