/* lane_worker.c - the worker side of background work. */
#include "lane_worker_int.h"

#include <assert.h>
#include <stdlib.h>

struct wc_lane_worker *wc_lane_worker_new(uint32_t slots)
{
    struct wc_lane_worker *lane = calloc(1, sizeof(*lane));

    assert(slots <= WC_LANE_SLOTS_MAX);
    if (lane)
        lane->count = lane->stats.slots = slots;
    return lane;
}

struct wc_lane_worker *wc_lane_worker_free(struct wc_lane_worker *lane)
{
    free(lane);
    return NULL;
}

static struct wc_lane_worker_effect *emit(struct wc_lane_worker *lane,
                                          enum wc_lane_worker_effect_type type, uint32_t slot)
{
    struct wc_lane_worker_effect *effect = &lane->effects[lane->effect_count++];

    assert(lane->effect_count <= QF_COUNT_OF(lane->effects));
    *effect = (struct wc_lane_worker_effect){ .type = type,
                                              .session = lane->slots[slot].session,
                                              .job = lane->slots[slot].job,
                                              .attempt = lane->slots[slot].attempt,
                                              .slot = slot };
    return effect;
}

static void reject(struct wc_lane_worker *lane, enum wc_reject why)
{
    struct wc_lane_worker_effect *effect = &lane->effects[lane->effect_count++];

    *effect = (struct wc_lane_worker_effect){ .type = WC_LANE_WORKER_DO_REJECT,
                                              .session = lane->event->session,
                                              .job = lane->event->job,
                                              .attempt = lane->event->attempt,
                                              .reject = why };
    lane->stats.rejected++;
}

/* The slot in which the event's assignment runs; count: none. */
static uint32_t find(const struct wc_lane_worker *lane)
{
    uint32_t i = 0;

    while (i < lane->count && !(lane->slots[i].state == WC_LANE_RUNNING &&
                                lane->slots[i].session.v == lane->event->session.v &&
                                lane->slots[i].job.v == lane->event->job.v &&
                                lane->slots[i].attempt == lane->event->attempt))
        i++;
    return i;
}

static void on_assign(struct wc_lane_worker *lane)
{
    uint32_t i = 0;

    if (find(lane) < lane->count) {
        lane->stats.stale++;
        return;
    }
    while (i < lane->count && lane->slots[i].state != WC_LANE_FREE)
        i++;
    if (lane->draining || i == lane->count) {
        reject(lane, lane->draining ? WC_REJECT_DRAINING : WC_REJECT_FULL);
        return;
    }
    lane->slots[i] = (struct wc_lane_slot){ WC_LANE_RUNNING, lane->event->session, lane->event->job,
                                            lane->event->attempt };
    lane->stats.running++;
    lane->stats.started++;
    (void)emit(lane, WC_LANE_WORKER_DO_RUN, i);
}

static void stop(struct wc_lane_worker *lane, uint32_t slot)
{
    (void)emit(lane, WC_LANE_WORKER_DO_STOP, slot);
    lane->slots[slot].state = WC_LANE_STOPPING;
    lane->stats.running--;
    lane->stats.stopping++;
}

static void on_cancel(struct wc_lane_worker *lane)
{
    uint32_t slot = find(lane);

    if (slot == lane->count) {
        lane->stats.stale++;
        return;
    }
    stop(lane, slot);
    lane->stats.stopped++;
}

static void on_lost(struct wc_lane_worker *lane)
{
    for (uint32_t i = 0; i < lane->count; i++)
        if (lane->slots[i].state == WC_LANE_RUNNING &&
            lane->slots[i].session.v == lane->event->session.v) {
            stop(lane, i);
            lane->stats.stopped++;
        }
}

static void on_drain(struct wc_lane_worker *lane)
{
    lane->draining = true;
    lane->stats.slots = 0;
    for (uint32_t i = 0; i < lane->count; i++)
        if (lane->slots[i].state == WC_LANE_RUNNING) {
            stop(lane, i);
            emit(lane, WC_LANE_WORKER_DO_REJECT, i)->reject = WC_REJECT_DRAINING;
            lane->stats.given_back++;
        }
}

static void on_back(struct wc_lane_worker *lane)
{
    const struct wc_lane_worker_event *event = lane->event;
    struct wc_lane_slot *slot;

    assert(event->slot < lane->count && lane->slots[event->slot].state != WC_LANE_FREE);
    slot = &lane->slots[event->slot];
    if (slot->state == WC_LANE_STOPPING) {
        lane->stats.stopping--;
    } else if (event->type == WC_LANE_WORKER_EV_DONE) {
        (void)emit(lane, WC_LANE_WORKER_DO_DONE, event->slot);
        lane->stats.running--;
        lane->stats.done++;
    } else {
        struct wc_lane_worker_effect *effect = emit(lane, WC_LANE_WORKER_DO_FAILED, event->slot);

        effect->failure.rc = event->failure.rc;
        effect->failure.retryable = event->failure.retryable;
        lane->stats.running--;
        lane->stats.failed++;
    }
    slot->state = WC_LANE_FREE;
}

void wc_lane_worker_step(struct wc_lane_worker *lane, const struct wc_lane_worker_event *event,
                         struct wc_lane_worker_effects *ret_effects)
{
    static void (*const handlers[WC_LANE_WORKER_EV__COUNT])(struct wc_lane_worker * lane) = {
        [WC_LANE_WORKER_EV_ASSIGN] = on_assign, [WC_LANE_WORKER_EV_CANCEL] = on_cancel,
        [WC_LANE_WORKER_EV_LOST] = on_lost,     [WC_LANE_WORKER_EV_DONE] = on_back,
        [WC_LANE_WORKER_EV_FAILED] = on_back,   [WC_LANE_WORKER_EV_DRAIN] = on_drain,
    };

    assert((size_t)event->type < WC_LANE_WORKER_EV__COUNT);
    lane->event = event;
    lane->effect_count = 0;
    handlers[event->type](lane);
    lane->event = NULL;
    *ret_effects = (struct wc_lane_worker_effects){ lane->effects, lane->effect_count };
}

const struct wc_lane_worker_stats *wc_lane_worker_stats(const struct wc_lane_worker *lane)
{
    return &lane->stats;
}
