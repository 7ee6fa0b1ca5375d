/* lane_worker_int.h - the slots of the background lane, worker side. */
#ifndef CORE_WORKCOORD_LANE_WORKER_INT_H
#define CORE_WORKCOORD_LANE_WORKER_INT_H

#include "workcoord/lane_worker.h"

enum wc_lane_slot_state { WC_LANE_FREE, WC_LANE_RUNNING, WC_LANE_STOPPING };

struct wc_lane_slot {
    enum wc_lane_slot_state state;
    struct wc_session_id session;
    struct wc_job_id job;
    uint32_t attempt;
};

struct wc_lane_worker {
    uint32_t count;
    bool draining;
    struct wc_lane_slot slots[WC_LANE_SLOTS_MAX];
    struct wc_lane_worker_stats stats;
    const struct wc_lane_worker_event *event; /* during a step */
    size_t effect_count;
    struct wc_lane_worker_effect effects[2 * WC_LANE_SLOTS_MAX + 1];
};

#endif
