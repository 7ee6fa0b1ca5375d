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
 *                                                     => ACCEPT or REJECT, LOAD, STOP, DROP, ECHO
 *     the stream ended              -> SESSION_CLOSED => the end of all of its runs
 *     a run's segments are there    -> RUN_LOADED     => EXECUTE
 *     a run's task ended            -> RUN_DONE       => READY   (artifact is in the spool)
 *     either of them went wrong     -> RUN_FAILED     => FAILED  (also the end of a stopped task)
 *     the disk budget took one away -> EVICTED        => FAILED not_found, if nobody has it yet
 *     SIGTERM                       -> DRAIN          => STATUS..., at last DRAINED
 *     it is over, now               -> END            => the end of all that is not an artifact
 *     wc_worker_deadline() has come -> TICK           => FAILED timeout, DROP, HANGUP, DRAINED
 *
 * An effect may lead to an event at once (all segments are on the disk already): the daemon steps
 * it after the effects of this step. Such an event may find its run gone; then it is counted in
 * stats.stale and changes nothing.
 *
 * A run is named by the session, work and attempt it was assigned with, and by a run id from then
 * on. It holds one of `slots` from LOAD until its end or its artifact, also while it is stopping,
 * so the pool is never oversubscribed. Free slots go round robin over the sessions, within a
 * session round robin over its queries, within a query first come first served.
 *
 * Life of a run. A cell names the next state and the effects; every way to "gone" ends with
 * FORGET. An empty cell is counted in stats.illegal and ignored.
 *
 *              START    CANCEL, LOST    LOADED      DONE            FAIL
 *     queued   loading  gone
 *              (LOAD)
 *     loading           gone            running                     gone
 *                       (RELEASE)       (EXECUTE)                   (RELEASE, FAILED)
 *     running           stopping                    ready           gone
 *                       (STOP)                      (RELEASE,READY) (RELEASE, FAILED)
 *     stopping                                      gone            gone
 *                                                   (RELEASE, DROP) (RELEASE)
 *     ready             gone (DROP)
 *     acked             gone (DROP)
 *
 *              ACK      EVICT           EXPIRE                      END
 *     queued                            gone (FAILED timeout)       gone
 *     loading                           gone                        gone (RELEASE)
 *                                       (RELEASE, FAILED timeout)
 *     running                           stopping                    stopping
 *                                       (STOP, FAILED timeout)      (STOP, FAILED unavailable)
 *     stopping
 *     ready    acked    gone            gone
 *              (ACKED)  (FAILED         (FAILED not_found, DROP)
 *                        not_found)
 *     acked             gone            gone (DROP)
 *
 * A run expires when its deadline comes, an artifact when nobody acknowledged it in time or some
 * time after somebody did. A failure that EXPIRE or END reports is final for this run: what its
 * task says later is not reported again.
 *
 * Work is rejected only while the worker is not accepting: it drains, it was told not to accept, or
 * its table is full of work that is not yet acknowledged (acknowledged artifacts make room), or
 * less than an eighth of the memory for assignments is free.
 * Whenever accepting or draining changes, every session gets a STATUS; each heartbeat is answered
 * with one too, which keeps the numbers an API shows fresh and corrects whatever it believes
 * wrongly. */
#ifndef WORKCOORD_WORKER_H
#define WORKCOORD_WORKER_H

#include "workcoord/types.h"

struct wc_worker; /* Opaque. Allocates in wc_worker_new() and never again. */

/* Bounds and times; zero means the default in the comment. */
struct wc_worker_limits {
    uint32_t sessions_max;   /* 64: API streams at once */
    uint32_t runs_max;       /* 16384: from acceptance to the end of the artifact */
    uint64_t spec_bytes_max; /* 256 MiB: of assignments whose runs are not over or ready */
    uint32_t slots; /* 1: runs that load or execute at once; daemons use their core count */

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
    X(WC_WORKER_EV_RUN_LOADED, "loaded")     /* run: all its segments are there */                 \
    X(WC_WORKER_EV_RUN_DONE, "done")         /* run, .checksum */                                  \
    X(WC_WORKER_EV_RUN_FAILED, "failed")     /* run, .failure; also how a stopped run ends */      \
    X(WC_WORKER_EV_EVICTED, "evicted")       /* run: its artifact is gone from the spool */        \
    X(WC_WORKER_EV_ACCEPTING, "accepting")   /* .accepting: take work or not */                    \
    X(WC_WORKER_EV_DRAIN, "drain")           /* .drain_deadline; cannot be taken back */           \
    X(WC_WORKER_EV_END, "end")               /* the process ends: drain, and finish nothing */
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
            qf_time_ms deadline; /* of the query; 0: none */
            uint64_t bytes;      /* of memory it holds until RELEASE or FORGET; at most an eighth of
                                  * spec_bytes_max, or it is rejected */
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
 *     LOAD     hold the run's segments; report RUN_LOADED or RUN_FAILED, at most once
 *     EXECUTE  start the run's task; report RUN_DONE or RUN_FAILED exactly once
 *     STOP     cancel the run's task; it still reports its end
 *     RELEASE  let go of the run's segments, there or still awaited
 *     READY    send WorkReady
 *     FAILED   send WorkFailed
 *     ACKED    the API has the run's artifact: it goes before others when room is needed
 *     DROP     delete the run's artifact, if it is not evicted, and stop serving it
 *     FORGET   the run is over and never named again: drop its spec
 *     DRAINED  exit now; `count` runs were not finished
 *
 * The comment behind each names the fields that are set; the others are 0. */
#define WC_WORKER_EFFECTS(X)                                                                       \
    X(WC_WORKER_DO_STATUS, "status")   /* session */                                               \
    X(WC_WORKER_DO_ECHO, "echo")       /* session, sent_at */                                      \
    X(WC_WORKER_DO_HANGUP, "hangup")   /* session */                                               \
    X(WC_WORKER_DO_ACCEPT, "accept")   /* session, work, attempt, run */                           \
    X(WC_WORKER_DO_REJECT, "reject")   /* session, work, attempt, reject */                        \
    X(WC_WORKER_DO_LOAD, "load")       /* session, query, leaf, work, attempt, run */              \
    X(WC_WORKER_DO_EXECUTE, "execute") /* run */                                                   \
    X(WC_WORKER_DO_STOP, "stop")       /* run */                                                   \
    X(WC_WORKER_DO_RELEASE, "release") /* run */                                                   \
    X(WC_WORKER_DO_READY, "ready")     /* session, work, attempt, run, checksum */                 \
    X(WC_WORKER_DO_FAILED, "failed")   /* session, work, attempt, run, rc, retryable */            \
    X(WC_WORKER_DO_ACKED, "acked")     /* run */                                                   \
    X(WC_WORKER_DO_DROP, "drop")       /* run */                                                   \
    X(WC_WORKER_DO_FORGET, "forget")   /* run */                                                   \
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
        } failure; /* an evicted or expired artifact: QF_ENOTFOUND, retryable; a passed deadline:
                    * QF_ETIMEOUT; the end of the process: QF_EUNAVAILABLE, retryable */
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
    uint64_t spec_bytes;          /* of assignments held */
    /* counters */
    uint64_t steps, illegal, stale;
    uint64_t accepted, rejected[WC_REJECT__COUNT], started, ready, failed, stopped, acked;
    uint64_t duplicates;      /* assignments already known */
    uint64_t timed_out;       /* runs whose deadline passed */
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
