/* worker.h - the worker side of work coordination: what to accept, run, keep and drop, without I/O.
 *
 * Feed one event, perform the effects it returns, in order. Equal states given equal events yield
 * equal effects. Time comes inside the event and never runs backwards. Nothing is allocated in a
 * step and every table is bounded. Not thread-safe: one thread owns a wc_worker.
 *
 * How a daemon uses it
 *
 *     an API opened a stream        -> SESSION_OPEN   => STATUS (the first message on the stream)
 *     every message on it           -> ASSIGN, CANCEL, ACK, HEARTBEAT
 *                                                     => ACCEPT or REJECT, START, STOP, DROP, ECHO
 *     the stream ended              -> SESSION_CLOSED => STOP and DROP for all of its work
 *     a run ended                   -> RUN_DONE       => READY   (artifact is in the spool)
 *                                   -> RUN_FAILED     => FAILED  (also the end of a stopped run)
 *     the disk budget took one away -> EVICTED        => FAILED expired, if nobody has it yet
 *     SIGTERM                       -> DRAIN          => STATUS..., at last DRAINED
 *     wc_worker_deadline() has come -> TICK           => DROP, HANGUP, DRAINED
 *
 * A run is named by the session, work and attempt it was assigned with, and by a run id from then
 * on. It holds one of `slots` from START until RUN_DONE or RUN_FAILED, also while it is stopping,
 * so the pool is never oversubscribed. Free slots go round robin over the sessions, within a
 * session round robin over its queries, within a query first come first served.
 *
 * Life of a run (an empty cell is counted in stats.illegal and ignored)
 *
 *               START    CANCEL    LOST      DONE     FAIL      ACK    EVICT     EXPIRE
 *     queued    running  gone      gone
 *                        (FORGET)  (FORGET)
 *     running            stopping  stopping  ready    gone
 *                        (STOP)    (STOP)    (READY)  (FAILED)
 *     stopping                               gone     gone
 *                                            (DROP)
 *     ready              gone      gone                         acked  gone      gone
 *                        (DROP)    (DROP)                              (FAILED)  (FAILED, DROP)
 *     acked              gone      gone                                gone      gone
 *                        (DROP)    (DROP)                                        (DROP)
 *
 * Work is rejected only while the worker is not accepting: it drains, it was told not to accept, or
 * its table is full of work that is not yet acknowledged (acknowledged artifacts make room).
 * Whenever accepting or draining changes, every session gets a STATUS; each heartbeat is answered
 * with one too, which keeps the numbers an API shows fresh and corrects whatever it believes
 * wrongly. */
#ifndef WORKCOORD_WORKER_H
#define WORKCOORD_WORKER_H

#include "workcoord/types.h"

struct wc_worker; /* Opaque. Allocates in wc_worker_new() and never again. */

/* Bounds and times; zero means the default in the comment. */
struct wc_worker_limits {
    uint32_t sessions_max; /* 64: API streams at once */
    uint32_t runs_max;     /* 16384: queued, running, stopping and kept artifacts together */
    uint32_t slots;        /* 1: runs at the same time; daemons use their core count */

    qf_time_ms heartbeat_ms;    /* WC_HEARTBEAT_MS: how often an API sends one */
    uint32_t heartbeats_max;    /* WC_HEARTBEATS_MISSED_MAX: silent for so many of them is lost */
    qf_time_ms artifact_ms;     /* 600000: how long an artifact waits for its ACK */
    qf_time_ms artifact_ack_ms; /* 30000: how long it stays after the ACK */
};

#define WC_WORKER_EVENTS(X)                                                                        \
    X(WC_WORKER_EV_TICK, "tick")             /* the deadline has come (early is fine) */           \
    X(WC_WORKER_EV_SESSION_OPEN, "open")     /* session */                                         \
    X(WC_WORKER_EV_SESSION_CLOSED, "closed") /* session */                                         \
    X(WC_WORKER_EV_HEARTBEAT, "heartbeat")   /* session, .sent_at */                               \
    X(WC_WORKER_EV_ASSIGN, "assign")         /* session, work, attempt, .assign */                 \
    X(WC_WORKER_EV_CANCEL, "cancel")         /* session, work, attempt */                          \
    X(WC_WORKER_EV_ACK, "ack")               /* session, work, attempt */                          \
    X(WC_WORKER_EV_RUN_DONE, "done")         /* run, .checksum */                                  \
    X(WC_WORKER_EV_RUN_FAILED, "failed")     /* run, .failure; also how a stopped run ends */      \
    X(WC_WORKER_EV_EVICTED, "evicted")       /* run: its artifact is gone from the spool */        \
    X(WC_WORKER_EV_ACCEPTING, "accepting")   /* .accepting: take work or not */                    \
    X(WC_WORKER_EV_DRAIN, "drain")           /* .drain_deadline; cannot be taken back */
enum wc_worker_event_type { WC_WORKER_EVENTS(WC_ENUM_ENTRY) WC_WORKER_EV__COUNT };

struct wc_worker_event {
    enum wc_worker_event_type type;
    uint32_t attempt;
    qf_time_ms now;
    struct wc_session_id session;
    struct wc_work_id work;
    struct wc_run_id run;
    union {
        struct {
            struct wc_query_id query;
            struct wc_leaf_id leaf;
        } assign;
        struct {
            qf_rc rc;
            bool retryable;
        } failure;
        struct wc_checksum checksum;
        qf_time_ms sent_at;
        qf_time_ms drain_deadline; /* DRAINED comes by then; QF_TIME_NEVER: no limit */
        bool accepting;
    };
};

/* What the caller must do, in this order.
 *
 *     STATUS   send WorkerStatus as wc_worker_stats() says
 *     ECHO     send Heartbeat back
 *     HANGUP   close the session: it fell silent
 *     ACCEPT   send WorkAccepted
 *     REJECT   send WorkRejected
 *     START    execute the run; report RUN_DONE or RUN_FAILED exactly once
 *     STOP     cancel the run; still report RUN_DONE or RUN_FAILED
 *     FORGET   drop the spec of the run: it was queued and will never start
 *     READY    send WorkReady
 *     FAILED   send WorkFailed
 *     DROP     delete the run's artifact and stop serving it
 *     DRAINED  exit now; `count` runs were not finished
 *
 * The comment behind each names the fields that are set; the others are 0. */
#define WC_WORKER_EFFECTS(X)                                                                       \
    X(WC_WORKER_DO_STATUS, "status")   /* session */                                               \
    X(WC_WORKER_DO_ECHO, "echo")       /* session, sent_at */                                      \
    X(WC_WORKER_DO_HANGUP, "hangup")   /* session */                                               \
    X(WC_WORKER_DO_ACCEPT, "accept")   /* session, work, attempt, run */                           \
    X(WC_WORKER_DO_REJECT, "reject")   /* session, work, attempt, reject */                        \
    X(WC_WORKER_DO_START, "start")     /* session, query, leaf, work, attempt, run */              \
    X(WC_WORKER_DO_STOP, "stop")       /* run */                                                   \
    X(WC_WORKER_DO_FORGET, "forget")   /* run */                                                   \
    X(WC_WORKER_DO_READY, "ready")     /* session, work, attempt, run, checksum */                 \
    X(WC_WORKER_DO_FAILED, "failed")   /* session, work, attempt, run, rc, retryable */            \
    X(WC_WORKER_DO_DROP, "drop")       /* run */                                                   \
    X(WC_WORKER_DO_DRAINED, "drained") /* count */
enum wc_worker_effect_type { WC_WORKER_EFFECTS(WC_ENUM_ENTRY) WC_WORKER_DO__COUNT };

struct wc_worker_effect {
    enum wc_worker_effect_type type;
    uint32_t attempt;
    struct wc_session_id session;
    struct wc_query_id query;
    struct wc_leaf_id leaf;
    struct wc_work_id work;
    struct wc_run_id run;
    union {
        struct wc_checksum checksum;
        struct {
            qf_rc rc;
            bool retryable;
        } failure; /* an evicted or expired artifact: QF_ENOTFOUND, retryable */
        qf_time_ms sent_at;
        enum wc_reject reject;
        uint32_t count;
    };
};

struct wc_worker_effects {
    const struct wc_worker_effect *items; /* borrowed until the next step */
    size_t count;
};

/* Create a core whose tables never outgrow @limits; NULL if out of memory. */
struct wc_worker *wc_worker_new(const struct wc_worker_limits *limits);

/* Release @wc, which may be NULL. Returns NULL. */
struct wc_worker *wc_worker_free(struct wc_worker *wc);

/* Apply @event. Only SESSION_OPEN can fail, and then nothing has changed and there are no effects:
 * QF_ELIMIT (sessions_max reached: refuse the stream) or QF_EEXIST (the session is known). */
QF_MUST_CHECK qf_rc wc_worker_step(struct wc_worker *wc, const struct wc_worker_event *event,
                                   struct wc_worker_effects *ret_effects);

/* When the next TICK is due, or QF_TIME_NEVER. Constant time. */
qf_time_ms wc_worker_deadline(const struct wc_worker *wc);

/* Call @trace with one line per step. NULL: no traces. */
void wc_worker_trace(struct wc_worker *wc, wc_trace_fn *trace, void *ctx);

struct wc_worker_stats {
    /* gauges */
    bool accepting, draining, drained;
    uint32_t sessions, slots;
    uint32_t runs[WC_RUN__COUNT]; /* by state; runs[WC_RUN_QUEUED] is the queue depth */
    /* counters */
    uint64_t steps, illegal, stale;
    uint64_t accepted, rejected[WC_REJECT__COUNT], started, ready, failed, stopped, acked;
    uint64_t duplicates;      /* assignments already known */
    uint64_t expired_unacked; /* artifacts nobody acknowledged in time */
    uint64_t expired_acked, evicted_unacked, evicted_acked;
    uint64_t sessions_lost, sessions_silent;
};
const struct wc_worker_stats *wc_worker_stats(const struct wc_worker *wc); /* Constant time. */

struct wc_worker_run_view {
    struct wc_session_id session;
    struct wc_query_id query;
    struct wc_work_id work;
    uint32_t attempt;
    enum wc_run_state state;
    qf_time_ms since; /* when it entered its state */
};
/* False if the run is unknown or gone. */
bool wc_worker_run(const struct wc_worker *wc, struct wc_run_id run,
                   struct wc_worker_run_view *ret_view);
/* The live run of an assignment, 0 if there is none. */
struct wc_run_id wc_worker_find(const struct wc_worker *wc, struct wc_session_id session,
                                struct wc_work_id work, uint32_t attempt);

const char *wc_worker_event_name(enum wc_worker_event_type type);
const char *wc_worker_effect_name(enum wc_worker_effect_type type);

#endif
