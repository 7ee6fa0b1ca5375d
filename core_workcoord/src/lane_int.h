/* lane_int.h - the tables of the background lane, API side. */
#ifndef CORE_WORKCOORD_LANE_INT_H
#define CORE_WORKCOORD_LANE_INT_H

#include "table.h"
#include "workcoord/lane.h"

struct wc_lane_worker_row {
    struct wc_worker_id id;
    struct wc_session_id session;
    uint32_t slots, load, sent; /* sent: jobs it has */
    bool draining;
    uint64_t key;
    qf_time_ms rests_until;
};

struct wc_lane_job_row {
    struct wc_job_id id;
    uint64_t order;  /* older ones are smaller */
    uint32_t worker; /* row; WC_NONE: pending */
    uint32_t attempt, failures, deaths;
    qf_time_ms since, expires;
    struct wc_worker_id avoid; /* until avoid_until, if there is another */
    qf_time_ms avoid_until;
    uint32_t owner_count;
    uint64_t owners[WC_OWNERS_MAX];
};

/* Rows 0 to count - 1 are in use: one that goes is replaced by the last. */
struct wc_lane {
    struct wc_lane_limits limits;
    size_t state_size; /* of what a copy of the state has to hold */
    struct wc_lane_worker_row *workers;
    struct wc_lane_job_row *jobs;
    uint32_t worker_count, job_count;
    uint64_t last_order;
    qf_time_ms now;
    struct wc_lane_stats stats;

    const struct wc_lane_event *event; /* during a step */
    uint64_t trace_stale;
    wc_trace_fn *trace;
    void *trace_ctx;
    size_t effect_count, effect_capacity;
    struct wc_lane_effect *effects; /* not part of the state */
};

void wc_lane_trace_step(struct wc_lane *lane, qf_rc rc);

#endif
