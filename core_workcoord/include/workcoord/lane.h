/* lane.h - the API side of background work: which worker runs which job, without doing any I/O.
 *
 * A job is work that no query waits for: files that become fewer. It has nothing in common with the items
 * of queries but the control streams: other messages, other slots, other tables, and a machine of its own.
 * So nothing that happens here can delay, reject, hedge or fail an item (api.h), whatever it is.
 *
 * Doing a job twice is harmless, at the same time too: what it writes is named by its content. So there is
 * no artifact, nothing to fetch or acknowledge, and a worker that cannot be heard is simply not waited for.
 *
 * Feed one event, perform the effects it returns, in order. Equal states given equal events yield equal
 * effects. Time comes inside the event and never runs backwards. Nothing is allocated in a step and every
 * table is bounded by wc_lane_limits. Not thread-safe.
 *
 * How a daemon uses it
 *
 *     a worker's status                 -> STATUS    slots: those of its lane; 0: it has none, or does not
 *                                                    know of one, and is never given a job
 *     its stream is gone, or given up   -> LOST
 *     a job is to be done               -> SUBMIT              => ASSIGN, at once or later
 *     what workers say                  -> REJECTED, DONE, FAILED
 *     wc_lane_deadline() has come       -> TICK
 *     it is not wanted any more         -> CANCEL              => CANCEL, ENDED
 *
 * Every SUBMIT that returned QF_OK is answered by exactly one ENDED; with it the core has forgotten the job.
 *
 * Life of a job ("heard" across; an empty cell cannot be, and is counted in stats.stale)
 *
 *              ASSIGN  REJECTED  DONE    RETRY             FAILED  LOST     EXPIRE            CANCEL
 *     pending  sent                                                                            ended
 *     sent             pending   ended   pending or ended  ended   pending  pending or ended  ended
 *
 *   REJECTED: the worker has no room, or drains and gives back what it began: costs nothing. RETRY is
 *   FAILED with `retryable`; that and EXPIRE (longer than job_ms with one worker) end the job when they
 *   have happened attempts_max times. LOST of a worker that died counts as a death: a job that may have
 *   cost deaths_max workers ends with QF_EQUARANTINED. Messages of another attempt or session than the
 *   one that runs are stale: counted and ignored.
 *
 * Where jobs go: the oldest job first, to the worker whose lane is emptiest, among those alike the one that
 * has least to do for queries. A worker that rejected gets none for rest_ms, and a job does not go back to
 * the worker that it failed on, or that gave it back, for as long, while there is no other. A job whose inputs
 * some workers keep goes to one of these, and waits for it if need be: no query is waiting. Any worker gets it
 * if none of them has a lane now, but for those that drain, and the one that it failed on. */
#ifndef WORKCOORD_LANE_H
#define WORKCOORD_LANE_H

#include "workcoord/types.h"

/* One job, unique in the life of the API process. */
struct wc_job_id {
    uint64_t v;
};

struct wc_lane; /* Opaque. Allocates in wc_lane_new() and never again. */

/* Zero means the default in the comment. */
struct wc_lane_limits {
    uint32_t workers_max;  /* 1024 */
    uint32_t jobs_max;     /* 1024: alive at once */
    uint32_t sent_max;     /* with workers at once; 0: as many as there are slots */
    uint32_t attempts_max; /* 4 */
    uint32_t deaths_max;   /* 2 */
    qf_time_ms rest_ms;    /* 5000 */
    qf_time_ms job_ms;     /* 4 hours: a job that is paused for queries takes long */
};

#define WC_LANE_EVENTS(X)                                                                          \
    X(WC_LANE_EV_TICK, "tick")         /* wc_lane_deadline() has come (early is fine) */           \
    X(WC_LANE_EV_STATUS, "status")     /* worker, session, .status */                              \
    X(WC_LANE_EV_LOST, "lost")         /* worker, .died */                                         \
    X(WC_LANE_EV_SUBMIT, "submit")     /* job, .owners */                                          \
    X(WC_LANE_EV_CANCEL, "cancel")     /* job */                                                   \
    X(WC_LANE_EV_REJECTED, "rejected") /* worker, session, job, attempt */                         \
    X(WC_LANE_EV_DONE, "done")         /* likewise */                                              \
    X(WC_LANE_EV_FAILED, "failed")     /* likewise, .failure */

#define WC_LANE_EFFECTS(X)                                                                         \
    X(WC_LANE_DO_ASSIGN, "assign") /* worker, session, job, attempt: send it */                    \
    X(WC_LANE_DO_CANCEL, "cancel") /* likewise: tell it to stop */                                 \
    X(WC_LANE_DO_ENDED, "ended")   /* job, attempt, rc */

enum wc_lane_event_type { WC_LANE_EVENTS(WC_ENUM_ENTRY) WC_LANE_EV__COUNT };
enum wc_lane_effect_type { WC_LANE_EFFECTS(WC_ENUM_ENTRY) WC_LANE_DO__COUNT };

struct wc_lane_event {
    enum wc_lane_event_type type;
    qf_time_ms now;
    struct wc_worker_id worker;
    struct wc_session_id session;
    struct wc_job_id job;
    uint32_t attempt;
    union {
        struct {
            uint32_t slots; /* of its lane */
            uint32_t load;  /* works of queries that it runs or has queued */
            bool draining;
            uint64_t key; /* wc_worker_key() */
        } status;
        struct {
            uint32_t count; /* 0: nobody keeps its inputs; at most WC_OWNERS_MAX count */
            uint64_t keys[WC_OWNERS_MAX]; /* wc_worker_key() of those that do, known here or not */
        } owners;
        struct {
            qf_rc rc;
            bool retryable;
        } failure;
        bool died; /* the stream broke, and the worker did not drain */
    };
};

struct wc_lane_effect {
    enum wc_lane_effect_type type;
    uint32_t attempt; /* from 1; of ENDED: how many there were */
    struct wc_worker_id worker;
    struct wc_session_id session;
    struct wc_job_id job;
    qf_rc rc;
};

struct wc_lane_effects {
    const struct wc_lane_effect *items; /* borrowed until the next step */
    size_t count;
};

/* NULL if out of memory. */
struct wc_lane *wc_lane_new(const struct wc_lane_limits *limits);
/* Accepts NULL, returns NULL. */
struct wc_lane *wc_lane_free(struct wc_lane *lane);

/* Apply @event. Only SUBMIT can fail, and then nothing has changed: QF_ELIMIT (jobs_max reached) or
 * QF_EEXIST (the job is alive). */
QF_MUST_CHECK qf_rc wc_lane_step(struct wc_lane *lane, const struct wc_lane_event *event,
                                 struct wc_lane_effects *ret_effects);

/* When the next TICK is due, or QF_TIME_NEVER. */
qf_time_ms wc_lane_deadline(const struct wc_lane *lane);

/* Call @trace with one line per step. NULL: no traces. */
void wc_lane_trace(struct wc_lane *lane, wc_trace_fn *trace, void *ctx);

struct wc_lane_stats {
    /* gauges */
    uint32_t workers; /* that have a lane */
    uint32_t slots;   /* of those that do not drain */
    uint32_t pending, sent;
    /* counters */
    uint64_t steps, stale, rejected, retried, lost, expired;
};
const struct wc_lane_stats *wc_lane_stats(const struct wc_lane *lane); /* Constant time. */

struct wc_lane_job_view {
    bool sent;
    struct wc_worker_id worker; /* if it is */
    uint32_t attempt, failures, deaths;
    qf_time_ms since; /* of its state */
};
/* False: there is no such job. */
bool wc_lane_job(const struct wc_lane *lane, struct wc_job_id job,
                 struct wc_lane_job_view *ret_view);

const char *wc_lane_event_name(enum wc_lane_event_type type);
const char *wc_lane_effect_name(enum wc_lane_effect_type type);

#endif
