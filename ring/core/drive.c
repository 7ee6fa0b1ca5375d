/* drive.c - from the state of the ring to what is done next. */
#include "ring/core/drive.h"

#include <string.h>

#include "base/pure/macros.h"
#include "ring/core/drive_int.h"

#define NEVER_MS (INT64_MIN / 2) /* long ago */

void rg_driver_init(struct rg_driver *driver, const struct rg_drive_options *options)
{
    memset(driver, 0, sizeof(*driver));
    driver->options = *options;
    if (!driver->options.streams || driver->options.streams > RG_JOBS_MAX)
        driver->options.streams = driver->options.streams ? RG_JOBS_MAX : 64;
    if (!driver->options.node_streams)
        driver->options.node_streams = 8;
    if (!driver->options.retry_ms)
        driver->options.retry_ms = 5000;
    if (!driver->options.timeout_ms)
        driver->options.timeout_ms = 10 * 60 * 1000;
    driver->clean_ms = NEVER_MS;
    for (size_t i = 0; i < RG_CHANGES_MAX; i++)
        driver->change_ms[i] = NEVER_MS;
    for (size_t i = 0; i < RG_NODES_MAX; i++)
        driver->nodes[i].proposed_ms = driver->nodes[i].told_ms = NEVER_MS;
    for (size_t i = 0; i < RG_PARTITIONS_MAX; i++)
        driver->partitions[i].asked_ms = NEVER_MS;
}

struct rg_drive_effect *rg_drive_emit(struct rg_driver *driver, enum rg_drive_effect_kind kind)
{
    struct rg_drive_effect *effect = &driver->effects[driver->effect_count];

    driver->effect_count += driver->effect_count < RG_DRIVE_EFFECTS_MAX;
    *effect = (struct rg_drive_effect){ .kind = kind };
    return effect;
}

struct rg_entry *rg_drive_propose(struct rg_driver *driver, enum rg_entry_kind kind, int64_t now_ms)
{
    struct rg_drive_effect *effect = rg_drive_emit(driver, RG_DRIVE_PROPOSE);

    effect->entry = (struct rg_entry){ .kind = kind, .time_ms = now_ms };
    return &effect->entry;
}

static bool is_due(const struct rg_driver *driver, int64_t *last_ms, int64_t now_ms)
{
    if (now_ms - *last_ms < driver->options.retry_ms ||
        driver->effect_count == RG_DRIVE_EFFECTS_MAX)
        return false;
    *last_ms = now_ms;
    return true;
}

static bool is_clean(const struct rg_ring *ring, const struct rg_change *change)
{
    for (uint32_t at = rg_slot_set_next(&change->slots, 0); at < ring->slot_count;
         at = rg_slot_set_next(&change->slots, at + 1))
        if (ring->slots[at].stale)
            return false;
    return true;
}

static void plan_changes(struct rg_driver *driver, const struct rg_ring *ring, int64_t now_ms)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++) {
        const struct rg_change *change = &ring->changes[i];
        struct rg_slot_set ready;

        if (change->kind == RG_CHANGE_NONE)
            continue;
        if (rg_change_runs(change)) {
            if (rg_ring_ready(ring, change, &ready) &&
                is_due(driver, &driver->change_ms[i], now_ms)) {
                struct rg_entry *entry = rg_drive_propose(driver, RG_BEGIN, now_ms);

                entry->change = change->id;
                entry->slots = ready;
            }
        } else if (now_ms - change->completed_ms >= ring->grace_ms && is_clean(ring, change) &&
                   is_due(driver, &driver->change_ms[i], now_ms)) {
            rg_drive_propose(driver, RG_FORGET, now_ms)->change = change->id;
        }
    }
}

/* Say in the log who is up, and that the dead are to be replaced. */
static void plan_status(struct rg_driver *driver, const struct rg_ring *ring, int64_t now_ms)
{
    for (uint8_t n = 0; n < RG_NODES_MAX; n++) {
        const struct rg_node *node = &ring->nodes[n];
        enum rg_entry_kind kind;
        struct rg_entry *entry;

        if (node->state == RG_NODE_NONE || node->state == RG_NODE_REMOVED)
            continue;
        if (!driver->nodes[n].known)
            continue;
        if (driver->nodes[n].up &&
            (node->down || node->incarnation != driver->nodes[n].incarnation))
            kind = RG_UP;
        else if (!driver->nodes[n].up && !node->down)
            kind = RG_DOWN;
        else if (driver->options.dead_ms && node->down && node->state == RG_NODE_NORMAL &&
                 now_ms - node->down_ms >= driver->options.dead_ms &&
                 rg_nodes_count(ring->members) > ring->copies)
            kind = RG_REMOVE;
        else
            continue;
        if (!is_due(driver, &driver->nodes[n].proposed_ms, now_ms))
            continue;
        entry = rg_drive_propose(driver, kind, now_ms);
        entry->node = n;
        entry->incarnation = driver->nodes[n].incarnation;
    }
}

/* Let everybody know the ring's epoch. */
static void plan_epochs(struct rg_driver *driver, const struct rg_ring *ring, int64_t now_ms)
{
    for (uint32_t p = 0; p < driver->options.partitions; p++)
        if (driver->partitions[p].adopted < ring->epoch &&
            is_due(driver, &driver->partitions[p].asked_ms, now_ms)) {
            struct rg_drive_effect *effect = rg_drive_emit(driver, RG_DRIVE_ADOPT);

            effect->partition = p;
            effect->epoch = ring->epoch;
        }
    for (uint8_t n = 0; n < RG_NODES_MAX; n++)
        if (ring->nodes[n].state != RG_NODE_NONE && ring->nodes[n].state != RG_NODE_REMOVED &&
            driver->nodes[n].up && driver->nodes[n].acked < ring->epoch &&
            is_due(driver, &driver->nodes[n].told_ms, now_ms)) {
            struct rg_drive_effect *effect = rg_drive_emit(driver, RG_DRIVE_TELL);

            effect->node = n;
            effect->epoch = ring->epoch;
        }
}

static void plan_cleanup(struct rg_driver *driver, const struct rg_ring *ring, int64_t now_ms)
{
    if (!is_due(driver, &driver->clean_ms, now_ms))
        return;
    for (uint32_t at = 0; at < ring->slot_count; at++) {
        const struct rg_slot *slot = &ring->slots[at];

        for (uint8_t n = 0; slot->stale && n < RG_NODES_MAX; n++) {
            if (!(slot->stale & RG_NODE(n)))
                continue;
            if (slot->cleaning & RG_NODE(n)) {
                struct rg_drive_effect *effect = rg_drive_emit(driver, RG_DRIVE_CLEAN);

                effect->slot = at;
                effect->node = n;
                effect->epoch = slot->epoch;
            } else if (rg_clean_check(ring, at, n, now_ms) == RG_APPLIED) {
                struct rg_entry *entry = rg_drive_propose(driver, RG_CLEAN, now_ms);

                entry->node = n;
                entry->slots = rg_slot_set_of(at);
            }
        }
    }
}

static void on_cleaned(struct rg_driver *driver, const struct rg_ring *ring,
                       const struct rg_drive_event *event)
{
    struct rg_entry *entry;

    if (event->slot >= ring->slot_count || ring->slots[event->slot].epoch != event->epoch)
        return;
    entry = rg_drive_propose(driver, RG_CLEANED, event->now_ms);
    entry->node = event->node;
    entry->epoch = event->epoch;
    entry->slots = rg_slot_set_of(event->slot);
}

static void on_status(struct rg_driver *driver, const struct rg_drive_event *event)
{
    if (driver->nodes[event->node].incarnation != event->incarnation)
        driver->nodes[event->node].acked = 0; /* another disk knows no epoch */
    driver->nodes[event->node].known = true;
    driver->nodes[event->node].up = event->up;
    driver->nodes[event->node].incarnation = event->incarnation;
}

static void take(struct rg_driver *driver, const struct rg_ring *ring,
                 const struct rg_drive_event *event)
{
    struct rg_drive_options options = driver->options;

    switch (event->kind) {
    case RG_DRIVE_LEAD:
        rg_driver_init(driver, &options);
        break;
    case RG_DRIVE_TICK:
        break;
    case RG_DRIVE_STATUS:
        on_status(driver, event);
        break;
    case RG_DRIVE_ACKED:
        driver->nodes[event->node].acked = QF_MAX(driver->nodes[event->node].acked, event->epoch);
        break;
    case RG_DRIVE_ADOPTED:
        driver->partitions[event->partition].adopted =
            QF_MAX(driver->partitions[event->partition].adopted, event->epoch);
        break;
    case RG_DRIVE_STREAMED:
    case RG_DRIVE_VERIFIED:
        rg_jobs_hear(driver, ring, event);
        break;
    case RG_DRIVE_CLEANED:
        on_cleaned(driver, ring, event);
        break;
    }
}

void rg_drive(struct rg_driver *driver, const struct rg_ring *ring,
              const struct rg_drive_event *event)
{
    driver->effect_count = 0;
    take(driver, ring, event);
    if (!ring->founded)
        return;
    plan_changes(driver, ring, event->now_ms);
    plan_status(driver, ring, event->now_ms);
    plan_epochs(driver, ring, event->now_ms);
    rg_jobs_plan(driver, ring, event->now_ms);
    plan_cleanup(driver, ring, event->now_ms);
}
