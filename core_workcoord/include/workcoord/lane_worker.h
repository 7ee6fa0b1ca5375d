/* lane_worker.h - the worker side of background work: which jobs run, without doing any I/O.
 *
 * A lane of a few slots beside those of queries (worker.h), and nothing else: no queue, because the API
 * sends no more than there are slots, and asks again later where another API was first.
 *
 *              DONE, FAILED   CANCEL, LOST  DRAIN
 *     running  gone: told     stopping      stopping: given back (REJECT)
 *     stopping gone
 *
 * A job that stops is not waited for by anybody: it ends when its thread notices, and has its slot until
 * then. What it has put into the store by then stays, and is harmless. */
#ifndef WORKCOORD_LANE_WORKER_H
#define WORKCOORD_LANE_WORKER_H

#include "workcoord/lane.h"

#define WC_LANE_SLOTS_MAX 64

struct wc_lane_worker; /* Opaque. Allocates in wc_lane_worker_new() and never again. */

#define WC_LANE_WORKER_EVENTS(X)                                                                   \
    X(WC_LANE_WORKER_EV_ASSIGN, "assign") /* session, job, attempt */                              \
    X(WC_LANE_WORKER_EV_CANCEL, "cancel") /* likewise */                                           \
    X(WC_LANE_WORKER_EV_LOST, "lost")     /* session */                                            \
    X(WC_LANE_WORKER_EV_DONE, "done")     /* slot: its thread is back */                           \
    X(WC_LANE_WORKER_EV_FAILED, "failed") /* likewise, .failure */                                 \
    X(WC_LANE_WORKER_EV_DRAIN, "drain")   /* the process is about to end */

#define WC_LANE_WORKER_EFFECTS(X)                                                                  \
    X(WC_LANE_WORKER_DO_RUN, "run")       /* slot, session, job, attempt: give it to a thread */   \
    X(WC_LANE_WORKER_DO_STOP, "stop")     /* slot: tell the thread to stop */                      \
    X(WC_LANE_WORKER_DO_REJECT, "reject") /* session, job, attempt, .reject: tell the API */       \
    X(WC_LANE_WORKER_DO_DONE, "done")     /* slot, session, job, attempt: tell the API */          \
    X(WC_LANE_WORKER_DO_FAILED, "failed") /* likewise, .failure */

enum wc_lane_worker_event_type { WC_LANE_WORKER_EVENTS(WC_ENUM_ENTRY) WC_LANE_WORKER_EV__COUNT };
enum wc_lane_worker_effect_type { WC_LANE_WORKER_EFFECTS(WC_ENUM_ENTRY) WC_LANE_WORKER_DO__COUNT };

struct wc_lane_worker_event {
    enum wc_lane_worker_event_type type;
    struct wc_session_id session;
    struct wc_job_id job;
    uint32_t attempt;
    uint32_t slot;
    struct {
        qf_rc rc;
        bool retryable;
    } failure;
};

struct wc_lane_worker_effect {
    enum wc_lane_worker_effect_type type;
    struct wc_session_id session;
    struct wc_job_id job;
    uint32_t attempt;
    uint32_t slot;
    union {
        enum wc_reject reject;
        struct {
            qf_rc rc;
            bool retryable;
        } failure;
    };
};

struct wc_lane_worker_effects {
    const struct wc_lane_worker_effect *items; /* borrowed until the next step */
    size_t count;
};

/* @slots: at most WC_LANE_SLOTS_MAX; 0: every job is rejected. NULL if out of memory. */
struct wc_lane_worker *wc_lane_worker_new(uint32_t slots);
/* Accepts NULL, returns NULL. */
struct wc_lane_worker *wc_lane_worker_free(struct wc_lane_worker *lane);

void wc_lane_worker_step(struct wc_lane_worker *lane, const struct wc_lane_worker_event *event,
                         struct wc_lane_worker_effects *ret_effects);

struct wc_lane_worker_stats {
    uint32_t slots, running, stopping; /* gauges; slots: 0 while draining */
    uint64_t started, done, failed, given_back, stopped, rejected, stale;
};
const struct wc_lane_worker_stats *wc_lane_worker_stats(const struct wc_lane_worker *lane);

const char *wc_lane_worker_event_name(enum wc_lane_worker_event_type type);
const char *wc_lane_worker_effect_name(enum wc_lane_worker_effect_type type);

#endif
